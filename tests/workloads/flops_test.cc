// FLOP conventions against printed utilisation, and operators against the formulas.
#include <gtest/gtest.h>

#include <vector>

#include "tests/workloads/test_run.h"
#include "workloads/shape.h"
#include "workloads/transformer.h"

namespace orrery::workloads {
namespace {

constexpr double kPeak = 312e12;

double Flop(const v1::Run& run, std::string_view convention, bool recompute) {
  return ModelFlops(run, convention, recompute)->count();
}

double Mfu(const TestModel& model, std::int64_t batch, double seconds, double gpus) {
  v1::Run run = MakeRun(model, 1, 1);
  run.mutable_training()->set_global_batch(batch);
  return 100 * Flop(run, "model", false) / (seconds * gpus * kPeak);
}

double Executed(const std::vector<Operator>& operators) {
  double flops = 0;
  for (const Operator& op : operators) {
    flops += op.flops.count();
    if (op.kind != OperatorKind::kGemm) continue;
    const Gemm& g = op.gemm;
    EXPECT_EQ(op.flops.count(), 2.0 * static_cast<double>(g.batch) * static_cast<double>(g.m) *
                                    static_cast<double>(g.n) * static_cast<double>(g.k));
  }
  return flops;
}

double ExecutedOnAllRanks(const v1::Run& run, std::int64_t chunks) {
  const std::int64_t layers = run.model().layers() / chunks;
  double flops = 0;
  for (std::int64_t i = 0; i < chunks; ++i) {
    const ChunkWork work = BuildChunk(run, {.layers = layers, .embedding = i == 0, .head = i == chunks - 1});
    flops += Executed(work.forward) + Executed(work.backward);
  }
  return flops * static_cast<double>(run.parallelism().tp());
}

// Korthikanti et al. 2022, Table 5: batch, seconds with selective recomputation, GPUs, printed MFU in per cent.
TEST(ModelFlops, KorthikantiPrintedMfu) {
  EXPECT_NEAR(Mfu(k22B, 4, 1.10, 8), 41.5, 0.16);  // time has three digits: 0.5 %, 0.2 points
  EXPECT_NEAR(Mfu(k175B, 64, 13.75, 64), 51.4, 0.15);
  EXPECT_NEAR(Mfu({105, 20480, 128, 51200}, 280, 37.83, 280), 56.0, 0.15);
  EXPECT_NEAR(Mfu({128, 25600, 160, 51200}, 512, 71.49, 512), 56.3, 0.15);
}

// Megatron-LM's rows of MegaScale's Table 2 (h 12288, a 128, V 64,000): 41.2 % at 12,288 GPUs, batch 6,144, 8.57 s.
TEST(ModelFlops, MegaScalePrintedMfu) { EXPECT_NEAR(Mfu({96, 12288, 128, 64000}, 6144, 8.57, 12288), 41.26, 0.05); }

// SC21, equation 3: 96 B s l h^2 (1 + s/(6h) + V/(16 l h)) counts the forward pass of full recomputation.
TEST(ModelFlops, Sc21FormulaWithFullRecomputation) {
  v1::Run run = MakeRun(k175B, 8, 1);
  run.mutable_training()->set_global_batch(1536);
  run.mutable_training()->set_recompute(v1::FULL);
  const double s = 2048, h = 12288, l = 96, v = 51200;
  EXPECT_DOUBLE_EQ(Flop(run, "model", true), 96 * 1536 * s * l * h * h * (1 + s / (6 * h) + v / (16 * l * h)));
  // Table 2, 384 GPUs: 153 TFLOP/s per GPU at 84 days for 300 billion tokens, hence 76.78 s.
  EXPECT_NEAR(Flop(run, "model", true) / (76.78 * 384) / 1e12, 153, 1);
}

TEST(ModelFlops, SelectiveRecomputationRepeatsTheAttentionProducts) {
  v1::Run run = MakeRun(k22B, 8, 4);
  run.mutable_training()->set_recompute(v1::SELECTIVE);
  const double tokens = 4 * 2048;
  EXPECT_DOUBLE_EQ(Flop(run, "model", true) - Flop(run, "model", false), tokens * 48 * 4 * 2048.0 * 6144);
  run.mutable_software()->set_attention_kernel(v1::FLASH_ATTENTION_2);
  EXPECT_DOUBLE_EQ(Flop(run, "model", true), Flop(run, "model", false));
}

// The first 6 of 24 layers on each of two stages, so a quarter of a forward pass.
TEST(ModelFlops, FullRecomputationOfSomeLayers) {
  v1::Run run = MakeRun(k22B, 8, 4);
  run.mutable_parallelism()->add_stage_layers(24);
  run.mutable_parallelism()->add_stage_layers(24);
  run.mutable_training()->set_recompute(v1::FULL);
  const double model = Flop(run, "model", false);
  const double all = Flop(run, "model", true) - model;
  run.mutable_training()->set_recompute_layers(6);
  EXPECT_DOUBLE_EQ(Flop(run, "model", true) - model, all / 4);
  EXPECT_NEAR(ExecutedOnAllRanks(run, 2) / Flop(run, "model", true), 1, 1e-12);
  run.mutable_training()->set_recompute_layers(30);  // more than there are
  EXPECT_DOUBLE_EQ(Flop(run, "model", true) - model, all);
}

// Two products of 2 h f per token and layer; norms and activation have no matrices.
TEST(ModelFlops, SelectiveRecomputationOfTheMlp) {
  v1::Run run = MakeRun(k22B, 8, 4);
  run.mutable_training()->set_recompute(v1::SELECTIVE);
  run.mutable_training()->clear_recompute_modules();
  run.mutable_training()->add_recompute_modules(v1::NORMS);
  run.mutable_training()->add_recompute_modules(v1::MLP_ACTIVATION);
  EXPECT_DOUBLE_EQ(Flop(run, "model", true), Flop(run, "model", false));
  run.mutable_training()->add_recompute_modules(v1::MLP);
  EXPECT_DOUBLE_EQ(Flop(run, "model", true) - Flop(run, "model", false), 4 * 2048.0 * 48 * 4 * 6144 * 4 * 6144);
  EXPECT_NEAR(ExecutedOnAllRanks(run, 1) / Flop(run, "model", true), 1, 1e-12);
}

TEST(ModelFlops, OtherConventions) {
  const v1::Run run = MakeRun(k22B, 8, 4);
  const double tokens = 4 * 2048;
  // Attention is 12 s h per token and layer.
  EXPECT_DOUBLE_EQ(Flop(run, "model", false) - Flop(run, "model-causal", false), tokens * 48 * 6 * 2048.0 * 6144);
  // P = L (12 h^2 + 13 h) + (V + s) h + 2 h.
  const double h = 6144;
  const double layers = 48 * (12 * h * h + 13 * h) + 2 * h;
  EXPECT_DOUBLE_EQ(Flop(run, "6n-no-embedding", false), 6 * layers * tokens);
  EXPECT_DOUBLE_EQ(Flop(run, "6n", false), 6 * (layers + (51200 + 2048) * h) * tokens);
  EXPECT_EQ(ModelFlops(run, "7n", false).status().code(), absl::StatusCode::kInvalidArgument);
  for (const std::string_view name : FlopsConventions()) EXPECT_TRUE(ModelFlops(run, name, true).ok()) << name;
}

// Unfused attention computes the whole square: executed FLOPs of all chunks and ranks are the formula's.
TEST(Executed, EqualsTheFormula) {
  for (const TestModel& model : {k22B, k175B}) {
    for (const std::int64_t tp : {1, 8}) {
      for (const v1::Block block : {v1::SERIAL, v1::PARALLEL}) {
        v1::Run run = MakeRun(model, tp, 2);
        run.mutable_model()->set_block(block);
        run.mutable_parallelism()->set_sequence_parallel(tp > 1);
        const double s = 2048, b = 2;
        const auto h = static_cast<double>(model.hidden), l = static_cast<double>(model.layers);
        const auto v = static_cast<double>(model.vocab);
        const double formula = 72 * b * l * s * h * h * (1 + s / (6 * h) + v / (12 * h * l));
        EXPECT_NEAR(ExecutedOnAllRanks(run, 4) / formula, 1, 1e-12);
        EXPECT_NEAR(Flop(run, "model", false) / formula, 1, 1e-12);
        run.mutable_training()->set_recompute(v1::FULL);
        EXPECT_NEAR(ExecutedOnAllRanks(run, 4) / (96 * b * l * s * h * h * (1 + s / (6 * h) + v / (16 * h * l))), 1,
                    1e-12);
        run.mutable_training()->set_recompute(v1::SELECTIVE);
        EXPECT_NEAR(ExecutedOnAllRanks(run, 4) / Flop(run, "model", true), 1, 1e-12);
      }
    }
  }
}

// Grouped keys, a gated MLP and a head of its own: per token and layer 2 h (h + 2 h / 4 + h + 3 f) and attention 4 s h.
TEST(Executed, EqualsTheFormulaForLlama) {
  for (const std::int64_t tp : {1, 8}) {
    v1::Run run = MakeLlama(tp, 2);
    run.mutable_software()->set_attention_kernel(v1::UNFUSED);
    run.mutable_model()->set_vocab(129024);  // needs no padding
    const double h = 4096, f = 14336, s = 2048;
    const double token = 3 * (32 * (2 * h * (2.5 * h + 3 * f) + 4 * s * h) + 2 * h * 129024);
    EXPECT_NEAR(ExecutedOnAllRanks(run, 1) / (token * 2 * s), 1, 1e-12);
    EXPECT_NEAR(Flop(run, "model", false) / (token * 2 * s), 1, 1e-12);
  }
}

// Fused attention computes visible pairs, s (s + 1) / 2, 4 d forward and 10 d backward for each.
TEST(Executed, FusedAttention) {
  v1::Run run = MakeRun(k22B, 8, 2);
  run.mutable_software()->set_attention_kernel(v1::FLASH_ATTENTION_2);
  const ChunkWork work = BuildChunk(run, {.layers = 1});
  const double matrices = 72 * 2 * 2048.0 * 6144 * 6144 / 8;
  const double pairs = 2048.0 * 2049 / 2;
  EXPECT_DOUBLE_EQ(Executed(work.forward) + Executed(work.backward), matrices + 14.0 * 96 * 2 * 8 * pairs);
}

TEST(VisiblePairs, ByHand) {
  EXPECT_EQ(VisiblePairs(4, 4, 0), 1 + 2 + 3 + 4);
  EXPECT_EQ(VisiblePairs(4, 4, 4), 10);
  EXPECT_EQ(VisiblePairs(4, 4, 9), 10);
  EXPECT_EQ(VisiblePairs(4, 4, 2), 1 + 2 + 2 + 2);
  EXPECT_EQ(VisiblePairs(2, 5, 0), 4 + 5);
  EXPECT_EQ(VisiblePairs(2, 5, 3), 3 + 3);
}

}  // namespace
}  // namespace orrery::workloads
