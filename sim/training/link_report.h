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

// One link, or one of several that cannot differ. Figures are of one of them, over all that was replayed.
struct LinkReport {
  std::string from;  // devices, as Topology::NameOf
  std::string to;
  std::int64_t alike = 1;
  std::int64_t capacity = 0;  // bytes per second
  double bytes = 0;
  double utilisation = 0;       // of the time from the beginning to the end of the replay
  double busy_share = 0;        // of that time, with at least one transfer
  Time delay;                   // by which transfers ended later than alone because of this link, summed
  std::vector<LinkUser> users;  // most bytes first
  // The transfer that it delayed most; empty where it delayed none.
  std::string most_delayed;
  Time most_delay;
};

struct LinkSummary {
  std::vector<LinkReport> links;  // busiest first
  std::int64_t transfers = 0;     // that ended
  std::int64_t never_shared = 0;  // of them, those that no other could slow
};

// The `count` busiest kinds of links. `replayed`: the world that was replayed, folded from `built` or the same.
LinkSummary BusiestLinks(const TrainingWorld& built, const engine::Folding& replayed,
                         const topology::Topology& topology, const network::SharedTransfers& transfers,
                         std::size_t count);

}  // namespace orrery::training

#endif  // ORRERY_SIM_TRAINING_LINK_REPORT_H_
