// Conventions for model FLOPs. Per token, a matrix of n parameters costs 2n forward and 4n backward; attention costs
// 2 s per head dimension and head for each of its two products, forward, and twice that backward.
#include <algorithm>
#include <array>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "workloads/transformer.h"

namespace orrery::workloads {
namespace {

constexpr std::array<std::string_view, 4> kConventions = {"model", "model-causal", "6n", "6n-no-embedding"};

// Forward FLOPs of one token.
struct TokenFlops {
  double mlp = 0;        // its matrices, all layers
  double other = 0;      // QKV and projection, all layers
  double attention = 0;  // both products against s tokens, all layers
  double logits = 0;
  double layers() const { return mlp + other; }
};

TokenFlops ForwardFlops(const v1::Run& run) {
  const v1::Model& model = run.model();
  const auto h = static_cast<double>(model.hidden());
  const auto layers = static_cast<double>(model.layers());
  const auto head_dim = static_cast<double>(model.head_dim());
  const double width = static_cast<double>(model.heads()) * head_dim;
  const double kv_width = static_cast<double>(model.kv_heads()) * head_dim;
  TokenFlops flops;
  flops.mlp = layers * 2 * h * (model.gated_mlp() ? 3 : 2) * static_cast<double>(model.ffn_hidden());
  flops.other = layers * 2 * h * (2 * width + 2 * kv_width);
  flops.attention = layers * 4 * static_cast<double>(run.training().seq_len()) * width;
  flops.logits = 2 * h * static_cast<double>(model.vocab());
  return flops;
}

// Share of the layers that full recomputation computes again.
double RecomputedShare(const v1::Run& run) {
  const v1::Training& training = run.training();
  if (!training.has_recompute_layers()) return 1;
  const std::int64_t most = training.recompute_layers();
  const v1::Parallelism& parallelism = run.parallelism();
  std::int64_t recomputed = 0;
  for (const std::int64_t layers : parallelism.stage_layers()) recomputed += std::min(layers, most);
  return static_cast<double>(recomputed) / static_cast<double>(run.model().layers());
}

// Forward FLOPs of one token that are computed again; `attention` as the convention counts it.
double RecomputedFlops(const v1::Run& run, const TokenFlops& forward, double attention) {
  if (run.training().recompute() == v1::FULL) return (forward.layers() + attention) * RecomputedShare(run);
  if (run.training().recompute() != v1::SELECTIVE) return 0;
  double flops = 0;
  const bool unfused = run.software().attention_kernel() == v1::UNFUSED;
  const auto& modules = run.training().recompute_modules();
  const auto computes = [&](v1::RecomputeModule module) {
    return std::find(modules.begin(), modules.end(), static_cast<int>(module)) != modules.end();
  };
  if (computes(v1::CORE_ATTENTION) && unfused) flops += attention;
  if (computes(v1::MLP)) flops += forward.mlp;
  return flops;
}

}  // namespace

std::vector<std::string_view> FlopsConventions() { return {kConventions.begin(), kConventions.end()}; }

absl::StatusOr<Flops> ModelFlops(const v1::Run& run, std::string_view convention, bool recompute) {
  const TokenFlops forward = ForwardFlops(run);
  double attention = forward.attention;
  double per_token = 0;
  if (convention == "model" || convention == "model-causal") {
    if (convention == "model-causal") attention /= 2;
    per_token = 3 * (forward.layers() + attention + forward.logits);
  } else if (convention == "6n" || convention == "6n-no-embedding") {
    attention = 0;
    const ParameterCount count = ModelParameters(run);
    const std::int64_t counted = convention == "6n" ? count.total() : count.matmul + count.other;
    per_token = 6 * static_cast<double>(counted);
  } else {
    return absl::InvalidArgumentError(absl::StrCat("unknown FLOP convention \"",
                                                   absl::string_view(convention.data(), convention.size()),
                                                   "\": known are model, model-causal, 6n, 6n-no-embedding"));
  }
  if (recompute) per_token += RecomputedFlops(run, forward, attention);
  const double tokens =
      static_cast<double>(run.training().global_batch()) * static_cast<double>(run.training().seq_len());
  return Flops(per_token * tokens);
}

}  // namespace orrery::workloads
