// Who holds the memory that is live at a peak.
//
// Operators say how much they allocate and free, not which tensor. What an operator frees is taken to be what was
// allocated last before it in the same micro-batch and chunk, as in a stack: within a pass temporaries go first, and a
// backward pass meets the layers in reverse. The sum is exact whatever the attribution.
#ifndef ORRERY_SIM_MEMORY_HOLDERS_H_
#define ORRERY_SIM_MEMORY_HOLDERS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "workloads/operator.h"

namespace orrery::memory {

// Bytes that one operator allocated and nobody has freed, over all layers of a chunk and all micro-batches.
struct Holder {
  std::string_view operator_name;
  workloads::ActivationClass activation_class = workloads::ActivationClass::kActivations;
  // Workspace of the operator that runs at the peak.
  bool workspace = false;
  Bytes bytes;

  friend bool operator==(const Holder&, const Holder&) = default;
};

// One pass of a sequence: its operators, and which micro-batch of which chunk it belongs to.
struct TracedPass {
  std::span<const workloads::Operator> operators;
  std::int32_t chunk = 0;
  std::int32_t micro_batch = 0;
};

// At the highest point of the last pass of `passes`, which start from nothing live: largest first, equal ones by name.
std::vector<Holder> HoldersAtPeak(std::span<const TracedPass> passes);

}  // namespace orrery::memory

#endif  // ORRERY_SIM_MEMORY_HOLDERS_H_
