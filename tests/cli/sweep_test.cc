// `orrery sweep` from the outside: rows, files, exit codes, and what an interruption leaves.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/cli_fixture.h"

namespace orrery::cli {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

std::int64_t Lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }

class SweepCliTest : public CliTest {
 protected:
  // tp 8, one stage, micro-batches of 4, one GPU node.
  std::string Sweep(const std::string& arguments) const {
    return "sweep " + Example("korthikanti_22b") + " " + arguments;
  }
};

TEST_F(SweepCliTest, RowsOnStandardOutputAndTheBestBehind) {
  const Outcome outcome = Orrery(Sweep("--vary tp=4,8 --vary microbatches=1,2"));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, StartsWith("tp,microbatches,status,reason,iteration_time_s,mfu,"));
  EXPECT_EQ(Lines(outcome.out), 5);
  EXPECT_THAT(outcome.out, ContainsRegex("\n4,1,[a-z_]*,"));
  EXPECT_THAT(outcome.err, AllOf(StartsWith("4 points: "), HasSubstr("tokens/s/GPU")));
  EXPECT_THAT(Orrery(Sweep("--vary tp=8 --top 0")).err, Not(HasSubstr("tokens/s/GPU")));
}

TEST_F(SweepCliTest, JsonLines) {
  const Outcome outcome = Orrery(Sweep("--vary schedule=1f1b,gpipe --json"));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, AllOf(StartsWith("{\"schedule\":\"1f1b\",\"status\":\"ok\",\"iteration_time_s\":"),
                                 HasSubstr("\n{\"schedule\":\"gpipe\","), HasSubstr("\"expected_error_p50\":")));
  EXPECT_EQ(Lines(outcome.out), 2);
}

TEST_F(SweepCliTest, ListAndSet) {
  const std::string list = File("points.csv", "tp,parallelism.sequence_parallel\n8,false\n4,\n");
  const Outcome outcome = Orrery(Sweep("--list " + list + " --vary micro_batch=1,2 --set training.global_batch=8"));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_THAT(outcome.out, AllOf(StartsWith("tp,parallelism.sequence_parallel,micro_batch,status,"),
                                 HasSubstr("\n8,false,1,"), HasSubstr("\n8,false,2,"), HasSubstr("\n4,,1,")));
  EXPECT_EQ(Lines(outcome.out), 5);
}

TEST_F(SweepCliTest, ThreadsDoNotShow) {
  const std::string sweep = Sweep("--vary tp=1,2,4,8,16 --vary micro_batch=1,2,3 --vary microbatches=1:4 --threads ");
  const Outcome one = Orrery(sweep + "1");
  EXPECT_EQ(Lines(one.out), 61);
  for (const char* const threads : {"2", "4"}) {
    const Outcome more = Orrery(sweep + threads);
    EXPECT_EQ(more.out, one.out);
    EXPECT_EQ(more.err, one.err);
  }
}

// tp = 5 divides neither heads nor widths.
TEST_F(SweepCliTest, NoLegalRowIsExitCodeOne) {
  const Outcome outcome = Orrery(Sweep("--vary tp=5,7"));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("\n5,refused,"), HasSubstr("\n7,refused,")));
  EXPECT_THAT(outcome.err, HasSubstr("no point is legal; the first: "));
  EXPECT_EQ(Orrery(Sweep("--vary tp=5,8")).code, 0);
}

TEST_F(SweepCliTest, BadInput) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "nothing is varied"},
      {"--vary tpp=1", "tpp: is no field that can be varied; allowed: schedule, microbatches, tp"},
      {"--vary tp=", "empty value"},
      {"--vary tp=x", "a whole number"},
      {"--vary tp=1 --vary tp=2", "parallelism.tp is varied twice"},
      {"--vary schedule=2f2b", "no schedule is called"},
      {"--vary seq_len=1:2000 --vary global_batch=1:2000", "the sweep has 2000 x 2000 points; allowed: up to 1000000"},
      {"--vary tp=1 --set parallelism.tpp=1", "no field"},
      {"--vary tp=1 --threads 0", "--threads"},
      {"--vary tp=1 --resume", "--output"},
      {"--list /no/such/file.csv", "/no/such/file.csv"},
      {"--list " + File("empty.csv", "tp\n"), "has no row"},
      {"--vary tp=1 -o /no/such/folder/rows.csv", "/no/such/folder/rows.csv: no such file or directory"},
      {"--vary tp=1 -o " + Path("").string(), ": is a directory; expected a file"},
      {"--vary tp=1 -o /dev/full", "/dev/full: cannot write it: No space left on device"},
      {"--vary ''", "--vary: must not be empty"},
      {"--vary tp=1 --set ''", "--set: must not be empty"},
      {"--vary tp=1 --spec-path ''", "--spec-path: must not be empty"},
      {"--vary tp=1 --list ''", "--list: must not be empty"},
      {"--vary tp=1 -o ''", "--output: must not be empty"},
      {"--vary tp=1 --top ''", "--top"},
      {"--list " + File("one.csv", "tp\n1\n") + " -o " + Path("one.csv").string(), "is read by this command"}};
  for (const auto& [arguments, message] : cases) {
    const Outcome outcome = Orrery(Sweep(arguments));
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.out, "") << arguments;
    EXPECT_THAT(outcome.err, HasSubstr(message)) << arguments;
  }
  EXPECT_EQ(Orrery("sweep /no/such/spec.txtpb --vary tp=1").code, 2);
}

// ESC [ 3 1 m colours a terminal, and a line break feigns a message. A value that is legal stands as it is in the rows.
TEST_F(SweepCliTest, NamesCannotSteerTheTerminal) {
  const std::string name = "\"$(printf 'x\\033[31m\\ny=1')\"";
  const std::string value = "\"$(printf 'x\\033[31m')\"";
  const std::string list = File("list.csv", "\"x\x1b[31m\ny\"\n1\n");
  for (const std::string& arguments :
       {"--vary " + name, "--vary tp=1 -o /no/such/" + name, "--vary microbatches=" + value, "--vary schedule=" + value,
        "--list " + list, "--list /no/such/" + name}) {
    const Outcome outcome = Orrery(Sweep(arguments));
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_THAT(outcome.err, HasSubstr("x\\x1b[31m")) << arguments;
    EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos) << arguments;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << arguments;
  }
  const Outcome outcome = Orrery(Sweep("--vary \"name='$(printf 'a\\033[31m')'\""));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("a\\x1b[31m"));
  EXPECT_EQ(outcome.err.find('\x1b'), std::string::npos);
}

// However much of the file is left, a resumed sweep ends with the same bytes.
TEST_F(SweepCliTest, ResumeGoesOnBehindWholeRows) {
  for (const char* const format : {"", " --json"}) {
    const std::string file = Path("rows").string();
    const std::string sweep = Sweep("--vary tp=1,2,4,5,8 --vary microbatches=1,2 -o " + file + format);
    const Outcome whole = Orrery(sweep);
    ASSERT_EQ(whole.code, 0);
    const std::string rows = Contents(file);
    for (const std::size_t kept : {std::size_t{0}, std::size_t{10}, rows.size() / 2, rows.size() - 1, rows.size()}) {
      File("rows", rows.substr(0, kept));
      const Outcome resumed = Orrery(sweep + " --resume");
      EXPECT_EQ(resumed.code, 0);
      EXPECT_EQ(Contents(file), rows) << kept;
      EXPECT_EQ(resumed.err, whole.err);  // rows of before count in the table
    }
    fs::remove(file);
    EXPECT_EQ(Orrery(sweep + " --resume").code, 0);
    EXPECT_EQ(Contents(file), rows);
  }
}

TEST_F(SweepCliTest, ResumeRefusesAnotherSweep) {
  const std::string file = Path("rows.csv").string();
  const std::string output = " -o " + file;
  ASSERT_EQ(Orrery(Sweep("--vary tp=4,8" + output)).code, 0);
  const std::string rows = Contents(file);
  for (const char* const other :
       {"--vary tp=4,8,1", "--vary tp=8,4", "--vary pp=4,8", "--vary tp=4,8 --set training.micro_batch=2",
        "--vary tp=4,8 --json", "--list /dev/null"}) {
    const Outcome outcome = Orrery(Sweep(other + output + " --resume"));
    EXPECT_EQ(outcome.code, 2) << other;
    EXPECT_NE(outcome.err, "") << other;
    EXPECT_EQ(Contents(file), rows) << other;
  }
  const Outcome other_spec = Orrery("sweep " + Example("megatron_175b_12288") + " --vary tp=4,8 --resume" + output);
  EXPECT_EQ(other_spec.code, 2);
  EXPECT_THAT(other_spec.err, AllOf(HasSubstr("line 2 is no row of this sweep"), HasSubstr("allowed: ")));
  EXPECT_EQ(Contents(file), rows);
}

// A signal ends it with whole rows on disk and the code that a shell gives; --resume then completes the same bytes.
TEST_F(SweepCliTest, SignalsKeepWhatIsDone) {
  const bool shrunk = std::getenv("ORRERY_SANITIZER") != nullptr;
  const std::string sweep = Sweep("--vary seq_len=128:1024:128 --vary tp=1,2,4,8 --vary micro_batch=1:4 --vary dp=1:" +
                                  std::string(shrunk ? "4" : "8") + " --vary microbatches=1 --threads 2 --top 3");
  ASSERT_EQ(Orrery(sweep + " -o " + Path("whole.csv").string()).code, 0);
  const std::string whole = Contents(Path("whole.csv"));
  for (const auto& [signal, code] : {std::pair("INT", 130), std::pair("TERM", 143)}) {
    const std::string file = Path("part.csv").string();
    fs::remove(file);
    const Outcome stopped =
        Shell("\"$ORRERY\" " + sweep + " -o " + file + " & pid=$!\n" + "until [ \"$(grep -c . " + file +
              " 2>/dev/null)\" -gt 5 ]; do sleep 0.01; done\n" + "kill -" + signal + " $pid; wait $pid");
    EXPECT_EQ(stopped.code, code) << stopped.err;
    EXPECT_THAT(stopped.err, AllOf(HasSubstr("stopped after "), HasSubstr("--resume")));
    const std::string part = Contents(file);
    EXPECT_THAT(part, EndsWith("\n"));
    EXPECT_LT(part.size(), whole.size());
    EXPECT_EQ(whole.substr(0, part.size()), part);
    EXPECT_EQ(Orrery(sweep + " --resume -o " + file).code, 0);
    EXPECT_EQ(Contents(file), whole);
  }
}

}  // namespace
}  // namespace orrery::cli
