// What a collective or message of a run takes.
#ifndef ORRERY_SIM_TRAINING_COMMUNICATION_H_
#define ORRERY_SIM_TRAINING_COMMUNICATION_H_

#include <algorithm>

#include "base/units.h"
#include "sim/collectives/collective_prices.h"
#include "sim/training/plan.h"

namespace orrery::training {

struct Communication {
  // Alone.
  Time duration = Time();
  // The last part of that, in which it moves bytes over links that others may use; 0 where no links are shared.
  Time progress = Time();

  friend bool operator==(const Communication&, const Communication&) = default;
};

inline Communication CommunicationOf(const Plan& plan, const collectives::Price& price) {
  const Time duration = TimeFromSeconds(price.seconds);
  return {.duration = duration,
          .progress = plan.shares_links() ? std::min(duration, TimeFromSeconds(price.progress)) : Time()};
}

}  // namespace orrery::training

#endif  // ORRERY_SIM_TRAINING_COMMUNICATION_H_
