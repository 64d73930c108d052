// Families on a loop of stages, and those of full backward passes on a V or wave: small orders derived by hand, what
// each refuses, and what holds for every registered family.
#include <algorithm>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "schedules/family.h"
#include "tests/schedules/orders.h"

namespace orrery::schedules {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(LoopedBfsTest, RunsChunkAfterChunkAndBackInReverse) {
  const std::string order = "F0.0 F0.1 F1.0 F1.1 B1.1 B1.0 B0.1 B0.0";
  EXPECT_THAT(Orders("looped-bfs", {2, 2, 2}), ElementsAre(order, order));
}

// p = 2, m = 3: one round, N = 3. Warm-up 2 (1 - r) + 3: 5 and 3 of F0.0 F0.1 F0.2 F1.0 F1.1 F1.2.
TEST(InterleavedTorchTest, ChoosesEqualGroups) {
  EXPECT_THAT(Orders("interleaved-1f1b-torch", {2, 2, 3}),
              ElementsAre("F0.0 F0.1 F0.2 F1.0 F1.1 F1.2 B1.0 B1.1 B1.2 B0.0 B0.1 B0.2",
                          "F0.0 F0.1 F0.2 F1.0 B1.0 F1.1 B1.1 F1.2 B1.2 B0.0 B0.1 B0.2"));
  EXPECT_EQ(Orders("interleaved-1f1b-torch", {2, 2, 3, 3}), Orders("interleaved-1f1b-torch", {2, 2, 3}));
}

// Rank r: p - r forward passes, then I, W if more than r wait, F.
TEST(ZbH1Test, HoldsBackWeightGradients) {
  EXPECT_THAT(Orders("zb-h1", {2, 1, 3}), ElementsAre("F0.0 F0.1 I0.0 W0.0 F0.2 I0.1 W0.1 I0.2 W0.2",
                                                      "F0.0 I0.0 F0.1 I0.1 W0.0 F0.2 I0.2 W0.1 W0.2"));
}

// 2 (p - r) - 1 forward passes, 2 r weight gradients wait.
TEST(ZbH2Test, StartsTwiceAsFarAhead) {
  EXPECT_THAT(Orders("zb-h2", {2, 1, 4}), ElementsAre("F0.0 F0.1 F0.2 I0.0 W0.0 F0.3 I0.1 W0.1 I0.2 W0.2 I0.3 W0.3",
                                                      "F0.0 I0.0 F0.1 I0.1 F0.2 I0.2 W0.0 F0.3 I0.3 W0.1 W0.2 W0.3"));
}

// N = 2; warm-up N + p - 1 - r: 3 and 2 of F0.0 F0.1 F1.0 F1.1; rank 1 holds back one W.
TEST(InterleavedZbTest, HoldsBackAsManyWeightGradientsAsRanksBefore) {
  EXPECT_THAT(Orders("interleaved-zb", {2, 2, 2}),
              ElementsAre("F0.0 F0.1 F1.0 F1.1 I1.0 W1.0 I1.1 W1.1 I0.0 W0.0 I0.1 W0.1",
                          "F0.0 F0.1 F1.0 I1.0 F1.1 I1.1 W1.0 I0.0 W1.1 I0.1 W0.0 W0.1"));
}

TEST(InterleavedZbTest, IsZbH1WithOneStagePerRank) {
  for (std::int32_t p = 1; p <= 6; ++p)
    EXPECT_EQ(Orders("interleaved-zb", {p, 1, 2 * p}), Orders("zb-h1", {p, 1, 2 * p}));
}

// N = 2; warm-up 2 (1 - r) + 2 + 1: all 4 on rank 0, 3 on rank 1.
TEST(CombinedTest, FusesSteadyPairs) {
  EXPECT_THAT(Orders("combined-1f1b", {2, 2, 2}),
              ElementsAre("F0.0 F0.1 F1.0 F1.1 B1.0 B1.1 B0.0 B0.1", "F0.0 F0.1 F1.0 F1.1&B1.0 B1.1 B0.0 B0.1"));
  EXPECT_THAT(Orders("combined-1f1b", {1, 1, 3}), ElementsAre("F0.0 F0.1&B0.0 F0.2&B0.1 B0.2"));
}

// Warm-up 2 (1 - r) + 1.
TEST(OverlapTest, FusesSteadyPairs) {
  EXPECT_THAT(Orders("1f1b-overlap", {2, 1, 4}),
              ElementsAre("F0.0 F0.1 F0.2 F0.3&B0.0 B0.1 B0.2 B0.3", "F0.0 F0.1&B0.0 F0.2&B0.1 F0.3&B0.2 B0.3"));
}

// N = 1: F0.0 F1.0 F0.1 F1.1 F0.2 F1.2, warm-up N + 1 - r. N = 2, m = 3: the places of micro-batch 3 stay empty.
TEST(GroupedTest, TakesGroupsSmallerThanTheRanks) {
  EXPECT_THAT(Orders("grouped-1f1b", {2, 2, 3, 1}),
              ElementsAre("F0.0 F1.0 F0.1 I1.0 W1.0 F1.1 I0.0 W0.0 F0.2 I1.1 W1.1 F1.2 I0.1 W0.1 I1.2 W1.2 I0.2 W0.2",
                          "F0.0 F1.0 I1.0 W1.0 F0.1 I0.0 W0.0 F1.1 I1.1 W1.1 F0.2 I0.1 W0.1 F1.2 I1.2 W1.2 I0.2 W0.2"));
  EXPECT_EQ(Orders("grouped-1f1b", {2, 2, 3, 2})[1],
            "F0.0 F0.1 F1.0 I1.0 W1.0 F1.1 I1.1 W1.1 F0.2 I0.0 W0.0 I0.1 W0.1 F1.2 I1.2 W1.2 I0.2 W0.2");
}

// Two micro-batches of two slices: 0 1 | 2 3 forward, 1 0 | 3 2 backward. Warm-up p - 2 - r + s: 2 and 1.
TEST(Seq1f1bTest, RunsSlicesBackInReverse) {
  Parameters parameters{2, 1, 2};
  parameters.slices = 2;
  EXPECT_THAT(Orders("seq1f1b", parameters), ElementsAre("F0.0 F0.1 F0.2 B0.1 F0.3 B0.0 B0.3 B0.2",  //
                                                         "F0.0 F0.1 B0.1 F0.2 B0.0 F0.3 B0.3 B0.2"));
  const Schedule schedule = *Generate("seq1f1b", parameters);
  EXPECT_EQ(schedule.micro_batches, 4);
  EXPECT_EQ(schedule.slices, 2);
}

TEST(Seq1f1bTest, IsOneForwardOneBackwardWithOneSlice) {
  EXPECT_EQ(Orders("seq1f1b", {4, 1, 6}), Orders("1f1b", {4, 1, 6}));
}

// Repeated block, rank 0: F0 at 0, 6; F1 at 3, 9; B1 at 4, 10; B0 at 13, 19; rank 1: F0 at 1, 7; F1 at 2, 8; B1 at 9,
// 15; B0 at 11, 17, so at most 4 activations, on rank 1. The second F0 of rank 0 moves to 1, of rank 1 to 3; F1 of rank
// 1 to 4, of rank 0 to 6; B1 of rank 1 to 6, B1 of rank 0 to 7, B0 to 8 and 10, B1 of rank 1 to 10, B0 to 12 and 14.
TEST(OneForwardOneBackwardVTest, TightensTheRepeatedBlock) {
  EXPECT_THAT(Orders("1f1b-v", {2, 2, 2}), ElementsAre("F0.0 F0.1 F1.0 B1.0 F1.1 B1.1 B0.0 B0.1",  //
                                                       "F0.0 F1.0 F0.1 F1.1 B1.0 B0.0 B1.1 B0.1"));
  // One rank: the next F0 would fit only into slots that are taken.
  EXPECT_THAT(Orders("1f1b-v", {1, 2, 2}), ElementsAre("F0.0 F1.0 B1.0 B0.0 F0.1 F1.1 B1.1 B0.1"));
}

// Most chunks on any rank: 2 floor(2p / 3) + 2, two thirds of the 2p of 1F1B.
TEST(OneForwardOneBackwardVTest, HoldsTwoThirdsOfTheActivations) {
  for (std::int32_t p = 2; p <= 24; ++p) {
    const Schedule schedule = *Generate("1f1b-v", {p, 2, 3 * p});
    std::int32_t peak = 0;
    for (const auto& order : schedule.order) {
      std::int32_t live = 0;
      for (const Action& action : order) {
        live += action.kind == ActionKind::kForward ? 1 : -1;
        peak = std::max(peak, live);
      }
    }
    EXPECT_EQ(peak, 2 * (2 * p / 3) + 2) << p;
  }
}

// Stages 0, 3 on rank 0, 1, 2 on rank 1. Due: F of stage s at 6 k + s, B at 6 k + 12 - 2 s. At 2 rank 1 prefers stage 2
// of micro-batch 0 (2) to stage 1 of 1 (7); rank 0 runs F of stage 3 at 3, its B at 4, F of micro-batch 1 at 6, B at 7;
// rank 1 B of stage 2 at 6, of stage 1 at 8, then those of micro-batch 1.
TEST(HanayoTest, RunsWhatIsDueFirst) {
  EXPECT_THAT(Orders("hanayo", {2, 2, 2}), ElementsAre("F0.0 F0.1 F1.0 B1.0 F1.1 B1.1 B0.0 B0.1",  //
                                                       "F0.0 F1.0 F0.1 F1.1 B1.0 B0.0 B1.1 B0.1"));
  // B0.0 and F0.1 are due at the same time, 6: the backward pass goes first.
  EXPECT_THAT(Orders("hanayo", {1, 2, 2}), ElementsAre("F0.0 F1.0 B1.0 B0.0 F0.1 F1.1 B1.1 B0.1"));
}

TEST(LoopFamiliesTest, RefusalsNameValueAndAllowedRange) {
  EXPECT_THAT(Refusal("looped-bfs", {2, 0, 4}), HasSubstr("looped-bfs: chunks = 0, allowed: at least 1"));
  for (const std::string_view family : {"interleaved-1f1b-torch", "interleaved-zb"}) {
    EXPECT_THAT(Refusal(family, {4, 2, 9}), HasSubstr("micro_batches = 9, allowed: a multiple of 2"));
    EXPECT_THAT(Refusal(family, {4, 2, 10, 4}), HasSubstr("group_size = 4, allowed: 5"));
    EXPECT_TRUE(Generate(family, {4, 2, 3}).ok());
    EXPECT_TRUE(Generate(family, {4, 2, 10, 5}).ok());
  }
  for (const std::string_view family : {"zb-h1", "zb-h2", "1f1b-overlap", "seq1f1b"}) {
    EXPECT_THAT(Refusal(family, {2, 2, 4}), HasSubstr("chunks = 2, allowed: 1"));
    EXPECT_THAT(Refusal(family, {2, 1, 0}), HasSubstr("micro_batches = 0, allowed: at least 1"));
  }
  EXPECT_THAT(Refusal("combined-1f1b", {4, 2, 8, 3}),
              HasSubstr("combined-1f1b: group_size = 3, allowed: ranks (4) to micro_batches (8)"));
  EXPECT_THAT(Refusal("combined-1f1b", {1, 2, 8}), HasSubstr("chunks = 2, allowed: 1 on a single rank"));
  EXPECT_THAT(Refusal("grouped-1f1b", {5, 2, 8, 2}),
              HasSubstr("group_size = 2, allowed: 3 (half of the ranks) to ranks (5)"));
  EXPECT_THAT(Refusal("grouped-1f1b", {5, 2, 8, 6}),
              HasSubstr("group_size = 6, allowed: 3 (half of the ranks) to ranks (5)"));
  EXPECT_THAT(Refusal("1f1b-v", {2, 1, 4}), HasSubstr("chunks = 1, allowed: 2"));
  EXPECT_THAT(Refusal("hanayo", {2, 3, 4}), HasSubstr("chunks = 3 (virtual_stages), allowed: even numbers from 2"));
  Parameters sliced{2, 1, 4};
  sliced.slices = 0;
  EXPECT_THAT(Refusal("seq1f1b", sliced), HasSubstr("slices = 0, allowed: 1 to 65536 with ranks = 2 and"));
  sliced.slices = 65537;
  EXPECT_THAT(Refusal("seq1f1b", sliced), HasSubstr("slices = 65537, allowed: 1 to 65536"));
}

// Forward passes hold an activation, full backward passes and weight gradients free it.
void ExpectBalanced(const Schedule& schedule, std::string_view family) {
  for (const auto& order : schedule.order) {
    std::vector<std::int32_t> live(static_cast<std::size_t>(schedule.chunks()));
    for (const Action& action : order) {
      std::int32_t& chunk = live[static_cast<std::size_t>(action.chunk)];
      if (action.kind == ActionKind::kForward) ++chunk;
      if (action.kind == ActionKind::kBackward || action.kind == ActionKind::kWeightGradient) --chunk;
      EXPECT_GE(chunk, 0) << family;
    }
    EXPECT_EQ(live, std::vector<std::int32_t>(live.size())) << family;
  }
}

// Whether the family takes the parameters; if so, the schedule must be legal.
bool ExpectLegal(const Family& family, const Parameters& parameters) {
  if (!family.check(parameters).ok()) return false;
  const auto schedule = family.generate(parameters);
  const std::string what = std::string(family.name) + " p " + std::to_string(parameters.ranks) + " v " +
                           std::to_string(parameters.chunks) + " m " + std::to_string(parameters.micro_batches) +
                           " N " + std::to_string(parameters.group_size) + " s " + std::to_string(parameters.slices) +
                           " copies " + std::to_string(parameters.pipelines);
  EXPECT_TRUE(schedule.ok()) << what << ": " << schedule.status();
  if (!schedule.ok()) return true;
  const absl::Status status = Validate(*schedule);
  EXPECT_TRUE(status.ok()) << what << ": " << status;
  ExpectBalanced(*schedule, what);
  return true;
}

// Every family that a user can choose, with everything that it takes.
TEST(FamiliesTest, EveryLegalScheduleIsCompleteExecutableAndBalanced) {
  for (const Family& family : Families()) {
    int legal = 0;
    // Automatic families search; their own tests go further.
    const std::int32_t most_ranks = family.automatic ? 4 : 8;
    const std::int32_t most_micro_batches = family.automatic ? 6 : 16;
    for (std::int32_t p = 1; p <= most_ranks; ++p) {
      for (std::int32_t m = 1; m <= most_micro_batches; ++m) {
        for (std::int32_t v = 1; v <= 4; ++v) {
          legal += ExpectLegal(family, {p, v, m}) ? 1 : 0;
          for (std::int32_t n = 1; n <= m + 1; n += 2) ExpectLegal(family, {p, v, m, n});
          for (const std::int32_t slices : {2, 3}) ExpectLegal(family, {p, v, m, 0, slices});
          ExpectLegal(family, {p, v, m, 0, 1, 4});
        }
      }
    }
    EXPECT_GT(legal, 0) << family.name;
  }
}

}  // namespace
}  // namespace orrery::schedules
