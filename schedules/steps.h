// Internal to schedules/: the steps of a rank's order, see Action::joined and Action::fused.
#ifndef ORRERY_SCHEDULES_STEPS_H_
#define ORRERY_SCHEDULES_STEPS_H_

#include <cstddef>
#include <vector>

#include "schedules/schedule.h"

namespace orrery::schedules {

// Position after the last action of the step that begins at `first`.
inline std::size_t StepEnd(const std::vector<Action>& order, std::size_t first) {
  std::size_t last = first;
  while (last + 1 < order.size() && (order[last].joined || order[last].fused)) ++last;
  return last + 1;
}

// Passes on one stage in one direction: what other actions wait for.
inline bool IsForward(ActionKind kind) { return kind == ActionKind::kForward; }
// A gradient for the stage before leaves with this action.
inline bool SendsGradient(ActionKind kind) {
  return kind == ActionKind::kBackward || kind == ActionKind::kInputGradient;
}

}  // namespace orrery::schedules

#endif  // ORRERY_SCHEDULES_STEPS_H_
