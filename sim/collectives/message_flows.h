// Which GPUs exchange messages, where an operation is made of them: footprint.h for the rest.
//
//   all-to-all     every rank sends 1 / n of its buffer to every other one
//   send/recv      rank r sends all of its buffer to rank r + 1, the last one to the first (nccl-tests)
//   inside nodes   all-to-all of the ranks of each node, all nodes at once: 1 / g of the buffer to each
//   on rails       all-to-all of the ranks of one place, all places at once: 1 / N of the buffer to each
#ifndef ORRERY_SIM_COLLECTIVES_MESSAGE_FLOWS_H_
#define ORRERY_SIM_COLLECTIVES_MESSAGE_FLOWS_H_

#include <cstdint>
#include <vector>

#include "sim/collectives/footprint.h"

namespace orrery::collectives {

// GPUs of the ranks of every node, in order.
using RanksByNode = std::vector<std::vector<std::int64_t>>;

// Shares of one rank's buffer.
std::vector<Flow> AllToAllFlows(const RanksByNode& nodes);
std::vector<Flow> SendRecvFlows(const RanksByNode& nodes);
std::vector<Flow> InsideNodesFlows(const RanksByNode& nodes);
// Nodes with as many ranks each.
std::vector<Flow> OnRailsFlows(const RanksByNode& nodes);

}  // namespace orrery::collectives

#endif  // ORRERY_SIM_COLLECTIVES_MESSAGE_FLOWS_H_
