// Transfers whose links others use at the same time: what the event queue asks of a network.
#ifndef ORRERY_SIM_ENGINE_TRANSFERS_H_
#define ORRERY_SIM_ENGINE_TRANSFERS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "base/units.h"

namespace orrery::engine {

struct SharedTransfer {
  // Unique among those under way.
  std::int64_t id = 0;
  // Index into World::routes.
  std::int32_t route = 0;
  // What it would take if nothing slowed it down, and does to the picosecond where nothing has.
  Time alone;
  // Who sends, or was the last to join: for reports.
  std::int32_t unit = 0;
  std::int32_t op = 0;
};

// How far a transfer is: a hash of its progress and pace, instants counted from now. Where those of all transfers under
// way are equal, so is when they end, for as long as the same ones begin.
struct TransferProgress {
  std::int64_t id = 0;
  std::uint64_t hash = 0;
};

// Instants do not decrease from call to call. What begins and what ends at one instant is known before anything later
// is asked, so that the order of calls of one instant must not matter.
class Transfers {
 public:
  virtual ~Transfers() = default;

  // One of this route will begin soon: a good time to ask memory for what it needs. Changes nothing.
  virtual void Expect(std::int32_t /*route*/) const {}

  // The transfer moves from `now` on. RESOURCE_EXHAUSTED where it takes more than the clock holds.
  virtual absl::Status Begin(Time now, const SharedTransfer& transfer) = 0;

  // When the next of them end as things stand; the largest Time where none does within what the clock holds.
  virtual Time NextEnd() = 0;

  // Ends those that end at `now`, which is NextEnd(), and appends their ids.
  virtual void End(Time now, std::vector<std::int64_t>* ids) = 0;

  // Of all that are under way, in no order.
  virtual std::vector<TransferProgress> Progress(Time now) = 0;
};

}  // namespace orrery::engine

#endif  // ORRERY_SIM_ENGINE_TRANSFERS_H_
