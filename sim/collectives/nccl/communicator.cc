#include "sim/collectives/nccl/communicator.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "topology/routes.h"
#include "topology/topology.h"

namespace orrery::collectives::nccl {
namespace {

BytesPerSecond Achieved(const v1::Link& link) { return BytesPerSecond(link.bandwidth() * link.efficiency()); }

// Whether nvlink_pair leaves no GPU of the node apart, so that a ring can go over NVLink.
bool PairsJoinAll(const v1::Node& node) {
  std::vector<std::int64_t> leader(static_cast<std::size_t>(node.gpus()));
  std::iota(leader.begin(), leader.end(), 0);
  const auto find = [&](std::int64_t gpu) {
    while (leader[static_cast<std::size_t>(gpu)] != gpu) gpu = leader[static_cast<std::size_t>(gpu)];
    return gpu;
  };
  std::int64_t apart = node.gpus();
  for (const v1::NvlinkPair& pair : node.nvlink_pair()) {
    if (pair.a() >= node.gpus() || pair.b() >= node.gpus()) continue;
    const std::int64_t a = find(pair.a()), b = find(pair.b());
    if (a == b) continue;
    leader[static_cast<std::size_t>(a)] = b;
    --apart;
  }
  return node.nvlink_pair_size() > 0 && apart == 1;
}

// NICs for so many ranks of a node, as the GPUs with the fewest have them: a GPU uses those nearest to it
// (topology/routes.h).
absl::StatusOr<double> NicsFor(const v1::Cluster& cluster, std::int64_t ranks) {
  const v1::Node& node = cluster.node();
  if (node.nics() < 1) return 1;  // nothing leaves the node: no limit
  const std::int64_t holders = node.pcie_switches() > 0 ? node.pcie_switches() : node.cpus();
  if (holders == 0 || (node.gpus() % holders == 0 && node.nics() % holders == 0)) {
    return static_cast<double>(node.nics() * ranks) / static_cast<double>(node.gpus());
  }
  v1::Cluster alone;
  alone.set_nodes(1);
  *alone.mutable_node() = node;
  *alone.mutable_fabric() = cluster.fabric();
  ABSL_ASSIGN_OR_RETURN(const topology::Topology topology, topology::Topology::Build(alone));
  ABSL_ASSIGN_OR_RETURN(const topology::Routes routes, topology::Routes::Build(topology));
  std::map<topology::DeviceId, double> load;
  double most = 0;
  for (std::int64_t gpu = 0; gpu < node.gpus(); ++gpu) {
    const std::vector<topology::DeviceId> nics = routes.NicsOf(gpu);
    for (const topology::DeviceId nic : nics) {
      most = std::max(most, load[nic] += 1 / static_cast<double>(nics.size()));
    }
  }
  return static_cast<double>(ranks) / most;
}

NodeSeconds Longest(const NodeSeconds& a, const NodeSeconds& b) {
  return {.ring = std::max(a.ring, b.ring),
          .tree = std::max(a.tree, b.tree),
          .chain = std::max(a.chain, b.chain),
          .pat = std::max(a.pat, b.pat),
          .all_to_all = std::max(a.all_to_all, b.all_to_all),
          .send_recv = std::max(a.send_recv, b.send_recv),
          .inside_nodes = std::max(a.inside_nodes, b.inside_nodes),
          .on_rails = std::max(a.on_rails, b.on_rails)};
}

}  // namespace

absl::StatusOr<Communicator> DescribeCommunicator(const v1::Cluster& cluster, const layout::Placement& placement,
                                                  Twins twins) {
  const v1::Node& node = cluster.node();
  if (node.gpus() < 1) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cluster ", cluster.name(), " is given device by device; allowed: one that states node and fabric"));
  }
  if (placement.nodes < 1 || placement.ranks < placement.nodes || placement.max_ranks_per_node > node.gpus() ||
      placement.max_ranks_per_node < 1 || placement.min_ranks_per_node < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat(placement.ranks, " ranks on ", placement.nodes, " nodes of ", node.gpus(),
                     " GPUs; allowed: at least one rank on a node, and no more than GPUs"));
  }
  if (cluster.accelerator().compute_capability() == 0) {
    return absl::InvalidArgumentError(
        cluster.has_accelerator()
            ? absl::StrCat("accelerator ", cluster.accelerator().name(),
                           ": compute_capability is not stated, and NCCL's tables go by it; allowed: 10 to 990")
            : absl::StrCat("cluster", cluster.name().empty() ? "" : " ", cluster.name(),
                           ": accelerator is not stated, and NCCL's tables go by it; allowed: one beside the graph"));
  }
  const v1::NcclTimes& times = cluster.accelerator().nccl_times();
  if (cluster.accelerator().compute_capability() < times.compute_capability()) {
    return absl::InvalidArgumentError(
        absl::StrCat("accelerator ", cluster.accelerator().name(), ": compute_capability: found ",
                     cluster.accelerator().compute_capability(), "; allowed: from ", times.compute_capability(),
                     " on, which nccl_times ", times.name(), " serve"));
  }
  ABSL_ASSIGN_OR_RETURN(const double owned, NicsFor(cluster, placement.min_ranks_per_node));
  ABSL_ASSIGN_OR_RETURN(const double nics_per_gpu, NicsFor(cluster, 1));
  // Its own link, and its part of the link of a GPU that has several NICs.
  const BytesPerSecond pcie_per_nic =
      node.has_pcie() ? Achieved(node.pcie()) / std::max(1.0, nics_per_gpu) : BytesPerSecond(node.nic().bandwidth());
  Communicator comm;
  comm.ranks = placement.ranks;
  comm.nodes = placement.nodes;
  comm.ranks_per_node = placement.max_ranks_per_node;
  constexpr double kRounding = 1e-9;
  comm.nics = std::max<std::int64_t>(1, static_cast<std::int64_t>(owned + kRounding));
  comm.compute_capability = cluster.accelerator().compute_capability();
  comm.cpu = node.cpu_vendor();
  comm.nvlink = node.nvswitches() > 0 || PairsJoinAll(node);
  comm.nvswitch = node.nvswitches() > 0;
  const v1::Link& intra = comm.nvlink ? node.nvlink() : node.pcie();
  comm.nominal_nvlink = BytesPerSecond(intra.bandwidth());
  comm.nvlink_bandwidth = Achieved(intra);
  comm.nominal_nic = BytesPerSecond(node.nic().bandwidth());
  comm.nic_bandwidth = std::min(Achieved(node.nic()), pcie_per_nic);
  comm.nic_message = std::min(BytesPerSecond(node.nic().bandwidth() * node.nic().message_efficiency()), pcie_per_nic);
  comm.uplink_bandwidth = Achieved(node.nic());
  if (node.nics() < 1) {
    comm.nominal_nic = comm.nominal_nvlink;
    comm.nic_bandwidth = comm.nic_message = comm.uplink_bandwidth = comm.nvlink_bandwidth;
  }
  comm.nvlink_latency = intra.latency();
  comm.net_latency = node.nic().latency() + cluster.fabric().hop_latency();
  comm.crossing_latency = 2 * cluster.fabric().hop_latency();
  comm.leaves = std::max<std::int64_t>(1, placement.leaves);
  comm.nodes_per_leaf = placement.max_nodes_per_leaf > 0
                            ? static_cast<double>(placement.max_nodes_per_leaf)
                            : static_cast<double>(comm.nodes) / static_cast<double>(comm.leaves);
  comm.rails = cluster.fabric().rail_optimised();
  if (twins == Twins::kIdle) return comm;
  comm.oversubscription = std::max(1.0, cluster.fabric().oversubscription());
  // Fewer NICs than groups that want one.
  if (owned < 1) {
    comm.nic_bandwidth = comm.nic_bandwidth * owned;
    comm.nic_message = comm.nic_message * owned;
    comm.uplink_bandwidth = comm.uplink_bandwidth * owned;
  }
  return comm;
}

Communicator CommonOf(const Views& views) {
  Communicator common = views.front();
  for (const Communicator& view : views) {
    common.ranks_per_node = std::max(common.ranks_per_node, view.ranks_per_node);
    common.nics = std::min(common.nics, view.nics);
    if (view.cpu != common.cpu) common.cpu = v1::AMD;
    common.nvswitch = common.nvswitch && view.nvswitch;
    common.nvlink = common.nvlink && view.nvlink;
    common.nominal_nvlink = std::min(common.nominal_nvlink, view.nominal_nvlink);
    common.nvlink_bandwidth = std::min(common.nvlink_bandwidth, view.nvlink_bandwidth);
    common.nominal_nic = std::min(common.nominal_nic, view.nominal_nic);
    common.nic_bandwidth = std::min(common.nic_bandwidth, view.nic_bandwidth);
    common.nic_message = std::min(common.nic_message, view.nic_message);
    common.uplink_bandwidth = std::min(common.uplink_bandwidth, view.uplink_bandwidth);
    common.nvlink_latency = std::max(common.nvlink_latency, view.nvlink_latency);
    common.net_latency = std::max(common.net_latency, view.net_latency);
    common.node_seconds = Longest(common.node_seconds, view.node_seconds);
  }
  return common;
}

double Communicator::LeavingLeaf() const {
  if (leaves < 2) return 0;
  const double all = static_cast<double>(nodes);
  const auto leaving = [&](double on_leaf) { return on_leaf * (all - on_leaf) / (all * nodes_per_leaf); };
  // All leaves are full but for the last.
  return std::max(leaving(nodes_per_leaf), leaving(all - static_cast<double>(leaves - 1) * nodes_per_leaf));
}

layout::Placement EvenPlacement(const v1::Cluster& cluster, std::int64_t ranks, std::int64_t nodes) {
  layout::Placement placement;
  placement.ranks = ranks;
  placement.nodes = std::max<std::int64_t>(1, nodes);
  placement.max_ranks_per_node = (ranks + placement.nodes - 1) / placement.nodes;
  placement.min_ranks_per_node = ranks / placement.nodes;
  const std::int64_t per_leaf = std::max<std::int64_t>(1, cluster.fabric().nodes_per_leaf());
  placement.leaves = (placement.nodes + per_leaf - 1) / per_leaf;
  placement.max_nodes_per_leaf = std::min(placement.nodes, per_leaf);
  return placement;
}

}  // namespace orrery::collectives::nccl
