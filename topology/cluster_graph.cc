#include "topology/cluster_graph.h"

#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "topology/node_design.h"
#include "topology/routes.h"
#include "topology/topology.h"

namespace orrery::topology {
namespace {

double Achieved(const v1::Link& link) { return link.bandwidth() * link.efficiency(); }

double AchievedByMessage(const v1::Link& link) {
  return link.bandwidth() * (link.has_message_efficiency() ? link.message_efficiency() : link.efficiency());
}

bool HasNvlink(const v1::Node& node) {
  return !node.has_nvswitches() || node.nvswitches() > 0 || node.nvlink_pair_size() > 0;
}

// Three nodes of two GPUs with a NIC each, two of them under one leaf. PCIe, of which prices know no more than what the
// NICs have, is there only where nothing else joins the GPUs.
v1::Cluster Reduced(const v1::Cluster& cluster) {
  const v1::Node& from = cluster.node();
  v1::Cluster reduced;
  reduced.set_nodes(3);
  v1::Node* node = reduced.mutable_node();
  node->set_gpus(2);
  node->set_nics(2);
  const auto copy = [](const v1::Link& link, v1::Link* to) {
    to->set_bandwidth(link.bandwidth());
    to->set_efficiency(link.efficiency());
    to->set_latency(link.latency());
  };
  copy(from.nvlink(), node->mutable_nvlink());
  copy(from.nic(), node->mutable_nic());
  node->set_hosts(1);
  if (HasNvlink(from)) {
    node->set_nvswitches(1);
    node->set_nvlinks(1);
  } else {
    node->set_cpus(1);
    copy(from.pcie(), node->mutable_pcie());
  }
  v1::Fabric* fabric = reduced.mutable_fabric();
  fabric->set_nodes_per_leaf(2);
  fabric->set_oversubscription(1);
  fabric->set_hop_latency(cluster.fabric().hop_latency());
  fabric->set_rail_optimised(true);
  fabric->set_planes(1);
  fabric->set_uplink_bandwidth(from.nic().bandwidth());
  fabric->set_switch_ports(64);
  fabric->set_routing(v1::BY_DESTINATION);
  return reduced;
}

}  // namespace

absl::StatusOr<ClusterGraph> ClusterGraph::Build(const v1::Cluster& cluster) {
  const v1::Node& node = cluster.node();
  ABSL_RETURN_IF_ERROR(CheckSharing("cluster.node", node));
  ClusterGraph graph;
  graph.nvlink_ = BytesPerSecond(Achieved(node.nvlink()));
  graph.nic_ = BytesPerSecond(Achieved(node.nic()));
  graph.nvlink_message_ = BytesPerSecond(AchievedByMessage(node.nvlink()));
  graph.nic_message_ = BytesPerSecond(AchievedByMessage(node.nic()));
  graph.nodes_ = cluster.nodes();
  graph.gpus_per_node_ = node.gpus();
  graph.nodes_per_leaf_ = cluster.fabric().nodes_per_leaf();
  graph.nics_per_node_ = node.nics();

  ABSL_ASSIGN_OR_RETURN(const Topology topology, Topology::Build(Reduced(cluster)));
  ABSL_ASSIGN_OR_RETURN(const Routes routes, Routes::Build(topology));
  const BytesPerSecond uplink_share = graph.nic_ / cluster.fabric().oversubscription();
  const std::array<BytesPerSecond, 3> bandwidths = {graph.nvlink_, graph.nic_, std::min(graph.nic_, uplink_share)};
  const std::array<std::int64_t, 3> ends = {1, 2, 4};
  for (std::size_t distance = 0; distance < ends.size(); ++distance) {
    const Route route = routes.Between(0, ends[distance]);
    graph.paths_[distance] = {bandwidths[distance], SecondsFromTime(route.latency), route.links};
  }
  return graph;
}

std::int64_t ClusterGraph::Count(DeviceKind kind) const {
  const std::int64_t groups = (nodes_ + nodes_per_leaf_ - 1) / nodes_per_leaf_;
  switch (kind) {
    case DeviceKind::kGpu:
      return gpus();
    case DeviceKind::kNvSwitch:
      return nodes_;
    case DeviceKind::kNic:
      return nodes_ * nics_per_node_;
    case DeviceKind::kLeaf:
      return groups * nics_per_node_;
    case DeviceKind::kSpine:
      return groups > 1 ? nics_per_node_ : 0;
    default:
      return 0;
  }
}

}  // namespace orrery::topology
