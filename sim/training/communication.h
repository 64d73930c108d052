// What a collective or message of a run takes.
#ifndef ORRERY_SIM_TRAINING_COMMUNICATION_H_
#define ORRERY_SIM_TRAINING_COMMUNICATION_H_

#include <algorithm>

#include "base/units.h"
#include "sim/collectives/collective_prices.h"
#include "sim/training/plan.h"

namespace orrery::training {

// What a communication takes from compute of its rank while it transfers, as shares of the whole.
struct Taken {
  double multiprocessors = 0;
  double memory_bandwidth = 0;

  friend bool operator==(const Taken&, const Taken&) = default;
};

struct Communication {
  // Alone.
  Time duration = Time();
  // The last part of that, in which it moves bytes over links that others may use; 0 where no links are shared.
  Time progress = Time();
  // Of a collective: what it puts on links.
  collectives::Footprint footprint = {};
  // Nothing where overlap is static.
  Taken taken = {};

  friend bool operator==(const Communication&, const Communication&) = default;
};

// On the plan's cluster, with its version of NCCL. The plan must outlive them.
inline collectives::CollectivePrices CollectivePricesOf(const Plan& plan) {
  return {plan.run.cluster(), plan.run.software().nccl(),
          plan.prices_alone ? collectives::nccl::Twins::kIdle : collectives::nccl::Twins::kActive};
}

inline Communication CommunicationOf(const Plan& plan, const collectives::Price& price, const Taken& taken = {}) {
  const Time duration = TimeFromSeconds(price.seconds);
  return {.duration = duration,
          .progress = plan.shares_links() ? std::min(duration, TimeFromSeconds(price.progress)) : Time(),
          .footprint = plan.shares_links() ? price.footprint : collectives::Footprint(),
          .taken = taken};
}

}  // namespace orrery::training

#endif  // ORRERY_SIM_TRAINING_COMMUNICATION_H_
