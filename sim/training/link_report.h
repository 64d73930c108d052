// Which links were busy in a run whose transfers share them, and who was slowed there.
#ifndef ORRERY_SIM_TRAINING_LINK_REPORT_H_
#define ORRERY_SIM_TRAINING_LINK_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/units.h"
#include "sim/engine/world.h"
#include "sim/network/shared_transfers.h"
#include "sim/training/world_builder.h"
#include "topology/topology.h"

namespace orrery::training {

// What transfers of one kind put on a link.
struct LinkUser {
  std::string kind;  // "dp", "tp", "pp", ...
  double bytes = 0;
};

// A delay that a transfer suffered or took.
struct TransferDelay {
  std::string transfer;  // empty: there is none
  Time delay;
};

// One link, or one of several that cannot differ. Figures are of one of them, over all that was replayed. A transfer is
// named after its lowest rank; of several that cannot differ, the first.
struct LinkReport {
  std::string from;  // devices, as Topology::NameOf
  std::string to;
  std::int64_t alike = 1;
  std::int64_t capacity = 0;  // bytes per second
  double bytes = 0;
  double utilisation = 0;  // of the time from the beginning to the end of the replay
  double busy_share = 0;   // of that time, with at least one transfer
  // By which transfers ended later than alone because of this link, summed; over the links alike, the mean.
  Time delay;
  std::vector<LinkUser> users;  // most bytes first
  // The transfer that it delayed most, and of that delay what the transfer that took most of it took
  // (sim/network/flow_network.h); of the same name: others like it.
  TransferDelay most_delayed;
  TransferDelay most_taken;
};

struct LinkSummary {
  std::vector<LinkReport> links;  // busiest first
  // Of the world that was replayed: transfers that ended, those that no other could ever slow, so that they were never
  // in the solver of rates, and those that none slowed.
  std::int64_t transfers = 0;
  std::int64_t bypassed_solver = 0;
  std::int64_t never_slowed = 0;
};

// The `count` busiest kinds of links, and behind them the one that delayed most where it is none of these. `world`:
// what was replayed, `alike.world` or the world that it was folded from; `transfers` have the classes of `alike`.
LinkSummary BusiestLinks(const TrainingWorld& built, const engine::World& world, const engine::Folding& alike,
                         const topology::Topology& topology, network::SharedTransfers& transfers, std::size_t count);

// Without links.
LinkSummary CountTransfers(const network::SharedTransfers& transfers);

}  // namespace orrery::training

#endif  // ORRERY_SIM_TRAINING_LINK_REPORT_H_
