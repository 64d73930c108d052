// Lifetimes of activations against the closed forms of Korthikanti et al. 2022, sections 4 and 5 (16-bit activations,
// one-byte masks, f = 4h). The formulas stand here only; the operators must add up to them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <vector>

#include "tests/workloads/test_run.h"
#include "workloads/transformer.h"

namespace orrery::workloads {
namespace {

std::int64_t Saved(const std::vector<Operator>& operators) {
  std::int64_t sum = 0;
  for (const Operator& op : operators) sum += (op.allocates - op.frees).count();
  return sum;
}

// Largest memory in use while an operator runs, above what was there at the start.
std::int64_t InnerPeak(const std::vector<Operator>& operators) {
  std::int64_t live = 0;
  std::int64_t peak = 0;
  for (const Operator& op : operators) {
    live += op.allocates.count();
    peak = std::max(peak, live + op.workspace.count());
    live -= op.frees.count();
  }
  return peak;
}

struct Case {
  TestModel model;
  std::int64_t tp;
  std::int64_t micro_batch;
  bool sequence_parallel;
  bool dropout;
  v1::Block block;
  v1::AttentionKernel attention;
  v1::Recompute recompute;
  bool fused;
};

v1::Run RunOf(const Case& c) {
  v1::Run run = MakeRun(c.model, c.tp, c.micro_batch);
  run.mutable_parallelism()->set_sequence_parallel(c.sequence_parallel);
  run.mutable_training()->set_dropout(c.dropout);
  run.mutable_training()->set_recompute(c.recompute);
  run.mutable_model()->set_block(c.block);
  run.mutable_software()->set_attention_kernel(c.attention);
  run.mutable_software()->set_fused_elementwise(c.fused);
  run.mutable_software()->set_fused_weight_gradient(c.fused);
  return run;
}

// Bytes of one layer between its forward and its backward pass.
//   whole (or / t with sequence parallelism), serial: 10 sbh = norm inputs 4, QKV and MLP inputs 4, masks 2
//     parallel block: one norm: 4 sbh, one mask: 1
//   / t always: 24 sbh = Q, K, V 6, context 2, GELU input 8, its output 8
//   scores: 5 a s^2 b / t = softmax 2, mask 1, dropout output 2 (2 without dropout); fused attention: 4 a s b / t
//   selective: no scores; full: 2 sbh.
std::int64_t ClosedForm(const Case& c) {
  const std::int64_t s = 2048;
  const std::int64_t sbh = s * c.micro_batch * c.model.hidden;
  const std::int64_t region = c.sequence_parallel ? sbh / c.tp : sbh;
  if (c.recompute == v1::FULL) return 2 * region;
  std::int64_t bytes = 0;
  if (c.block == v1::SERIAL) {
    bytes += (c.dropout ? 10 : 8) * region;
  } else {
    bytes += (c.dropout ? 5 : 4) * region;
  }
  bytes += 24 * sbh / c.tp;
  const std::int64_t heads = c.model.heads / c.tp;
  if (c.attention != v1::UNFUSED) return bytes + 4 * heads * s * c.micro_batch;
  if (c.recompute != v1::SELECTIVE) bytes += (c.dropout ? 5 : 2) * heads * s * s * c.micro_batch;
  return bytes;
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const TestModel& model : {k22B, k175B}) {
    for (const auto& [tp, sp] : {std::pair{1, false}, {2, true}, {4, false}, {8, false}, {8, true}}) {
      for (const bool dropout : {false, true}) {
        for (const v1::Block block : {v1::SERIAL, v1::PARALLEL}) {
          for (const v1::AttentionKernel attention : {v1::UNFUSED, v1::FLASH_ATTENTION_1, v1::FLASH_ATTENTION_2}) {
            for (const v1::Recompute recompute : {v1::NONE, v1::SELECTIVE, v1::FULL}) {
              cases.push_back({model, tp, tp == 8 ? 4 : 1, sp, dropout, block, attention, recompute, tp != 4});
            }
          }
        }
      }
    }
  }
  return cases;
}

std::string Describe(const Case& c) { return RunOf(c).ShortDebugString(); }

TEST(Activations, OneLayerKeepsWhatTheClosedFormsSay) {
  for (const Case& c : Cases()) {
    const ChunkWork work = BuildChunk(RunOf(c), {.layers = 1});
    EXPECT_EQ(Saved(work.forward), ClosedForm(c)) << Describe(c);
  }
}

TEST(Activations, LayersAddUp) {
  for (const Case& c : Cases()) {
    const ChunkWork work = BuildChunk(RunOf(c), {.layers = 3});
    EXPECT_EQ(Saved(work.forward), 3 * ClosedForm(c)) << Describe(c);
  }
}

TEST(Activations, ForwardAndBackwardBalanceAndNeverFreeWhatIsNotThere) {
  for (const Case& c : Cases()) {
    const ChunkWork work = BuildChunk(RunOf(c), {.layers = 2, .embedding = true, .head = true});
    std::int64_t live[2] = {0, 0};
    std::vector<const Operator*> operators;
    for (const Operator& op : work.forward) operators.push_back(&op);
    for (const Operator& op : work.backward) operators.push_back(&op);
    for (const Operator* op : operators) {
      std::int64_t& bytes = live[static_cast<int>(op->activation_class)];
      bytes += op->allocates.count() - op->frees.count();
      ASSERT_GE(bytes, 0) << op->name << " " << Describe(c);
    }
    EXPECT_EQ(live[0], 0) << Describe(c);
    EXPECT_EQ(live[1], 0) << Describe(c);
  }
}

TEST(Activations, SplitBackwardBalancesToo) {
  for (const Case& c : Cases()) {
    const ChunkWork work = BuildChunk(RunOf(c), {.layers = 2, .embedding = true, .head = true});
    std::int64_t live = Saved(work.forward);
    for (const bool weights : {false, true}) {
      for (const Operator& op : work.backward) {
        if ((op.pass == Pass::kWeightGradient) != weights) continue;
        live += (op.allocates - op.frees).count();
        ASSERT_GE(live, 0) << op.name << " " << Describe(c);
      }
    }
    EXPECT_EQ(live, 0) << Describe(c);
  }
}

// Embedding: dropout mask sbh (/ t with sequence parallelism) and token ids 8 sb. Head: norm input and output 2 + 2 sbh
// (/ t), logits 2 + 4 bytes of s b V / t.
TEST(Activations, Ends) {
  for (const bool sp : {false, true}) {
    v1::Run run = MakeRun(k175B, 8, 1);
    run.mutable_parallelism()->set_sequence_parallel(sp);
    const std::int64_t region = 2048LL * 12288 / (sp ? 8 : 1);
    EXPECT_EQ(Saved(BuildChunk(run, {.layers = 0, .embedding = true}).forward), region + 8LL * 2048);
    const ChunkWork head = BuildChunk(run, {.layers = 0, .head = true});
    EXPECT_EQ(Saved(head.forward), 4 * region + 6LL * 2048 * 51200 / 8);
    std::int64_t logits = 0;
    for (const Operator& op : head.forward) {
      if (op.activation_class == ActivationClass::kLogits) logits += (op.allocates - op.frees).count();
    }
    EXPECT_EQ(logits, 6LL * 2048 * 51200 / 8);
  }
}

// Megatron-LM's functional tests (12 layers, h 512, a 8, s 1024, b 4, V 50257, tp 1, pp 1) log their allocator:
// its peak above the model states is 2,012 MiB with fused attention and 3,930 MiB without. The whole chunk's peak must
// be near.
TEST(Activations, PeakOfAMeasuredSmallModel) {
  for (const auto& [attention, measured] : {std::pair{v1::FLASH_ATTENTION_2, 2012.0}, {v1::UNFUSED, 3930.0}}) {
    v1::Run run = MakeRun({12, 512, 8, 50257}, 1, 4);
    run.mutable_training()->set_seq_len(1024);
    run.mutable_software()->set_attention_kernel(attention);
    const ChunkWork work = BuildChunk(run, {.layers = 12, .embedding = true, .head = true});
    const std::int64_t peak = std::max(InnerPeak(work.forward), Saved(work.forward) + InnerPeak(work.backward));
    EXPECT_NEAR(static_cast<double>(peak) / (1 << 20), measured, 0.03 * measured);
  }
}

// Full recomputation has one layer's activations at a time on top of the kept inputs.
TEST(Activations, FullRecomputationPeaksAtOneLayer) {
  v1::Run run = MakeRun(k22B, 8, 4);
  const std::int64_t layer = Saved(BuildChunk(run, {.layers = 1}).forward);
  run.mutable_training()->set_recompute(v1::FULL);
  const ChunkWork work = BuildChunk(run, {.layers = 6});
  const std::int64_t input = 2LL * 2048 * 4 * 6144;
  EXPECT_EQ(Saved(work.forward), 6 * input);
  EXPECT_LT(InnerPeak(work.forward), 6 * input + layer);
  // Backward adds the layer without its input, gradients and workspace to what is there: at least nine tenths of a
  // layer, at most one and a half.
  EXPECT_GT(InnerPeak(work.backward), layer * 9 / 10 - input);
  EXPECT_LT(InnerPeak(work.backward), layer * 3 / 2);
}

}  // namespace
}  // namespace orrery::workloads
