// The nodes of a cluster as its spec describes them, also where it is given device by device.
//
// Of a free-form graph a node is what hangs together without network switches (device.h), and holds
//
//   nvswitches    those that its GPUs hang on; nvlink_pair: the cables between two GPUs
//   nvlink        what the GPU with the least has of NVLink, all its cables together; latency: the longest way of one
//                 cable between two GPUs, of two over a switch
//   nics          those at a network, each with all its network cables; the slowest counts
//   pcie          what the GPU with the least has, and no more than its part of what its NICs have
//
// and the `cpu_vendor` of the cluster's node, if one stands beside the graph, else INTEL: a graph does not say.
#ifndef ORRERY_TOPOLOGY_NODE_KINDS_H_
#define ORRERY_TOPOLOGY_NODE_KINDS_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "orrery/v1/cluster.pb.h"
#include "topology/topology.h"

namespace orrery::topology {

struct NodeKinds {
  std::vector<v1::Node> kinds;  // each once
  // Of every node that has GPUs, in order: its kind, and the numbers of its GPUs, ascending.
  std::vector<std::size_t> kind_of;
  std::vector<std::vector<std::int64_t>> gpus;
};

// `topology` must be built from `cluster`. INVALID_ARGUMENT names the device of a free-form graph where only some GPUs
// of a node hang on NVSwitches, or a GPU reaches others of its node over the network alone.
absl::StatusOr<NodeKinds> FindNodeKinds(const v1::Cluster& cluster, const Topology& topology);

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_NODE_KINDS_H_
