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
  const std::int64_t ffn = model.ffn_hidden() / tp;
  const std::int64_t vocab = PaddedVocabulary(run) / tp;
  const std::int64_t norms = model.block() == v1::PARALLEL ? 1 : 2;
  ParameterCount count;
  // QKV 3, projection 1; MLP up and down.
  count.matmul = chunk.layers * (4 * h * width + 2 * h * ffn);
  // Biases of QKV and MLP up are sharded, those of projection and MLP down are whole; a norm has weight and bias.
  count.other = chunk.layers * (3 * width + ffn + 2 * h + norms * 2 * h);
  if (chunk.embedding) count.embedding = (vocab + run.training().seq_len()) * h;
  if (chunk.head) {
    count.other += 2 * h;
    if (!model.tied_embeddings() || !chunk.embedding) count.matmul += vocab * h;
  }
  return count;
}

}  // namespace orrery::workloads
