// What is often said of schedules and is not so: docs/schedules.md, "Where folklore is wrong", number by number. Values
// by hand from the definitions, or as the generators' own tables evaluate.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "schedules/family.h"
#include "sim/pipeline/evaluate.h"

namespace orrery::pipeline {
namespace {

using schedules::Parameters;
using schedules::PassCosts;

struct Sizes {
  std::int32_t ranks = 1;
  std::int32_t chunks = 1;
  std::int32_t micro_batches = 1;
  std::int32_t group_size = 0;
};

absl::StatusOr<schedules::Schedule> Make(const std::string& family, const Sizes& sizes,
                                         const std::vector<PassCosts>& stages = {PassCosts{}},
                                         std::int64_t latency = 0) {
  Parameters parameters;
  parameters.ranks = sizes.ranks;
  parameters.chunks = sizes.chunks;
  parameters.micro_batches = sizes.micro_batches;
  parameters.group_size = sizes.group_size;
  parameters.planning.stages = stages;
  parameters.planning.latency = latency;
  return schedules::Generate(family, parameters);
}

Evaluation Measure(const std::string& family, const Sizes& sizes, std::vector<PassCosts> stages,
                   std::int64_t latency = 0) {
  const auto schedule = Make(family, sizes, stages, latency);
  EXPECT_TRUE(schedule.ok()) << schedule.status();
  if (!schedule.ok()) return {};
  const auto evaluation = Evaluate(*schedule, {.stages = std::move(stages), .latency = latency, .block = {}});
  EXPECT_TRUE(evaluation.ok()) << evaluation.status();
  return evaluation.ok() ? *evaluation : Evaluation();
}

// Of every rank; -1 where they differ.
std::int64_t WallIdle(const Evaluation& evaluation) {
  const std::int64_t idle = evaluation.makespan - evaluation.ranks.front().busy;
  for (const RankEvaluation& rank : evaluation.ranks) {
    if (evaluation.makespan - rank.busy != idle) return -1;
  }
  return idle;
}

constexpr PassCosts kUnit = {1, 1, 1};

// 1. No span bubble, and every rank is idle for (p-1)F of wall time; of ZB-V F is that of a chunk.
TEST(FolkloreTest, ZeroBubbleIsAboutSpans) {
  for (const auto& [family, chunks] : {std::pair{"zb-h2", 1}, {"zb-2p", 1}, {"zb-v", 2}}) {
    const Evaluation evaluation = Measure(family, Sizes{4, chunks, 8}, {kUnit});
    EXPECT_EQ(evaluation.longest_span, 3 * 8 * chunks) << family;
    EXPECT_EQ(WallIdle(evaluation), 3) << family;
  }
}

// 2. What messages add at p = 4, in units of c: GPipe 2(p-1) = 6 and 1F1B 2(p-1)(m/p+1) - 2; interleaved 2(pv-1) = 14
// for N = p and 6 for N = 2p, whatever m.
TEST(FolkloreTest, MessagesAreNotPaidOnce) {
  const auto added = [](const char* family, const Sizes& sizes) {
    const std::vector<PassCosts> costs = {{10, 10, 10}};
    return Measure(family, sizes, costs, 1).makespan - Measure(family, sizes, costs).makespan;
  };
  EXPECT_EQ(added("gpipe", {4, 1, 8}), 6);
  EXPECT_EQ(added("gpipe", {4, 1, 16}), 6);
  EXPECT_EQ(added("1f1b", {4, 1, 8}), 16);
  EXPECT_EQ(added("1f1b", {4, 1, 16}), 28);
  EXPECT_EQ(added("interleaved-1f1b", {4, 2, 8, 4}), 14);
  EXPECT_EQ(added("interleaved-1f1b", {4, 2, 16, 4}), 14);
  EXPECT_EQ(added("interleaved-1f1b", {4, 2, 16, 8}), 6);
}

// 3. p = 4, m = 16, one stage of 3 + 6, the others of 2 + 4: (m-1) max + sum = 15 x 9 + 27 = 162.
TEST(FolkloreTest, UnevenStagesTellGpipeAndOneForwardOneBackwardApart) {
  const auto makespan = [](const char* family, std::size_t slow) {
    std::vector<PassCosts> stages(4, PassCosts{2, 2, 2});
    stages[slow] = {3, 3, 3};
    return Measure(family, {4, 1, 16}, stages).makespan;
  };
  EXPECT_EQ(makespan("gpipe", 0), 162);
  EXPECT_EQ(makespan("1f1b", 0), 153);
  EXPECT_LT(makespan("1f1b", 1), 162);
  EXPECT_EQ(makespan("1f1b", 3), 162);
}

// 4. (p-1)(F+I-W) = 3 while W <= F, I only.
TEST(FolkloreTest, ZbH1WithLongWeightGradients) {
  EXPECT_EQ(WallIdle(Measure("zb-h1", {4, 1, 8}, {{3, 3, 3}})), 9);
  EXPECT_EQ(WallIdle(Measure("zb-h1", {4, 1, 8}, {{2, 2, 3}})), 6);
}

// 5. (p/2-1)(F&B + B - 3W), p = 8: right for F = I, W <= F; F & B = 4 at F = 2: said 9, is (p/2-1)(F&B + F - 2W) = 12.
TEST(FolkloreTest, DualPipeWantsEqualPasses) {
  const auto idle = [](const PassCosts& costs) { return WallIdle(Measure("dualpipe", {8, 1, 20}, {costs})); };
  EXPECT_EQ(idle({1, 1, 1}), 6);
  EXPECT_EQ(idle({2, 1, 1}), 12);
  EXPECT_NE(idle({1, 2, 1}), 3 * (4 + 3 - 3));
  EXPECT_NE(idle({1, 1, 2}), 3 * (4 + 3 - 6));
}

// 6. 5 and 11 of 1F1B's 18 (chunk units) at equal costs: 0.28 and 0.61. At profiled costs V-Min's bubble is the larger.
TEST(FolkloreTest, ControllableMemoryDependsOnCosts) {
  EXPECT_EQ(WallIdle(Measure("1f1b", {4, 1, 8}, {{2, 2, 2}})), 18);
  EXPECT_EQ(WallIdle(Measure("v-half", {4, 2, 8}, {kUnit})), 5);
  EXPECT_EQ(WallIdle(Measure("v-min", {4, 2, 8}, {kUnit})), 11);
  const auto v_min = Measure("v-min", {8, 2, 24}, {{9261, 9043, 4668}}, 601);
  const auto one_f_one_b = Measure("1f1b", {8, 1, 24}, {{18522, 18086, 9336}}, 601);
  EXPECT_EQ(v_min.ranks[0].busy, one_f_one_b.ranks[0].busy);
  EXPECT_GT(WallIdle(v_min), WallIdle(one_f_one_b));
}

// 7. (p-2)/(1.5m+p-2) of 3m + idle at B = 2F: 2(p-2) = 4 for every m at p = 4. Each wave adds to it.
TEST(FolkloreTest, ChimeraLosesWithEveryWave) {
  EXPECT_EQ(WallIdle(Measure("chimera", {4, 1, 4}, {kUnit})), 4);
  EXPECT_EQ(WallIdle(Measure("chimera", {4, 1, 8}, {kUnit})), 6);
  EXPECT_EQ(WallIdle(Measure("chimera", {4, 1, 16}, {kUnit})), 10);
}

// 8. p = 4: groups of 5 and 4 for m = 9 in Megatron's form; PyTorch's wants equal groups, and takes m = 3 as one.
TEST(FolkloreTest, InterleavingNeedsNoMultipleOfRanks) {
  EXPECT_TRUE(Make("interleaved-1f1b", {4, 2, 9, 5}).ok());
  EXPECT_FALSE(Make("interleaved-1f1b-torch", {4, 2, 9}).ok());
  EXPECT_TRUE(Make("interleaved-1f1b-torch", {4, 2, 3}).ok());
  EXPECT_TRUE(Make("interleaved-1f1b-torch", {4, 2, 10}).ok());
}

}  // namespace
}  // namespace orrery::pipeline
