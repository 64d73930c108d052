// In which orders rings and chains visit GPUs that NVLinks join in pairs.
//
// As many rings as fit on the pairs' links without sharing one, each of them in both directions, as NCCL's search finds
// them over such links: half as many rings as the GPU with the fewest links has, at most. Where no ring goes over these
// links alone, and where NVSwitches join all GPUs, the order is that of the ranks.
#ifndef ORRERY_SIM_COLLECTIVES_RING_ORDERS_H_
#define ORRERY_SIM_COLLECTIVES_RING_ORDERS_H_

#include <vector>

#include "sim/collectives/footprint.h"
#include "sim/collectives/message_flows.h"
#include "topology/topology.h"

namespace orrery::collectives {

// Of the ranks of every node, which stand at the same places in all of them; each order carries an equal share.
std::vector<RanksByNode> RingOrders(const topology::Topology& topology, const RanksByNode& group);

// What an operation sends on such nodes: FlowsOf, over all orders.
std::vector<Flow> FlowsOn(const topology::Topology& topology, const Footprint& footprint, const RanksByNode& group);

}  // namespace orrery::collectives

#endif  // ORRERY_SIM_COLLECTIVES_RING_ORDERS_H_
