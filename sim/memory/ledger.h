// Live memory of one rank: allocations and frees of its passes, in the order in which its compute stream runs them.
//
// Every allocation and free belongs to an operator of the compute stream, which is serial, so the peak does not depend
// on when passes run, only on their order. Within an operator: it allocates, then its workspace exists beside
// everything live, then it frees; hence at equal times frees of an earlier operator come before allocations of the
// next.
#ifndef ORRERY_SIM_MEMORY_LEDGER_H_
#define ORRERY_SIM_MEMORY_LEDGER_H_

#include <cstddef>
#include <span>
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
  // Communication buffers and staging in the allocator.
  Bytes buffers;
  // Outside the allocator: context, libraries, communicators.
  Bytes runtime;

  Bytes AllocatorPeak() const { return weights + gradients + optimizer + activations + logits + buffers; }
  Bytes DevicePeak() const { return AllocatorPeak() + runtime; }
};

}  // namespace orrery::memory

#endif  // ORRERY_SIM_MEMORY_LEDGER_H_
