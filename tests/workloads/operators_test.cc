// Which operators there are, in which order, and what runs beside what.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/workloads/test_run.h"
#include "workloads/transformer.h"

namespace orrery::workloads {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> Names(const std::vector<Operator>& operators, bool gemms_and_collectives) {
  std::vector<std::string> names;
  for (const Operator& op : operators) {
    const bool kept = op.kind == OperatorKind::kGemm || op.kind == OperatorKind::kCollective;
    if (kept || !gemms_and_collectives) names.emplace_back(op.name);
  }
  return names;
}

std::vector<const Operator*> Collectives(const std::vector<Operator>& operators) {
  std::vector<const Operator*> found;
  for (const Operator& op : operators) {
    if (op.kind == OperatorKind::kCollective) found.push_back(&op);
  }
  return found;
}

v1::Run Flash(std::int64_t tp, bool sequence_parallel) {
  v1::Run run = MakeRun(k22B, tp, 4);
  run.mutable_parallelism()->set_sequence_parallel(sequence_parallel);
  run.mutable_software()->set_attention_kernel(v1::FLASH_ATTENTION_2);
  return run;
}

TEST(Operators, SerialLayerWithoutSequenceParallelism) {
  const ChunkWork work = BuildChunk(Flash(8, false), {.layers = 1});
  EXPECT_THAT(Names(work.forward, false), ElementsAre("norm", "qkv", "qkv bias", "qkv layout", "attention",
                                                      "projection", "all-reduce", "bias dropout add", "norm", "mlp up",
                                                      "activation", "mlp down", "all-reduce", "bias dropout add"));
  EXPECT_THAT(Names(work.backward, true),
              ElementsAre("mlp down input gradient", "mlp down weight gradient", "mlp up input gradient", "all-reduce",
                          "mlp up weight gradient", "projection input gradient", "projection weight gradient",
                          "qkv input gradient", "all-reduce", "qkv weight gradient"));
}

TEST(Operators, SerialLayerWithSequenceParallelism) {
  const ChunkWork work = BuildChunk(Flash(8, true), {.layers = 1});
  EXPECT_THAT(Names(work.forward, true), ElementsAre("gather", "qkv", "projection", "reduce-scatter", "gather",
                                                     "mlp up", "mlp down", "reduce-scatter"));
  EXPECT_THAT(
      Names(work.backward, true),
      ElementsAre("gather of output gradient", "mlp down input gradient", "mlp down weight gradient",
                  "gather for weight gradient", "mlp up input gradient", "reduce-scatter", "mlp up weight gradient",
                  "gather of output gradient", "projection input gradient", "projection weight gradient",
                  "gather for weight gradient", "qkv input gradient", "reduce-scatter", "qkv weight gradient"));
}

// One gather and one reduction forward; two gathers (output gradient, input) and one reduction backward.
TEST(Operators, ParallelBlockSharesItsCollectives) {
  v1::Run run = Flash(8, true);
  run.mutable_model()->set_block(v1::PARALLEL);
  const ChunkWork work = BuildChunk(run, {.layers = 1});
  EXPECT_THAT(Names(work.forward, true),
              ElementsAre("gather", "qkv", "mlp up", "projection", "mlp down", "reduce-scatter"));
  EXPECT_THAT(Names(work.backward, true),
              ElementsAre("gather of output gradient", "mlp down input gradient", "mlp down weight gradient",
                          "projection input gradient", "projection weight gradient", "gather for weight gradient",
                          "qkv input gradient", "mlp up input gradient", "reduce-scatter", "qkv weight gradient",
                          "mlp up weight gradient"));
  run.mutable_parallelism()->set_sequence_parallel(false);
  const ChunkWork whole = BuildChunk(run, {.layers = 1});
  EXPECT_EQ(Collectives(whole.forward).size(), 1u);
  EXPECT_EQ(Collectives(whole.backward).size(), 1u);
}

TEST(Operators, NoCollectivesOnOneRank) {
  for (const bool sequence_parallel : {false, true}) {
    const ChunkWork work = BuildChunk(Flash(1, sequence_parallel), {.layers = 2, .embedding = true, .head = true});
    EXPECT_TRUE(Collectives(work.forward).empty());
    EXPECT_TRUE(Collectives(work.backward).empty());
  }
}

// Whatever it runs beside is the GEMM next to it.
TEST(Operators, CollectivesRunBesideTheNeighbouringGemm) {
  for (const bool all : {false, true}) {
    for (const bool backward : {false, true}) {
      for (const v1::Block block : {v1::SERIAL, v1::PARALLEL}) {
        for (const bool sequence_parallel : {false, true}) {
          v1::Run run = Flash(8, sequence_parallel);
          run.mutable_model()->set_block(block);
          run.mutable_software()->set_tp_overlap(all);
          run.mutable_software()->set_tp_backward_overlap(backward);
          const ChunkWork work = BuildChunk(run, {.layers = 2});
          for (const std::vector<Operator>* pass : {&work.forward, &work.backward}) {
            for (std::size_t i = 0; i < pass->size(); ++i) {
              const Operator& op = (*pass)[i];
              if (op.kind != OperatorKind::kCollective) continue;
              const bool reduces_gradient = pass == &work.backward && op.collective.type != CollectiveType::kAllGather;
              // The gather for the weight gradient needs nothing of its neighbour and always runs beside it.
              const bool expected = all || op.name == "gather for weight gradient" || (backward && reduces_gradient);
              ASSERT_EQ(op.collective.overlaps != 0, expected) << op.name;
              if (op.collective.overlaps == 0) continue;
              const Operator& neighbour = (*pass)[i + static_cast<std::size_t>(op.collective.overlaps)];
              EXPECT_NE(neighbour.kind, OperatorKind::kCollective) << op.name;
              if (reduces_gradient) {
                EXPECT_EQ(neighbour.pass, Pass::kWeightGradient) << op.name;
              }
            }
          }
        }
      }
    }
  }
}

// Every collective of a layer moves the whole residual stream, 2 s b h bytes.
TEST(Operators, CollectiveBytes) {
  for (const bool sequence_parallel : {false, true}) {
    const ChunkWork work = BuildChunk(Flash(8, sequence_parallel), {.layers = 1});
    for (const std::vector<Operator>* pass : {&work.forward, &work.backward}) {
      for (const Operator* op : Collectives(*pass)) EXPECT_EQ(op->collective.bytes, Bytes(2LL * 2048 * 4 * 6144));
    }
  }
}

// Logits' three reductions: one fp32 number per token.
TEST(Operators, LossReducesThreeNumbersPerToken) {
  const ChunkWork work = BuildChunk(Flash(8, false), {.layers = 0, .head = true});
  const std::vector<const Operator*> collectives = Collectives(work.forward);
  ASSERT_EQ(collectives.size(), 3u);
  for (const Operator* op : collectives) EXPECT_EQ(op->collective.bytes, Bytes(4LL * 2048 * 4));
}

// Shapes of the 22B layer on 8 ranks: QKV 3 h / 8 columns, weight gradients k = tokens with fp32 accumulation.
TEST(Operators, GemmShapes) {
  const ChunkWork work = BuildChunk(Flash(8, false), {.layers = 1});
  const Operator& qkv = work.forward[1];
  ASSERT_EQ(qkv.name, "qkv");
  EXPECT_EQ(qkv.gemm.m, 8192);
  EXPECT_EQ(qkv.gemm.n, 2304);
  EXPECT_EQ(qkv.gemm.k, 6144);
  const Operator& weight = work.backward.back();
  for (const Operator& op : work.backward) {
    if (op.name != "qkv weight gradient") continue;
    EXPECT_EQ(op.gemm.m, 2304);
    EXPECT_EQ(op.gemm.n, 6144);
    EXPECT_EQ(op.gemm.k, 8192);
    EXPECT_TRUE(op.gemm.accumulates_fp32);
    EXPECT_EQ(op.pass, Pass::kWeightGradient);
  }
  EXPECT_EQ(weight.pass, Pass::kInputGradient);  // the first norm's gradient and the residual close the layer
}

// Not fused, the accumulation is a kernel that reads the 16-bit gradient and reads and writes the fp32 one: 2 + 4 + 4
// bytes.
TEST(Operators, UnfusedWeightGradientAccumulation) {
  v1::Run run = Flash(8, false);
  run.mutable_software()->set_fused_weight_gradient(false);
  const ChunkWork work = BuildChunk(run, {.layers = 1});
  std::int64_t traffic = 0;
  for (const Operator& op : work.backward) {
    EXPECT_FALSE(op.gemm.accumulates_fp32);
    if (op.name == "gradient accumulation") traffic += op.memory_bound.traffic.count();
  }
  EXPECT_EQ(traffic, 10LL * 12 * 6144 * 6144 / 8);
}

TEST(Operators, RecomputationComesFirstAndRepeatsTheForwardPass) {
  v1::Run run = MakeRun(k22B, 8, 4);
  run.mutable_training()->set_recompute(v1::FULL);
  const ChunkWork full = BuildChunk(run, {.layers = 1});
  ASSERT_GT(full.backward.size(), full.forward.size());
  for (std::size_t i = 0; i < full.forward.size(); ++i) {
    EXPECT_EQ(full.backward[i].name, full.forward[i].name);
    EXPECT_EQ(full.backward[i].pass, Pass::kRecompute);
  }
  run.mutable_training()->set_recompute(v1::SELECTIVE);
  std::vector<std::string> recomputed;
  for (const Operator& op : BuildChunk(run, {.layers = 1}).backward) {
    if (op.pass == Pass::kRecompute) recomputed.emplace_back(op.name);
  }
  EXPECT_THAT(recomputed, ElementsAre("scores", "softmax", "attention dropout", "weighted sum", "context layout"));
}

// Layers repeat identical operators, numbered from the first forward and from the last backward.
TEST(Operators, LayersAreIdentical) {
  const v1::Run run = MakeRun(k22B, 8, 4);
  const ChunkWork one = BuildChunk(run, {.layers = 1});
  const ChunkWork three = BuildChunk(run, {.layers = 3});
  ASSERT_EQ(three.forward.size(), 3 * one.forward.size());
  ASSERT_EQ(three.backward.size(), 3 * one.backward.size());
  for (std::size_t i = 0; i < three.backward.size(); ++i) {
    const Operator& expected = one.backward[i % one.backward.size()];
    EXPECT_EQ(three.backward[i].name, expected.name);
    EXPECT_EQ(three.backward[i].flops, expected.flops);
    EXPECT_EQ(three.backward[i].memory_bound.traffic, expected.memory_bound.traffic);
    EXPECT_EQ(three.backward[i].allocates, expected.allocates);
    EXPECT_EQ(three.backward[i].layer, 2 - static_cast<std::int32_t>(i / one.backward.size()));
  }
  EXPECT_EQ(three.forward.front().layer, 0);
  EXPECT_EQ(three.forward.back().layer, 2);
}

// Eager kernels: more launches, more bytes, the same FLOPs and collectives.
TEST(Operators, EagerElementwiseCostsMore) {
  v1::Run run = MakeRun(k22B, 8, 4);
  const auto totals = [&] {
    std::int64_t traffic = 0;
    int kernels = 0;
    for (const Operator& op : BuildChunk(run, {.layers = 1}).forward) {
      traffic += op.memory_bound.traffic.count();
      kernels += op.kernels;
    }
    return std::pair(traffic, kernels);
  };
  const auto fused = totals();
  run.mutable_software()->set_fused_elementwise(false);
  const auto eager = totals();
  // Softmax 24 instead of 4 bytes per score; two chains of bias (after the sum over ranks), dropout and residual 7
  // instead of 3 passes over s b h; no kernel for the bias of QKV, which was 2 passes over 3 s b h / 8.
  const std::int64_t sbh = 2048LL * 4 * 6144;
  const std::int64_t scores = 4LL * 8 * 2048 * 2048;
  EXPECT_EQ(eager.first - fused.first, 20 * scores + 2LL * 4 * 2 * sbh - 2LL * 2 * 3 * sbh / 8);
  EXPECT_EQ(eager.second - fused.second, 3 + 2 * 2 - 1);
}

}  // namespace
}  // namespace orrery::workloads
