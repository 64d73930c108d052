// What flows between GPUs put on the links of a cluster.
#ifndef ORRERY_SIM_COLLECTIVES_LINK_LOADS_H_
#define ORRERY_SIM_COLLECTIVES_LINK_LOADS_H_

#include <vector>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "sim/collectives/footprint.h"
#include "sim/engine/world.h"
#include "topology/routes.h"

namespace orrery::collectives {

struct LinkShare {
  topology::LinkId link = 0;
  double bytes = 0;  // for each byte that is moved
};

// Over which NICs of its GPU a flow leaves the node.
enum class NicUse { kAll, kOne };

// Ascending by link, each once.
std::vector<LinkShare> LoadsOf(const topology::Routes& routes, const std::vector<Flow>& flows, NicUse nics);

// The route of a transfer that moves `moved` bytes in `alone` where nothing is in its way; a link that cannot carry its
// part in that time slows it even alone. Links are numbered as in the topology. Loads are rounded to a millionth of the
// largest; what a link can carry in `alone`, to the picosecond, does not slow it.
engine::Route RouteOf(const topology::Topology& topology, const std::vector<LinkShare>& loads, double moved,
                      Time alone);

}  // namespace orrery::collectives

#endif  // ORRERY_SIM_COLLECTIVES_LINK_LOADS_H_
