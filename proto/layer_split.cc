#include "proto/layer_split.h"

namespace orrery::spec {

std::vector<std::int64_t> SplitLayers(v1::LayerSplit split, std::int64_t layers, std::int64_t stages) {
  const bool ends = split == v1::ENDS_AS_LAYERS && stages > 1;  // one stage holds both ends and all layers
  const std::int64_t units = layers + (ends ? 2 : 0);
  if (stages < 1 || units < stages || (split == v1::EQUAL && layers % stages != 0)) return {};
  std::vector<std::int64_t> split_layers(static_cast<std::size_t>(stages), units / stages);
  for (std::int64_t stage = 0; stage < units % stages; ++stage) ++split_layers[static_cast<std::size_t>(stage)];
  if (ends) {
    --split_layers.front();
    --split_layers.back();
  }
  return split_layers;
}

}  // namespace orrery::spec
