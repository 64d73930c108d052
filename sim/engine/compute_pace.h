// The compute stream of one unit, slowed by the loads beside it: see "Loads" in program.h.
#ifndef ORRERY_SIM_ENGINE_COMPUTE_PACE_H_
#define ORRERY_SIM_ENGINE_COMPUTE_PACE_H_

#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "base/units.h"
#include "sim/engine/program.h"
#include "sim/engine/state_hash.h"

namespace orrery::engine {

inline constexpr Time kNever(std::numeric_limits<std::int64_t>::max());

// How long work takes that is left, in picoseconds at the whole rate x kWholeRate.
inline Time TimeOfWork(Int128 work, std::int64_t rate) {
  return Time(static_cast<std::int64_t>((work + rate - 1) / rate));
}

// Instants do not decrease from call to call. Loads count from the next Settle on, so that all that begins or ends at
// one instant changes rates once.
class ComputePace {
 public:
  explicit ComputePace(const Program& program);

  // One more (1) or one less (-1) communication with this load transfers.
  void Count(std::int32_t load, std::int32_t change);

  // The local operation begins, whose host op began at `host_start`. It must have segments.
  void Begin(const Op& op, Time host_start, Time now);
  // What has run until `now` has run at the rates so far; what comes runs at those of the loads that are counted.
  void Settle(Time now);
  // The operation has ended. Ends of its segments where some may have taken longer than alone, else nothing. Valid
  // until the next Begin.
  std::span<const Time> Finish();

  bool is_running() const { return count_ > 0; }
  const Op* op() const { return op_; }
  // When the operation ends if nothing changes.
  Time End() const;
  // Of the kernel that runs since the last Settle; 0 where none does.
  std::uint8_t kind() const { return kind_; }
  // When, after the last Settle, another kind runs or none; kNever where that is not before the operation ends.
  Time KindChange() const;

  // Adds what decides how it goes on, but for which operation runs.
  void AddTo(StateHash& hash) const;

 private:
  // A segment, from when it runs on (in the future: from when it is issued on), and its work that is left then.
  struct Place {
    std::int32_t segment = 0;
    Time at;
    Int128 left = 0;
  };

  std::uint8_t KindOf(std::int32_t segment) const { return kinds_ == nullptr ? std::uint8_t{0} : kinds_[segment]; }
  std::int64_t RateOf(std::int32_t segment) const { return rates_[KindOf(segment)]; }
  Place Entered(std::int32_t segment, Time since) const;
  Time EndOf(const Place& place) const;
  template <typename Ended>
  void Walk(Place& place, Time until, Ended&& ended) const;
  void SetRates();

  const Program& program_;
  std::vector<std::pair<std::int32_t, std::int32_t>> counts_;  // load, how often; above 0
  std::array<std::int64_t, kKernelKinds> rates_;
  bool is_slowed_ = false;  // some rate is not whole
  // The operation that runs.
  const Op* op_ = nullptr;
  const Segment* segments_ = nullptr;
  const std::uint8_t* kinds_ = nullptr;
  std::int32_t count_ = 0;
  Time host_start_;
  Place place_;
  Time settled_;
  std::uint8_t kind_ = 0;
  bool was_slowed_ = false;  // while it ran
  std::vector<Time> ends_;   // of its segments so far
};

}  // namespace orrery::engine

#endif  // ORRERY_SIM_ENGINE_COMPUTE_PACE_H_
