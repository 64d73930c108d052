#include "sim/layout/layout.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/check.h"

namespace orrery::layout {
namespace {

// Ranks first, first + stride, ...: every group of every axis is such a progression.
struct Progression {
  std::int64_t first = 0;
  std::int64_t stride = 1;
  std::int64_t count = 1;

  std::int64_t last() const { return first + (count - 1) * stride; }
};

// Blocks [0, width), [width, 2 width), ... that hold a member. Below `width` no block between the ends is skipped; from
// it on, no two members share one.
std::int64_t BlocksOf(const Progression& group, std::int64_t width) {
  if (group.stride >= width) return group.count;
  return group.last() / width - group.first / width + 1;
}

// Members before rank `bound`.
std::int64_t CountBefore(const Progression& group, std::int64_t bound) {
  if (bound <= group.first) return 0;
  return std::min(group.count, (bound - group.first + group.stride - 1) / group.stride);
}

bool Nests(std::int64_t a, std::int64_t b) { return a % b == 0 || b % a == 0; }

}  // namespace

Layout::Layout(std::int64_t tp, std::int64_t cp, std::int64_t dp, std::int64_t pp, std::int64_t gpus_per_node,
               std::int64_t nodes_per_leaf, std::int64_t shard_ranks)
    : tp_(tp),
      cp_(cp),
      dp_(dp),
      pp_(pp),
      gpus_per_node_(gpus_per_node),
      nodes_per_leaf_(nodes_per_leaf),
      shard_ranks_(shard_ranks == 0 ? dp : shard_ranks) {
  ORRERY_CHECK(tp >= 1 && cp >= 1 && dp >= 1 && pp >= 1 && gpus_per_node >= 1 && nodes_per_leaf >= 1);
  ORRERY_CHECK(shard_ranks_ >= 1 && dp % shard_ranks_ == 0);
}

std::int64_t Layout::world() const { return tp_ * cp_ * dp_ * pp_; }

std::int64_t Layout::RankOf(const Coordinates& at) const { return at.tp + tp_ * (at.cp + cp_ * (at.dp + dp_ * at.pp)); }

Coordinates Layout::CoordinatesOf(std::int64_t rank) const {
  return {rank % tp_, rank / tp_ % cp_, rank / (tp_ * cp_) % dp_, rank / (tp_ * cp_ * dp_)};
}

Placement Layout::PlacementOf(GroupAxis axis, const Coordinates& at) const {
  Progression group;
  switch (axis) {
    case GroupAxis::kTp:
      group = {RankOf({0, at.cp, at.dp, at.pp}), 1, tp_};
      break;
    case GroupAxis::kDp:
      group = {RankOf({at.tp, 0, 0, at.pp}), tp_, cp_ * dp_};
      break;
    case GroupAxis::kShard:
      group = {RankOf({at.tp, 0, at.dp - at.dp % shard_ranks_, at.pp}), tp_, cp_ * shard_ranks_};
      break;
    case GroupAxis::kReplica:
      group = {RankOf({at.tp, at.cp, at.dp % shard_ranks_, at.pp}), tp_ * cp_ * shard_ranks_, dp_ / shard_ranks_};
      break;
    case GroupAxis::kWorld:
      group = {0, 1, world()};
      break;
  }

  Placement placement;
  placement.ranks = group.count;
  placement.nodes = BlocksOf(group, gpus_per_node_);
  placement.leaves = BlocksOf(group, gpus_per_node_ * nodes_per_leaf_);
  if (placement.nodes == group.count) return placement;

  // Members by node repeat after lcm(stride, gpus per node) ranks, so that the ends and one period of the nodes between
  // them hold every count there is.
  const std::int64_t first_node = group.first / gpus_per_node_;
  const std::int64_t last_node = first_node + placement.nodes - 1;
  const std::int64_t period = group.stride / std::gcd(group.stride, gpus_per_node_);
  const auto count_on = [&](std::int64_t node) {
    return CountBefore(group, (node + 1) * gpus_per_node_) - CountBefore(group, node * gpus_per_node_);
  };
  placement.max_ranks_per_node = std::max(count_on(first_node), count_on(last_node));
  placement.min_ranks_per_node = std::min(count_on(first_node), count_on(last_node));
  for (std::int64_t node = first_node + 1; node < std::min(last_node, first_node + 1 + period); ++node) {
    placement.max_ranks_per_node = std::max(placement.max_ranks_per_node, count_on(node));
    placement.min_ranks_per_node = std::min(placement.min_ranks_per_node, count_on(node));
  }
  return placement;
}

Placement Layout::PlacementOf(const std::vector<std::int32_t>& pipeline_ranks, const Coordinates& at) const {
  ORRERY_CHECK(!pipeline_ranks.empty());
  std::map<std::int64_t, std::int64_t> members;  // by node
  std::set<std::int64_t> leaves;
  for (const std::int32_t pp : pipeline_ranks) {
    const std::int64_t node = NodeOf(RankOf({at.tp, at.cp, at.dp, pp}));
    ++members[node];
    leaves.insert(node / nodes_per_leaf_);
  }
  Placement placement;
  placement.ranks = static_cast<std::int64_t>(pipeline_ranks.size());
  placement.nodes = static_cast<std::int64_t>(members.size());
  placement.leaves = static_cast<std::int64_t>(leaves.size());
  const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
  placement.max_ranks_per_node = std::max_element(members.begin(), members.end(), fewer)->second;
  placement.min_ranks_per_node = std::min_element(members.begin(), members.end(), fewer)->second;
  return placement;
}

bool Layout::IsRegular() const {
  for (const std::int64_t width : {gpus_per_node_, gpus_per_node_ * nodes_per_leaf_}) {
    if (world() <= width) continue;
    for (const std::int64_t block : {tp_, tp_ * cp_, tp_ * cp_ * shard_ranks_, tp_ * cp_ * dp_}) {
      if (!Nests(block, width)) return false;
    }
  }
  return true;
}

}  // namespace orrery::layout
