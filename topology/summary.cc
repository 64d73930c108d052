#include "topology/summary.h"

#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/push_relabel_max_flow.hpp>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "topology/topology_impl.h"

namespace orrery::topology {
namespace {

std::size_t At(std::int64_t i) { return static_cast<std::size_t>(i); }

// Sums of capacities, which absurd ones cannot overflow.
std::int64_t Add(std::int64_t a, std::int64_t b) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  return a > kMost - b ? kMost : a + b;
}

using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
using FlowGraph = boost::adjacency_list<
    boost::vecS, boost::vecS, boost::directedS, boost::no_property,
    boost::property<boost::edge_capacity_t, std::int64_t,
                    boost::property<boost::edge_residual_capacity_t, std::int64_t,
                                    boost::property<boost::edge_reverse_t, Traits::edge_descriptor>>>>;

// The flow from the NICs of the first half of the nodes to those of the others. Switches that cannot be told apart by
// what hangs on them and, in turn, by their neighbours are one vertex: a flow over these divides evenly over the
// switches.
class Bisection {
 public:
  explicit Bisection(const Topology::Impl& impl)
      : impl_(impl), class_of_(impl.parts.devices.size() - At(impl.parts.first_switch), 0) {}

  void Measure(Summary* summary) {
    SplitNodes();
    HangNics();
    Refine();
    const std::int64_t flow = Add(MaximumFlow(), between_nics_);
    summary->bisection = flow;
    const std::int64_t smaller = std::min(below_[0], below_[1]);
    if (smaller > 0) summary->bisection_share = static_cast<double>(flow) / static_cast<double>(smaller);
  }

 private:
  enum Side : std::int8_t { kFirst, kSecond, kNeither };
  using Signature = std::pair<std::int32_t, std::vector<std::pair<std::int32_t, std::int64_t>>>;

  std::size_t Number(DeviceId id) const { return At(id - impl_.parts.first_switch); }

  void SplitNodes() {
    std::vector<bool> has_gpu(impl_.parts.nodes.size(), false);
    for (const DeviceId gpu : impl_.parts.gpus) has_gpu[At(impl_.parts.devices[At(gpu)].node)] = true;
    const auto half = std::count(has_gpu.begin(), has_gpu.end(), true) / 2;
    side_.assign(has_gpu.size(), kNeither);
    std::int64_t seen = 0;
    for (std::size_t node = 0; node < has_gpu.size(); ++node) {
      if (has_gpu[node]) side_[node] = seen++ < half ? kFirst : kSecond;
    }
  }

  void HangNics() {
    hanging_.resize(class_of_.size());
    for (std::size_t i = At(impl_.parts.first_network_cable); i < impl_.parts.cables.size(); ++i) {
      const Cable& cable = impl_.parts.cables[i];
      const Device& a = impl_.parts.devices[At(cable.a)];
      const Device& b = impl_.parts.devices[At(cable.b)];
      if (a.node >= 0 && b.node >= 0) {
        if (side_[At(a.node)] + side_[At(b.node)] == kFirst + kSecond)
          between_nics_ = Add(between_nics_, cable.capacity);
        continue;
      }
      if (a.node < 0 && b.node < 0) continue;
      const Side side = side_[At(a.node < 0 ? b.node : a.node)];
      if (side == kNeither) continue;
      std::int64_t& here = hanging_[Number(a.node < 0 ? cable.a : cable.b)][At(side)];
      here = Add(here, cable.capacity);
      below_[At(side)] = Add(below_[At(side)], cable.capacity);
    }
  }

  // Colour refinement, until a round splits no class.
  void Refine() {
    std::map<std::array<std::int64_t, 2>, std::int32_t> first;
    for (std::size_t i = 0; i < class_of_.size(); ++i) {
      class_of_[i] = first.emplace(hanging_[i], static_cast<std::int32_t>(first.size())).first->second;
    }
    classes_ = first.size();
    while (classes_ < class_of_.size()) {
      std::map<Signature, std::int32_t> classes;
      std::vector<std::int32_t> refined(class_of_.size());
      for (std::size_t i = 0; i < refined.size(); ++i) {
        refined[i] = classes.emplace(SignatureOf(i), static_cast<std::int32_t>(classes.size())).first->second;
      }
      class_of_.swap(refined);
      const bool stable = classes.size() == classes_;
      classes_ = classes.size();
      if (stable) return;
    }
  }

  Signature SignatureOf(std::size_t number) const {
    Signature signature{class_of_[number], {}};
    std::vector<std::pair<std::int32_t, std::int64_t>> links;
    for (const LinkId link : impl_.LinksFrom(impl_.parts.first_switch + static_cast<DeviceId>(number))) {
      const DeviceId to = impl_.To(link);
      if (to >= impl_.parts.first_switch) links.emplace_back(class_of_[Number(to)], impl_.CableOf(link).capacity);
    }
    std::sort(links.begin(), links.end());
    for (const auto& [neighbour, capacity] : links) {
      if (signature.second.empty() || signature.second.back().first != neighbour) {
        signature.second.emplace_back(neighbour, 0);
      }
      signature.second.back().second = Add(signature.second.back().second, capacity);
    }
    return signature;
  }

  std::int64_t MaximumFlow() const {
    std::map<std::pair<std::size_t, std::size_t>, std::int64_t> capacities;
    const std::size_t source = classes_;
    const std::size_t sink = classes_ + 1;
    const auto add = [&](std::size_t from, std::size_t to, std::int64_t capacity) {
      std::int64_t& sum = capacities[{from, to}];
      sum = Add(sum, capacity);
      capacities.try_emplace({to, from}, 0);
    };
    for (std::size_t i = 0; i < class_of_.size(); ++i) {
      const std::size_t from = At(class_of_[i]);
      for (const auto& [to, capacity] : SignatureOf(i).second) {
        if (At(to) != from) add(from, At(to), capacity);
      }
      if (hanging_[i][kFirst] > 0) add(source, from, hanging_[i][kFirst]);
      if (hanging_[i][kSecond] > 0) add(from, sink, hanging_[i][kSecond]);
    }
    FlowGraph graph(classes_ + 2);
    const auto capacity = boost::get(boost::edge_capacity, graph);
    const auto reverse = boost::get(boost::edge_reverse, graph);
    // What all sources send together fits, too.
    const std::int64_t most = (std::int64_t{1} << 61) / static_cast<std::int64_t>(classes_ + 2);
    std::map<std::pair<std::size_t, std::size_t>, Traits::edge_descriptor> edges;
    for (const auto& [ends, sum] : capacities) {
      const Traits::edge_descriptor edge = boost::add_edge(ends.first, ends.second, graph).first;
      capacity[edge] = std::min(sum, most);
      edges.emplace(ends, edge);
    }
    for (const auto& [ends, edge] : edges) reverse[edge] = edges.at({ends.second, ends.first});
    return boost::push_relabel_max_flow(graph, source, sink);
  }

  const Topology::Impl& impl_;
  std::vector<Side> side_;                            // by node
  std::vector<std::array<std::int64_t, 2>> hanging_;  // capacity of NICs on a switch, by number and side
  std::array<std::int64_t, 2> below_{};               // all of a side
  std::int64_t between_nics_ = 0;
  std::vector<std::int32_t> class_of_;  // by number
  std::size_t classes_ = 0;
};

std::vector<LevelCapacity> Levels(const Topology& topology) {
  std::array<std::int64_t, kLinkKinds> capacity{};
  for (const Cable& cable : topology.impl().parts.cables) {
    std::int64_t& sum = capacity[static_cast<std::size_t>(cable.kind)];
    sum = Add(sum, cable.capacity);
  }
  const auto of = [&](LinkKind kind) { return capacity[static_cast<std::size_t>(kind)]; };
  std::vector<LevelCapacity> levels;
  for (const LevelCapacity level :
       {LevelCapacity{DeviceKind::kLeaf, of(LinkKind::kNicLeaf), of(LinkKind::kLeafSpine)},
        LevelCapacity{DeviceKind::kSpine, of(LinkKind::kLeafSpine), of(LinkKind::kSpineCore)},
        LevelCapacity{DeviceKind::kCore, of(LinkKind::kSpineCore), 0}}) {
    if (topology.Count(level.kind) > 0) levels.push_back(level);
  }
  return levels;
}

}  // namespace

Summary Summarise(const Topology& topology) {
  Summary summary;
  for (std::size_t kind = 0; kind < kDeviceKinds; ++kind) {
    summary.devices[kind] = topology.Count(static_cast<DeviceKind>(kind));
  }
  for (std::size_t kind = 0; kind < kLinkKinds; ++kind) {
    summary.cables[kind] = topology.Cables(static_cast<LinkKind>(kind));
  }
  summary.levels = Levels(topology);
  Bisection(topology.impl()).Measure(&summary);
  return summary;
}

CableSpeeds SpeedsOf(const Topology& topology, LinkId link) {
  const Cable& cable = topology.impl().CableOf(link);
  const std::int64_t each = cable.capacity / cable.cables;
  return {cable.slowest > 0 ? cable.slowest : each, cable.fastest > 0 ? cable.fastest : each};
}

}  // namespace orrery::topology
