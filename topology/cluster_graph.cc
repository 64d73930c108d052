#include "topology/cluster_graph.h"

#include <algorithm>
#include <array>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <compare>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"

namespace orrery::topology {
namespace {

struct Device {
  DeviceKind kind = DeviceKind::kGpu;
  std::int64_t count = 1;  // of real ones
};

// What a route costs, the most important first.
struct Cost {
  int network_links = 0;
  double latency = 0;
  int hops = 0;

  friend Cost operator+(const Cost& a, const Cost& b) {
    return {a.network_links + b.network_links, a.latency + b.latency, a.hops + b.hops};
  }
  friend auto operator<=>(const Cost&, const Cost&) = default;
};

struct Wire {
  double bandwidth = 0;  // achieved, per direction
  Cost cost;
};

using Graph = boost::adjacency_list<boost::vecS, boost::vecS, boost::undirectedS, Device, Wire>;
using Vertex = boost::graph_traits<Graph>::vertex_descriptor;

double Achieved(const v1::Link& link) { return link.bandwidth() * link.efficiency(); }

double AchievedByMessage(const v1::Link& link) {
  return link.bandwidth() * (link.has_message_efficiency() ? link.message_efficiency() : link.efficiency());
}

Path ShortestPath(const Graph& graph, Vertex from, Vertex to) {
  const Cost unreached{std::numeric_limits<int>::max(), 0, 0};
  std::vector<Vertex> parent(boost::num_vertices(graph));
  std::vector<Cost> cost(boost::num_vertices(graph));
  boost::dijkstra_shortest_paths(
      graph, from,
      boost::predecessor_map(boost::make_iterator_property_map(parent.begin(), boost::get(boost::vertex_index, graph)))
          .distance_map(boost::make_iterator_property_map(cost.begin(), boost::get(boost::vertex_index, graph)))
          .weight_map(boost::get(&Wire::cost, graph))
          .distance_compare(std::less<Cost>())
          .distance_combine(std::plus<Cost>())
          .distance_inf(unreached)
          .distance_zero(Cost{}));
  ORRERY_CHECK(cost[to] < unreached);
  Path path{BytesPerSecond(std::numeric_limits<double>::infinity()), cost[to].latency, cost[to].hops};
  for (Vertex at = to; at != from; at = parent[at]) {
    const double bandwidth = graph[boost::edge(parent[at], at, graph).first].bandwidth;
    path.bandwidth = std::min(path.bandwidth, BytesPerSecond(bandwidth));
  }
  return path;
}

// The representative nodes and the switches above them.
class Builder {
 public:
  explicit Builder(const v1::Cluster& cluster) : cluster_(cluster), node_(cluster.node()), fabric_(cluster.fabric()) {}

  Graph Build() {
    const std::int64_t under_first_leaf = std::min(cluster_.nodes(), fabric_.nodes_per_leaf());
    const std::int64_t other_leaves =
        (cluster_.nodes() - under_first_leaf + fabric_.nodes_per_leaf() - 1) / fabric_.nodes_per_leaf();
    const std::vector<Vertex> first_leaf = AddLeaves(1);
    const std::vector<Vertex> other_leaf = AddLeaves(other_leaves);
    origin_ = AddNode(1, first_leaf);
    ends_ = {origin_ + 1, AddNode(under_first_leaf - 1, first_leaf),
             AddNode(cluster_.nodes() - under_first_leaf, other_leaf)};
    for (std::size_t rail = 0; rail < first_leaf.size(); ++rail) {
      const Vertex spine = boost::add_vertex(Device{DeviceKind::kSpine, other_leaves > 0 ? 1 : 0}, graph_);
      const Wire uplink{Achieved(node_.nic()) / fabric_.oversubscription(), {1, fabric_.hop_latency(), 1}};
      boost::add_edge(first_leaf[rail], spine, uplink, graph_);
      boost::add_edge(other_leaf[rail], spine, uplink, graph_);
    }
    return graph_;
  }

  // GPU 0 of the first node, and one GPU at each distance from it.
  Vertex origin() const { return origin_; }
  const std::array<Vertex, 3>& ends() const { return ends_; }

 private:
  // One leaf per rail; each stands for `count`.
  std::vector<Vertex> AddLeaves(std::int64_t count) {
    std::vector<Vertex> leaves;
    for (std::int64_t rail = 0; rail < node_.nics(); ++rail) {
      leaves.push_back(boost::add_vertex(Device{DeviceKind::kLeaf, count}, graph_));
    }
    return leaves;
  }

  // Returns GPU 0; the others follow it, at least one.
  Vertex AddNode(std::int64_t count, const std::vector<Vertex>& leaves) {
    const std::int64_t gpus = node_.gpus();
    const std::int64_t nics = node_.nics();
    const Wire nvlink{Achieved(node_.nvlink()), {0, node_.nvlink().latency() / 2, 1}};
    const Wire pcie{Achieved(node_.nic()), {0, node_.nic().latency() / 2, 1}};
    const Wire cable{Achieved(node_.nic()), {1, fabric_.hop_latency() / 2, 1}};
    const Vertex nvswitch = boost::add_vertex(Device{DeviceKind::kNvSwitch, count}, graph_);
    const Vertex first_gpu = nvswitch + 1;
    for (std::int64_t i = 0; i < std::max<std::int64_t>(gpus, 2); ++i) {
      const Device gpu{DeviceKind::kGpu, i < gpus ? count : 0};
      boost::add_edge(boost::add_vertex(gpu, graph_), nvswitch, nvlink, graph_);
    }
    for (std::int64_t rail = 0; rail < nics; ++rail) {
      const Vertex nic = boost::add_vertex(Device{DeviceKind::kNic, count}, graph_);
      boost::add_edge(nic, leaves[static_cast<std::size_t>(rail)], cable, graph_);
      // GPUs gpus / nics rail ... share it, or it is one of several of GPU rail / (nics / gpus).
      const std::int64_t first = rail * gpus / nics;
      for (std::int64_t i = first; i < std::max(first + 1, (rail + 1) * gpus / nics); ++i) {
        boost::add_edge(first_gpu + static_cast<Vertex>(i), nic, pcie, graph_);
      }
    }
    return first_gpu;
  }

  const v1::Cluster& cluster_;
  const v1::Node& node_;
  const v1::Fabric& fabric_;
  Graph graph_;
  Vertex origin_ = 0;
  std::array<Vertex, 3> ends_{};
};

}  // namespace

struct ClusterGraph::Impl {
  Graph graph;
  std::array<Path, 3> paths;  // by Distance
  BytesPerSecond nvlink;
  BytesPerSecond nic;
  BytesPerSecond nvlink_message;
  BytesPerSecond nic_message;
  std::int64_t nodes = 0;
  std::int64_t gpus_per_node = 0;
  std::int64_t nodes_per_leaf = 0;
  std::int64_t nics_per_node = 0;
};

ClusterGraph::ClusterGraph(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ClusterGraph::~ClusterGraph() = default;
ClusterGraph::ClusterGraph(ClusterGraph&&) noexcept = default;
ClusterGraph& ClusterGraph::operator=(ClusterGraph&&) noexcept = default;

absl::StatusOr<ClusterGraph> ClusterGraph::Build(const v1::Cluster& cluster) {
  const std::int64_t gpus = cluster.node().gpus();
  const std::int64_t nics = cluster.node().nics();
  if (gpus < 1 || nics < 1 || (gpus % nics != 0 && nics % gpus != 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("cluster.node.nics: found ", nics, "; allowed: a divisor or a multiple of node.gpus = ", gpus));
  }
  auto impl = std::make_unique<Impl>();
  impl->nvlink = BytesPerSecond(Achieved(cluster.node().nvlink()));
  impl->nic = BytesPerSecond(Achieved(cluster.node().nic()));
  impl->nvlink_message = BytesPerSecond(AchievedByMessage(cluster.node().nvlink()));
  impl->nic_message = BytesPerSecond(AchievedByMessage(cluster.node().nic()));
  impl->nodes = cluster.nodes();
  impl->gpus_per_node = gpus;
  impl->nodes_per_leaf = cluster.fabric().nodes_per_leaf();
  impl->nics_per_node = nics;

  Builder builder(cluster);
  impl->graph = builder.Build();
  for (std::size_t distance = 0; distance < impl->paths.size(); ++distance) {
    impl->paths[distance] = ShortestPath(impl->graph, builder.origin(), builder.ends()[distance]);
  }
  return ClusterGraph(std::move(impl));
}

Path ClusterGraph::Between(Distance distance) const { return impl_->paths[static_cast<std::size_t>(distance)]; }

BytesPerSecond ClusterGraph::NvlinkBandwidth() const { return impl_->nvlink; }
BytesPerSecond ClusterGraph::NodeNetworkBandwidth() const {
  return impl_->nic * static_cast<double>(impl_->nics_per_node);
}
BytesPerSecond ClusterGraph::NicBandwidth() const { return impl_->nic; }
BytesPerSecond ClusterGraph::NvlinkMessageBandwidth() const { return impl_->nvlink_message; }
BytesPerSecond ClusterGraph::NicMessageBandwidth() const { return impl_->nic_message; }

std::int64_t ClusterGraph::gpus() const { return impl_->nodes * impl_->gpus_per_node; }
std::int64_t ClusterGraph::gpus_per_node() const { return impl_->gpus_per_node; }
std::int64_t ClusterGraph::nodes_per_leaf() const { return impl_->nodes_per_leaf; }
std::int64_t ClusterGraph::nics_per_node() const { return impl_->nics_per_node; }

std::int64_t ClusterGraph::Count(DeviceKind kind) const {
  std::int64_t count = 0;
  for (const Vertex vertex : boost::make_iterator_range(boost::vertices(impl_->graph))) {
    if (impl_->graph[vertex].kind == kind) count += impl_->graph[vertex].count;
  }
  return count;
}

}  // namespace orrery::topology
