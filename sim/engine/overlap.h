// Communication and compute that slow each other down, for the event queue: whose rates change, and when what ends.
//
// Transfers are known by ids that the queue gives, one at a time for an id. Whatever begins or ends marks the units
// that it concerns; once all of an instant has been told, Settle works out new rates and says which ends have moved, so
// that neither order nor repetition can show. An end that has moved makes what was said before stale; the queue
// compares.
#ifndef ORRERY_SIM_ENGINE_OVERLAP_H_
#define ORRERY_SIM_ENGINE_OVERLAP_H_

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/units.h"
#include "sim/engine/compute_pace.h"
#include "sim/engine/iteration_state.h"
#include "sim/engine/state_hash.h"
#include "sim/engine/world.h"

namespace orrery::engine {

// Whether some program states loads that change a rate.
bool HasLoads(const World& world);
// Whether some load slows the transfer itself.
bool SlowsTransfers(const World& world);

class Overlap {
 public:
  // A rank of a transfer, and the load that its program states there.
  struct End {
    std::int32_t unit = 0;
    std::int32_t load = 0;
  };
  enum class What : std::uint8_t {
    kComputeEnds,     // of unit `subject`: its operation
    kComputeChanges,  // of unit `subject`: call Mark then
    kTransferEnds,    // of transfer `subject`
  };
  struct Change {
    What what;
    std::int32_t subject;
    Time time;
  };

  Overlap(const World& world, const WorldLayout& layout);

  // Whether anything slows anything.
  bool is_on() const { return !paces_.empty(); }
  // Whether a load of the unit's program, or -1, changes a rate.
  bool HasEffectAt(std::int32_t unit, std::int32_t load) const;

  // A transfer begins, which takes `duration` alone, with the ends that have an effect; or ends, if it had begun.
  void BeginTransfer(std::int32_t id, std::span<const End> ends, Time duration, Time now);
  void EndTransfer(std::int32_t id);

  // Whether the unit's compute stream has a pace of its own: its operations with segments are to be told.
  bool Paces(std::int32_t unit) const { return is_on() && paces_[static_cast<std::size_t>(unit)].has_value(); }
  // Returns when it ends as things stand; nothing where that is for the next Settle to say.
  std::optional<Time> BeginCompute(std::int32_t unit, const Op& op, Time host_start, Time now);
  // As ComputePace::Finish.
  std::span<const Time> EndCompute(std::int32_t unit);

  void Mark(std::int32_t unit);
  bool is_settled() const { return marked_.empty(); }
  // Valid until the next call.
  std::span<const Change> Settle(Time now);

  // Adds what decides how the unit's compute stream, or the transfer, goes on.
  void AddUnit(std::int32_t unit, StateHash& hash) const;
  void AddTransfer(std::int32_t id, StateHash& hash) const;

 private:
  struct Transfer {
    std::vector<End> ends;  // none: it does not transfer
    // Since when it has gone at this rate, and what was left then.
    Time since;
    Int128 left = 0;
    std::int64_t rate = kWholeRate;
  };

  ComputePace& PaceOf(std::int32_t unit) { return *paces_[static_cast<std::size_t>(unit)]; }
  const Load& LoadAt(const End& end) const;
  void SettleTransfer(std::int32_t id, Time now);

  const WorldLayout& layout_;
  std::vector<std::vector<bool>> has_effect_;        // [program][load]; empty where no program has loads
  std::vector<std::int32_t> program_of_;             // [unit]
  std::vector<std::optional<ComputePace>> paces_;    // [unit]
  std::vector<std::vector<std::int32_t>> slowable_;  // [unit]: transfers under way that its compute may slow
  std::vector<bool> is_marked_;                      // [unit]
  std::vector<std::int32_t> marked_;
  std::vector<Transfer> transfers_;  // [id]
  std::vector<Change> changes_;
};

}  // namespace orrery::engine

#endif  // ORRERY_SIM_ENGINE_OVERLAP_H_
