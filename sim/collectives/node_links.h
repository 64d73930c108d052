// Communicators with what the links of their nodes allow.
//
// Where NVSwitches join a node's GPUs, all that counts is a GPU's port (nccl/time.h). Elsewhere some links, of PCIe,
// between CPUs or of a pair of GPUs, carry more of an operation than others. What its flows (ring_orders.h,
// message_flows.h) put on them is added up on a graph of such nodes, over the routes that shared links take
// (link_loads.h); the most loaded one says how long a byte takes:
//
//   seconds per byte moved = max over links of  bytes on the link per byte moved / capacity
//
// A group's ranks are taken to be the first GPUs of every node; where its twins are active, they stand on the GPUs
// after them, as many as the node has room for, and load the same links. Up to four nodes stand for any number: of a
// larger group's nodes none has more neighbours in a tree, and what a node sends to all others is the same.
#ifndef ORRERY_SIM_COLLECTIVES_NODE_LINKS_H_
#define ORRERY_SIM_COLLECTIVES_NODE_LINKS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "orrery/v1/cluster.pb.h"
#include "sim/collectives/nccl/communicator.h"
#include "sim/layout/layout.h"

namespace orrery::collectives {

// nccl::DescribeCommunicator with node_seconds. INVALID_ARGUMENT also where the cluster's nodes make no graph.
absl::StatusOr<nccl::Communicator> CommunicatorOn(const v1::Cluster& cluster, const layout::Placement& placement,
                                                  nccl::Twins twins = nccl::Twins::kActive);

// Nodes with that many ranks each.
struct NodeSort {
  v1::Node node;
  std::int64_t ranks = 1;
};

// Of nodes that differ, each sort as if all were of it; of `placement` only ranks, nodes and leaves count. Without
// node_seconds on a cluster given device by device. Errors as above. Views that come out alike are one.
absl::StatusOr<nccl::Views> ViewsOn(const v1::Cluster& cluster, const std::vector<NodeSort>& sorts,
                                    layout::Placement placement, nccl::Twins twins);

}  // namespace orrery::collectives

#endif  // ORRERY_SIM_COLLECTIVES_NODE_LINKS_H_
