// Costs of paths, in one word each.
#ifndef ORRERY_TOPOLOGY_PATH_COST_H_
#define ORRERY_TOPOLOGY_PATH_COST_H_

#include <algorithm>
#include <compare>
#include <cstdint>

#include "base/units.h"

namespace orrery::topology {

// Compared by the major part, then by the minor part: links before latency in the network, latency before links inside
// a node. A latency beyond 17 s counts as that, links are at most a million.
enum class CostOrder { kLinksFirst, kLatencyFirst };

template <CostOrder order>
class PathCost {
 public:
  constexpr PathCost() = default;
  static constexpr PathCost OfLink(Time latency) { return PathCost(1, latency.count()); }
  static constexpr PathCost Unreachable() {
    PathCost cost;
    cost.word_ = ~std::uint64_t{0};
    return cost;
  }

  constexpr bool reachable() const { return *this != Unreachable(); }
  constexpr int links() const {
    return static_cast<int>(order == CostOrder::kLinksFirst ? word_ >> kLatencyBits : word_ & kMostLinks);
  }

  // Both reachable.
  friend constexpr PathCost operator+(PathCost a, PathCost b) {
    return PathCost(a.links() + b.links(), a.latency() + b.latency());
  }
  friend constexpr auto operator<=>(const PathCost&, const PathCost&) = default;

 private:
  static constexpr int kLatencyBits = 44;
  static constexpr std::int64_t kMostLatency = (std::int64_t{1} << kLatencyBits) - 1;
  static constexpr std::int64_t kMostLinks = (std::int64_t{1} << (64 - kLatencyBits)) - 1;

  constexpr PathCost(std::int64_t links, std::int64_t latency) {
    const auto few = static_cast<std::uint64_t>(std::min(links, kMostLinks - 1));
    const auto short_one = static_cast<std::uint64_t>(std::min(latency, kMostLatency));
    word_ = order == CostOrder::kLinksFirst ? few << kLatencyBits | short_one : short_one << (64 - kLatencyBits) | few;
  }
  constexpr std::int64_t latency() const {
    return static_cast<std::int64_t>(order == CostOrder::kLinksFirst ? word_ & kMostLatency
                                                                     : word_ >> (64 - kLatencyBits));
  }

  std::uint64_t word_ = 0;
};

using NetworkCost = PathCost<CostOrder::kLinksFirst>;
using LocalCost = PathCost<CostOrder::kLatencyFirst>;

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_PATH_COST_H_
