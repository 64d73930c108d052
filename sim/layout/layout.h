// Coordinates (tp, cp, dp, pp) <-> ranks, groups and where their members sit. Pure integers.
//
// rank = tp + TP (cp + CP (dp + DP pp)): tensor-parallel ranks are neighbours (Megatron-LM's order "tp-cp-ep-dp-pp").
// Ranks fill nodes in order: node of a rank = rank / gpus per node.
#ifndef ORRERY_SIM_LAYOUT_LAYOUT_H_
#define ORRERY_SIM_LAYOUT_LAYOUT_H_

#include <compare>
#include <cstdint>
#include <vector>

namespace orrery::layout {

enum class GroupAxis : std::uint8_t { kTp, kDp, kShard, kReplica, kWorld };

struct Coordinates {
  std::int64_t tp = 0;
  std::int64_t cp = 0;
  std::int64_t dp = 0;
  std::int64_t pp = 0;

  friend bool operator==(const Coordinates&, const Coordinates&) = default;
};

// How the members of a group are spread over nodes: all that a price needs.
struct Placement {
  std::int64_t ranks = 1;
  std::int64_t nodes = 1;
  // Members on the fullest and on the emptiest of its nodes.
  std::int64_t max_ranks_per_node = 1;
  std::int64_t min_ranks_per_node = 1;
  // Leaf switches of a rail that its nodes hang on, and the most nodes on one of them; 0: spread evenly.
  std::int64_t leaves = 1;
  std::int64_t max_nodes_per_leaf = 0;

  friend auto operator<=>(const Placement&, const Placement&) = default;
};

class Layout {
 public:
  // `shard_ranks` divides dp: that many neighbours along dp share one copy of what ZeRO shards, all of them by default.
  Layout(std::int64_t tp, std::int64_t cp, std::int64_t dp, std::int64_t pp, std::int64_t gpus_per_node,
         std::int64_t nodes_per_leaf, std::int64_t shard_ranks = 0);

  std::int64_t world() const;
  std::int64_t RankOf(const Coordinates& at) const;
  Coordinates CoordinatesOf(std::int64_t rank) const;
  std::int64_t NodeOf(std::int64_t rank) const { return rank / gpus_per_node_; }

  // The group of `at` along an axis: kTp varies tp; kDp varies dp and cp; kShard those of its `shard_ranks` neighbours
  // along dp; kReplica is whoever has the same place in the other shard groups; kWorld all. Time O(gpus per node) at
  // worst.
  Placement PlacementOf(GroupAxis axis, const Coordinates& at) const;
  // The group of `at` over some pipeline ranks, ascending, at least one.
  Placement PlacementOf(const std::vector<std::int32_t>& pipeline_ranks, const Coordinates& at) const;

  // Whether every group of an axis is placed alike whatever the other coordinates of its kind, so that tp, cp and dp
  // can fold symbolically: each of TP, TP CP, TP CP shard_ranks, TP CP DP divides the node or is a multiple of it, and
  // whole leaves likewise. A node or leaf that holds all ranks treats all alike.
  bool IsRegular() const;

 private:
  std::int64_t tp_, cp_, dp_, pp_, gpus_per_node_, nodes_per_leaf_, shard_ranks_;
};

}  // namespace orrery::layout

#endif  // ORRERY_SIM_LAYOUT_LAYOUT_H_
