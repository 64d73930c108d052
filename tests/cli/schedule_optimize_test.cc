// `orrery schedule optimize`: answers derived by hand, what it writes, what it refuses.
#include <algorithm>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/cli/cli_fixture.h"

namespace orrery::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

using ScheduleOptimizeTest = CliTest;

// p = 2, m = 4, F = I = W = 1: each rank works 12, the last one not before 1. With 2 M ZB-H1 gets there, by its
// closed form: 12 + (p-1)(F+I-W) = 13.
TEST_F(ScheduleOptimizeTest, ProvesASmallLoopOptimal) {
  const Outcome outcome = Orrery("schedule optimize --ranks 2 --microbatches 4 --placement loop --memory-limit 2");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("makespan 13, loop"));
  EXPECT_THAT(outcome.out, HasSubstr("lower bound 13: proven optimal of all orders on a loop"));
  EXPECT_THAT(outcome.out, HasSubstr("zb-h1"));
  EXPECT_THAT(outcome.out, HasSubstr("at most 2 M on a rank, limit 2"));
}

// Two stages of half the cost per rank: the last rank can begin after half a F. 12.5 is the least, and is reached.
TEST_F(ScheduleOptimizeTest, TakesTheBetterPlacement) {
  const Outcome outcome = Orrery("schedule optimize --ranks 2 --microbatches 4 --memory-limit 4 --json");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["search"]["placement"], "v");
  EXPECT_EQ(json["search"]["value"], 12.5);
  EXPECT_EQ(json["search"]["lower_bound"], 12.5);
  EXPECT_EQ(json["search"]["optimal"], true);
  EXPECT_EQ(json["search"]["interrupted"], false);
  EXPECT_LE(json["search"]["peak_memory"], 4);
  // In one unit, which the limit has as well.
  double peak = 0;
  for (const nlohmann::json& rank : json["ranks"]) peak = std::max(peak, rank["peak_memory"].get<double>());
  EXPECT_EQ(json["search"]["peak_memory"].get<double>(), peak);
  EXPECT_EQ(json["makespan"], 12.5);
  EXPECT_EQ(json["schedule"]["order"].size(), 2U);
}

// F, I, W of the ranks: 2+2+2 and 1+1+1. The first rank alone takes 3 x 6 = 18; the second begins at 2 and ends, behind
// the last F at 6, no later: I on rank 0 is what must follow. Halves are added where the table has two stages a rank.
TEST_F(ScheduleOptimizeTest, ReadsCostsByStage) {
  const std::string two = File("two.csv", "stage,F,I,W\n0,2,2,2\n1,1,1,1\n");
  const std::string four = File("four.csv", "stage,F,I,W\n0,0.5,1,1.5\n1,1.5,1,0.5\n2,1,0,1\n3,0,1,0\n");
  const std::string rest = " --ranks 2 --microbatches 3 --placement loop --format json --stage-costs ";
  const Outcome of_two = Orrery("schedule optimize" + rest + two);
  const Outcome of_four = Orrery("schedule optimize" + rest + four);
  ASSERT_EQ(of_two.code, 0) << of_two.err;
  ASSERT_EQ(of_four.code, 0) << of_four.err;
  EXPECT_EQ(nlohmann::json::parse(of_two.out)["makespan"], 18);
  EXPECT_EQ(of_two.out, of_four.out);
  const Outcome v = Orrery("schedule optimize --ranks 2 --placement v --stage-costs " + two);
  EXPECT_EQ(v.code, 2);
  EXPECT_THAT(v.err, HasSubstr("2 stages; allowed: 4 (two per rank)"));
}

TEST_F(ScheduleOptimizeTest, WritesATableThatEvaluatesToTheSame) {
  const std::string table = Path("best.csv").string();
  const std::string costs = " --costs F=5,I=6,W=4,comm=1";
  const Outcome outcome =
      Orrery("schedule optimize --ranks 3 --microbatches 6 --placement loop --memory-limit 3 --format torch-csv -o " +
             table + costs);
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "");
  const std::string makespan = outcome.err.substr(0, outcome.err.find(','));
  EXPECT_THAT(makespan, HasSubstr("makespan "));
  const Outcome eval = Orrery("schedule eval " + table + costs);
  EXPECT_EQ(eval.code, 0) << eval.err;
  EXPECT_THAT(eval.out, HasSubstr(makespan + ","));
}

TEST_F(ScheduleOptimizeTest, RefusesAndSaysWhatIsAllowed) {
  const auto refused = [&](const std::string& arguments) {
    const Outcome outcome = Orrery("schedule optimize " + arguments);
    EXPECT_EQ(outcome.code, 2) << arguments;
    EXPECT_EQ(outcome.out, "");
    return outcome.err;
  };
  EXPECT_THAT(refused("--objective spam"), HasSubstr("allowed: makespan or span (did you mean 'span'?)"));
  EXPECT_THAT(refused("--placement wave"), HasSubstr("allowed: loop or v or all"));
  EXPECT_THAT(refused("--memory-limit 0.5"), HasSubstr("allowed: a number of at least 1"));
  EXPECT_THAT(refused("--costs F=1,B=2"), HasSubstr("I and W in place of B"));
  EXPECT_THAT(refused("--costs block=3"), HasSubstr("no fused blocks"));
  EXPECT_THAT(refused("--costs F=9000000000 --ranks 64 --microbatches 512"), HasSubstr("a larger unit of time"));
  EXPECT_THAT(refused("--ranks 1000 --microbatches 1000"), HasSubstr("1000 micro-batches on 1000 stages"));
  EXPECT_THAT(refused("--format png"), HasSubstr("allowed: text"));
}

TEST_F(ScheduleOptimizeTest, AnInterruptKeepsTheBestSoFar) {
  // Twice at once, as `timeout` does: to the process and to its group.
  const Outcome outcome = Shell(
      "\"$ORRERY\" schedule optimize --ranks 8 --microbatches 24 --placement v --memory-limit 4 "
      "--costs F=18.522,I=18.086,W=9.337,comm=0.601 --effort 1000000 & "
      "sleep 2; kill -INT $!; sleep 0.02; kill -INT $!; wait $!");
  EXPECT_EQ(outcome.code, 128 + 2) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("lower bound"));
  EXPECT_THAT(outcome.out, HasSubstr("interrupted: not the whole search"));
  EXPECT_THAT(outcome.err, HasSubstr("best order found so far"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("error")));
}

}  // namespace
}  // namespace orrery::cli
