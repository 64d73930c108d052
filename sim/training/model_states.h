// Parameters, gradients and optimizer states of one rank: their bytes, and what an update moves.
//
// Bytes per parameter: weights 2 (16 bit); gradients by their type; optimizer 12 (fp32 master copy and two moments).
// ZeRO-1 shards the optimizer over dp, ZeRO-2 the gradients too, but for the bucket in flight (Rajbhandari et al. 2020,
// section 3).
#ifndef ORRERY_SIM_TRAINING_MODEL_STATES_H_
#define ORRERY_SIM_TRAINING_MODEL_STATES_H_

#include <cstdint>

#include "base/units.h"
#include "sim/memory/ledger.h"
#include "sim/training/plan.h"

namespace orrery::training {

std::int64_t BytesOf(v1::DataType type);

// Gradient buckets into which a chunk's reduction is cut: at most bucket_bytes each, but no smaller than a layer.
std::int32_t BucketsOf(const Plan& plan, const workloads::ChunkShape& shape);

// Everything of a pipeline rank that does not come and go with micro-batches.
memory::Ledger StaticMemory(const Plan& plan, std::int32_t pipeline_rank);

struct OptimizerWork {
  Bytes traffic;
  std::int32_t kernels = 1;
};
// Reads and writes of one update, by element: convert and unscale 16-bit gradients, their norm, the update itself (read
// gradient, master, two moments; write master and moments), LAMB's second phase and norms, the 16-bit copy of the
// parameters, and clearing the gradients.
OptimizerWork UpdateOf(const Plan& plan, std::int32_t pipeline_rank);

}  // namespace orrery::training

#endif  // ORRERY_SIM_TRAINING_MODEL_STATES_H_
