#include "schedules/family.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/schedules/evaluator.h"
#include "tests/schedules/orders.h"

namespace orrery::schedules {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(GpipeTest, RunsAllForwardPassesFirst) {
  EXPECT_THAT(Orders("gpipe", {2, 1, 3, 1}),
              ElementsAre("F0.0 F0.1 F0.2 B0.0 B0.1 B0.2", "F0.0 F0.1 F0.2 B0.0 B0.1 B0.2"));
}

// Rank r warms up with min(p - 1 - r, m) forward passes: 2, 1, 0.
TEST(OneForwardOneBackwardTest, AlternatesOnceThePipelineIsFull) {
  EXPECT_THAT(Orders("1f1b", {3, 1, 4, 1}),
              ElementsAre("F0.0 F0.1 F0.2 B0.0 F0.3 B0.1 B0.2 B0.3",  //
                          "F0.0 F0.1 B0.0 F0.2 B0.1 F0.3 B0.2 B0.3", "F0.0 B0.0 F0.1 B0.1 F0.2 B0.2 F0.3 B0.3"));
}

// Two micro-batches on four ranks: ranks 0 and 1 warm up with both.
TEST(OneForwardOneBackwardTest, TakesFewerMicroBatchesThanRanks) {
  EXPECT_THAT(Orders("1f1b", {4, 1, 2, 1}), ElementsAre("F0.0 F0.1 B0.0 B0.1", "F0.0 F0.1 B0.0 B0.1",  //
                                                        "F0.0 F0.1 B0.0 B0.1", "F0.0 B0.0 F0.1 B0.1"));
}

// p = 2, v = 2, N = 2, m = 4. Table: chunk 0 of 0, 1; chunk 1 of 0, 1; chunk 0 of 2, 3; chunk 1 of 2, 3.
// Warm-up 2 (p - 1 - r) + (v - 1) N: 4 on rank 0, 2 on rank 1; then pairs.
TEST(InterleavedTest, WorksThroughGroupsChunkByChunk) {
  EXPECT_THAT(Orders("interleaved-1f1b", {2, 2, 4, 2}),
              ElementsAre("F0.0 F0.1 F1.0 F1.1 F0.2+ B1.0 F0.3+ B1.1 F1.2+ B0.0 F1.3+ B0.1 B1.2 B1.3 B0.2 B0.3",
                          "F0.0 F0.1 F1.0+ B1.0 F1.1+ B1.1 F0.2+ B0.0 F0.3+ B0.1 F1.2+ B1.2 F1.3+ B1.3 B0.2 B0.3"));
}

// p = 2, v = 2, N = 3, m = 5: groups {0, 1, 2} and {3, 4}. Warm-up: 5 on rank 0, 3 on rank 1.
TEST(InterleavedTest, TakesAShortLastGroup) {
  EXPECT_THAT(Orders("interleaved-1f1b", {2, 2, 5, 3}),
              ElementsAre("F0.0 F0.1 F0.2 F1.0 F1.1 F1.2+ B1.0 F0.3+ B1.1 F0.4+ B1.2 F1.3+ B0.0 F1.4+ B0.1 B0.2 B1.3 "
                          "B1.4 B0.3 B0.4",
                          "F0.0 F0.1 F0.2 F1.0+ B1.0 F1.1+ B1.1 F1.2+ B1.2 F0.3+ B0.0 F0.4+ B0.1 F1.3+ B0.2 F1.4+ "
                          "B1.3 B1.4 B0.3 B0.4"));
}

// All m v = 4 forward passes are warm-up on rank 0 (fill 2 x 1 + 2 = 4): none of them forms a pair.
TEST(InterleavedTest, JoinsNothingWithoutSteadyPhase) {
  EXPECT_THAT(Orders("interleaved-1f1b", {2, 2, 2, 2}),
              ElementsAre("F0.0 F0.1 F1.0 F1.1 B1.0 B1.1 B0.0 B0.1", "F0.0 F0.1 F1.0+ B1.0 F1.1+ B1.1 B0.0 B0.1"));
}

TEST(ParametersTest, NamesValueAndAllowedRange) {
  EXPECT_THAT(Refusal("1f1b", {0, 1, 4, 1}), HasSubstr("ranks = 0, allowed: at least 1"));
  EXPECT_THAT(Refusal("1f1b", {2, 2, 4, 1}), HasSubstr("chunks = 2, allowed: 1"));
  EXPECT_THAT(Refusal("gpipe", {2, 2, 4, 1}), HasSubstr("chunks = 2, allowed: 1"));
  EXPECT_THAT(Refusal("gpipe", {2, 1, 0, 1}), HasSubstr("micro_batches = 0, allowed: at least 1"));
  EXPECT_THAT(Refusal("interleaved-1f1b", {1, 2, 4, 1}), HasSubstr("ranks = 1, allowed: at least 2"));
  EXPECT_THAT(Refusal("interleaved-1f1b", {4, 2, 8, 3}),
              HasSubstr("group_size = 3, allowed: ranks (4) to micro_batches (8)"));
  EXPECT_THAT(Refusal("interleaved-1f1b", {4, 2, 8, 9}),
              HasSubstr("group_size = 9, allowed: ranks (4) to micro_batches (8)"));
  EXPECT_THAT(Refusal("interleaved-1f1b", {4, 2, 3, 4}), HasSubstr("group_size = 4, allowed: micro_batches (3)"));
  EXPECT_THAT(
      Refusal("interleaved-1f1b", {4, 2, 11, 4}),
      HasSubstr("micro_batches = 11 leave 3 for the last group of group_size = 4, allowed: 0 or at least ranks (4)"));
}

// 2^20 passes at most: 2^18 micro-batches on 2 ranks; none with 2^20 stages.
TEST(ParametersTest, BoundsThePassesOfAllRanks) {
  EXPECT_TRUE(Generate("1f1b", {2, 1, 1 << 18, 1}).ok());
  EXPECT_EQ(Refusal("1f1b", {2, 1, (1 << 18) + 1, 1}),
            "1f1b: micro_batches = 262145 (global_batch / (dp x micro_batch)) on ranks = 2 (pp) with chunks = 1 "
            "(virtual_stages), allowed: micro_batches up to 262144, for at most 1048576 passes in all, 2 x "
            "micro_batches x ranks x chunks");
  EXPECT_THAT(Refusal("interleaved-1f1b", {4, 1 << 10, 129, 4}), HasSubstr("allowed: micro_batches up to 128, for"));
  EXPECT_THAT(Refusal("gpipe", {1 << 20, 1, 1, 1}), HasSubstr("allowed: fewer ranks or chunks, for"));
  // Beyond 64 bits.
  EXPECT_THAT(Refusal("gpipe", {2000000000, 2000000000, 2000000000, 1}), HasSubstr("fewer ranks or chunks"));
}

// Against the definition of legal group sizes, and every legal schedule is one that Validate accepts.
TEST(ParametersTest, InterleavedTakesExactlyTheLegalGroupSizes) {
  for (std::int32_t p = 2; p <= 6; ++p) {
    for (std::int32_t m = 1; m <= 16; ++m) {
      const std::vector<std::int32_t> legal = LegalGroupSizes(p, m);
      for (std::int32_t n = 1; n <= m + 1; ++n) {
        const auto schedule = Generate("interleaved-1f1b", {p, 3, m, n});
        const bool expected = std::find(legal.begin(), legal.end(), n) != legal.end();
        ASSERT_EQ(schedule.ok(), expected) << p << " " << m << " " << n << " " << schedule.status();
        if (!schedule.ok()) continue;
        ASSERT_TRUE(Validate(*schedule).ok()) << Validate(*schedule);
      }
    }
  }
}

TEST(FamiliesTest, AreFoundByTheirNames) {
  for (const Family& family : Families()) {
    EXPECT_EQ((*FindFamily(family.name))->summary, family.summary);
    EXPECT_FALSE(family.reference.empty());
    EXPECT_FALSE(family.constraints.empty());
  }
  const auto unknown = FindFamily("gpip");
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(unknown.status().message()), HasSubstr("did you mean 'gpipe'"));
  for (const Family& family : Families()) {
    EXPECT_THAT(std::string(unknown.status().message()), HasSubstr(std::string(family.name)));
  }
}

// One stage on one rank, one micro-batch: F, then I, then W.
Schedule Split() {
  return {Placement(),
          1,
          {{{ActionKind::kForward, 0, 0}, {ActionKind::kInputGradient, 0, 0}, {ActionKind::kWeightGradient, 0, 0}}}};
}

std::string Violation(const Schedule& schedule) { return std::string(Validate(schedule).message()); }

TEST(ValidateTest, AcceptsASplitBackwardPass) { EXPECT_EQ(Violation(Split()), ""); }

TEST(ValidateTest, NamesTheFirstViolation) {
  Schedule schedule = Split();
  std::swap(schedule.order[0][1], schedule.order[0][2]);
  EXPECT_THAT(Violation(schedule), HasSubstr("rank 0, action 1 (0W0) comes before its input gradient"));
  schedule = Split();
  std::swap(schedule.order[0][0], schedule.order[0][1]);
  EXPECT_THAT(Violation(schedule), HasSubstr("comes before its forward pass"));
  schedule = Split();
  schedule.order[0].pop_back();
  EXPECT_THAT(Violation(schedule), HasSubstr("stage 0 does not finish micro-batch 0"));
  schedule = Split();
  schedule.order[0].push_back({ActionKind::kBackward, 0, 0});
  EXPECT_THAT(Violation(schedule), HasSubstr("repeats work"));
  schedule = Split();
  schedule.order[0][0].micro_batch = 1;
  EXPECT_THAT(Violation(schedule), HasSubstr("names micro-batch 1, allowed: 0 to 0"));
  schedule = Split();
  schedule.order[0][0].chunk = -1;
  EXPECT_THAT(Violation(schedule), HasSubstr("names chunk -1, which the rank does not hold"));
  schedule = Split();
  schedule.order[0].back().joined = true;
  EXPECT_THAT(Violation(schedule), HasSubstr("is joined to nothing"));
  schedule = Split();
  schedule.order.emplace_back();
  EXPECT_THAT(Violation(schedule), HasSubstr("orders for 2 ranks, expected 1"));
  schedule = Split();
  schedule.slices = 2;
  EXPECT_THAT(Violation(schedule), HasSubstr("same number of slices"));
  schedule = Split();
  schedule.pipeline_of = {1};
  EXPECT_THAT(Violation(schedule), HasSubstr("no copy 1 of the model"));
  schedule = Split();
  schedule.placement = Placement::Bidirectional(1);
  EXPECT_THAT(Violation(schedule), HasSubstr("each micro-batch runs through one of them"));
  schedule.pipeline_of = {1};
  EXPECT_THAT(Violation(schedule), HasSubstr("is in another copy of the model than the micro-batch"));
}

// Rank 0: F0 B0 F1 B1. Rank 1: F0 F1 B0 B1. Rank 0 waits for B0 of rank 1, which waits for F1 of rank 0.
TEST(ValidateTest, FindsADeadlock) {
  Schedule schedule = *Generate("1f1b", {2, 1, 2, 1});
  schedule.order[0] = {{ActionKind::kForward, 0, 0},
                       {ActionKind::kBackward, 0, 0},
                       {ActionKind::kForward, 0, 1},
                       {ActionKind::kBackward, 0, 1}};
  schedule.order[1] = {{ActionKind::kForward, 0, 0},
                       {ActionKind::kForward, 0, 1},
                       {ActionKind::kBackward, 0, 0},
                       {ActionKind::kBackward, 0, 1}};
  EXPECT_EQ(
      Violation(schedule),
      "the schedule deadlocks: rank 0, action 1 (0B0) waits for 1B0 of rank 1, which comes later there, and rank 1, "
      "action 1 (1F1) waits for 0F1 of rank 0, which comes later there");
  EXPECT_EQ(Validate(schedule).code(), absl::StatusCode::kFailedPrecondition);
}

// F0 and B0 of rank 0 as one step: B0 needs what rank 1 makes of F0, which leaves the step only at its end.
TEST(ValidateTest, FindsADeadlockWithinAStep) {
  Schedule schedule = *Generate("1f1b", {2, 1, 1, 1});
  EXPECT_EQ(Violation(schedule), "");
  schedule.order[0][0].joined = true;
  EXPECT_THAT(Violation(schedule), HasSubstr("deadlocks: rank 0, action 1 (0B0) waits for 1B0 of rank 1"));
}

// Two stages on one rank, two micro-batches; the block of F1 of stage 0 and B0 of stage 1.
Schedule WithBlock() {
  const auto action = [](ActionKind kind, std::int32_t chunk, std::int32_t k) { return Action{kind, chunk, k}; };
  Schedule schedule{Placement::Loop(1, 2), 2, {}};
  schedule.order = {{action(ActionKind::kForward, 0, 0), action(ActionKind::kForward, 1, 0),
                     action(ActionKind::kForward, 0, 1), action(ActionKind::kBackward, 1, 0),
                     action(ActionKind::kForward, 1, 1), action(ActionKind::kBackward, 0, 0),
                     action(ActionKind::kBackward, 1, 1), action(ActionKind::kBackward, 0, 1)}};
  schedule.order[0][2].fused = true;
  return schedule;
}

TEST(ValidateTest, TakesABlockOfOneForwardAndOneBackward) {
  EXPECT_EQ(Violation(WithBlock()), "");
  // Two forward passes.
  Schedule schedule = WithBlock();
  schedule.order[0][2].fused = false;
  schedule.order[0][0].fused = true;
  EXPECT_THAT(Violation(schedule), HasSubstr("rank 0, action 0 (0F0) is fused with more or other than"));
  // Three passes.
  schedule = WithBlock();
  schedule.order[0][3].fused = true;
  EXPECT_THAT(Violation(schedule), HasSubstr("is fused with more or other than"));
  // Its own backward pass.
  schedule = WithBlock();
  std::swap(schedule.order[0][5], schedule.order[0][4]);
  schedule.order[0][5].fused = true;
  EXPECT_THAT(Violation(schedule), HasSubstr("1F1) is fused with its own forward pass"));
  schedule = WithBlock();
  schedule.order[0].back().fused = true;
  EXPECT_THAT(Violation(schedule), HasSubstr("is fused with nothing"));
}

// (F1; B0) as a block on rank 0 needs 1B0; on rank 1 that stands in a block, or behind 1F1, which needs 0F1 of the
// block.
TEST(ValidateTest, AWholeBlockWaitsForBothInputs) {
  Schedule schedule{Placement::Loop(2, 1), 2, {}};
  schedule.order = {{{ActionKind::kForward, 0, 0},
                     {ActionKind::kForward, 0, 1, false, true},
                     {ActionKind::kBackward, 0, 0},
                     {ActionKind::kBackward, 0, 1}},
                    {{ActionKind::kForward, 0, 0},
                     {ActionKind::kForward, 0, 1, false, true},
                     {ActionKind::kBackward, 0, 0},
                     {ActionKind::kBackward, 0, 1}}};
  EXPECT_THAT(Violation(schedule), HasSubstr("rank 0, action 2 (0B0) waits for 1B0 of rank 1"));
  schedule.order[1][1].fused = false;
  EXPECT_THAT(Violation(schedule), HasSubstr("rank 1, action 1 (1F1) waits for 0F1 of rank 0"));
  schedule.order[0][1].fused = false;
  EXPECT_EQ(Violation(schedule), "");
}

TEST(PlacementTest, LoopWaveAndBidirectional) {
  const Placement loop = Placement::Loop(3, 2);
  EXPECT_EQ(loop.StageOf(1, 1), 4);
  EXPECT_EQ(loop.PlaceOf(5), (Place{2, 1}));
  // Down, up, down: stages 0 1 2 | 5 4 3 | 6 7 8 on ranks 0 1 2.
  const Placement wave = Placement::Wave(3, 3);
  EXPECT_EQ(wave.StageOf(0, 1), 5);
  EXPECT_EQ(wave.PlaceOf(3), (Place{2, 1}));
  EXPECT_EQ(wave.StageOf(2, 2), 8);
  const Placement both = Placement::Bidirectional(4);
  EXPECT_EQ(both.stages(), 4);
  EXPECT_EQ(both.pipelines(), 2);
  EXPECT_EQ(both.PlaceOf(1, 1), (Place{2, 1}));
}

TEST(PlacementTest, RefusesWhatIsNotOnePlacePerStage) {
  const auto refusal = [](std::vector<std::vector<Held>> held) {
    return std::string(Placement::Of(std::move(held)).status().message());
  };
  EXPECT_EQ(refusal({{{1, 0}}, {{0, 0}, {2, 0}}}), "");
  EXPECT_THAT(refusal({{{0, 0}}, {{0, 0}}}), HasSubstr("stage 0 is on rank 0 and on rank 1"));
  EXPECT_THAT(refusal({{{0, 0}}, {{2, 0}}}), HasSubstr("no rank holds stage 1 of stages 0 to 2"));
  EXPECT_THAT(refusal({{{0, 0}}, {{2000000000, 0}}}), HasSubstr("stage 2000000000 is too large a number"));
  EXPECT_THAT(refusal({{{-1, 0}}}), HasSubstr("numbered from 0"));
  EXPECT_THAT(refusal({{}}), HasSubstr("no rank holds a stage"));
}

}  // namespace
}  // namespace orrery::schedules
