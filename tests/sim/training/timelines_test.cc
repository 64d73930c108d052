// Timelines of tiny training programs, derived by hand, which together exercise every time class. Times are
// picoseconds; [a, b) is an interval; r0, r1 are ranks. A forward pass is two kernels of 4 and 6, a backward pass of 8
// and 12: F = 10, B = 20.
#include <gtest/gtest.h>

#include <numeric>
#include <string>
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

// Four layers in two buckets, the gathers of which (8 each) the first forward pass meets one after the other: layers 0
// and 1 in [8,28), 2 and 3 from 28 on, though their parameters were there at 16. Gradients are reduced (7) when the
// backward pass has left layer 2 and layer 0: B3 B2 [48,88) R [88,95), B1 B0 [88,128) R [128,135), norm [135,137),
// update [137,142).
TEST(TrainingTimelines, BucketsOfParametersAndGradients) {
  ConstantCosts costs = Costs(1);
  costs.gather = 8;
  costs.reduction = 7;
  costs.buckets = 2;
  costs.norm_barrier = 2;
  RunShape shape = {.dp = 2, .overlapped = true, .zero_stage = 1, .stage_layers = {4}};
  const TimeByClass both = Classes({{kCompute, 120}, {kExposedDp, 8 + 7 + 2}, {kOptimizer, 5}});
  ExpectTimeline(MakeRun(shape), costs, 142, {{0, both}, {1, both}});
  // Gathers of 25 are not hidden: layers 0 and 1 [25,45), 2 and 3 [50,70). All else is 22 later.
  costs.gather = 25;
  const TimeByClass late = Classes({{kCompute, 120}, {kExposedDp, 25 + 5 + 7 + 2}, {kOptimizer, 5}});
  ExpectTimeline(MakeRun(shape), costs, 164, {{0, late}, {1, late}});
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

// Eight tensor-parallel ranks alone: the expected wait for the last of them to begin is a wait for such a rank.
//   F [0,10) B [10,30) norm [30,32) wait [32,35) update [35,40)
TEST(TrainingTimelines, SlowestTensorParallelRank) {
  ConstantCosts costs = Costs(1);
  costs.norm_barrier = 2;
  costs.slowest_wait = 3;
  ExpectTimeline(MakeRun({.tp = 8}), costs, 40,
                 {{0, Classes({{kCompute, 30}, {kExposedDp, 2}, {kWaitTp, 3}, {kOptimizer, 5}})}});
}

// --- ZeRO-3: two replicas of two layers, two micro-batches. G: all-gather, R: reduce-scatter, by layer; root:
// embedding and head. Both ranks do the same.

RunShape Sharded() {
  return {.dp = 2, .micro_batches = 2, .zero_stage = 3, .reduce_every_micro_batch = true, .stage_layers = {2}};
}

ConstantCosts ShardedCosts() {
  ConstantCosts costs = Costs(1);
  costs.layer_gather = 6;
  costs.layer_reduction = 9;
  costs.root_gather = 3;
  costs.root_reduction = 5;
  costs.norm_barrier = 2;
  return costs;
}

// Gathers shorter than passes; embedding and head of 2.
//
//   data-parallel  root [0,3)  G0 [3,9)  G1 [9,15)  G1 [19,25)  G0 [29,35)     R1 [53,62)  R0 [73,82)  root [82,87)
//   compute        e [3,5)  F0 [9,19)  F1 [19,29)  h [29,31)   h [31,33)  B1 [33,53)  B0 [53,73)  e [73,75)
//   data-parallel  root [87,90)  G0 [90,96)  G1 [96,102)  G1 [106,112)  G0 [116,122)   R1 [140,149)  R0 [160,169)  root
//                  [169,174)
//   compute        e [90,92)  F0 [96,106)  F1 [106,116)  h [116,118)  h [118,120)  B1 [120,140)  B0 [140,160)  e
//                  [160,162)  norm [174,176)  update [176,181)
//
// Two gathers are in flight: the first of the backward pass, G1, follows F0's end (19), the next, G0, F1's (29). The
// second micro-batch's forward pass is not prepared before the first one's backward pass has reduced everything.
// dp: 3 + 4, 15 + 4, 12 + 2.
TEST(TrainingTimelines, ShardedWithGathersShorterThanPasses) {
  ConstantCosts costs = ShardedCosts();
  costs.ends = 2;
  const TimeByClass both = Classes({{kCompute, 136}, {kExposedDp, 40}, {kOptimizer, 5}});
  ExpectTimeline(MakeRun(Sharded()), costs, 181, {{0, both}, {1, both}});
}

// Gathers (25) and reductions (30) longer than passes; no embedding and head, but parameters of theirs.
//
//   data-parallel  root [0,3)  G0 [3,28)  G1 [28,53)  G1 [53,78)  G0 [78,103)  R1 [103,133)  R0 [133,163)
//                  root [163,168)
//   compute        F0 [28,38)  F1 [53,63)  B1 [78,98)  B0 [103,123)
//   data-parallel  root [168,171)  G0 [171,196)  G1 [196,221)  G1 [221,246)  G0 [246,271)  R1 [271,301)
//                  R0 [301,331)  root [331,336)
//   compute        F0 [196,206)  F1 [221,231)  B1 [246,266)  B0 [271,291)   norm [336,338)  update [338,343)
//
// Compute is 2 x 60; R1 waits behind G0, which was issued before B1.
TEST(TrainingTimelines, ShardedWithGathersLongerThanPasses) {
  ConstantCosts costs = ShardedCosts();
  costs.layer_gather = 25;
  costs.layer_reduction = 30;
  const TimeByClass both = Classes({{kCompute, 120}, {kExposedDp, 218}, {kOptimizer, 5}});
  ExpectTimeline(MakeRun(Sharded()), costs, 343, {{0, both}, {1, both}});
}

// Nothing is dropped after the forward pass, nothing reduced before the last micro-batch, and nothing gathered ahead:
//
//   data-parallel  root [0,3)  G0 [3,9)  G1 [19,25)                                   R1 [115,124)  R0 [135,144)  root
//                  [144,149)
//   compute        F0 [9,19)  F1 [25,35)  B1 [35,55)  B0 [55,75)  F0 F1 [75,95)  B1 [95,115)  B0 [115,135)
//                  norm [149,151)  update [151,156)
TEST(TrainingTimelines, ShardedKeepingParametersAndGradients) {
  RunShape shape = Sharded();
  shape.reduce_every_micro_batch = false;
  shape.reshard_after_forward = false;
  shape.gather_ahead = 0;
  const TimeByClass both = Classes({{kCompute, 120}, {kExposedDp, 9 + 6 + 14 + 2}, {kOptimizer, 5}});
  ExpectTimeline(MakeRun(shape), ShardedCosts(), 156, {{0, both}, {1, both}});
}

// Parameters kept in fp32: each rank converts its shard in 1 before a gather. One layer, one micro-batch, root free:
//   data-parallel  convert [0,1)  G [1,7)  convert [7,8)  G [8,14)  R [37,46)
//   compute        F [7,17)  B [17,37)  norm [46,48)  update [48,53)
// While F waits, a kernel runs in [0,1): compute.
TEST(TrainingTimelines, ShardsConvertedBeforeTheyAreGathered) {
  ConstantCosts costs = ShardedCosts();
  costs.layer_conversion = 1;
  costs.root_gather = costs.root_reduction = 0;
  RunShape shape = Sharded();
  shape.micro_batches = 1;
  shape.stage_layers = {1};
  const TimeByClass both = Classes({{kCompute, 30 + 1}, {kExposedDp, 6 + 9 + 2}, {kOptimizer, 5}});
  ExpectTimeline(MakeRun(shape), costs, 53, {{0, both}, {1, both}});
}

// Overlap rules slow every pass and all its communication down. Forward 1.2 and 1.5, backward 1.1 and 2; kernels are
// rounded to 5 + 7 and 9 + 13. One layer, one micro-batch, root free:
//   data-parallel  G [0,9)  G [9,21)  R [43,61)
//   compute        F [9,21)  B [21,43)  norm [61,63)  update [63,68)
TEST(TrainingTimelines, ShardedPassesSlowEachOtherDown) {
  ConstantCosts costs = ShardedCosts();
  costs.root_gather = costs.root_reduction = 0;
  RunShape shape = Sharded();
  shape.micro_batches = 1;
  shape.stage_layers = {1};
  v1::Run run = MakeRun(shape);
  const auto add_rule = [&](v1::PassKind pass, v1::MicroBatches where, double compute, double communication) {
    v1::OverlapRule& rule = *run.mutable_software()->add_overlap_rules();
    rule.set_axis(v1::DP);
    rule.set_pass(pass);
    rule.set_micro_batches(where);
    rule.set_compute_factor(compute);
    rule.set_communication_factor(communication);
  };
  add_rule(v1::FORWARD, v1::FIRST, 50, 50);  // for runs that communicate once an iteration
  add_rule(v1::FORWARD, v1::ALL, 1.2, 1.5);
  add_rule(v1::BACKWARD, v1::ALL, 1.1, 2);
  const TimeByClass both = Classes({{kCompute, 34}, {kExposedDp, 9 + 18 + 2}, {kOptimizer, 5}});
  ExpectTimeline(run, costs, 68, {{0, both}, {1, both}});
}

// Hybrid sharding, four replicas in two shard groups: what ShardedWithGathersShorterThanPasses does, and every
// reduction is followed by one of 12 over the two copies, on a stream of its own.
//
//   copies  R1 [62,74)  R0 [82,94)  root [94,106)   R1 [149,161)  R0 [169,181)  root [181,193)
//
// The first micro-batch's are hidden, the second's end 19 later than without.
TEST(TrainingTimelines, HybridShardingReducesCopiesBesideShards) {
  ConstantCosts costs = ShardedCosts();
  costs.ends = 2;
  costs.replica_reduction = 12;
  RunShape shape = Sharded();
  shape.dp = 4;
  shape.shard_ranks = 2;
  const TimeByClass all = Classes({{kCompute, 136}, {kExposedDp, 59}, {kOptimizer, 5}});
  ExpectTimeline(MakeRun(shape), costs, 200, {{0, all}, {1, all}, {2, all}, {3, all}});
}

// ZeRO-1 over two of four replicas, exposed: updated parameters are gathered in the shard group [0,8); after the passes
// [8,68) the shard groups reduce [68,75), and then the copies [75,79); norm [79,81), update [81,86).
TEST(TrainingTimelines, OptimizerShardedOverSomeReplicas) {
  ConstantCosts costs = Costs(1);
  costs.gather = 8;
  costs.reduction = 7;
  costs.replica_reduction = 4;
  costs.norm_barrier = 2;
  const RunShape shape = {.dp = 4, .micro_batches = 2, .zero_stage = 1, .shard_ranks = 2};
  const TimeByClass all = Classes({{kCompute, 60}, {kExposedDp, 8 + 7 + 4 + 2}, {kOptimizer, 5}});
  ExpectTimeline(MakeRun(shape), costs, 86, {{0, all}, {1, all}, {2, all}, {3, all}});
}

// ZeRO-2 that reduces in every micro-batch, beside the next one's forward pass or on its own:
//   beside      G [0,8)  F0 B0 [8,38)  R [38,45) beside F1 B1 [38,68)  R [68,75)  norm [75,77)  update [77,82)
//   on its own  G [0,8)  F0 B0 [8,38)  R [38,45)  F1 B1 [45,75)        R [75,82)  norm [82,84)  update [84,89)
TEST(TrainingTimelines, GradientsReducedInEveryMicroBatch) {
  ConstantCosts costs = Costs(1);
  costs.gather = 8;
  costs.reduction = 7;
  costs.norm_barrier = 2;
  RunShape shape = {.dp = 2, .micro_batches = 2, .overlapped = true, .zero_stage = 2, .reduce_every_micro_batch = true};
  const TimeByClass beside = Classes({{kCompute, 60}, {kExposedDp, 8 + 7 + 2}, {kOptimizer, 5}});
  ExpectTimeline(MakeRun(shape), costs, 82, {{0, beside}, {1, beside}});
  shape.overlapped = false;
  const TimeByClass alone = Classes({{kCompute, 60}, {kExposedDp, 8 + 14 + 2}, {kOptimizer, 5}});
  ExpectTimeline(MakeRun(shape), costs, 89, {{0, alone}, {1, alone}});
}

// --- Host

// The host pauses for 30 between an update and the first kernel after it: host [0,30)  F B [30,60)  update [60,65).
// Where issuing a kernel takes 20, it starts with that after the pause, however far ahead it could have been: kernels
// at 50, 70, 90 and 110, the update at 130.
TEST(TrainingTimelines, HostPausesBetweenIterations) {
  ConstantCosts costs = Costs(1);
  costs.step_overhead = 30;
  ExpectTimeline(MakeRun({}), costs, 65, {{0, Classes({{kCompute, 30}, {kHost, 30}, {kOptimizer, 5}})}});
  ExpectTimeline(MakeRun({.issue_seconds = 20e-12}), costs, 135,
                 {{0, Classes({{kCompute, 30}, {kHost, 100}, {kOptimizer, 5}})}});
}

// The pause holds back gathers too: one layer, one micro-batch, ZeRO-3.
//   host [0,30)  G [30,36)  F [36,46)  B [46,66)  R [66,75)  norm [75,77)  update [77,82)
TEST(TrainingTimelines, HostPauseHoldsGathersBack) {
  ConstantCosts costs = ShardedCosts();
  costs.root_gather = costs.root_reduction = 0;
  costs.step_overhead = 30;
  RunShape shape = Sharded();
  shape.micro_batches = 1;
  shape.stage_layers = {1};
  const TimeByClass both = Classes({{kCompute, 30}, {kHost, 30}, {kExposedDp, 6 + 9 + 2}, {kOptimizer, 5}});
  ExpectTimeline(MakeRun(shape), costs, 82, {{0, both}, {1, both}});
}

// --- Uneven stages

// Three stages of 1, 0 and 1 layers, one micro-batch, eager messages of 3.
//   r0  F [0,10)                                                B [52,72)  norm [72,74)  update [74,79)
//   r1           F [13,13)                        B [49,49)
//   r2                      F [16,26)  B [26,46)
// r1 passes on what it gets: bubble [0,10) [13,46) [49,72), pp 3 + 3.
TEST(TrainingTimelines, StageWithoutLayers) {
  ConstantCosts costs = Costs(3);
  costs.message = 3;
  costs.norm_barrier = 2;
  const v1::Run run = MakeRun({.pp = 3, .group_size = 3, .stage_layers = {1, 0, 1}});
  ExpectTimeline(run, costs, 79,
                 {{0, Classes({{kCompute, 30}, {kBubble, 39}, {kExposedPp, 3}, {kExposedDp, 2}, {kOptimizer, 5}})},
                  {1, Classes({{kBubble, 66}, {kExposedPp, 6}, {kExposedDp, 2}, {kOptimizer, 5}})},
                  {2, Classes({{kCompute, 30}, {kBubble, 39}, {kExposedPp, 3}, {kExposedDp, 2}, {kOptimizer, 5}})}});
}

v1::Run RunOfTable(RunShape shape, const std::string& table) {
  shape.schedule = "table";
  v1::Run run = MakeRun(shape);
  run.mutable_schedule()->set_table(table);
  return run;
}

// Split backward passes (I = 8, W = 12) of one micro-batch, eager messages of 3, norm 2.
//
//   r0  F [0,10)   I [34,42)  W [42,54)
//   r1  F [13,23)  I [23,31)  W [31,43)
//
// With the barrier, r1 waits for r0's W: norm [54,56), update [56,61) on both. r0 misses r1's I until 31, and it
// travels until 34: bubble 21, pp 3. r1 misses r0's F until 10, and it travels until 13; from 43 to 54 it waits: bubble
// 21, pp 3.
TEST(TrainingTimelines, SplitBackwardPasses) {
  ConstantCosts costs = Costs(2);
  costs.message = 3;
  costs.norm_barrier = 2;
  const v1::Run run = RunOfTable({.pp = 2, .micro_batches = 1}, "0F0,0I0,0W0\n1F0,1I0,1W0\n");
  const TimeByClass each = Classes({{kCompute, 30}, {kBubble, 21}, {kExposedPp, 3}, {kExposedDp, 2}, {kOptimizer, 5}});
  ExpectTimeline(run, costs, 61, {{0, each}, {1, each}});
}

// The same with updates that are checked afterwards: r0 updates in [54,59) and begins anew, r1 in [43,48), and waits
// for r0's next F from then on: what it idles is the same, and the iteration is shorter by the norm alone, since r0 is
// the last to end and the first to begin.
TEST(TrainingTimelines, PostValidationNeedsNoBarrier) {
  ConstantCosts costs = Costs(2);
  costs.message = 3;
  costs.norm_barrier = 2;
  v1::Run run = RunOfTable({.pp = 2, .micro_batches = 1}, "0F0,0I0,0W0\n1F0,1I0,1W0\n");
  run.mutable_software()->set_post_validation(true);
  const TimeByClass each = Classes({{kCompute, 30}, {kBubble, 21}, {kExposedPp, 3}, {kOptimizer, 5}});
  ExpectTimeline(run, costs, 59, {{0, each}, {1, each}});
  // It is for schedules that split the backward pass: F [0,10) and [13,23), B [23,43) and [46,66), norm, update.
  v1::Run plain = RunOfTable({.pp = 2, .micro_batches = 1}, "0F0,0B0\n1F0,1B0\n");
  plain.mutable_software()->set_post_validation(true);
  ExpectTimeline(plain, costs, 73, {});
}

// Two copies of the model on two ranks: micro-batches 0 and 1 enter at r0, 2 and 3 at r1, and both ranks do the same.
// Messages of 3; copies of a stage are reduced in 4 each; norm 2.
//
//   r0  0F0 [0,10)  0F1 [10,20)  1F2 [20,30)  (1B2;1F3) [30,60)  0B0 [63,83)  1B3 [83,103)  0B1 [106,126)
//       copies [126,134)  norm [134,136)  update [136,141)
//
// The gradient of 1B0 leaves r1 at the end of its block, 60; 1B1's at 103. Apart, B and F of the block end at 50 and
// 60, the gradient is there at 53, and 0B0 starts at 60: [60,80) [80,100) [103,123), 3 less in all.
TEST(TrainingTimelines, FusedBlocksAndCopiesOfTheModel) {
  ConstantCosts costs = Costs(2);
  costs.message = 3;
  costs.copies_reduction = 4;
  costs.norm_barrier = 2;
  const RunShape shape = {.pp = 2, .micro_batches = 4, .group_size = 2};
  const v1::Run fused = RunOfTable(shape,
                                   "0F0,0F1,1F2,(1B2;1F3)OVERLAP_F_B,0B0,1B3,0B1\n"
                                   "0F2,0F3,1F0,(1B0;1F1)OVERLAP_F_B,0B2,1B1,0B3\n");
  const TimeByClass each = Classes({{kCompute, 120}, {kExposedPp, 6}, {kExposedDp, 10}, {kOptimizer, 5}});
  ExpectTimeline(fused, costs, 141, {{0, each}, {1, each}});
  const v1::Run apart = RunOfTable(shape, "0F0,0F1,1F2,1B2,1F3,0B0,1B3,0B1\n0F2,0F3,1F0,1B0,1F1,0B2,1B1,0B3\n");
  const TimeByClass less = Classes({{kCompute, 120}, {kExposedPp, 3}, {kExposedDp, 10}, {kOptimizer, 5}});
  ExpectTimeline(apart, costs, 138, {{0, less}, {1, less}});
}

// Two replicas, two micro-batches, two layers, buckets of one, reduced in 10 beside the last backward pass; norm 2. A
// rule says that either side runs at half speed beside the other.
//
//   F0 [0,20)  B0 [20,60)  F1 [60,80)  B1: layer 1 [80,100), whose reduction begins; of layer 0's 20, 10 run by 120,
//   while the reduction comes to its end: half of 20; the other 10 [120,130), reduced [130,140); norm, update [142,147)
//
// Only compute slowed: the reduction [100,110), of layer 0's 20 by then 5; the rest [110,125); reduction [125,135),
// norm, update [137,142). Static overlap slows all of B1.
TEST(TrainingTimelines, DynamicOverlapSlowsWhatRunsSideBySide) {
  ConstantCosts costs = Costs(1);
  costs.reduction = 10;
  costs.buckets = 2;
  costs.norm_barrier = 2;
  v1::Run run = MakeRun({.dp = 2, .micro_batches = 2, .overlapped = true, .stage_layers = {2}});
  v1::OverlapRule& rule = *run.mutable_software()->add_overlap_rules();
  rule.set_axis(v1::DP);
  rule.set_pass(v1::BACKWARD);
  rule.set_micro_batches(v1::LAST);
  rule.set_compute_factor(2);
  rule.set_communication_factor(2);
  run.mutable_simulation()->set_overlap(v1::DYNAMIC);
  const auto expect = [&](std::int64_t window, const TimeByClass& account) {
    for (const auto granularity : {v1::CHUNK, v1::OPERATOR}) {
      SCOPED_TRACE(v1::Granularity_Name(granularity));
      const engine::Replay replay = Play(run, costs, granularity, engine::EngineKind::kEventQueue);
      EXPECT_EQ(replay.window_end - replay.window_begin, Time(window));
      for (const engine::UnitResult& unit : replay.units) EXPECT_EQ(unit.classes, account);
    }
  };
  expect(147, Classes({{kCompute, 130}, {kExposedDp, 12}, {kOptimizer, 5}}));
  rule.set_communication_factor(1);
  expect(142, Classes({{kCompute, 125}, {kExposedDp, 12}, {kOptimizer, 5}}));
  run.mutable_simulation()->set_overlap(v1::STATIC);
  expect(177, Classes({{kCompute, 160}, {kExposedDp, 12}, {kOptimizer, 5}}));
}

}  // namespace
}  // namespace orrery::training::testing
