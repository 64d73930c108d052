// The cluster as a graph on Boost.Graph: GPUs, NVSwitches, NICs, leaf and spine switches; links with capacity and
// latency.
//
// Nodes of one kind are alike, so the graph holds one representative node per place that prices can tell apart: a node,
// a second node under the same leaves, and one under other leaves. Every vertex carries the number of real ones that it
// stands for, which is zero where the cluster has no such place: what a way would cost does not depend on whether
// somebody takes it.
//
//   GPU -- NVSwitch      capacity of node.nvlink                      half of its latency: GPU to GPU takes the whole
//   GPU -- NIC           as the NIC (PCIe keeps up with it)           half of node.nic's latency
//   NIC -- leaf          capacity of node.nic; NIC i is on rail i     half of a hop
//   leaf -- spine        one uplink per NIC below the leaf, of its capacity / oversubscription; half of either switch's
//   hop
//
// Capacity means achieved: bandwidth x efficiency, per direction. A switch costs one hop_latency, half of it on either
// side, so that GPUs on one rail are nic.latency + hop_latency apart under one leaf and nic.latency + 3 hop_latency
// under two. All spines of a rail are one vertex. Routes stay inside the node where they can; then least latency
// counts, then fewest links.
#ifndef ORRERY_TOPOLOGY_CLUSTER_GRAPH_H_
#define ORRERY_TOPOLOGY_CLUSTER_GRAPH_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "orrery/v1/cluster.pb.h"

namespace orrery::topology {

// What a path between two GPUs offers: the smallest achieved capacity per direction, the sum of latencies, the links on
// it.
struct Path {
  BytesPerSecond bandwidth;
  double latency_seconds = 0;
  int hops = 0;
};

// How far apart two GPUs are.
enum class Distance { kSameNode, kSameLeaf, kOtherLeaf };

enum class DeviceKind { kGpu, kNvSwitch, kNic, kLeaf, kSpine };

class ClusterGraph {
 public:
  // `cluster` must be resolved and checked. INVALID_ARGUMENT where GPUs and NICs of a node cannot share evenly.
  static absl::StatusOr<ClusterGraph> Build(const v1::Cluster& cluster);
  ~ClusterGraph();
  ClusterGraph(ClusterGraph&&) noexcept;
  ClusterGraph& operator=(ClusterGraph&&) noexcept;

  // Path between two GPUs at that distance, both on the same rail if on different nodes. Where the cluster has no such
  // pair, the path that one more GPU, node or leaf of the kind would have.
  Path Between(Distance distance) const;

  // Achieved bandwidth per direction of one GPU into its NVSwitch, of all NICs of a node together, and of one NIC.
  BytesPerSecond NvlinkBandwidth() const;
  BytesPerSecond NodeNetworkBandwidth() const;
  BytesPerSecond NicBandwidth() const;
  // The same of one message between two GPUs, with a link's message_efficiency: over NVLink, over one NIC.
  BytesPerSecond NvlinkMessageBandwidth() const;
  BytesPerSecond NicMessageBandwidth() const;

  std::int64_t gpus() const;  // of the cluster
  std::int64_t gpus_per_node() const;
  std::int64_t nodes_per_leaf() const;
  std::int64_t nics_per_node() const;

  // Real devices of a kind in the whole cluster; NVSwitches of a node and spines of a rail count as one.
  std::int64_t Count(DeviceKind kind) const;

 private:
  struct Impl;
  explicit ClusterGraph(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_CLUSTER_GRAPH_H_
