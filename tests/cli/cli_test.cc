// The built binary, from the outside: answers on standard output, messages on standard error, exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/cli_fixture.h"

namespace orrery::cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(CliTest, HelpAndVersion) {
  EXPECT_THAT(Orrery("--version").out, StartsWith("orrery "));
  for (const char* const arguments : {"--help", "simulate --help", "spec --help", "validate --help"}) {
    const Outcome help = Orrery(arguments);
    EXPECT_EQ(help.code, 0) << arguments;
    EXPECT_THAT(help.out, HasSubstr("--help"));
    EXPECT_EQ(help.err, "");
  }
}

TEST_F(CliTest, WrongUsageIsBadInput) {
  const std::string example = Example("korthikanti_22b");
  for (const std::string& arguments : std::vector<std::string>{
           "", "no-such-command", "simulate", "spec", "spec no-such-command", "simulate " + example + " --bogus",
           "simulate " + example + " --fold maybe", "simulate " + example + " --granularity coarse",
           "simulate " + example + " another", "spec list --bogus", "validate runs", "spec new -o"}) {
    const Outcome outcome = Orrery(arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_NE(outcome.err, "") << arguments;
  }
  EXPECT_THAT(Orrery("simulate " + example + " --bogus").err, HasSubstr("--bogus"));
}

// --- simulate

TEST_F(CliTest, SimulatePrintsASummary) {
  const Outcome outcome = Orrery("simulate " + Example("megascale_175b_12288"));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("12,288 x a100-sxm-80gb"), HasSubstr("iteration time"), HasSubstr("MFU"),
                                 HasSubstr("from peak to achieved"), HasSubstr("fits: "), HasSubstr("computed from")));
}

TEST_F(CliTest, SimulateJson) {
  const Outcome outcome = Orrery("simulate " + Example("korthikanti_22b") + " --json");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, AllOf(StartsWith("{\n  \"iteration_time_s\": "), HasSubstr("\"simulator\""),
                                 ContainsRegex("\"spec_sha256\": \"[0-9a-f]{64}\"")));
}

// However it is simulated, the bytes are the same but for `simulator`, which --no-simulator leaves out.
TEST_F(CliTest, SimulationFlagsDoNotShow) {
  const std::string command = "simulate " + Example("korthikanti_22b") + " --json --no-simulator";
  const std::string expected = Orrery(command).out;
  EXPECT_THAT(expected, Not(HasSubstr("simulator")));
  for (const char* const flags : {"--fold=off", "--fold off", "--granularity operator", "--engine=queue",
                                  "--set simulation.fold=OFF", "--fold=on --engine=worklist --granularity=chunk"}) {
    EXPECT_EQ(Orrery(command + " " + flags).out, expected) << flags;
  }
  // Iterations are part of the spec, and so of its hash, not of the answer.
  const std::string more = Orrery(command + " --iterations 5").out;
  EXPECT_EQ(more.substr(0, more.find("provenance")), expected.substr(0, expected.find("provenance")));
}

// Sugar for simulation.overlap, which selects the engine that it needs; what cannot be together is refused.
TEST_F(CliTest, DynamicOverlap) {
  const std::string command = "simulate " + Example("megascale_175b_12288") + " --json --no-simulator";
  const Outcome dynamic = Orrery(command + " --overlap=dynamic");
  EXPECT_EQ(dynamic.code, 0);
  EXPECT_EQ(dynamic.out, Orrery(command + " --set simulation.overlap=DYNAMIC").out);
  EXPECT_NE(dynamic.out, Orrery(command).out);
  EXPECT_EQ(Orrery(command + " --overlap=static").out, Orrery(command).out);

  const Outcome worklist = Orrery(command + " --overlap=dynamic --engine=worklist");
  EXPECT_EQ(worklist.code, 2);
  EXPECT_THAT(worklist.err, HasSubstr("simulation.engine: the worklist knows no rates that change"));
  const Outcome shared = Orrery(command +
                                " --overlap=dynamic --network=flow --set 'software.overlap_rules=[{axis: DP pass: "
                                "BACKWARD micro_batches: LAST compute_factor: 1 communication_factor: 1.5}]'");
  EXPECT_EQ(shared.code, 2);
  EXPECT_THAT(shared.err, HasSubstr("compute slows no transfers that share links"));
}

TEST_F(CliTest, SetOverridesAField) {
  const std::string command = "simulate " + Example("korthikanti_22b");
  const Outcome outcome = Orrery(command + " --set training.global_batch=8 --set 'name=\"twice\"'");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("twice: "));
  EXPECT_THAT(outcome.out, HasSubstr("2 micro-batches of 4"));
  EXPECT_EQ(Orrery(command + " --set nonsense").code, 2);
  EXPECT_EQ(Orrery(command + " --set model.nonsense=1").code, 2);
}

// The answer is no, and is printed.
TEST_F(CliTest, WhatDoesNotFitExitsWithOne) {
  const Outcome outcome =
      Orrery("simulate " + Example("korthikanti_22b") + " --set cluster.accelerator.memory_capacity_bytes=8000000000");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("iteration time"), HasSubstr("DOES NOT FIT")));
}

// Memory has the same answer, and says what would change it.
TEST_F(CliTest, MemorySaysWhatWouldFit) {
  const std::string run = Example("megatron_175b_3072");
  EXPECT_EQ(Orrery("memory " + run).code, 0);
  const Outcome outcome = Orrery(
      "memory " + run + " --set parallelism.zero_stage=0 --set cluster.accelerator.memory_capacity_bytes=45000000000");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("DOES NOT FIT"), HasSubstr("--set parallelism.zero_stage=1")));
  EXPECT_EQ(Orrery("memory " + run + " --set nonsense").code, 2);
}

TEST_F(CliTest, OutputGoesToAFile) {
  const std::string command = "simulate " + Example("korthikanti_22b") + " --json --no-simulator";
  const Outcome outcome = Orrery(command + " -o " + Path("out.json").string());
  EXPECT_EQ(outcome.code, 0);
  EXPECT_EQ(outcome.out, "");
  EXPECT_EQ(Contents(Path("out.json")), Orrery(command).out);
}

TEST_F(CliTest, OutputThatCannotBeWritten) {
  const std::string command = "simulate " + Example("korthikanti_22b");
  File("file", "not a folder");
  fs::create_directory(Path("folder"));
  for (const std::string& path :
       {Path("no/such/folder/out").string(), Path("file").string() + "/out", Path("folder").string()}) {
    for (const char* const flag : {" -o ", " --trace "}) {
      const Outcome outcome = Orrery(command + flag + path);
      EXPECT_EQ(outcome.code, 2) << flag << path;
      EXPECT_EQ(outcome.out, "") << flag << path;
      EXPECT_THAT(outcome.err, HasSubstr(path));
    }
  }
  if (geteuid() == 0) GTEST_SKIP() << "root may write anywhere";
  fs::permissions(Path("folder"), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(Orrery(command + " -o " + Path("folder").string() + "/out").code, 2);
}

TEST_F(CliTest, TracePlainAndGzipped) {
  const std::string command = "simulate " + Example("korthikanti_22b") + " -o /dev/null --trace ";
  ASSERT_EQ(Orrery(command + Path("x.json").string()).code, 0);
  ASSERT_EQ(Orrery(command + Path("x.json.gz").string()).code, 0);
  const std::string plain = Contents(Path("x.json"));
  EXPECT_THAT(plain, StartsWith("{\"displayTimeUnit\":\"ms\",\"traceEvents\":["));
  EXPECT_THAT(plain, AllOf(HasSubstr("\"F0 chunk 0\""), HasSubstr("memory (GiB)")));
  const gzFile packed = gzopen(Path("x.json.gz").c_str(), "rb");
  ASSERT_NE(packed, nullptr);
  std::string unpacked(plain.size() + 1, '\0');
  const int length = gzread(packed, unpacked.data(), static_cast<unsigned>(unpacked.size()));
  gzclose(packed);
  unpacked.resize(static_cast<std::size_t>(std::max(length, 0)));
  EXPECT_EQ(unpacked, plain);
}

TEST_F(CliTest, TraceRanks) {
  const std::string command =
      "simulate " + Example("korthikanti_22b") + " -o /dev/null --trace " + Path("x.json").string() + " --trace-ranks ";
  ASSERT_EQ(Orrery(command + "1,5").code, 0);
  EXPECT_THAT(Contents(Path("x.json")),
              AllOf(HasSubstr("\"rank 1 "), HasSubstr("\"rank 5 "), Not(HasSubstr("\"rank 0 "))));
  const Outcome outcome = Orrery(command + "8");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("allowed: 0 to 7"));
}

// --- Bad files

TEST_F(CliTest, FilesThatAreNoSpec) {
  File("empty.txtpb", "");
  File("binary.txtpb", std::string("\x7f"
                                   "ELF\0\x01\xff\xfe",
                                   8));
  File("syntax.txtpb", "model {\n  layers: \n}\n");
  const std::vector<std::pair<std::string, std::string>> files = {{"missing.txtpb", "no such file"},
                                                                  {"", "is a directory"},
                                                                  {"empty.txtpb", "is empty"},
                                                                  {"binary.txtpb", "binary.txtpb"},
                                                                  {"syntax.txtpb", "syntax.txtpb:3"}};
  for (const auto& [name, message] : files) {
    for (const char* const command : {"simulate ", "spec check ", "spec resolve "}) {
      const Outcome outcome = Orrery(command + Path(name).string());
      EXPECT_EQ(outcome.code, 2) << command << name;
      EXPECT_EQ(outcome.out, "") << command << name;
      EXPECT_THAT(outcome.err, AllOf(StartsWith("error: "), HasSubstr(message))) << command << name;
    }
  }
  EXPECT_EQ(Orrery("simulate /dev/null").code, 2);
  if (geteuid() == 0) GTEST_SKIP() << "root may read anything";
  const std::string unreadable = File("unreadable.txtpb", "name: \"x\"\n");
  fs::permissions(unreadable, fs::perms::none);
  EXPECT_EQ(Orrery("simulate " + unreadable).code, 2);
}

// All that is wrong in one go, in order of position.
TEST_F(CliTest, SeveralErrorsAtOnceInOrder) {
  const std::string spec = File("bad.txtpb",
                                "model { preset: \"gpt-22b\" layrs: 3 }\n"
                                "cluster { preset: \"selen\" }\n"
                                "software { preset: \"megatron-lm-2022\" }\n"
                                "parallelism { tp: 0 dp: 4 }\n"
                                "training { global_batch: -1 }\n");
  const Outcome outcome = Orrery("spec check " + spec);
  EXPECT_EQ(outcome.code, 2);
  SCOPED_TRACE(outcome.err);
  std::size_t position = 0;
  for (const char* const expected : {"bad.txtpb:1:27: model.layrs", "bad.txtpb:2:", "bad.txtpb:4:", "bad.txtpb:5:"}) {
    const std::size_t found = outcome.err.find(expected, position);
    ASSERT_NE(found, std::string::npos) << expected;
    position = found;
  }
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("did you mean 'layers'"), HasSubstr("selene"), HasSubstr("parallelism.tp"),
                                 HasSubstr("training.global_batch")));
}

// --- spec

TEST_F(CliTest, SpecList) {
  const Outcome all = Orrery("spec list");
  EXPECT_EQ(all.code, 0);
  EXPECT_THAT(all.out, AllOf(HasSubstr("accelerators\n"), HasSubstr("clusters\n"), HasSubstr("models\n"),
                             HasSubstr("profiles\n"), HasSubstr("software\n"), HasSubstr("  gpt3-175b\n")));
  const Outcome models = Orrery("spec list models");
  EXPECT_THAT(models.out, AllOf(StartsWith("models\n"), Not(HasSubstr("software"))));
  const Outcome unknown = Orrery("spec list planets");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err,
              HasSubstr("accelerators, clusters, expert_transports, models, nccl, nccl_times, profiles, software"));
}

TEST_F(CliTest, SpecPathAddsPresets) {
  fs::create_directories(Path("mine/models"));
  File("mine/models/my-model.txtpb", Contents(ORRERY_SOURCE_DIR "/specs/models/gpt-22b.txtpb"));
  EXPECT_THAT(Orrery("spec list models").out, Not(HasSubstr("my-model")));
  const std::string path = " --spec-path " + Path("mine").string();
  EXPECT_THAT(Orrery("spec list models" + path).out, AllOf(HasSubstr("  my-model\n"), HasSubstr("  gpt-22b\n")));
  const Outcome outcome = Orrery("spec check " + Example("korthikanti_22b") + " --set model.preset=my-model" + path);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
}

// What `spec new` prints is a run that passes its own check and can be simulated.
TEST_F(CliTest, SpecNewPassesSpecCheck) {
  const std::string spec = Path("new.txtpb").string();
  ASSERT_EQ(Orrery("spec new -o " + spec).code, 0);
  EXPECT_EQ(Orrery("spec new").out, Contents(spec));
  const Outcome check = Orrery("spec check " + spec);
  EXPECT_EQ(check.code, 0) << check.err;
  EXPECT_THAT(check.out, ContainsRegex("new.txtpb: ok, spec [0-9a-f]{64}\n"));
  EXPECT_EQ(Orrery("simulate " + spec).code, 0);
}

// A resolved run is a run: it resolves to itself, and gives the same answer from the same spec.
TEST_F(CliTest, SpecResolveIsAFixedPoint) {
  const std::string example = Example("megascale_175b_12288");
  const std::string once = Path("once.txtpb").string();
  ASSERT_EQ(Orrery("spec resolve " + example + " -o " + once).code, 0);
  EXPECT_EQ(Orrery("spec resolve " + once).out, Contents(once));
  EXPECT_EQ(Orrery("spec resolve " + example).out, Contents(once));
  const std::string flags = " --json --no-simulator";
  EXPECT_EQ(Orrery("simulate " + once + flags).out, Orrery("simulate " + example + flags).out);
  EXPECT_THAT(Orrery("spec resolve " + example + " --set training.global_batch=1536").out,
              HasSubstr("global_batch: 1536"));
}

// Schedules and conventions are known to layers above the loader; what is wrong with them stands among the other
// errors, where it was written.
TEST_F(CliTest, ErrorsOfAllLayersTogether) {
  const std::string spec = File("run.txtpb", Orrery("spec new").out);
  const Outcome outcome = Orrery(
      "spec check " + spec + " --set schedule.name=1f1 --set training.seq_len=0 --set simulation.flops_convention=6N");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, AllOf(HasSubstr("--set schedule.name=1f1: schedule.name: no schedule is called \"1f1\""),
                                 HasSubstr("training.seq_len: "),
                                 HasSubstr("simulation.flops_convention: no FLOP convention is called \"6N\"")));
  // Numbers too large to multiply are judged by their own rules alone.
  const std::string largest = "9223372036854775807";
  EXPECT_THAT(
      Orrery("spec check " + spec + " --set parallelism.dp=" + largest + " --set training.micro_batch=" + largest).err,
      AllOf(HasSubstr("parallelism.dp: "), HasSubstr("training.micro_batch: "), Not(HasSubstr("schedule"))));
  EXPECT_THAT(Orrery("spec check " + spec + " --set schedule.name=interleaved-1f1b --set schedule.group_size=1").err,
              HasSubstr("--set schedule.group_size=1: schedule.group_size: interleaved-1f1b: "));
}

// Links that a run perturbs are known to the topology; an entry that names none is an error where it was written.
TEST_F(CliTest, ErrorsOfPerturbedLinks) {
  const std::string text = Orrery("spec new").out;
  const std::size_t place = text.find("  # slow_gpus");
  std::string with_links = text;
  with_links.insert(place,
                    "link { device: \"node0/nic0\" capacity: 0.5 }\nlink { device: \"nobody\" capacity: 0.5 }\n");
  const Outcome written = Orrery("simulate " + File("run.txtpb", with_links) + " --network=flow");
  EXPECT_EQ(written.code, 2);
  const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(place), '\n') + 2;
  EXPECT_THAT(written.err, HasSubstr("run.txtpb:" + std::to_string(line) +
                                     ":8: perturbation.link[1].device: no device \"nobody\"; allowed: "));
  const auto error = [&](const std::string& link) {
    const Outcome outcome = Orrery("spec check " + File("plain.txtpb", text) +
                                   " --set simulation.network=FLOW --set 'perturbation.link=" + link + "'");
    EXPECT_EQ(outcome.code, 2);
    return outcome.err;
  };
  EXPECT_THAT(
      error("{device: \"leaf0\" to: \"leaf7777\" capacity: 1}"),
      AllOf(HasSubstr("--set perturbation.link={"), HasSubstr("}: perturbation.link[0].to: no device \"leaf7777\"")));
  EXPECT_THAT(error("{device: \"gpu:1\" capacity: 0}"),
              HasSubstr("}: perturbation.link[0].capacity: without the dead links GPU "));
  EXPECT_THAT(
      Orrery("spec check " + File("plain.txtpb", text) + " --set simulation.network=FLOW --set cluster.node.gpus=7")
          .err,
      HasSubstr("--set cluster.node.gpus=7: cluster.node.gpus: "));
}

// What is read is not overwritten, and nothing is written twice.
TEST_F(CliTest, OutputsMustDiffer) {
  const std::string spec = File("run.txtpb", Orrery("spec new").out);
  const std::string before = Orrery("spec check " + spec).out;
  EXPECT_EQ(Orrery("simulate " + spec + " -o " + spec).code, 2);
  EXPECT_EQ(Orrery("simulate " + spec + " --trace " + spec).code, 2);
  EXPECT_EQ(Orrery("spec check " + spec).out, before);
  const std::string out = Path("out").string();
  EXPECT_EQ(Orrery("simulate " + spec + " -o " + out + " --trace " + out).code, 2);
  EXPECT_EQ(Orrery("simulate " + spec + " --trace-ranks 0").code, 2) << "without --trace";
  EXPECT_EQ(Orrery("simulate " + spec + " --no-simulator").code, 2) << "without --json";
}

// --- validate

constexpr const char* kTable =
    "id,source,software,gpu,gpus,layers,hidden,heads,vocab,seq_len,tp,pp,vpp,zero_stage,schedule,precision,micro_batch,"
    "global_batch,recompute,sequence_parallel,moe,time_s\n"
    "a,paper,megatron-lm-2022,A100-80GB,8,48,6144,64,51200,2048,8,1,1,0,none,fp16,4,4,selective,yes,,1.10\n"
    "b,other,megatron-lm-2022,A100-80GB,8,48,6144,64,51200,2048,8,1,1,0,none,fp16,4,4,selective,yes,8,1.10\n";

TEST_F(CliTest, ValidateRuns) {
  const std::string table = File("runs.csv", kTable);
  const Outcome text = Orrery("validate runs " + table);
  EXPECT_EQ(text.code, 0) << text.err;
  EXPECT_THAT(text.out, AllOf(HasSubstr("by source"), HasSubstr("mixture of experts")));
  EXPECT_EQ(text.err, "");
  EXPECT_THAT(Orrery("validate runs " + table + " --json").out, HasSubstr("\"median_abs_error\""));
  EXPECT_THAT(Orrery("validate runs " + table + " --csv --by gpu").out, StartsWith("id,gpu,measured_s"));
  EXPECT_THAT(Orrery("validate runs " + table + " --where source=pap --csv").out, Not(HasSubstr("other")));
  // The answer is no where a limit is exceeded, or nothing could be predicted; it is still printed.
  const Outcome exceeded = Orrery("validate runs " + table + " --max-median 0");
  EXPECT_EQ(exceeded.code, 1);
  EXPECT_EQ(exceeded.out, text.out);
  EXPECT_THAT(exceeded.err, HasSubstr("exceeds"));
  EXPECT_EQ(Orrery("validate runs " + table + " --max-median 0.5 --max-p90 0.5").code, 0);
  EXPECT_EQ(Orrery("validate runs " + table + " --where source=other").code, 1);
}

TEST_F(CliTest, ValidateBadInput) {
  const std::string table = File("runs.csv", kTable);
  const std::string broken = File("broken.csv", "id,source\n1\n");
  for (const std::string& arguments : std::vector<std::string>{
           "planets " + table, "runs " + Path("missing.csv").string(), "runs " + broken, "runs " + table + " --where x",
           "runs " + table + " --where planet=x", "runs " + table + " --by planet",
           "runs " + table + " --where source=nobody", "runs " + table + " --max-median little",
           "runs " + table + " --max-median ''", "runs " + table + " --max-p90 nan", "runs " + table + " --max-p90 -1",
           "runs " + table + " --json --csv", "runs " + table + " -o ''"}) {
    const Outcome outcome = Orrery("validate " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_NE(outcome.err, "") << arguments;
  }
}

}  // namespace
}  // namespace orrery::cli
