// Which nodes exchange data with which in NCCL's double binary tree and in PAT, and what that puts on leaves.
#ifndef ORRERY_SIM_COLLECTIVES_NCCL_NODE_EDGES_H_
#define ORRERY_SIM_COLLECTIVES_NCCL_NODE_EDGES_H_

#include <algorithm>
#include <cstdint>
#include <vector>

namespace orrery::collectives::nccl {

// The parent of node r > 0 of N in a binary tree over ascending numbers: r with its lowest bit moved up by one, or
// only without it where there is no such node.
inline std::int64_t ParentOf(std::int64_t node, std::int64_t count) {
  const std::int64_t lowest = node & -node;
  const std::int64_t up = (node ^ lowest) | (lowest << 1);
  return up < count ? up : node ^ lowest;
}

// Calls `sink(child, parent)` for the edges of two trees, each of which carries half of the bytes up, and half down;
// the second is the first mirrored, or shifted by one node where their number is odd, so that leaves of one are inner
// nodes of the other (Sanders, Speck, Traeff 2009).
template <typename Sink>
void ForEachTreeEdge(std::int64_t count, Sink&& sink) {
  const auto second = [&](std::int64_t node) { return count % 2 == 0 ? count - 1 - node : (node + 1) % count; };
  for (std::int64_t node = 1; node < count; ++node) {
    const std::int64_t parent = ParentOf(node, count);
    sink(node, parent);
    sink(second(node), second(parent));
  }
}

// Calls `sink(from, to, share)` for PAT's messages: `share / (count - 1)` of what a node moves.
template <typename Sink>
void ForEachPatMessage(std::int64_t count, Sink&& sink) {
  for (std::int64_t distance = 1; distance < count; distance *= 2) {
    const std::int64_t share = std::min(distance, count - distance);
    for (std::int64_t node = 0; node < count; ++node) sink(node, (node + distance) % count, share);
  }
}

// Counts what leaves leaves that hold `per_leaf` nodes each, one at least, in order, but for the last.
class LeafCount {
 public:
  LeafCount(std::int64_t leaves, std::int64_t per_leaf)
      : per_leaf_(std::max<std::int64_t>(1, per_leaf)), sent_(static_cast<std::size_t>(leaves)) {}

  void Add(std::int64_t from, std::int64_t to, std::int64_t share) {
    if (LeafOf(from) != LeafOf(to)) sent_[LeafOf(from)] += share;
  }
  // Of the leaf that sends most.
  std::int64_t most() const { return *std::max_element(sent_.begin(), sent_.end()); }

 private:
  std::size_t LeafOf(std::int64_t node) const {
    return std::min(static_cast<std::size_t>(node / per_leaf_), sent_.size() - 1);
  }

  std::int64_t per_leaf_;
  std::vector<std::int64_t> sent_;  // [leaf]
};

}  // namespace orrery::collectives::nccl

#endif  // ORRERY_SIM_COLLECTIVES_NCCL_NODE_EDGES_H_
