// How bytes divide over equally short ways: writes the shares of a route, leg by leg.
#ifndef ORRERY_TOPOLOGY_SPREAD_H_
#define ORRERY_TOPOLOGY_SPREAD_H_

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "topology/routes.h"
#include "topology/topology_impl.h"

namespace orrery::topology {

// A leg is a graph of shortest paths from one device to another: all paths have the same number of links.
class Spreader {
 public:
  // Links that begin a shortest path at a device, into the cleared vector.
  using NextLinks = absl::FunctionRef<void(DeviceId at, std::vector<LinkId>* links)>;
  // Which of several next links to take, from 0; at each device once, in the order of the path.
  using Choose = absl::FunctionRef<std::size_t(DeviceId at, std::span<const LinkId> links)>;

  // Appends to `route`, which is cleared. Both must outlive it.
  Spreader(const Topology::Impl& impl, Route* route);

  // Over all ways, in proportion to the capacities of the next links at each device, or where `choose` says.
  void AddLeg(DeviceId from, DeviceId to, NextLinks next_links, const Choose* choose);
  // Brings the shares to one denominator. False where that does not fit an int64: then take one way.
  bool Finish();

 private:
  struct Place {
    DeviceId at;
    std::int64_t weight;  // of the step's denominator
    Time latency;         // since the leg began
  };
  struct Step {
    std::size_t end;  // of the route's shares that have this denominator
    std::int64_t denominator;
  };

  void Advance(NextLinks next_links, const Choose* choose);
  void Merge();

  const Topology::Impl& impl_;
  Route* route_;
  bool fits_ = true;
  std::vector<Place> places_;
  std::vector<Place> reached_;
  std::vector<LinkId> links_;
  std::vector<std::pair<LinkId, std::int64_t>> parts_;  // next links of all places, and their parts of a place's weight
  std::vector<std::size_t> ends_;                       // of the places' parts
  std::vector<std::int64_t> wholes_;                    // sums of the places' parts
  std::int64_t denominator_ = 1;                        // of the leg so far
  std::vector<Step> steps_;
};

// Number of paths of a leg, at most 2^62.
std::int64_t CountWays(const Topology::Impl& impl, DeviceId from, DeviceId to, Spreader::NextLinks next_links);

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_SPREAD_H_
