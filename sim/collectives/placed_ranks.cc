#include "sim/collectives/placed_ranks.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "sim/layout/layout.h"
#include "topology/node_kinds.h"
#include "topology/routes.h"

namespace orrery::collectives {
namespace {

std::int64_t Count(const std::vector<std::int64_t>& of) { return static_cast<std::int64_t>(of.size()); }

// "8", or "4 to 6" where they differ.
std::string GpusOfNodes(const RanksByNode& nodes) {
  const auto [least, most] =
      std::minmax_element(nodes.begin(), nodes.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  if (least->size() == most->size()) return absl::StrCat(least->size());
  return absl::StrCat(least->size(), " to ", most->size());
}

// The first nodes that hold so many ranks.
std::int64_t NodesFor(const RanksByNode& nodes, std::int64_t ranks) {
  std::int64_t held = 0, count = 0;
  for (const std::vector<std::int64_t>& gpus : nodes) {
    if (held >= ranks) break;
    held += Count(gpus);
    ++count;
  }
  return std::max<std::int64_t>(1, count);
}

// As evenly as what each can hold allows, one more on the first ones.
std::vector<std::int64_t> SpreadEvenly(const RanksByNode& nodes, std::int64_t ranks) {
  std::vector<std::size_t> by_size(nodes.size());
  for (std::size_t i = 0; i < by_size.size(); ++i) by_size[i] = i;
  std::sort(by_size.begin(), by_size.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(nodes[a].size(), a) < std::pair(nodes[b].size(), b);
  });
  std::vector<std::int64_t> spread(nodes.size());
  std::size_t first = 0;  // of those that hold their part of the rest
  std::int64_t rest = ranks;
  const auto among = [&] { return static_cast<std::int64_t>(nodes.size() - first); };
  for (; first < nodes.size() && Count(nodes[by_size[first]]) * among() <= rest; ++first) {
    spread[by_size[first]] = Count(nodes[by_size[first]]);
    rest -= spread[by_size[first]];
  }
  if (first == nodes.size()) return spread;
  const std::int64_t part = rest / among();
  std::vector<std::size_t> others(by_size.begin() + static_cast<std::ptrdiff_t>(first), by_size.end());
  std::sort(others.begin(), others.end());
  std::int64_t over = rest % among();
  for (const std::size_t node : others) spread[node] = part + (over-- > 0 ? 1 : 0);
  return spread;
}

// GPUs in rounds: in each the next one of every NIC.
void OrderByNic(const topology::Routes& routes, std::vector<std::int64_t>* gpus) {
  std::map<topology::DeviceId, std::int64_t> users;
  std::vector<std::pair<std::int64_t, std::int64_t>> round_and_gpu;
  for (const std::int64_t gpu : *gpus) {
    const std::vector<topology::DeviceId> nics = routes.NicsOf(gpu);
    const std::int64_t round = nics.empty() ? 0 : users[nics.front()]++;
    round_and_gpu.emplace_back(round, gpu);
  }
  std::sort(round_and_gpu.begin(), round_and_gpu.end());
  for (std::size_t i = 0; i < gpus->size(); ++i) (*gpus)[i] = round_and_gpu[i].second;
}

// The longest way from a node to the next one.
double NetLatency(const topology::Routes& routes, const RanksByNode& gpus) {
  Time longest;
  for (std::size_t node = 0; node < gpus.size() && gpus.size() > 1; ++node) {
    const std::int64_t next = gpus[(node + 1) % gpus.size()].front();
    longest = std::max(longest, routes.Between(gpus[node].front(), next).latency);
  }
  return SecondsFromTime(longest);
}

layout::Placement PlacementOf(const v1::Cluster& cluster, std::int64_t ranks, std::int64_t nodes) {
  if (cluster.has_graph()) return {.ranks = ranks, .nodes = nodes};
  return nccl::EvenPlacement(cluster, ranks, nodes);
}

absl::Status Refuse(std::int64_t ranks, std::int64_t nodes, const std::string& gpus) {
  return absl::InvalidArgumentError(absl::StrCat(ranks, " ranks on ", nodes, " nodes of ", gpus,
                                                 " GPUs; allowed: at least one rank on a node, and no more than GPUs"));
}

}  // namespace

absl::StatusOr<PlacedRanks> PlaceRanks(const v1::Cluster& cluster, const topology::Topology& topology,
                                       std::int64_t ranks, std::int64_t nodes, nccl::Twins twins) {
  ABSL_ASSIGN_OR_RETURN(topology::NodeKinds kinds, topology::FindNodeKinds(cluster, topology));
  if (nodes == 0) nodes = NodesFor(kinds.gpus, ranks);
  const std::int64_t all = static_cast<std::int64_t>(kinds.gpus.size());
  if (nodes > all) {
    return absl::InvalidArgumentError(absl::StrCat(nodes, " nodes; allowed: up to the ", all, " of the cluster"));
  }
  kinds.gpus.resize(static_cast<std::size_t>(nodes));
  std::int64_t held = 0;
  for (const std::vector<std::int64_t>& gpus : kinds.gpus) held += Count(gpus);
  PlacedRanks placed;
  placed.ranks = ranks == 0 ? held : ranks;
  if (placed.ranks < nodes || placed.ranks > held) return Refuse(placed.ranks, nodes, GpusOfNodes(kinds.gpus));
  const std::vector<std::int64_t> spread = SpreadEvenly(kinds.gpus, placed.ranks);
  std::set<std::pair<std::size_t, std::int64_t>> known;
  for (std::size_t node = 0; node < spread.size(); ++node) {
    kinds.gpus[node].resize(static_cast<std::size_t>(spread[node]));
    if (!known.emplace(kinds.kind_of[node], spread[node]).second) continue;
    placed.sorts.push_back({kinds.kinds[kinds.kind_of[node]], spread[node]});
  }
  placed.gpus = std::move(kinds.gpus);
  ABSL_ASSIGN_OR_RETURN(placed.views, ViewsOn(cluster, placed.sorts, PlacementOf(cluster, placed.ranks, nodes), twins));
  placed.is_regular = placed.views.size() == 1 && !topology.is_free_form();
  if (placed.is_regular) return placed;
  ABSL_ASSIGN_OR_RETURN(const topology::Routes routes, topology::Routes::Build(topology));
  for (std::vector<std::int64_t>& gpus : placed.gpus) OrderByNic(routes, &gpus);
  if (!topology.is_free_form()) return placed;
  if (!cluster.has_node()) placed.assumptions.emplace_back("CPUs are Intel's: a graph does not say");
  const double latency = NetLatency(routes, placed.gpus);
  for (nccl::Communicator& view : placed.views) view.net_latency = latency;
  return placed;
}

}  // namespace orrery::collectives
