// How many layers each stage holds (LayerSplit of software.proto).
#ifndef ORRERY_PROTO_LAYER_SPLIT_H_
#define ORRERY_PROTO_LAYER_SPLIT_H_

#include <cstdint>
#include <vector>

#include "orrery/v1/software.pb.h"

namespace orrery::spec {

// Layers by stage, in the order of the model; they add up to `layers`. Empty where `split` does not exist for these
// numbers: EQUAL needs stages that divide layers, the others a unit for each stage.
std::vector<std::int64_t> SplitLayers(v1::LayerSplit split, std::int64_t layers, std::int64_t stages);

}  // namespace orrery::spec

#endif  // ORRERY_PROTO_LAYER_SPLIT_H_
