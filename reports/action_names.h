// Names of the kinds of passes, for people.
#ifndef ORRERY_REPORTS_ACTION_NAMES_H_
#define ORRERY_REPORTS_ACTION_NAMES_H_

#include <string_view>

#include "schedules/schedule.h"

namespace orrery::reports {

inline std::string_view ActionName(schedules::ActionKind kind) {
  switch (kind) {
    case schedules::ActionKind::kForward:
      return "forward";
    case schedules::ActionKind::kBackward:
      return "backward";
    case schedules::ActionKind::kInputGradient:
      return "input gradient";
    case schedules::ActionKind::kWeightGradient:
      return "weight gradient";
  }
  return "";
}

}  // namespace orrery::reports

#endif  // ORRERY_REPORTS_ACTION_NAMES_H_
