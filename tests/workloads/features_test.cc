// What architectures and software levels other than Megatron-LM's GPT change: operators, bytes and lifetimes, by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/workloads/test_run.h"
#include "workloads/transformer.h"

namespace orrery::workloads {
namespace {

using ::testing::ElementsAre;

constexpr std::int64_t kTokens = 2048;

std::int64_t Saved(const std::vector<Operator>& operators) {
  std::int64_t sum = 0;
  for (const Operator& op : operators) sum += (op.allocates - op.frees).count();
  return sum;
}

std::int64_t LayerBytesPerToken(const v1::Run& run) {
  const std::int64_t saved = Saved(BuildChunk(run, {.layers = 1}).forward);
  const std::int64_t tokens = kTokens * run.training().micro_batch();
  EXPECT_EQ(saved % tokens, 0);
  return saved / tokens;
}

const Operator& Find(const std::vector<Operator>& operators, std::string_view name) {
  const auto found =
      std::find_if(operators.begin(), operators.end(), [&](const Operator& op) { return op.name == name; });
  EXPECT_NE(found, operators.end()) << name;
  return found == operators.end() ? operators.front() : *found;
}

bool Has(const std::vector<Operator>& operators, std::string_view name) {
  return std::any_of(operators.begin(), operators.end(), [&](const Operator& op) { return op.name == name; });
}

std::vector<std::string> Names(const std::vector<Operator>& operators) {
  std::vector<std::string> names;
  for (const Operator& op : operators) names.emplace_back(op.name);
  return names;
}

std::int64_t MemoryBoundTraffic(const std::vector<Operator>& operators) {
  std::int64_t traffic = 0;
  for (const Operator& op : operators) traffic += op.memory_bound.traffic.count();
  return traffic;
}

void Recompute(std::initializer_list<v1::RecomputeModule> modules, v1::Run* run) {
  run->mutable_training()->set_recompute(v1::SELECTIVE);
  run->mutable_training()->clear_recompute_modules();
  for (const v1::RecomputeModule module : modules) run->mutable_training()->add_recompute_modules(module);
}

// Llama 3 8B, 16 bit, per token: norms' inputs and outputs 4 x 2 h; Q 2 h; K and V 2 x 2 h / 4; context 2 h; fused
// attention's 4 bytes per head; gate and up 2 x 2 f, their product 2 f. All but the first are split over t; with
// sequence parallelism so is the first.
TEST(Llama, LayerKeeps) {
  const std::int64_t h = 4096, f = 14336, a = 32;
  for (const std::int64_t t : {1, 2, 8}) {
    v1::Run run = MakeLlama(t, 2);
    const std::int64_t split = 2 * h + h + 2 * h + 4 * a + 6 * f;
    EXPECT_EQ(LayerBytesPerToken(run), 8 * h + split / t);
    run.mutable_parallelism()->set_sequence_parallel(t > 1);
    EXPECT_EQ(LayerBytesPerToken(run), (8 * h + split) / t);
  }
}

// What each module's recomputation saves of that: the attention core nothing, since it is fused; norms' outputs 2 x 2
// h; the activation's output 2 f; the MLP all of its 6 f.
TEST(Llama, RecomputedModulesKeepLess) {
  const std::int64_t h = 4096, f = 14336;
  v1::Run run = MakeLlama(1, 2);
  const std::int64_t all = LayerBytesPerToken(run);
  Recompute({v1::CORE_ATTENTION}, &run);
  EXPECT_EQ(LayerBytesPerToken(run), all);
  Recompute({v1::NORMS}, &run);
  EXPECT_EQ(LayerBytesPerToken(run), all - 4 * h);
  Recompute({v1::MLP_ACTIVATION}, &run);
  EXPECT_EQ(LayerBytesPerToken(run), all - 2 * f);
  Recompute({v1::MLP}, &run);
  EXPECT_EQ(LayerBytesPerToken(run), all - 6 * f);
  Recompute({v1::CORE_ATTENTION, v1::NORMS, v1::MLP_ACTIVATION, v1::MLP}, &run);
  EXPECT_EQ(LayerBytesPerToken(run), all - 6 * f - 4 * h);
}

std::vector<std::string> Recomputed(const v1::Run& run) {
  std::vector<std::string> names;
  for (const Operator& op : BuildChunk(run, {.layers = 1}).backward) {
    if (op.pass == Pass::kRecompute) names.emplace_back(op.name);
  }
  return names;
}

// The MLP runs again as a whole, with its collectives; norms once each, before what reads them.
TEST(Llama, RecomputedModulesRunAgain) {
  v1::Run run = MakeLlama(8, 2);
  run.mutable_parallelism()->set_sequence_parallel(true);
  Recompute({v1::NORMS}, &run);
  EXPECT_THAT(Recomputed(run), ElementsAre("norm", "norm"));
  Recompute({v1::MLP_ACTIVATION}, &run);
  EXPECT_THAT(Recomputed(run), ElementsAre("activation"));
  Recompute({v1::MLP}, &run);
  EXPECT_THAT(Recomputed(run), ElementsAre("gather", "mlp up", "activation", "mlp down", "reduce-scatter"));
  Recompute({v1::MLP, v1::NORMS}, &run);
  EXPECT_THAT(Recomputed(run),
              ElementsAre("norm", "gather", "mlp up", "activation", "mlp down", "reduce-scatter", "norm"));
}

// Without biases and dropout there is nothing to do for them.
TEST(Llama, OperatorsOfALayer) {
  const ChunkWork work = BuildChunk(MakeLlama(1, 1), {.layers = 1});
  EXPECT_THAT(Names(work.forward),
              ElementsAre("norm", "qkv", "rotary positions", "qkv layout", "attention", "projection",
                          "bias dropout add", "norm", "mlp up", "activation", "mlp down", "bias dropout add"));
  EXPECT_THAT(Names(work.backward),
              ElementsAre("mlp down input gradient", "mlp down weight gradient", "activation gradient",
                          "mlp up input gradient", "mlp up weight gradient", "norm gradient", "residual gradient",
                          "projection input gradient", "projection weight gradient", "attention gradient",
                          "sum of grouped gradients", "rotary positions gradient", "qkv layout", "qkv input gradient",
                          "qkv weight gradient", "norm gradient", "residual gradient"));
}

// 16 ranks of 8 key-value heads: two query heads and one of keys, which two ranks hold; gate and up in one product.
TEST(Llama, GemmShapes) {
  for (const auto& [tp, qkv] : {std::pair{1, 4096 + 2 * 1024}, {8, 512 + 2 * 128}, {16, 256 + 2 * 128}}) {
    const ChunkWork work = BuildChunk(MakeLlama(tp, 1), {.layers = 1});
    EXPECT_EQ(Find(work.forward, "qkv").gemm.n, qkv);
    EXPECT_EQ(Find(work.forward, "mlp up").gemm.n, 2 * 14336 / tp);
    EXPECT_EQ(Find(work.forward, "mlp down").gemm.k, 14336 / tp);
    EXPECT_EQ(Find(work.forward, "attention").attention.heads, 32 / tp);
    EXPECT_EQ(Find(work.forward, "attention").attention.kv_heads, std::max(1, 8 / tp));
  }
}

// Kernels without groups see K and V once per head: Q, K, V then are 3 x 2 h.
TEST(Llama, OlderAttentionRepeatsKeysAndValues) {
  v1::Run run = MakeLlama(1, 1);
  const std::int64_t grouped = LayerBytesPerToken(run);
  for (const v1::AttentionKernel kernel : {v1::FLASH_ATTENTION_1, v1::TRITON_ATTENTION}) {
    run.mutable_software()->set_attention_kernel(kernel);
    EXPECT_EQ(LayerBytesPerToken(run) - grouped, 3 * 4096);
    EXPECT_EQ(Find(BuildChunk(run, {.layers = 1}).forward, "attention").attention.kv_heads, 32);
  }
}

// Rotation of Q (h) and K (h / 4) of 2 bytes: fused 2 passes in 2 kernels; eager 10 in 10; half of each head 5 and 2 in
// 12.
TEST(Rotary, Traffic) {
  v1::Run run = MakeLlama(1, 1);
  const std::int64_t both = kTokens * 2 * 5 * 1024;
  const auto expect = [&](std::int64_t traffic, int kernels) {
    const ChunkWork work = BuildChunk(run, {.layers = 1});
    for (const Operator* op :
         {&Find(work.forward, "rotary positions"), &Find(work.backward, "rotary positions gradient")}) {
      EXPECT_EQ(op->memory_bound.traffic.count(), traffic);
      EXPECT_EQ(op->kernels, kernels);
    }
  };
  expect(2 * both, 2);
  run.mutable_software()->set_fused_rotary(false);
  expect(10 * both, 10);
  run.mutable_model()->set_rotary_fraction(0.5);
  expect(7 * both, 12);
  run.mutable_model()->set_positions(v1::ALIBI);
  EXPECT_FALSE(Has(BuildChunk(run, {.layers = 1}).forward, "rotary positions"));
}

// Unfused, the scores start as the bias (a write) and the GEMM reads them: 2 passes. Fused, nothing.
TEST(Alibi, CostsOnlyUnfusedAttention) {
  v1::Run run = MakeRun(k22B, 8, 1);
  run.mutable_model()->set_positions(v1::ALIBI);
  const ChunkWork work = BuildChunk(run, {.layers = 1, .embedding = true});
  EXPECT_EQ(Find(work.forward, "position bias").memory_bound.traffic, Bytes(2LL * 2 * 8 * 2048 * 2048));
  EXPECT_EQ(Find(work.forward, "embedding dropout").memory_bound.traffic, Bytes(5LL * 2048 * 6144));
  run.mutable_software()->set_attention_kernel(v1::FLASH_ATTENTION_2);
  EXPECT_FALSE(Has(BuildChunk(run, {.layers = 1}).forward, "position bias"));
}

// Passes over f elements of the activation function and kernels, forward and backward; see mlp.h.
TEST(Mlp, ActivationTraffic) {
  struct Row {
    v1::Activation activation;
    bool gated, fused;
    int forward, forward_kernels, backward, backward_kernels;
  };
  for (const Row& row :
       {Row{v1::GELU, false, true, 2, 1, 3, 1}, Row{v1::GELU, false, false, 2, 1, 3, 1},
        Row{v1::SILU, true, true, 3, 1, 5, 1}, Row{v1::SILU, true, false, 5, 2, 13, 4},
        Row{v1::SQUARED_RELU, false, true, 2, 1, 3, 1}, Row{v1::SQUARED_RELU, false, false, 4, 2, 6, 2}}) {
    v1::Run run = MakeRun(k22B, 8, 1);
    run.mutable_model()->set_activation(row.activation);
    run.mutable_model()->set_gated_mlp(row.gated);
    run.mutable_software()->set_fused_elementwise(row.fused);
    const ChunkWork work = BuildChunk(run, {.layers = 1});
    const std::int64_t pass = kTokens * 2 * 4 * 6144 / 8;
    const Operator& forward = Find(work.forward, "activation");
    EXPECT_EQ(forward.memory_bound.traffic.count(), row.forward * pass);
    EXPECT_EQ(forward.kernels, row.forward_kernels);
    const Operator& backward = Find(work.backward, "activation gradient");
    EXPECT_EQ(backward.memory_bound.traffic.count(), row.backward * pass);
    EXPECT_EQ(backward.kernels, row.backward_kernels);
  }
}

// ReLU's derivative needs its output only, f; others keep input and output, 2 f.
TEST(Mlp, ReluKeepsItsOutputOnly) {
  v1::Run run = MakeRun(k22B, 1, 1);
  const std::int64_t gelu = LayerBytesPerToken(run);
  run.mutable_model()->set_activation(v1::RELU);
  EXPECT_EQ(gelu - LayerBytesPerToken(run), 2 * 4 * 6144);
}

// A block of llm-foundry's MPT in eager PyTorch: biases inside the GEMMs, no copies for attention, no dropout. Passes
// of 2 s b h bytes forward: norms 2 + 2, residual sums 3 + 3, GELU 2 x 4. Backward: norms 5 + 5, residuals 3 + 3, GELU
// 3 x 4, biases 1 + 4 + 1 + 3, gradients of Q, K, V side by side 6. Every weight's gradient is copied to where it is
// reduced: 2 + 2 bytes.
TEST(Eager, MptBlock) {
  const v1::Run run = MakeEager({32, 4096, 32, 50368}, 4);
  const ChunkWork work = BuildChunk(run, {.layers = 1});
  EXPECT_THAT(Names(work.forward), ElementsAre("norm", "qkv", "attention", "projection", "bias dropout add", "norm",
                                               "mlp up", "activation", "mlp down", "bias dropout add"));
  for (const Operator& op : work.forward) EXPECT_EQ(op.kernels, 1) << op.name;
  const std::int64_t pass = 2 * kTokens * 4 * 4096;
  EXPECT_EQ(MemoryBoundTraffic(work.forward), 18 * pass);
  const std::int64_t weights = 12LL * 4096 * 4096;
  EXPECT_EQ(MemoryBoundTraffic(work.backward), (16 + 12 + 9 + 6) * pass + 4 * weights);
}

// Accumulated here instead, fp32: 2 to read, 4 + 4 to read and write.
TEST(Eager, AccumulationOrCopyOfGradients) {
  v1::Run run = MakeEager({32, 4096, 32, 50368}, 4);
  const auto traffic = [&] {
    std::int64_t sum = 0;
    for (const Operator& op : BuildChunk(run, {.layers = 1}).backward) {
      if (op.name == "gradient accumulation") sum += op.memory_bound.traffic.count();
    }
    return sum;
  };
  const std::int64_t weights = 12LL * 4096 * 4096;
  EXPECT_EQ(traffic(), 4 * weights);
  run.mutable_training()->set_gradient_type(v1::FP32);
  EXPECT_EQ(traffic(), 6 * weights);
  run.mutable_software()->set_reduce_every_micro_batch(false);
  EXPECT_EQ(traffic(), 10 * weights);
  run.mutable_parallelism()->set_zero_stage(3);
  EXPECT_EQ(traffic(), 6 * weights);
}

// norm.h: layer norm 2 x 2 + 16 and 2 x 2 + 28 bytes per element, RMS norm 4 x 2 + 24 and 8 x 2 + 68; two or four more
// bytes per element stay.
TEST(Eager, Norms) {
  for (const auto& [norm, forward, backward, kept] :
       {std::tuple{v1::LAYER_NORM, 20, 32, 2}, {v1::RMS_NORM, 32, 84, 4}}) {
    v1::Run run = MakeEager({32, 4096, 32, 50368}, 1);
    run.mutable_model()->set_norm(norm);
    const std::int64_t fused = LayerBytesPerToken(run);
    run.mutable_software()->set_fused_norm(false);
    EXPECT_EQ(LayerBytesPerToken(run) - fused, 2 * kept * 4096);
    const ChunkWork work = BuildChunk(run, {.layers = 1});
    EXPECT_EQ(Find(work.forward, "norm").memory_bound.traffic.count(), forward * kTokens * 4096);
    EXPECT_EQ(Find(work.backward, "norm gradient").memory_bound.traffic.count(), backward * kTokens * 4096);
  }
}

// A fused loss keeps the 16-bit logits alone, reads them twice and writes their gradient in place: with the norm's
// input and output (4 h per token), 2 bytes per logit instead of 6; 4 bytes of traffic forward and 4 backward.
TEST(Loss, Fused) {
  v1::Run run = MakeEager({32, 4096, 32, 50304}, 1);
  const ChunkWork work = BuildChunk(run, {.layers = 0, .head = true});
  const std::int64_t logits = kTokens * 50304;
  EXPECT_EQ(Saved(work.forward), 2 * logits + kTokens * 4 * 4096);
  EXPECT_EQ(Find(work.forward, "loss").memory_bound.traffic.count(), 4 * logits);
  EXPECT_EQ(Find(work.backward, "loss gradient").memory_bound.traffic.count(), 4 * logits);
  // The gradient takes the logits' place: never more than it, the norm's tensors, the gradient of the norm's output,
  // and the head's weight gradient.
  std::int64_t live = Saved(work.forward), peak = 0;
  for (const Operator& op : work.backward) {
    live += op.allocates.count();
    peak = std::max(peak, live + op.workspace.count());
    live -= op.frees.count();
  }
  EXPECT_EQ(live, 0);
  EXPECT_EQ(peak, 2 * logits + kTokens * 6 * 4096 + 2LL * 50304 * 4096);
}

// The norm after the embedding keeps its input, 2 h; the token ids 8, dropout's mask h.
TEST(Embedding, Norm) {
  v1::Run run = MakeRun(k22B, 1, 1);
  run.mutable_model()->set_embedding_norm(true);
  const ChunkWork work = BuildChunk(run, {.layers = 0, .embedding = true});
  EXPECT_EQ(Saved(work.forward), kTokens * (3 * 6144 + 8));
  EXPECT_EQ(Saved(work.backward), -Saved(work.forward));
  EXPECT_TRUE(Has(work.backward, "embedding norm gradient"));
}

TEST(Embedding, NothingButTheLookupWithoutPositionsAndDropout) {
  const ChunkWork work = BuildChunk(MakeLlama(1, 1), {.layers = 0, .embedding = true});
  EXPECT_THAT(Names(work.forward), ElementsAre("token embedding"));
  EXPECT_EQ(Saved(work.forward), kTokens * 8);
}

// The first two of five layers keep their input, 2 h, and run again; the last three keep everything.
TEST(Recomputation, FirstLayersOfAStage) {
  v1::Run run = MakeRun(k22B, 1, 1);
  const std::int64_t kept = LayerBytesPerToken(run);
  run.mutable_training()->set_recompute(v1::FULL);
  run.mutable_training()->set_recompute_layers(2);
  const ChunkWork work = BuildChunk(run, {.layers = 5});
  EXPECT_EQ(Saved(work.forward), kTokens * (std::int64_t{4} * 6144 + 3 * kept));
  EXPECT_EQ(Saved(work.backward), -Saved(work.forward));
  std::int32_t before = 4;
  for (const Operator& op : work.backward) {
    EXPECT_TRUE(op.layer == before || op.layer == before - 1);
    before = op.layer;
    if (op.pass == Pass::kRecompute) {
      EXPECT_LT(op.layer, 2);
    }
  }
  EXPECT_EQ(before, 0);
  EXPECT_EQ(work.backward[work.backward.size() - 1].layer, 0);
  run.mutable_training()->set_recompute_layers(0);
  EXPECT_EQ(Saved(BuildChunk(run, {.layers = 5}).forward), kTokens * 5 * kept);
}

// What a layer's collective runs beside is a GEMM next to it.
void ExpectNeighbours(const std::vector<Operator>& operators) {
  for (std::size_t i = 0; i < operators.size(); ++i) {
    if (operators[i].collective.overlaps == 0 || operators[i].layer < 0) continue;
    const std::size_t neighbour = i + static_cast<std::size_t>(operators[i].collective.overlaps);
    ASSERT_LT(neighbour, operators.size());
    EXPECT_EQ(operators[neighbour].kind, OperatorKind::kGemm) << operators[neighbour].name;
  }
}

// Whatever the architecture, level and policy: forward, then backward (whole, or input gradients first) free what they
// allocate and never what is not there.
void ExpectBalance(const v1::Run& run) {
  const ChunkWork work = BuildChunk(run, {.layers = 2, .embedding = true, .head = true});
  ExpectNeighbours(work.forward);
  ExpectNeighbours(work.backward);
  for (const bool split : {false, true}) {
    std::vector<const Operator*> order;
    for (const Operator& op : work.forward) order.push_back(&op);
    for (const bool second : {false, true}) {
      for (const Operator& op : work.backward) {
        if ((split && op.pass == Pass::kWeightGradient) == second) order.push_back(&op);
      }
    }
    std::int64_t live[2] = {0, 0};
    for (const Operator* op : order) {
      std::int64_t& bytes = live[static_cast<int>(op->activation_class)];
      bytes += (op->allocates - op->frees).count();
      ASSERT_GE(bytes, 0) << op->name << " " << run.ShortDebugString();
    }
    ASSERT_EQ(live[0], 0) << run.ShortDebugString();
    ASSERT_EQ(live[1], 0) << run.ShortDebugString();
  }
}

TEST(Recomputation, LifetimesBalanceEverywhere) {
  for (int bits = 0; bits < 1 << 9; ++bits) {
    const auto bit = [&](int i) { return (bits >> i & 1) != 0; };
    v1::Run run = bit(0) ? MakeLlama(bit(1) ? 8 : 1, 1) : MakeRun(k22B, bit(1) ? 8 : 1, 1);
    run.mutable_parallelism()->set_sequence_parallel(bit(1) && bit(2));
    run.mutable_model()->set_block(bit(3) ? v1::PARALLEL : v1::SERIAL);
    run.mutable_model()->set_embedding_norm(bit(2));
    v1::Software& software = *run.mutable_software();
    software.set_fused_elementwise(bit(4));
    software.set_fused_norm(bit(5));
    software.set_fused_loss(bit(5));
    software.set_fused_rotary(bit(4));
    software.set_tp_overlap(bit(7));
    software.set_attention_kernel(bit(6) ? v1::UNFUSED : v1::FLASH_ATTENTION_2);
    if (!bit(0)) run.mutable_model()->set_activation(bit(7) ? v1::RELU : v1::SQUARED_RELU);
    if (!bit(0)) run.mutable_model()->set_positions(bit(8) ? v1::ALIBI : v1::NO_POSITIONS);
    run.mutable_training()->set_dropout(bit(8));
    ExpectBalance(run);
    Recompute({v1::NORMS, bit(7) ? v1::MLP : v1::MLP_ACTIVATION, v1::CORE_ATTENTION}, &run);
    ExpectBalance(run);
    run.mutable_training()->set_recompute(v1::FULL);
    ExpectBalance(run);
    run.mutable_training()->set_recompute_layers(1);
    ExpectBalance(run);
  }
}

}  // namespace
}  // namespace orrery::workloads
