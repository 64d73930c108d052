// A ring collective message by message, on the engine.
//
// Ranks 0 .. n-1 stand in a ring. In each step every rank sends a chunk to the next one and receives one from the
// previous; it begins the next step when both are done, and a message begins when both its ends have begun the step.
// Reduce-scatter and all-gather take n - 1 steps, all-reduce 2 (n - 1), each on 1 / n of the bytes (Thakur,
// Rabenseifner and Gropp 2005, section 3). One step is one iteration of the engine's world: once steps repeat, they
// need not be replayed. Where the hops repeat along the ring with period p, ranks p apart have the same times, and p of
// them stand for all.
#ifndef ORRERY_SIM_COLLECTIVES_RING_MESSAGES_H_
#define ORRERY_SIM_COLLECTIVES_RING_MESSAGES_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "base/units.h"

namespace orrery::collectives {

struct RingOptions {
  // One rank per class of ranks that cannot differ.
  bool fold = true;
  // Stop when steps repeat.
  bool stop_when_periodic = true;
};

struct RingRun {
  Time time;                  // until the last rank has finished the last step
  std::int64_t messages = 0;  // of the ring
  std::int64_t replayed = 0;  // messages that were replayed
  std::int64_t ranks_simulated = 0;
};

// `hops[r]`: time of one chunk from rank r to the next. INVALID_ARGUMENT for fewer than two ranks, no steps, a negative
// hop, or more time than the clock holds.
absl::StatusOr<RingRun> RunRing(const std::vector<Time>& hops, std::int64_t steps, const RingOptions& options = {});

}  // namespace orrery::collectives

#endif  // ORRERY_SIM_COLLECTIVES_RING_MESSAGES_H_
