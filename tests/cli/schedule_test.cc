// `orrery schedule list | show | eval` and `orrery validate schedules`, as a shell sees them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/cli/cli_fixture.h"

namespace orrery::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ScheduleCliTest : public CliTest {
 protected:
  // Rank 0 wants the gradient of 0 before it sends 1 forward, rank 1 wants 1 first.
  std::string Deadlock() const { return File("dead.csv", "0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n"); }
};

TEST_F(ScheduleCliTest, List) {
  const Outcome text = Orrery("schedule list");
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out, AllOf(StartsWith("1f1b\n  "), HasSubstr("\n\nzb-v\n  "), HasSubstr("\n  reference    "),
                              HasSubstr("\n  constraints  "), HasSubstr("\n  closed form  idle (p-1)(F+B)")));
  const auto json = nlohmann::json::parse(Orrery("schedule list --json").out);
  EXPECT_EQ(json.size(), 25);
  EXPECT_EQ(json[0]["name"], "1f1b");
  EXPECT_EQ(json[0]["chunks"], 1);
  EXPECT_EQ(json[0]["automatic"], false);
}

// 1F1B, p = m = 2, F = I = W = 1: (m + p - 1)(F + B) = 9, of which 6 busy.
TEST_F(ScheduleCliTest, ShowInEveryFormat) {
  const std::string show = "schedule show 1f1b --ranks 2 --microbatches 2 --format ";
  EXPECT_EQ(Orrery(show + "torch-csv").out, "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  EXPECT_EQ(Orrery(show + "torch-comms-csv").out,
            "0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1,0REDUCE_GRAD,0RESHARD\n"
            "1UNSHARD,1RECV_F0,1F0,1RECV_F1,1B0,1SEND_B0,1F1,1B1,1SEND_B1,1REDUCE_GRAD,1RESHARD\n");
  const Outcome text = Orrery(show + "text");
  EXPECT_EQ(text.code, 0);
  EXPECT_EQ(text.err, "");
  EXPECT_THAT(text.out, AllOf(HasSubstr("\n0 F0 F1 .. .. B0=== .. B1===\n1 .. F0 B0=== F1 B1=== .. ..\n"),
                              HasSubstr("makespan 9, wall bubble (makespan - busy, mean over ranks) 33.3 %"),
                              HasSubstr("messages between ranks 4")));
  EXPECT_EQ(text.out, Orrery("schedule show 1f1b --ranks 2 --microbatches 2").out);
  const auto json = nlohmann::json::parse(Orrery(show + "json").out);
  EXPECT_EQ(json["makespan"], 9);
  EXPECT_EQ(json["ranks"][1]["wall_idle"], 3);
  EXPECT_EQ(json["schedule"]["order"][0][2], "0B0");
  EXPECT_EQ(Orrery("schedule show 1f1b --ranks 2 --microbatches 2 --json").out, Orrery(show + "json").out);
  const Outcome svg = Orrery(show + "svg -o " + Path("picture.svg").string());
  EXPECT_EQ(svg.code, 0);
  EXPECT_EQ(svg.out, "");
  EXPECT_THAT(Contents(Path("picture.svg")),
              AllOf(StartsWith("<?xml"), HasSubstr("<title>1f1b: p = 2, m = 2</title>")));
}

// What is shown can be written, read again, and costs the same.
TEST_F(ScheduleCliTest, ATableThatIsReadCostsWhatWasShown) {
  for (const std::string family : {"1f1b", "interleaved-1f1b", "zb-v", "zb-auto", "dualpipe", "chimera"}) {
    const std::string costs = " --json --costs F=5,I=6,W=4,comm=1";
    const std::string show = "schedule show " + family + " --ranks 4 --microbatches 8";
    auto shown = nlohmann::json::parse(Orrery(show + costs).out);
    for (const std::string format : {"torch-csv", "torch-comms-csv"}) {
      const std::string table = Path(family + ".csv").string();
      ASSERT_EQ(Orrery(show + " --costs F=5,I=6,W=4,comm=1 --format " + format + " -o " + table).code, 0);
      const auto read = nlohmann::json::parse(Orrery("schedule eval " + table + costs).out);
      for (const char* const key : {"makespan", "longest_span", "messages", "ranks"}) {
        EXPECT_EQ(read[key], shown[key]) << family << " " << format << " " << key;
      }
    }
  }
}

// With B = 3 for I + W a full backward pass costs 3; by stage, the second takes twice as long: its 4 passes 2, 6, 2, 6
// follow 0F0 (1) and precede 0B1 (3) without a gap.
TEST_F(ScheduleCliTest, Costs) {
  const std::string show = "schedule show 1f1b --ranks 2 --microbatches 2 --json ";
  EXPECT_EQ(nlohmann::json::parse(Orrery(show + "--costs F=1,B=3").out)["makespan"], 12);
  const std::string stages = File("stages.csv", "stage,F,I,W\n0,1,1.5,1.5\n1,2,3,3\n");
  EXPECT_EQ(nlohmann::json::parse(Orrery(show + "--stage-costs " + stages).out)["makespan"], 20);
}

TEST_F(ScheduleCliTest, ADeadlockIsAnAnswerThatNamesTheCycle) {
  const std::string cycle =
      "rank 0, action 1 (0B0) waits for 1B0 of rank 1, which comes later there, and rank 1, action 0 (1F1) waits for "
      "0F1 of rank 0, which comes later there";
  for (const std::string format : {"text", "json", "svg", "torch-csv", "torch-comms-csv"}) {
    const Outcome outcome = Orrery("schedule eval " + Deadlock() + " --format " + format);
    EXPECT_EQ(outcome.code, 1) << format;
    EXPECT_THAT(outcome.out, HasSubstr(cycle)) << format;
  }
  // A picture that cannot be drawn does not replace a file.
  const std::string picture = File("old.svg", "old");
  EXPECT_EQ(Orrery("schedule eval " + Deadlock() + " --format svg -o " + picture).code, 1);
  EXPECT_EQ(Contents(picture), "old");
  // PyTorch's own table of Schedule1F1B: its last rank begins with micro-batch 1.
  const Outcome torch = Orrery("schedule eval " + File("t.csv", "0F0,0F1,0B0,0B1\n1F1,1B0,1F2,1B1\n"));
  EXPECT_EQ(torch.code, 1);
  EXPECT_THAT(torch.out, HasSubstr("rank 1 at 1B0 (line 2, cell 2) waits for 1F0, which no rank runs"));
}

TEST_F(ScheduleCliTest, BadInput) {
  const std::string table = File("table.csv", "0F0,0X0\n");
  const std::string good = File("good.csv", "0F0,0I0,0W0\n");
  const std::string three = File("three.csv", "stage,F,I,W\n0,1,1,1\n1,1,1,1\n2,1,1,1\n");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"show 2f2b", "no schedule is called \"2f2b\""},
      {"show zbv", "zb-v"},
      {"show", "name"},
      {"show 1f1b --format png", "--format png: no such format; allowed: text, torch-csv, torch-comms-csv, json, svg"},
      {"show 1f1b --json --format svg", "--json with --format svg"},
      {"show 1f1b --costs F=x", "error: --costs: F = \"x\"; allowed: a number"},
      {"show 1f1b --costs G=1", "\"G=1\"; allowed: F, I, W (or B), comm and block"},
      {"show zb-h1 --costs F=1,B=2", "B alone, but zb-h1 splits the backward pass"},
      {"eval " + good + " --costs F=1,B=2", "B alone, but the table splits the backward pass"},
      {"show 1f1b --stage-costs /no/such.csv", "/no/such.csv"},
      {"show 1f1b --ranks 0", "--ranks"},
      {"show dualpipe --ranks 3", "dualpipe: ranks = 3, allowed: even numbers"},
      {"show 1f1b --chunks 2", "1f1b: chunks = 2"},
      {"show 1f1b --memory-limit 3", "1f1b plans by no limit"},
      {"show zb-auto --memory-limit 0.3", "--memory-limit 0.3; allowed"},
      {"show zb-auto --memory-limit 0.5", "--memory-limit 0.5; allowed: a number of at least 1, in M (the activations"},
      {"show zb-v-greedy --memory-limit 1",
       "--memory-limit 1: zb-v-greedy: the smallest memory limit that works is 4 ("},
      {"show zb-1p --memory-limit 3", "--memory-limit 3: zb-1p: has a memory limit of its own, allowed: none, or 4 ("},
      {"show zb-auto --costs F=9000000000", "add up to more than 2305843009.213693951; allowed: at most that"},
      {"show 1f1b --costs F=9000000000", "add up to more than 2305843009.213693951; allowed: at most that"},
      {"eval " + good + " --costs F=9000000000", "add up to more than 2305843009.213693951; allowed: at most that"},
      {"show zb-auto --stage-costs " + three, "--stage-costs: 3 stages; allowed: 4, those of zb-auto"},
      {"show gpipe --microbatches 100000000", "micro_batches = 100000000"},
      {"show 1f1b -o /no/such/folder/x", "/no/such/folder/x"},
      {"eval /no/such.csv", "/no/such.csv"},
      {"eval " + table, "table.csv: line 1, cell 2: \"0X0\"; allowed: "}};
  for (const auto& [arguments, message] : cases) {
    const Outcome outcome = Orrery("schedule " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << arguments;
  }
}

TEST_F(ScheduleCliTest, NoOptionIsEmpty) {
  for (const std::string arguments :
       {"optimize --memory-limit", "optimize --objective", "optimize --placement", "optimize --ranks",
        "optimize --effort", "show zb-auto --memory-limit", "show 1f1b --costs", "show 1f1b --stage-costs",
        "show 1f1b --format", "show 1f1b --output", "show 1f1b --chunks", "show", "eval", "list --output"}) {
    const Outcome outcome = Orrery("schedule " + arguments + " ''");
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_NE(outcome.err, "") << arguments;
  }
  EXPECT_THAT(Orrery("schedule optimize --memory-limit ''").err, HasSubstr("--memory-limit: must not be empty"));
}

// ESC [ 3 1 m colours a terminal, and a line break feigns a message.
TEST_F(ScheduleCliTest, NamesCannotSteerTheTerminal) {
  const std::string name = "\"$(printf 'x\\033[31m\\ny')\"";
  const std::string table = File("bad.csv", "0F0,\x1b[31m\n");
  for (const std::string& arguments :
       {"show " + name, "show 1f1b --format " + name, "show 1f1b --costs " + name, "show 1f1b --ranks " + name,
        "show 1f1b --stage-costs " + name, "show 1f1b --output /no/such/" + name, "show zb-auto --memory-limit " + name,
        "show 1f1b --costs F=" + name, "eval " + name, "eval " + table, "optimize --placement " + name,
        "optimize --objective " + name}) {
    const Outcome outcome = Orrery("schedule " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr("\\x1b[31m")) << arguments;
    EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos) << arguments;
    if (arguments.find("--ranks") == std::string::npos) {
      EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << arguments;
    }
  }
  File("t\x1b[31m.csv", "0F0,0B0\n");
  const Outcome shown = Orrery("schedule eval \"" + Path("t").string() + "$(printf '\\033[31m').csv\"");
  EXPECT_EQ(shown.code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("t\\x1b[31m.csv: p = 1, m = 1"));
}

// What every rank holds, in M: the last column of the closed forms at F = I = W, of schedules whose W follows its I at
// once where they split at all. p = 4, m = 8.
TEST_F(ScheduleCliTest, MemoryIsInMicroBatchesOfARank) {
  const struct {
    const char* arguments;
    double peak;                                       // of rank 0
  } cases[] = {{"1f1b", 4},                            // p
               {"zb-v", 4},                            // p
               {"interleaved-1f1b --chunks 2", 5.5},   // ((v-1)N + 2p - 1) / v, N = p
               {"interleaved-1f1b --chunks 4", 4.75},  //
               {"looped-bfs --chunks 2", 8},           // m
               {"seq1f1b --slices 2", 2.5},            // (p - 1 + s) / s
               {"dualpipe-v", 4.5},                    // p + 1/2
               {"dualpipe", 5},                        // p + 1, of either copy
               {"v-auto --memory-limit 3", 3},         // the limit
               {"zb-v-greedy --memory-limit 4.2", 4},  // the limit, which is too little for one chunk more
               {"zb-auto --memory-limit 4.75", 4.5}};  // in halves
  for (const auto& [arguments, peak] : cases) {
    const Outcome outcome = Orrery(std::string("schedule show --json --microbatches 8 ") + arguments);
    ASSERT_EQ(outcome.code, 0) << arguments << outcome.err;
    EXPECT_EQ(nlohmann::json::parse(outcome.out)["ranks"][0]["peak_memory"].get<double>(), peak) << arguments;
  }
  const Outcome text = Orrery("schedule show zb-v");
  EXPECT_THAT(text.out, AllOf(HasSubstr("peak 4 M on rank 0"), HasSubstr("peak activations  peak M\n"),
                              HasSubstr("M: activations of one micro-batch on a rank, 2 forward passes\n")));
}

TEST_F(ScheduleCliTest, ValidateSchedules) {
  File("a.csv", "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
  File("evals.csv",
       "case,F,B_input,W,comm,overlap_rule,makespan,max_rank_span,idle_per_rank,peak_chunks_per_rank\n"
       "a,1,1,1,0,sum,9,9,3/3,2/2\n");
  const std::string index = File("index.csv", "case,file_kind,schedule,p,m,v\na,compute_only,1F1B,2,2,1\n");
  const std::string validate = "validate schedules " + index;
  // The peak of rank 1 is 1.
  const Outcome text = Orrery(validate);
  EXPECT_EQ(text.code, 0);
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("FAILED: peak of rank 1 1, evals.csv line 2 has 2"), HasSubstr("mismatches: 1")));
  EXPECT_EQ(Orrery(validate + " --max-mismatches 1").code, 0);
  const Outcome exceeded = Orrery(validate + " --max-mismatches 0 --csv");
  EXPECT_EQ(exceeded.code, 1);
  EXPECT_THAT(exceeded.err, HasSubstr("--max-mismatches: 1 exceed 0"));
  EXPECT_THAT(exceeded.out, HasSubstr("\na,1F1B,failed,6,1,0,1f1b,same,,\n"));
  EXPECT_EQ(nlohmann::json::parse(Orrery(validate + " --json").out)["summary"]["mismatches"], 1);
  for (const auto& [option, message] : std::vector<std::pair<std::string, std::string>>{
           {"--max-mismatches few", "--max-mismatches: \"few\""},
           {"--max-median 0.1", "--max-median: schedules"},
           {"--where generator=x", "generator"},
           {"--by generator", "generator"},
           {"--expected-errors " + Path("e").string(), "--expected-errors"}}) {
    const Outcome outcome = Orrery(validate + " " + option);
    EXPECT_EQ(outcome.code, 2) << option;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << option;
  }
  EXPECT_THAT(Orrery("validate runs " + index + " --max-mismatches 0").err, HasSubstr("of schedules only"));
}

}  // namespace
}  // namespace orrery::cli
