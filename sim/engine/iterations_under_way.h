// The iterations that the event queue has under way, and their reports to the accountant, which wants one iteration
// after the other: what happens in a later one waits for its turn.
#ifndef ORRERY_SIM_ENGINE_ITERATIONS_UNDER_WAY_H_
#define ORRERY_SIM_ENGINE_ITERATIONS_UNDER_WAY_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>

#include "sim/engine/accounting.h"
#include "sim/engine/iteration_state.h"

namespace orrery::engine {

class IterationsUnderWay {
 public:
  // Both must outlive it.
  IterationsUnderWay(const WorldLayout& layout, Accountant& accountant) : layout_(layout), accountant_(accountant) {}

  // Not before the one that is reported. References stay valid until that one is over.
  IterationState& At(std::int32_t iteration) {
    while (iteration >= reported_ + static_cast<std::int32_t>(iterations_.size())) Add();
    return iterations_[static_cast<std::size_t>(iteration - reported_)];
  }
  std::int32_t reported() const { return reported_; }
  // The one that is reported as it happens; At must have been called for it.
  const IterationState& front() const { return iterations_.front(); }

  // `iteration`, the one reported or the next, is reported from now on; what is known of it already at once.
  void BeginReporting(std::int32_t iteration);

  // The unit's host op `op` of `iteration` begins at `start`; its host was free at `previous_end`.
  void ReportHost(std::int32_t iteration, std::int32_t unit, std::int32_t op, Time previous_end, Time start);
  // `evaluated` without transfers and segment ends, which are read from the iteration's slots and given.
  void Report(std::int32_t iteration, Evaluated evaluated, std::span<const Time> segment_ends);

 private:
  void Add();
  void Pass(const IterationState& at, bool of_host, Evaluated& evaluated);

  const WorldLayout& layout_;
  Accountant& accountant_;
  std::int32_t reported_ = 0;
  std::deque<IterationState> iterations_;  // from reported_ on
  std::optional<IterationState> spare_;    // one that is over, for its memory
};

}  // namespace orrery::engine

#endif  // ORRERY_SIM_ENGINE_ITERATIONS_UNDER_WAY_H_
