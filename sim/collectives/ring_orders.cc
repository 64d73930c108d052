#include "sim/collectives/ring_orders.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <utility>

namespace orrery::collectives {
namespace {

using Order = std::vector<std::size_t>;  // places among the ranks of a node

// Looks for rings that share no link, depth first; the first to be as many as can be, or the most after so many steps.
class RingSearch {
 public:
  // links[a][b]: that join two of the GPUs.
  explicit RingSearch(std::vector<std::vector<int>> links) : links_(std::move(links)), visited_(links_.size()) {
    int fewest = kMostSteps;
    for (const std::vector<int>& of_gpu : links_) {
      fewest = std::min(fewest, std::accumulate(of_gpu.begin(), of_gpu.end(), 0));
    }
    wanted_ = static_cast<std::size_t>(fewest / 2);
  }

  std::vector<Order> Find() {
    if (wanted_ > 0) Begin();
    return best_;
  }

 private:
  static constexpr int kMostSteps = 20'000;

  bool Done() const { return best_.size() == wanted_ || steps_ > kMostSteps; }

  // One more ring than there are.
  void Begin() {
    const Order outer = std::exchange(path_, {0});
    visited_.assign(links_.size(), false);
    visited_[0] = true;
    Extend();
    path_ = outer;
    visited_.assign(links_.size(), true);
  }

  void Extend() {
    ++steps_;
    const std::size_t last = path_.back();
    if (path_.size() == links_.size()) {
      if (links_[last][0] > 0) Close();
      return;
    }
    std::vector<std::size_t> next;
    for (std::size_t gpu = 0; gpu < links_.size(); ++gpu) {
      if (!visited_[gpu] && links_[last][gpu] > 0) next.push_back(gpu);
    }
    // Pairs with most links left first.
    std::sort(next.begin(), next.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(-links_[last][a], a) < std::pair(-links_[last][b], b);
    });
    for (const std::size_t gpu : next) {
      if (Done()) return;
      path_.push_back(gpu);
      visited_[gpu] = true;
      Extend();
      visited_[gpu] = false;
      path_.pop_back();
    }
  }

  // The path is a ring.
  void Close() {
    Use(-1);
    found_.push_back(path_);
    if (found_.size() > best_.size()) best_ = found_;
    if (!Done()) Begin();
    found_.pop_back();
    Use(1);
  }

  void Use(int change) {
    for (std::size_t i = 0; i < path_.size(); ++i) {
      const std::size_t a = path_[i], b = path_[(i + 1) % path_.size()];
      links_[a][b] += change;
      links_[b][a] += change;
    }
  }

  std::vector<std::vector<int>> links_;
  std::vector<bool> visited_;
  Order path_;
  std::vector<Order> found_;
  std::vector<Order> best_;
  std::size_t wanted_ = 0;
  int steps_ = 0;
};

// Links between the GPUs of a node, straight from one to the other.
std::vector<std::vector<int>> LinksBetween(const topology::Topology& topology, const std::vector<std::int64_t>& ranks) {
  std::vector<std::vector<int>> links(ranks.size(), std::vector<int>(ranks.size()));
  for (std::size_t a = 0; a < ranks.size(); ++a) {
    for (const topology::LinkId id : topology.LinksFrom(topology.gpu(ranks[a]))) {
      const topology::Link link = topology.link(id);
      if (link.kind != topology::LinkKind::kNvlink) continue;
      if (topology.device(link.to).kind != topology::DeviceKind::kGpu) continue;
      const auto other = std::find(ranks.begin(), ranks.end(), topology.GpuNumber(link.to));
      if (other != ranks.end()) links[a][static_cast<std::size_t>(other - ranks.begin())] += link.cables;
    }
  }
  return links;
}

}  // namespace

std::vector<RanksByNode> RingOrders(const topology::Topology& topology, const RanksByNode& group) {
  const std::size_t local = group.front().size();
  if (local < 3) return {group};
  const std::vector<std::vector<int>> links = LinksBetween(topology, group.front());
  for (const std::vector<std::int64_t>& node : group) {
    if (node.size() != local || LinksBetween(topology, node) != links) return {group};
  }
  std::vector<RanksByNode> orders;
  for (const Order& ring : RingSearch(links).Find()) {
    RanksByNode& order = orders.emplace_back();
    for (const std::vector<std::int64_t>& node : group) {
      std::vector<std::int64_t>& ranks = order.emplace_back();
      for (const std::size_t place : ring) ranks.push_back(node[place]);
    }
    RanksByNode back = order;
    for (std::vector<std::int64_t>& ranks : back) std::reverse(ranks.begin(), ranks.end());
    orders.push_back(std::move(back));
  }
  return orders.empty() ? std::vector<RanksByNode>{group} : orders;
}

std::vector<Flow> FlowsOn(const topology::Topology& topology, const Footprint& footprint, const RanksByNode& group) {
  const v1::NcclAlgorithm algorithm = footprint.variant.algorithm;
  if (algorithm != v1::RING && algorithm != v1::TREE) return FlowsOf(footprint, group);
  const std::vector<RanksByNode> orders = RingOrders(topology, group);
  std::vector<Flow> flows;
  for (const RanksByNode& order : orders) {
    for (Flow flow : FlowsOf(footprint, order)) {
      flow.denominator *= static_cast<std::int64_t>(orders.size());
      flows.push_back(flow);
    }
  }
  return flows;
}

}  // namespace orrery::collectives
