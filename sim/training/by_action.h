// One of something for each kind of pass.
#ifndef ORRERY_SIM_TRAINING_BY_ACTION_H_
#define ORRERY_SIM_TRAINING_BY_ACTION_H_

#include "base/check.h"
#include "schedules/schedule.h"

namespace orrery::training {

template <typename T>
struct ByAction {
  T forward;
  T backward;        // full
  T input_gradient;  // with what is recomputed
  T weight_gradient;

  const T& Of(schedules::ActionKind kind) const {
    switch (kind) {
      case schedules::ActionKind::kForward:
        return forward;
      case schedules::ActionKind::kBackward:
        return backward;
      case schedules::ActionKind::kInputGradient:
        return input_gradient;
      case schedules::ActionKind::kWeightGradient:
        return weight_gradient;
    }
    ORRERY_CHECK(false);
  }
};

}  // namespace orrery::training

#endif  // ORRERY_SIM_TRAINING_BY_ACTION_H_
