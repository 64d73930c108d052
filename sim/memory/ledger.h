// Live memory of one rank: allocations and frees of its passes, in the order in which its compute stream runs them.
//
// Every allocation and free belongs to an operator of the compute stream, which is serial, so the peak does not depend
// on when passes run, only on their order. Within an operator: it allocates, then its workspace exists beside
// everything live, then it frees; hence at equal times frees of an earlier operator come before allocations of the
// next.
#ifndef ORRERY_SIM_MEMORY_LEDGER_H_
#define ORRERY_SIM_MEMORY_LEDGER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "workloads/operator.h"

namespace orrery::memory {

// Bytes that come and go, by class. Workspace counts as activations.
struct Live {
  Bytes activations;
  Bytes logits;

  Bytes total() const { return activations + logits; }
  friend Live operator+(Live a, Live b) { return {a.activations + b.activations, a.logits + b.logits}; }
  friend bool operator==(const Live&, const Live&) = default;
};

// What a pass does to live memory, relative to what is live when it starts: its highest point and what it leaves
// behind. `left` may be negative in a class: a backward pass frees what the forward pass kept.
struct PassFootprint {
  Live peak;
  Live left;
  // The operator that runs at the highest point (the first, where several reach it), and its layer within the chunk
  // (-1: embedding, head). Empty where nothing rises above the start.
  std::string_view peak_operator = {};
  std::int32_t peak_layer = -1;
};
PassFootprint FootprintOf(std::span<const workloads::Operator> pass);

// The highest point of a sequence of passes, from nothing live.
struct Peak {
  Live live;
  // Index of the pass in which it occurs (the first, where several reach it).
  std::size_t pass = 0;
};
Peak PeakOf(std::span<const PassFootprint* const> passes);

// What one rank holds at its peak. All bytes.
struct Ledger {
  Bytes weights;
  Bytes gradients;
  Bytes optimizer;
  Bytes activations;
  Bytes logits;
  // Messages, gradient buckets, gathered parameters and unreduced gradients of units in flight.
  Bytes buffers;
  // Library workspaces and the like: in the allocator, but no tensor of the model.
  Bytes workspaces = Bytes(0);
  // Temporary tensors of the optimizer's update, where the peak is there; then nothing of a pass is live.
  Bytes update = Bytes(0);
  // Outside the allocator: context, libraries, communicators.
  Bytes runtime;

  Bytes AllocatorPeak() const {
    return weights + gradients + optimizer + activations + logits + buffers + workspaces + update;
  }
  Bytes DevicePeak() const { return AllocatorPeak() + runtime; }
};

}  // namespace orrery::memory

#endif  // ORRERY_SIM_MEMORY_LEDGER_H_
