#include "workloads/ends.h"
#include "workloads/layer.h"
#include "workloads/transformer.h"

namespace orrery::workloads {
namespace {

// Appends `layer` for each of `layers` layers, numbered in the order in which this pass meets them.
void Repeat(const std::vector<Operator>& layer, std::int64_t layers, bool reversed, std::vector<Operator>* operators) {
  for (std::int64_t i = 0; i < layers; ++i) {
    const std::size_t begin = operators->size();
    operators->insert(operators->end(), layer.begin(), layer.end());
    const auto index = static_cast<std::int32_t>(reversed ? layers - 1 - i : i);
    for (std::size_t j = begin; j < operators->size(); ++j) (*operators)[j].layer = index;
  }
}

// Operators of one layer and of both ends stay below this.
constexpr std::size_t kMostOperators = 80;

}  // namespace

ChunkWork BuildChunk(const v1::Run& run, const ChunkShape& chunk) {
  const Shape shape = MakeShape(run);
  std::vector<Operator> layer;
  layer.reserve(kMostOperators);
  Recorder layer_recorder(&layer);
  LayerForward(shape, ForwardRetention(shape), layer_recorder);

  ChunkWork work;
  work.forward.reserve(static_cast<std::size_t>(chunk.layers) * layer.size() + kMostOperators);
  Recorder forward(&work.forward);
  if (chunk.embedding) EmbeddingForward(shape, forward);
  Repeat(layer, chunk.layers, /*reversed=*/false, &work.forward);
  if (chunk.head) HeadForward(shape, forward);

  layer.clear();
  LayerBackward(shape, layer_recorder);
  work.backward.reserve(static_cast<std::size_t>(chunk.layers) * layer.size() + kMostOperators);
  Recorder backward(&work.backward);
  if (chunk.head) HeadBackward(shape, backward);
  Repeat(layer, chunk.layers, /*reversed=*/true, &work.backward);
  if (chunk.embedding) EmbeddingBackward(shape, backward);
  return work;
}

}  // namespace orrery::workloads
