// Ledgers of model states, counted by hand.
//
// The model: 2 layers, h = 128, 2 heads, f = 512, V = 256, s = 64, tied, learned positions, on 4 data-parallel ranks.
//   a layer   qkv 3 h h = 49,152; projection h h = 16,384; MLP 2 h f = 131,072; two norms 4 h = 512; biases 3 h + h + f
//   +
//             h = 1,152: 198,272
//   embedding (256 + 64) h = 40,960; final norm 2 h = 256: the root unit of ZeRO-3, 41,216
//   together  437,760, a quarter of which is 109,440
#include "sim/training/model_states.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/sim/training/example_runs.h"

namespace orrery::training {
namespace {

constexpr std::int64_t kLayer = 198272;
constexpr std::int64_t kRoot = 41216;
constexpr std::int64_t kAll = 437760;
constexpr std::int64_t kQuarter = 109440;

v1::Run TinyRun(std::vector<std::string> overrides) {
  overrides.insert(overrides.begin(), "software.bucket_bytes=1000000000000");
  return testing::FromText(R"(
      model { layers: 2 hidden: 128 heads: 2 ffn_hidden: 512 vocab: 256 }
      cluster { preset: "selene" }
      software { preset: "megatron-lm-2022" }
      parallelism { dp: 4 sequence_parallel: false }
      training { seq_len: 64 global_batch: 8 precision: BF16 gradient_type: FP32 recompute: NONE })",
                           std::move(overrides));
}

memory::Ledger LedgerOf(std::vector<std::string> overrides) {
  const absl::StatusOr<Plan> plan = MakePlan(TinyRun(std::move(overrides)));
  return StaticMemory(*plan, 0);
}

void ExpectStates(const memory::Ledger& ledger, std::int64_t weights, std::int64_t gradients, std::int64_t optimizer,
                  std::int64_t buffers) {
  EXPECT_EQ(ledger.weights.count(), weights);
  EXPECT_EQ(ledger.gradients.count(), gradients);
  EXPECT_EQ(ledger.optimizer.count(), optimizer);
  EXPECT_EQ(ledger.buffers.count(), buffers);
}

TEST(StaticMemory, Zero0HoldsEighteenBytesAParameter) {
  ExpectStates(LedgerOf({"parallelism.zero_stage=0"}), 2 * kAll, 4 * kAll, 12 * kAll, 0);
  ExpectStates(LedgerOf({"parallelism.zero_stage=0", "training.gradient_type=BF16"}), 2 * kAll, 2 * kAll, 12 * kAll, 0);
}

// 6 + 12 / d.
TEST(StaticMemory, Zero1SharesTheOptimizer) {
  ExpectStates(LedgerOf({"parallelism.zero_stage=1"}), 2 * kAll, 4 * kAll, 12 * kQuarter, 0);
}

// Two copies of what is shared: 6 + 12 / 2.
TEST(StaticMemory, HybridShardingSharesOverFewerRanks) {
  ExpectStates(LedgerOf({"parallelism.zero_stage=1", "parallelism.shard_ranks=2"}), 2 * kAll, 4 * kAll, 24 * kQuarter,
               0);
}

// One bucket, which holds all gradients of the rank before they are shared: the rank's own quarter of it is its shard.
TEST(StaticMemory, Zero2SharesGradientsButForTheBucketInFlight) {
  ExpectStates(LedgerOf({"parallelism.zero_stage=2"}), 2 * kAll, 4 * kQuarter, 12 * kQuarter, 4 * (kAll - kQuarter));
}

// Units in flight: root and two layers in 16 bit; gradients of the layer that computes in 16 bit, of the one being
// reduced in fp32.
TEST(StaticMemory, Zero3SharesAllButUnitsInFlight) {
  const std::int64_t units = 2 * (kRoot + 2 * kLayer) + (2 + 4) * kLayer;
  ExpectStates(
      LedgerOf({"parallelism.zero_stage=3", "software.gather_ahead=1", "software.reduce_every_micro_batch=true"}),
      2 * kQuarter, 4 * kQuarter, 12 * kQuarter, units);
}

// No layer ahead: one; without dropping layers after the forward pass: both.
TEST(StaticMemory, UnitsInFlightFollowTheSoftware) {
  const std::vector<std::string> common = {"parallelism.zero_stage=3", "software.reduce_every_micro_batch=true"};
  const auto buffers = [&](std::vector<std::string> more) {
    more.insert(more.begin(), common.begin(), common.end());
    return LedgerOf(std::move(more)).buffers.count();
  };
  EXPECT_EQ(buffers({"software.gather_ahead=0"}), 2 * (kRoot + kLayer) + 6 * kLayer);
  EXPECT_EQ(buffers({"software.gather_ahead=0", "software.reshard_after_forward=false"}),
            2 * (kRoot + 2 * kLayer) + 6 * kLayer);
}

// FSDP: fp32 parameters are their own master copy; gradients are kept in fp32 though they are reduced in 16 bit.
TEST(StaticMemory, FsdpSharesFp32Parameters) {
  const std::int64_t units = 2 * (kRoot + 2 * kLayer) + (2 + 2) * kLayer;
  ExpectStates(LedgerOf({"parallelism.zero_stage=3", "software.gather_ahead=1", "software.fp32_parameters=true",
                         "software.reduce_every_micro_batch=true", "training.gradient_type=BF16"}),
               4 * kQuarter, 4 * kQuarter, 8 * kQuarter, units);
}

// Without a reduction in every micro-batch whole gradients add up.
TEST(StaticMemory, Zero3WithoutReductionKeepsWholeGradients) {
  ExpectStates(
      LedgerOf({"parallelism.zero_stage=3", "software.gather_ahead=1", "software.reduce_every_micro_batch=false"}),
      2 * kQuarter, 4 * kAll, 12 * kQuarter, 2 * (kRoot + 2 * kLayer));
}

// Three layers on two ranks: [2, 1]. The second holds a copy of the table, 256 h = 32,768, and the final norm.
TEST(StaticMemory, UnevenStagesHoldWhatTheyHave) {
  const v1::Run run = TinyRun({"model.layers=3", "parallelism.pp=2", "parallelism.dp=1", "parallelism.zero_stage=0",
                               "parallelism.stage_layers=[2, 1]"});
  const absl::StatusOr<Plan> plan = MakePlan(run);
  EXPECT_EQ(StaticMemory(*plan, 0).weights.count(), 2 * (2 * kLayer + 40960));
  EXPECT_EQ(StaticMemory(*plan, 1).weights.count(), 2 * (kLayer + 32768 + 256));
  // Two messages of 64 x 128 x 2 bytes.
  EXPECT_EQ(StaticMemory(*plan, 1).buffers.count(), 2 * 16384);
}

TEST(StaticMemory, WorkspacesAndRuntimeAreTheProfiles) {
  const memory::Ledger ledger = LedgerOf(
      {"cluster.accelerator.profile.workspace_memory.value=7", "cluster.accelerator.profile.runtime_memory.value=9"});
  EXPECT_EQ(ledger.workspaces, Bytes(7));
  EXPECT_EQ(ledger.runtime, Bytes(9));
}

// 16-bit gradients are copied to fp32 for the update: 4 bytes of each parameter that the rank owns. Here that is more
// than a pass of 64 tokens holds: 34 s b h = 278,528 a layer, scores 5 a s s = 40,960, logits 6 s V = 98,304.
TEST(UpdateTemporaries, ArePeakWhereActivationsAreSmall) {
  const Result result = testing::Simulated(TinyRun({"parallelism.zero_stage=0", "training.gradient_type=BF16"}));
  const PipelineRankResult& rank = result.pipeline_ranks[0];
  EXPECT_TRUE(rank.peak.update);
  EXPECT_EQ(rank.memory.update.count(), 4 * kAll);
  EXPECT_EQ(rank.memory.activations, Bytes(0));
  EXPECT_EQ(rank.memory.logits, Bytes(0));
  const Result fp32 = testing::Simulated(TinyRun({"parallelism.zero_stage=0"}));
  EXPECT_FALSE(fp32.pipeline_ranks[0].peak.update);
  EXPECT_EQ(fp32.pipeline_ranks[0].memory.update, Bytes(0));
  EXPECT_FALSE(fp32.pipeline_ranks[0].peak.operator_name.empty());
  const absl::StatusOr<Plan> shared = MakePlan(TinyRun({"parallelism.zero_stage=1", "training.gradient_type=BF16"}));
  EXPECT_EQ(UpdateTemporaries(*shared, 0).count(), 4 * kQuarter);
}

}  // namespace
}  // namespace orrery::training
