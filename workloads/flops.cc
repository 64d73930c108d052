// Conventions for model FLOPs. Per token, a matrix of n parameters costs 2n forward and 4n backward; attention costs
// 2 s per head dimension and head for each of its two products, forward, and twice that backward.
#include <array>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "workloads/transformer.h"

namespace orrery::workloads {
namespace {

constexpr std::array<std::string_view, 4> kConventions = {"model", "model-causal", "6n", "6n-no-embedding"};

// Forward FLOPs of one token.
struct TokenFlops {
  double layers = 0;     // matrices of all layers
  double attention = 0;  // both products against s tokens, all layers
  double logits = 0;
};

TokenFlops ForwardFlops(const v1::Run& run) {
  const v1::Model& model = run.model();
  const auto h = static_cast<double>(model.hidden());
  const auto layers = static_cast<double>(model.layers());
  const double width = static_cast<double>(model.heads()) * static_cast<double>(model.head_dim());
  TokenFlops flops;
  flops.layers = layers * 2 * (4 * h * width + 2 * h * static_cast<double>(model.ffn_hidden()));
  flops.attention = layers * 4 * static_cast<double>(run.training().seq_len()) * width;
  flops.logits = 2 * h * static_cast<double>(model.vocab());
  return flops;
}

// Parameters of the whole model, unpadded, the shared table once.
double AllParameters(const v1::Run& run, bool tables) {
  const v1::Model& model = run.model();
  v1::Run whole = run;
  whole.mutable_parallelism()->set_tp(1);
  const ParameterCount count = Parameters(whole, {.layers = model.layers(), .embedding = true, .head = true});
  const std::int64_t padding = (PaddedVocabulary(whole) - model.vocab()) * model.hidden();
  std::int64_t total = count.matmul + count.other;
  if (!model.tied_embeddings()) total -= padding;
  if (tables) total += count.embedding - padding;
  return static_cast<double>(total);
}

}  // namespace

std::vector<std::string_view> FlopsConventions() { return {kConventions.begin(), kConventions.end()}; }

absl::StatusOr<Flops> ModelFlops(const v1::Run& run, std::string_view convention, bool recompute) {
  const TokenFlops forward = ForwardFlops(run);
  double attention = forward.attention;
  double per_token = 0;
  if (convention == "model" || convention == "model-causal") {
    if (convention == "model-causal") attention /= 2;
    per_token = 3 * (forward.layers + attention + forward.logits);
  } else if (convention == "6n" || convention == "6n-no-embedding") {
    attention = 0;
    per_token = 6 * AllParameters(run, convention == "6n");
  } else {
    return absl::InvalidArgumentError(absl::StrCat("unknown FLOP convention \"",
                                                   absl::string_view(convention.data(), convention.size()),
                                                   "\": known are model, model-causal, 6n, 6n-no-embedding"));
  }
  if (recompute && run.training().recompute() == v1::FULL) per_token += forward.layers + attention;
  if (recompute && run.training().recompute() == v1::SELECTIVE && run.software().attention_kernel() == v1::UNFUSED) {
    per_token += attention;
  }
  const double tokens =
      static_cast<double>(run.training().global_batch()) * static_cast<double>(run.training().seq_len());
  return Flops(per_token * tokens);
}

}  // namespace orrery::workloads
