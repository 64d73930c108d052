// Parameters, gradients and optimizer states of one rank: their bytes, and what an update moves.
//
// Bytes per parameter of a rank, d = ranks that share one copy (parallelism.shard_ranks), g = bytes of a gradient:
//
//                          weights   gradients   optimizer (Adam, LAMB)
//   16 bit, ZeRO-0            2          g        12        fp32 master copy and two moments
//   ZeRO-1                    2          g        12 / d    (Megatron-LM's distributed optimizer)
//   ZeRO-2                    2          g / d    12 / d
//   ZeRO-3                    2 / d      g / d    12 / d
//   fp32 parameters           4          4         8        ZeRO divides as above; the parameters are the master copy
//
// (Rajbhandari et al. 2020, section 3; Megatron-LM's theoretical_memory_usage.py; PyTorch FSDP.) Besides: under ZeRO-2
// the largest gradient bucket; under ZeRO-3 the units in flight (UnitsInFlight); where fp32 parameters are not sharded,
// their 16-bit copy; one pipeline message in each direction. Parameters and gradients that stand in one contiguous
// buffer are communicated in place.
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

// Everything of a pipeline rank that does not come and go with micro-batches or the update.
memory::Ledger StaticMemory(const Plan& plan, std::int32_t pipeline_rank);

// ZeRO-3: parameters that are gathered while a pass runs, in training precision: the root unit (embedding, final norm,
// head), the layer that computes and gather_ahead more, or all where layers are not dropped after the forward pass; and
// gradients of two layers: of the one that computes, in training precision, and of the one being reduced. Gradients of
// the root unit are left out: they come to be when the logits, which are larger, are gone.
Bytes UnitsInFlight(const Plan& plan, std::int32_t pipeline_rank);

// Temporary tensors of an update: fp32 copies of a rank's 16-bit gradients. No pass is in flight then.
Bytes UpdateTemporaries(const Plan& plan, std::int32_t pipeline_rank);

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
