#include <algorithm>

#include "workloads/transformer.h"

namespace orrery::workloads {
namespace {

// Rows of the vocabulary are padded so that every rank's share is a multiple of this (Megatron-LM's
// make-vocab-size-divisible-by).
constexpr std::int64_t kVocabularyMultiple = 128;

}  // namespace

std::int64_t PaddedVocabulary(const v1::Run& run) {
  const std::int64_t multiple = kVocabularyMultiple * run.parallelism().tp();
  return (run.model().vocab() + multiple - 1) / multiple * multiple;
}

ParameterCount Parameters(const v1::Run& run, const ChunkShape& chunk) {
  const v1::Model& model = run.model();
  const std::int64_t tp = run.parallelism().tp();
  const std::int64_t h = model.hidden();
  const std::int64_t width = model.heads() / tp * model.head_dim();
  const std::int64_t kv_width = std::max<std::int64_t>(1, model.kv_heads() / tp) * model.head_dim();
  const std::int64_t qkv = width + 2 * kv_width;
  const std::int64_t ffn = model.ffn_hidden() / tp;
  const std::int64_t up = model.gated_mlp() ? 2 * ffn : ffn;
  const std::int64_t vocab = PaddedVocabulary(run) / tp;
  const std::int64_t norm = model.norm() == v1::RMS_NORM ? h : 2 * h;
  ParameterCount count;
  count.matmul = chunk.layers * h * (qkv + width + up + ffn);
  count.other = chunk.layers * (model.block() == v1::PARALLEL ? 1 : 2) * norm;
  // Biases of QKV and MLP up are sharded, those of projection and MLP down are whole.
  if (model.biases()) count.other += chunk.layers * (qkv + h + up + h);
  if (chunk.embedding) {
    count.embedding = (vocab + (model.positions() == v1::LEARNED ? run.training().seq_len() : 0)) * h;
    if (model.embedding_norm()) count.other += norm;
  }
  if (chunk.head) {
    count.other += norm;
    if (!model.tied_embeddings() || !chunk.embedding) count.matmul += vocab * h;
  }
  return count;
}

ParameterCount ModelParameters(const v1::Run& run) {
  v1::Run whole = run;
  whole.mutable_parallelism()->set_tp(1);
  ParameterCount count = Parameters(whole, {.layers = run.model().layers(), .embedding = true, .head = true});
  const std::int64_t padding = (PaddedVocabulary(whole) - run.model().vocab()) * run.model().hidden();
  count.embedding -= padding;
  if (!run.model().tied_embeddings()) count.matmul -= padding;
  return count;
}

}  // namespace orrery::workloads
