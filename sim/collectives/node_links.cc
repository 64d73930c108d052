#include "sim/collectives/node_links.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/status_macros.h"
#include "sim/collectives/footprint.h"
#include "sim/collectives/link_loads.h"
#include "sim/collectives/message_flows.h"
#include "sim/collectives/ring_orders.h"
#include "topology/routes.h"

namespace orrery::collectives {
namespace {

constexpr std::int64_t kMostNodes = 4;

class NodeLinks {
 public:
  NodeLinks(const topology::Routes& routes, const v1::Node& node, const layout::Placement& placement, nccl::Twins twins)
      : routes_(routes),
        gpus_(node.gpus()),
        ranks_(placement.ranks),
        local_(placement.max_ranks_per_node),
        nodes_(routes.topology().nodes()),
        groups_(twins == nccl::Twins::kActive ? gpus_ / local_ : 1) {}

  nccl::NodeSeconds Seconds() const {
    nccl::NodeSeconds seconds;
    if (ranks_ < 2) return seconds;
    seconds.ring = OfAlgorithm(v1::RING);
    seconds.tree = OfAlgorithm(v1::TREE);
    seconds.chain = Most([&](const RanksByNode& group) { return ChainsInside(group); });
    if (local_ == 1) seconds.pat = OfAlgorithm(v1::PAT);
    seconds.send_recv = Most([](const RanksByNode& group) { return SendRecvFlows(group); }, NicUse::kOne);
    seconds.all_to_all = Most([&](const RanksByNode& group) { return AmongAll(group); });
    seconds.inside_nodes = Most([](const RanksByNode& group) { return InsideNodesFlows(group); });
    seconds.on_rails = Most([&](const RanksByNode& group) { return OnRails(group); });
    return seconds;
  }

 private:
  // `flows_of` says what a group sends.
  template <typename FlowsOfGroup>
  double Most(const FlowsOfGroup& flows_of, NicUse nics = NicUse::kAll) const {
    std::vector<Flow> flows;
    for (std::int64_t j = 0; j < groups_; ++j) {
      const std::vector<Flow> of_group = flows_of(Group(j));
      flows.insert(flows.end(), of_group.begin(), of_group.end());
    }
    const topology::Topology& topology = routes_.topology();
    double most = 0;
    for (const LinkShare& share : LoadsOf(routes_, flows, nics).shares) {
      const topology::Link link = topology.link(share.link);
      if (link.kind == topology::LinkKind::kLeafSpine || link.kind == topology::LinkKind::kSpineCore) continue;
      most = std::max(most, share.bytes / static_cast<double>(link.capacity));
    }
    return most;
  }

  double OfAlgorithm(v1::NcclAlgorithm algorithm) const {
    return Most([&](const RanksByNode& group) {
      return FlowsOn(routes_.topology(), {.variant = {algorithm, v1::SIMPLE}}, group);
    });
  }

  std::vector<Flow> ChainsInside(const RanksByNode& group) const {
    std::vector<Flow> flows;
    for (const std::vector<std::int64_t>& node : group) {
      const std::vector<Flow> chain = FlowsOn(routes_.topology(), {.variant = {v1::TREE, v1::SIMPLE}}, {node});
      flows.insert(flows.end(), chain.begin(), chain.end());
    }
    return flows;
  }

  RanksByNode Group(std::int64_t number) const {
    RanksByNode group(static_cast<std::size_t>(nodes_));
    for (std::int64_t node = 0; node < nodes_; ++node) {
      for (std::int64_t rank = 0; rank < local_; ++rank) {
        group[static_cast<std::size_t>(node)].push_back(node * gpus_ + number * local_ + rank);
      }
    }
    return group;
  }

  // All-to-all of all ranks: to those of other nodes goes what the nodes that are left out would have, too.
  std::vector<Flow> AmongAll(const RanksByNode& group) const {
    std::vector<Flow> flows = AllToAllFlows(group);
    for (Flow& flow : flows) {
      const bool leaves = flow.from / gpus_ != flow.to / gpus_;
      flow.numerator = leaves ? ranks_ - local_ : 1;
      flow.denominator = leaves ? ranks_ * (nodes_ - 1) * local_ : ranks_;
    }
    return flows;
  }

  // Likewise of those of one place.
  std::vector<Flow> OnRails(const RanksByNode& group) const {
    std::vector<Flow> flows = OnRailsFlows(group);
    for (Flow& flow : flows) {
      flow.numerator = ranks_ - local_;
      flow.denominator = ranks_ * (nodes_ - 1);
    }
    return flows;
  }

  const topology::Routes& routes_;
  const std::int64_t gpus_;
  const std::int64_t ranks_;
  const std::int64_t local_;
  const std::int64_t nodes_;
  const std::int64_t groups_;
};

}  // namespace

absl::StatusOr<nccl::Communicator> CommunicatorOn(const v1::Cluster& cluster, const layout::Placement& placement,
                                                  nccl::Twins twins) {
  ABSL_ASSIGN_OR_RETURN(nccl::Communicator comm, nccl::DescribeCommunicator(cluster, placement, twins));
  if (comm.nvswitch) return comm;
  v1::Cluster few = cluster;
  few.clear_more_nodes();
  few.set_nodes(std::min(placement.nodes, kMostNodes));
  few.mutable_fabric()->set_routing(v1::ADAPTIVE);
  ABSL_ASSIGN_OR_RETURN(const topology::Topology topology, topology::Topology::Build(few));
  ABSL_ASSIGN_OR_RETURN(const topology::Routes routes, topology::Routes::Build(topology));
  comm.node_seconds = NodeLinks(routes, few.node(), placement, twins).Seconds();
  return comm;
}

absl::StatusOr<nccl::Views> ViewsOn(const v1::Cluster& cluster, const std::vector<NodeSort>& sorts,
                                    layout::Placement placement, nccl::Twins twins) {
  const auto describe = cluster.has_graph() ? nccl::DescribeCommunicator : CommunicatorOn;
  v1::Cluster alike = cluster;
  alike.clear_graph();
  alike.clear_more_nodes();
  nccl::Views views;
  for (const NodeSort& sort : sorts) {
    *alike.mutable_node() = sort.node;
    placement.max_ranks_per_node = placement.min_ranks_per_node = sort.ranks;
    ABSL_ASSIGN_OR_RETURN(const nccl::Communicator view, describe(alike, placement, twins));
    if (std::find(views.begin(), views.end(), view) == views.end()) views.push_back(view);
  }
  return views;
}

}  // namespace orrery::collectives
