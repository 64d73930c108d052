// What flows between GPUs put on the links of a cluster.
#ifndef ORRERY_SIM_COLLECTIVES_LINK_LOADS_H_
#define ORRERY_SIM_COLLECTIVES_LINK_LOADS_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "base/units.h"
#include "sim/collectives/footprint.h"
#include "sim/engine/world.h"
#include "topology/routes.h"

namespace orrery::collectives {

struct LinkShare {
  std::int32_t link = 0;
  double bytes = 0;  // for each byte that is moved
};

struct LinkLoads {
  std::vector<LinkShare> shares;  // ascending by link, each once
  // Shares are multiples of 1 / denominator; where that would need more than a million, they are rounded to them.
  std::int64_t denominator = 1;
};

struct Fraction {
  std::int64_t numerator = 0;
  std::int64_t denominator = 1;

  friend bool operator==(const Fraction&, const Fraction&) = default;
};

// Adds up what is on links, whose numbers are small: memory grows with the largest.
class LinkLoadSum {
 public:
  // share x of_share of each byte that is moved.
  void Add(std::int32_t link, Fraction share, Fraction of_share);
  // Starts afresh.
  LinkLoads Take();

 private:
  std::vector<double> bytes_;  // [link]
  std::vector<std::int32_t> loaded_;
  std::int64_t denominator_ = 1;
  std::pair<Fraction, Fraction> last_;  // that denominator_ counts
};

// Over which NICs of its GPU a flow leaves the node.
enum class NicUse { kAll, kOne };

// By links of the topology.
LinkLoads LoadsOf(const topology::Routes& routes, const std::vector<Flow>& flows, NicUse nics);

// The route of a transfer that moves `moved` bytes in `alone` where nothing is in its way; a link of too little
// capacity (bytes/s, by link) to carry its part in that time slows it even alone. What a link can carry in `alone`, to
// the picosecond, does not: prices are rounded to it. A unit of progress is the least that puts whole bytes on all
// links; rates are whole units per second.
engine::Route RouteOf(const LinkLoads& loads, double moved, Time alone, std::span<const std::int64_t> capacities);

// Max-min sharing is of progress, whose unit is each route's own. Makes a unit of every route take the narrowest of its
// links, by capacity (bytes/s, by link), for equally long, so that transfers that meet there get equal bytes: to within
// 1 / 32 where the ratios of units are not those of small numbers. What a route carries alone, and how fast, is kept.
void EqualiseUnits(std::span<const std::int64_t> capacities, std::vector<engine::Route>* routes);

}  // namespace orrery::collectives

#endif  // ORRERY_SIM_COLLECTIVES_LINK_LOADS_H_
