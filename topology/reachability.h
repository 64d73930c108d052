// Whether every GPU can send to every other.
#ifndef ORRERY_TOPOLOGY_REACHABILITY_H_
#define ORRERY_TOPOLOGY_REACHABILITY_H_

#include "absl/status/status.h"
#include "topology/topology.h"

namespace orrery::topology {

// Two GPUs reach each other over a link, over devices of their node that are no GPUs, or over a network that NICs of
// both hang on; to the sender's NIC a GPU may forward that NVLink joins with it. INVALID_ARGUMENT names two that do
// not.
absl::Status CheckReachability(const Topology& topology);

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_REACHABILITY_H_
