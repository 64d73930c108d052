// SimGrid 3.32 (S4U) as a second opinion. https://simgrid.org; H. Casanova et al., "Versatile, scalable, and accurate
// simulation of distributed applications and platforms", JPDC 74(10), 2014.
#ifndef ORRERY_TESTS_SIM_NETWORK_SIMGRID_H_
#define ORRERY_TESTS_SIM_NETWORK_SIMGRID_H_

#include <cstdint>
#include <string>
#include <vector>

namespace orrery::network {

// A transfer over one path, or (in ptask_L07) several that advance together; each path is a list of links.
struct SimGridPath {
  std::vector<std::int32_t> links;
  double bytes = 0;
};
struct SimGridTask {
  double start = 0;  // s
  std::vector<SimGridPath> paths;
  double weight = 1;
  double rate_cap = 0;  // bytes/s; 0: none
};

// Ends in seconds. Each call runs in a process of its own: SimGrid has one engine per process. Empty if that failed.
//
// Flows (one path each) under the model CM02 without corrections. Weights are made of latencies, by which it shares in
// inverse proportion; starts are moved so that transfers begin when they should.
std::vector<double> FlowEndsInSimGrid(const std::vector<std::int64_t>& capacities,
                                      const std::vector<SimGridTask>& tasks);

// Parallel tasks under ptask_L07 with its solver "bmf": bottleneck max fairness, in which every task has a full link on
// which no task puts more bytes per second. (T. Bonald and J. Roberts, "Multi-resource fairness: objectives, algorithms
// and performance", SIGMETRICS 2015.)
std::vector<double> CoupledEndsInSimGrid(const std::vector<std::int64_t>& capacities,
                                         const std::vector<SimGridTask>& tasks);

}  // namespace orrery::network

#endif  // ORRERY_TESTS_SIM_NETWORK_SIMGRID_H_
