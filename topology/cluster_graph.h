// What prices ask of a cluster: bandwidths of its links, and the paths between GPUs at each distance, taken from a
// Topology of three of its nodes: two under one leaf, one under another. What a way would cost does not depend on
// whether somebody takes it, so these are there whatever the cluster has.
//
// Bandwidth means achieved: bandwidth x efficiency, per direction. GPUs on one rail are nic.latency + hop_latency apart
// under one leaf and nic.latency + 3 hop_latency under two: see the drawing in topology.h.
#ifndef ORRERY_TOPOLOGY_CLUSTER_GRAPH_H_
#define ORRERY_TOPOLOGY_CLUSTER_GRAPH_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "orrery/v1/cluster.pb.h"
#include "topology/device.h"

namespace orrery::topology {

// What a path between two GPUs offers: what a NIC (NVLink) has per direction while all others send, too, over an
// oversubscribed leaf no more than its share of the uplinks; the sum of latencies; links on it, PCIe left out.
struct Path {
  BytesPerSecond bandwidth;
  double latency_seconds = 0;
  int hops = 0;
};

// How far apart two GPUs are.
enum class Distance { kSameNode, kSameLeaf, kOtherLeaf };

class ClusterGraph {
 public:
  // `cluster` must be resolved and checked. INVALID_ARGUMENT where GPUs and NICs of a node cannot share evenly.
  static absl::StatusOr<ClusterGraph> Build(const v1::Cluster& cluster);

  // Path between two GPUs at that distance, both on the same rail if on different nodes. Where the cluster has no such
  // pair, the path that one more GPU, node or leaf of the kind would have.
  Path Between(Distance distance) const { return paths_[static_cast<std::size_t>(distance)]; }

  // Achieved bandwidth per direction of one GPU into its NVSwitch, of all NICs of a node together, and of one NIC.
  BytesPerSecond NvlinkBandwidth() const { return nvlink_; }
  BytesPerSecond NodeNetworkBandwidth() const { return nic_ * static_cast<double>(nics_per_node_); }
  BytesPerSecond NicBandwidth() const { return nic_; }
  // The same of one message between two GPUs, with a link's message_efficiency: over NVLink, over one NIC.
  BytesPerSecond NvlinkMessageBandwidth() const { return nvlink_message_; }
  BytesPerSecond NicMessageBandwidth() const { return nic_message_; }

  std::int64_t gpus() const { return nodes_ * gpus_per_node_; }  // of the cluster
  std::int64_t gpus_per_node() const { return gpus_per_node_; }
  std::int64_t nodes_per_leaf() const { return nodes_per_leaf_; }
  std::int64_t nics_per_node() const { return nics_per_node_; }

  // Real devices of a kind in the whole cluster; NVSwitches of a node and spines of a rail count as one.
  std::int64_t Count(DeviceKind kind) const;

 private:
  ClusterGraph() = default;

  std::array<Path, 3> paths_;  // by Distance
  BytesPerSecond nvlink_;
  BytesPerSecond nic_;
  BytesPerSecond nvlink_message_;
  BytesPerSecond nic_message_;
  std::int64_t nodes_ = 0;
  std::int64_t gpus_per_node_ = 0;
  std::int64_t nodes_per_leaf_ = 0;
  std::int64_t nics_per_node_ = 0;
};

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_CLUSTER_GRAPH_H_
