// A dense GPT transformer cut for one rank: operators, parameters and FLOPs from the resolved spec.
//
// Shapes: s tokens per sequence, b sequences per micro-batch, h hidden, a heads, g heads of keys and values, d head
// dimension, f MLP width, V padded vocabulary, t tensor-parallel degree. FLOPs: Narayanan et al., SC21, appendix;
// activations: Korthikanti et al. 2022, sections 4-5.
#ifndef ORRERY_WORKLOADS_TRANSFORMER_H_
#define ORRERY_WORKLOADS_TRANSFORMER_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "orrery/v1/run.pb.h"
#include "workloads/operator.h"

namespace orrery::workloads {

// What one chunk holds besides its layers.
struct ChunkShape {
  std::int64_t layers = 0;
  bool embedding = false;  // first stage: token and position embedding
  bool head = false;       // last stage: final norm, output head, loss
};

// `run` must be resolved and checked. Operators of one chunk on one tensor-parallel rank.
ChunkWork BuildChunk(const v1::Run& run, const ChunkShape& shape);

// Parameters of one chunk on one tensor-parallel rank: sharded matrices / t, norms and position embeddings whole; ranks
// beyond the number of key and value heads hold copies of one. With tied embeddings and pp > 1 the last stage holds its
// own copy of the (sharded) table.
struct ParameterCount {
  std::int64_t matmul = 0;     // weights of layers and, where untied or copied, of the head
  std::int64_t embedding = 0;  // token and position tables
  std::int64_t other = 0;      // biases, norms
  std::int64_t total() const { return matmul + embedding + other; }
};
ParameterCount Parameters(const v1::Run& run, const ChunkShape& shape);

// Of the whole model, however it is cut: vocabulary as in the spec, not padded, a shared table once. What model cards
// count.
ParameterCount ModelParameters(const v1::Run& run);

// V: vocabulary padded to a multiple of 128 x t, as Megatron-LM does.
std::int64_t PaddedVocabulary(const v1::Run& run);

// Model FLOPs of one iteration over all GPUs under a named convention (docs/flops.md); `recompute` adds the forward
// FLOPs that training.recompute executes again (HFU): with FULL those of the recomputed layers, so that "model" becomes
// SC21's 96-formula where they are all; with SELECTIVE those of the modules: the two attention products where the
// kernel is unfused (4 s h per token and layer; Korthikanti et al. count 12, so their HFU is higher), the MLP's
// products. Vocabulary as in the spec, not padded; a window of attention is not subtracted. INVALID_ARGUMENT for an
// unknown name.
//   "model":            full attention, matmul and logits parameters (Korthikanti et al. eq. 9): for GPT
//                       72 B L s h^2 (1 + s/6h + V/12hL)
//   "model-causal":     the same with half the attention
//   "6n":               6 x all parameters x tokens
//   "6n-no-embedding":  6 x parameters without embedding tables x tokens
absl::StatusOr<Flops> ModelFlops(const v1::Run& run, std::string_view convention, bool recompute);

// Names of the conventions.
std::vector<std::string_view> FlopsConventions();

}  // namespace orrery::workloads

#endif  // ORRERY_WORKLOADS_TRANSFORMER_H_
