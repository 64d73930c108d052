// What a cluster has and how its parts are joined: the figures of `orrery topology show` and `topology route`.
// Bandwidths are achieved ones (bandwidth x efficiency), in one direction.
#ifndef ORRERY_REPORTS_TOPOLOGY_REPORT_H_
#define ORRERY_REPORTS_TOPOLOGY_REPORT_H_

#include <cstdint>
#include <string>

#include "topology/routes.h"
#include "topology/summary.h"
#include "topology/topology.h"

namespace orrery::reports {

// Counts by kind, cables with their bandwidths, capacity and oversubscription by level, bisection, and the cables
// between switches, or from a NIC, that are slower than others of their kind.
std::string TopologyText(const std::string& name, const topology::Topology& topology, const topology::Summary& summary);
// The same. Keys: name, gpus, nodes, free_form, routing, devices{}, cables[] (kind, count, slowest, fastest, latency_s
// of one cable), levels[] (kind, down, up, oversubscription), bisection, bisection_share, slower_cables[]. Bytes/s.
std::string TopologyJson(const std::string& name, const topology::Topology& topology, const topology::Summary& summary);

// A transfer between two GPUs.
struct RouteQuestion {
  std::string cluster;    // its name
  std::int64_t from = 0;  // GPUs by number
  std::int64_t to = 0;
  std::int64_t flow = 0;
};
// The links in order with their share of the bytes (in text those that are alike in one row), latency, equally short
// ways, NICs, the GPU that forwards, the bandwidth while nothing else runs.
std::string RouteText(const topology::Routes& routes, const RouteQuestion& question);
std::string RouteJson(const topology::Routes& routes, const RouteQuestion& question);

}  // namespace orrery::reports

#endif  // ORRERY_REPORTS_TOPOLOGY_REPORT_H_
