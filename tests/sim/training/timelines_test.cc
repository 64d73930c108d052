// Timelines of tiny training programs, derived by hand, which together exercise every time class. Times are
// picoseconds; [a, b) is an interval; r0, r1 are ranks. A forward pass is two kernels of 4 and 6, a backward pass of 8
// and 12: F = 10, B = 20.
#include <gtest/gtest.h>

#include <numeric>
#include <utility>

#include "sim/engine/replay.h"
#include "sim/training/world_builder.h"
#include "tests/sim/training/constant_pricer.h"

namespace orrery::training::testing {
namespace {

using enum engine::TimeClass;
using engine::TimeByClass;

ConstantCosts Costs(std::size_t stages) {
  ConstantCosts costs;
  costs.forward.assign(stages, {4, 6});
  costs.backward.assign(stages, {8, 12});
  costs.optimizer = 5;
  return costs;
}

TimeByClass Classes(std::initializer_list<std::pair<engine::TimeClass, std::int64_t>> entries) {
  TimeByClass classes{};
  for (const auto& [time_class, time] : entries) classes[static_cast<std::size_t>(time_class)] = Time(time);
  return classes;
}

// The unfolded world of a run, replayed three iterations.
engine::Replay Play(v1::Run run, const ConstantCosts& costs, v1::Granularity granularity, engine::EngineKind kind) {
  run.mutable_simulation()->set_fold(v1::OFF);
  run.mutable_simulation()->set_granularity(granularity);
  const absl::StatusOr<Plan> plan = MakePlan(run);
  EXPECT_TRUE(plan.ok()) << plan.status();
  ConstantPricer pricer(*plan, costs);
  engine::ReplayOptions options;
  options.engine = kind;
  const absl::StatusOr<TrainingWorld> built = BuildWorld(*plan, pricer);
  EXPECT_TRUE(built.ok()) << built.status();
  absl::StatusOr<engine::Replay> replay = engine::Run(built->world, options);
  EXPECT_TRUE(replay.ok()) << replay.status();
  return *std::move(replay);
}

// Checks the length of the window, and the account of the unit of every rank named, with both engines and in both
// granularities.
void ExpectTimeline(const v1::Run& run, const ConstantCosts& costs, std::int64_t window,
                    const std::vector<std::pair<std::size_t, TimeByClass>>& accounts) {
  for (const auto granularity : {v1::CHUNK, v1::OPERATOR}) {
    for (const auto kind : {engine::EngineKind::kWorklist, engine::EngineKind::kEventQueue}) {
      SCOPED_TRACE(v1::Granularity_Name(granularity) +
                   (kind == engine::EngineKind::kWorklist ? " worklist" : " event queue"));
      const engine::Replay replay = Play(run, costs, granularity, kind);
      EXPECT_EQ(replay.window_end - replay.window_begin, Time(window));
      for (const auto& [unit, expected] : accounts) {
        // A slip of the hand shows here before it shows as a difference.
        EXPECT_EQ(std::accumulate(expected.begin(), expected.end(), Time()), Time(window))
            << "derivation, unit " << unit;
        EXPECT_EQ(replay.units[unit].classes, expected) << "unit " << unit;
      }
    }
  }
}

// 1F1B, p = 2, m = 2, eager messages of 3; two replicas reduce gradients after the last backward pass in 7; norm 2.
//
//   r0  F0 [0,10)  F1 [10,20)  B0 [46,66)  B1 [76,96)   reduction [96,103)  norm [103,105)  update [105,110)
//   r1  F0 [13,23) B0 [23,43)  F1 [43,53)  B1 [53,73)   reduction [73,80)   norm [103,105)  update [105,110)
//
// r0 misses B0's gradient until 43, and it travels until 46; B1's until 73 and 76: bubble 23 + 7, pp 6.
// r1 misses F0 until 10, and it travels until 13; after its reduction it waits for r0: bubble 10 + 23, pp 3.
// dp is the reduction and the norm: 9. The next iteration begins at 110 on both. Units: pp x dp, dp fastest.
TEST(TrainingTimelines, OneForwardOneBackwardWithExposedReduction) {
  ConstantCosts costs = Costs(2);
  costs.message = 3;
  costs.reduction = 7;
  costs.norm_barrier = 2;
  const v1::Run run = MakeRun({.dp = 2, .pp = 2, .micro_batches = 2, .group_size = 2});
  const TimeByClass first = Classes({{kCompute, 60}, {kBubble, 30}, {kExposedPp, 6}, {kExposedDp, 9}, {kOptimizer, 5}});
  const TimeByClass last = Classes({{kCompute, 60}, {kBubble, 33}, {kExposedPp, 3}, {kExposedDp, 9}, {kOptimizer, 5}});
  ExpectTimeline(run, costs, 110, {{0, first}, {1, first}, {2, last}, {3, last}});
}

// Interleaved, p = 2, two stages per rank (Fcm: chunk c, micro-batch m), m = 2, eager messages of 2, two replicas; a
// chunk's gradients are reduced in 24 beside what follows; norm 2.
//
//   r0  F00 [0,10)   F01 [10,20)  F10 [24,34)  F11 [34,44)  B10 [68,88)  B11 [98,118)  B00 [118,138)  B01 [142,162)
//   r1  F00 [12,22)  F01 [22,32)  F10 [36,46)  B10 [46,66)  F11 [66,76)  B11 [76,96)   B00 [96,116)   B01 [120,140)
//   reductions  r0 chunk 1 [118,142), chunk 0 [162,186); r1 chunk 1 [96,120), chunk 0 [140,164)
//   both        norm [186,188), update [188,193)
//
// Chunk 1's reductions are in flight while the ranks sit in a bubble, r1 in [116,118), r0 in [138,140): it counts as
// bubble, since it is not the reduction that they wait for. Chunk 0's are waited for: dp 24 + 2.
// r0: bubble [20,22) [44,66) [88,96) [138,140) = 34, pp 4 x 2.
// r1: bubble [0,10) [32,34) [116,118), and for r0's last reduction [164,186) = 36, pp 3 x 2.
v1::Run InterleavedRun(std::int64_t zero_stage) {
  return MakeRun({.dp = 2,
                  .pp = 2,
                  .virtual_stages = 2,
                  .micro_batches = 2,
                  .group_size = 2,
                  .schedule = "interleaved-1f1b",
                  .overlapped = true,
                  .zero_stage = zero_stage});
}

ConstantCosts InterleavedCosts() {
  ConstantCosts costs = Costs(4);
  costs.message = 2;
  costs.reduction = 24;
  costs.norm_barrier = 2;
  return costs;
}

TEST(TrainingTimelines, ReductionInFlightDuringTheBubble) {
  ExpectTimeline(InterleavedRun(0), InterleavedCosts(), 193,
                 {{0, Classes({{kCompute, 120}, {kBubble, 34}, {kExposedPp, 8}, {kExposedDp, 26}, {kOptimizer, 5}})},
                  {2, Classes({{kCompute, 120}, {kBubble, 36}, {kExposedPp, 6}, {kExposedDp, 26}, {kOptimizer, 5}})}});
}

// The same with ZeRO-2, where updated parameters are gathered in 8 a chunk ahead of the forward passes: chunk 0 in
// [0,8), which both ranks wait for (dp), r1 although it misses its message too, since the parameters are what it meets
// first; chunk 1 in [8,16), which nobody waits for. All else happens 8 later.
TEST(TrainingTimelines, ParametersGatheredIntoTheForwardPass) {
  ConstantCosts costs = InterleavedCosts();
  costs.gather = 8;
  ExpectTimeline(InterleavedRun(2), costs, 201,
                 {{0, Classes({{kCompute, 120}, {kBubble, 34}, {kExposedPp, 8}, {kExposedDp, 34}, {kOptimizer, 5}})},
                  {2, Classes({{kCompute, 120}, {kBubble, 36}, {kExposedPp, 6}, {kExposedDp, 34}, {kOptimizer, 5}})}});
}

// Two replicas, two micro-batches; r1 computes 1.5 times as slowly: F = 6 + 9, B = 12 + 18.
//   r0: passes [0,60)              reduce [90,97) norm [97,99) update [99,104)
//   r1: passes        [0,90)       reduce [90,97) norm [97,99) update [99,104)
TEST(TrainingTimelines, LateReplica) {
  ConstantCosts costs = Costs(1);
  costs.reduction = 7;
  costs.norm_barrier = 2;
  v1::Run run = MakeRun({.dp = 2, .micro_batches = 2});
  v1::SlowGpu& slow = *run.mutable_perturbation()->add_slow_gpus();
  slow.set_rank(1);
  slow.set_factor(1.5);
  ExpectTimeline(run, costs, 104,
                 {{0, Classes({{kCompute, 60}, {kWaitDp, 30}, {kExposedDp, 9}, {kOptimizer, 5}})},
                  {1, Classes({{kCompute, 90}, {kExposedDp, 9}, {kOptimizer, 5}})}});
}

// Two tensor-parallel ranks, one micro-batch, a collective of 3 between the kernels; r1 computes 1.5 times as slowly.
//   r0: [0,4)    tp [6,9)  [9,15) [15,23)    tp [30,33) [33,45)   norm [51,53) update [53,58)
//   r1: [0,6)    tp [6,9)  [9,18) [18,30)    tp [30,33) [33,51)   norm [51,53) update [53,58)
// r0 waits for r1 in [4,6), [23,30) and [45,51).
TEST(TrainingTimelines, LateTensorParallelRank) {
  ConstantCosts costs = Costs(1);
  costs.tp = 3;
  costs.norm_barrier = 2;
  v1::Run run = MakeRun({.tp = 2});
  v1::SlowGpu& slow = *run.mutable_perturbation()->add_slow_gpus();
  slow.set_rank(1);
  slow.set_factor(1.5);
  ExpectTimeline(run, costs, 58,
                 {{0, Classes({{kCompute, 30}, {kWaitTp, 15}, {kExposedTp, 6}, {kExposedDp, 2}, {kOptimizer, 5}})},
                  {1, Classes({{kCompute, 45}, {kExposedTp, 6}, {kExposedDp, 2}, {kOptimizer, 5}})}});
}

// One rank, one micro-batch; issuing a kernel takes 20, longer than any kernel runs. Kernels are issued at 20, 40, 60,
// 80 and the update at 100, every iteration 100 later than in the one before:
//   [20,24) [40,46) [60,68) [80,92) update [100,105); the window is [105,205).
TEST(TrainingTimelines, HostHoldsEveryKernelBack) {
  ExpectTimeline(MakeRun({.issue_seconds = 20e-12}), Costs(1), 100,
                 {{0, Classes({{kCompute, 30}, {kHost, 65}, {kOptimizer, 5}})}});
}

// One rank, one micro-batch; the loader takes 50 for an iteration's input and works ahead: input k is there at 50 (k +
// 1). Iteration 0 is [50,85); iteration 1 waits for its input in [85,100).
TEST(TrainingTimelines, InputIsLate) {
  ExpectTimeline(MakeRun({.data_seconds = 50e-12}), Costs(1), 50,
                 {{0, Classes({{kCompute, 30}, {kData, 15}, {kOptimizer, 5}})}});
}

// Two pipeline ranks whose tied embeddings are reduced in 4 after gradients, then a wait of 3 for the slowest rank of
// all, which is part of the price (expected jitter). p = 2, m = 1, messages free.
//   r0: F [0,10)            B [40,60)  embedding [60,64) norm [64,66) slowest [66,69) update [69,74)
//   r1:         F [10,20) B [20,40)    embedding [60,64) ...
// The embedding's missing partner is a pipeline peer: bubble. r0: [10,40) = 30. r1: [0,10) + [40,60) = 30. So is the
// slowest rank where there is one replica: 3 more.
TEST(TrainingTimelines, TiedEmbeddingsAndSlowestRank) {
  ConstantCosts costs = Costs(2);
  costs.embedding_reduction = 4;
  costs.norm_barrier = 2;
  costs.slowest_wait = 3;
  const v1::Run run = MakeRun({.pp = 2, .group_size = 2, .tied_embeddings = true});
  const TimeByClass both = Classes({{kCompute, 30}, {kBubble, 33}, {kExposedPp, 4}, {kExposedDp, 2}, {kOptimizer, 5}});
  ExpectTimeline(run, costs, 74, {{0, both}, {1, both}});
}

}  // namespace
}  // namespace orrery::training::testing
