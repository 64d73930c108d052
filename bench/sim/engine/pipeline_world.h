// Synthetic worlds of many equal pipelines under the 1F1B schedule.
#ifndef ORRERY_BENCH_SIM_ENGINE_PIPELINE_WORLD_H_
#define ORRERY_BENCH_SIM_ENGINE_PIPELINE_WORLD_H_

#include <cstdint>

#include "base/units.h"
#include "sim/engine/world.h"

namespace orrery::engine {

struct PipelineShape {
  std::int32_t pipelines = 192;
  std::int32_t stages = 64;
  std::int32_t micro_batches = 256;
  Time forward = Time(1'000'000);
  Time backward = Time(2'000'000);
  // Messages are batched exchanges between the passes instead of eager, and meet with rendezvous.
  bool batched = false;
};

// Unit = pipeline x stages + stage. One program per stage. Messages take no time, so that a cold iteration takes
// (m + p - 1) (F + B) in either mode (Narayanan et al., SC21, section 2.2).
World MakePipelineWorld(const PipelineShape& shape);

inline Time PipelineMakespan(const PipelineShape& shape) {
  return (shape.forward + shape.backward) * (shape.micro_batches + shape.stages - 1);
}

}  // namespace orrery::engine

#endif  // ORRERY_BENCH_SIM_ENGINE_PIPELINE_WORLD_H_
