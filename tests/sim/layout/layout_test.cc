#include "sim/layout/layout.h"

#include <algorithm>
#include <limits>
#include <map>
#include <ostream>
#include <set>
#include <vector>

#include "gtest/gtest.h"

namespace orrery::layout {

void PrintTo(const Placement& p, std::ostream* out) {
  *out << "{ranks " << p.ranks << ", nodes " << p.nodes << ", max " << p.max_ranks_per_node << ", min "
       << p.min_ranks_per_node << ", leaves " << p.leaves << "}";
}

namespace {

struct Degrees {
  std::int64_t tp, cp, dp, pp, gpus_per_node, nodes_per_leaf;
  std::int64_t shard_ranks = 0;

  std::int64_t shard() const { return shard_ranks == 0 ? dp : shard_ranks; }
};

constexpr GroupAxis kAxes[] = {GroupAxis::kTp, GroupAxis::kDp, GroupAxis::kShard, GroupAxis::kReplica,
                               GroupAxis::kWorld};

Layout Make(const Degrees& d) {
  return Layout(d.tp, d.cp, d.dp, d.pp, d.gpus_per_node, d.nodes_per_leaf, d.shard_ranks);
}

// Rank `rank` belongs to the group of `at` if it differs from it in the axis' own coordinates only.
bool InGroup(const Degrees& d, GroupAxis axis, const Coordinates& at, const Coordinates& other) {
  switch (axis) {
    case GroupAxis::kTp:
      return other.cp == at.cp && other.dp == at.dp && other.pp == at.pp;
    case GroupAxis::kDp:
      return other.tp == at.tp && other.pp == at.pp;
    case GroupAxis::kShard:
      return other.tp == at.tp && other.dp / d.shard() == at.dp / d.shard() && other.pp == at.pp;
    case GroupAxis::kReplica:
      return other.tp == at.tp && other.cp == at.cp && other.dp % d.shard() == at.dp % d.shard() && other.pp == at.pp;
    case GroupAxis::kWorld:
      return true;
  }
  return false;
}

Placement Count(const Degrees& d, GroupAxis axis, const Coordinates& at) {
  std::map<std::int64_t, std::int64_t> members;  // by node
  std::set<std::int64_t> leaves;
  std::int64_t rank = 0;
  Placement placement;
  placement.ranks = 0;
  for (std::int64_t pp = 0; pp < d.pp; ++pp) {
    for (std::int64_t dp = 0; dp < d.dp; ++dp) {
      for (std::int64_t cp = 0; cp < d.cp; ++cp) {
        for (std::int64_t tp = 0; tp < d.tp; ++tp, ++rank) {
          if (!InGroup(d, axis, at, {tp, cp, dp, pp})) continue;
          ++placement.ranks;
          ++members[rank / d.gpus_per_node];
          leaves.insert(rank / d.gpus_per_node / d.nodes_per_leaf);
        }
      }
    }
  }
  placement.nodes = static_cast<std::int64_t>(members.size());
  placement.leaves = static_cast<std::int64_t>(leaves.size());
  placement.max_ranks_per_node = 0;
  placement.min_ranks_per_node = std::numeric_limits<std::int64_t>::max();
  for (const auto& [_, count] : members) {
    placement.max_ranks_per_node = std::max(placement.max_ranks_per_node, count);
    placement.min_ranks_per_node = std::min(placement.min_ranks_per_node, count);
  }
  return placement;
}

const std::vector<Degrees>& Cases() {
  static const auto* const cases = new std::vector<Degrees>{
      {8, 1, 4, 2, 8, 2},                                                    // Megatron's usual layout: TP fills a node
      {4, 1, 8, 3, 8, 2},     {2, 2, 4, 2, 8, 1},      {1, 1, 64, 1, 8, 4},  // regular, several TP groups to a node
      {16, 1, 2, 3, 8, 2},    {8, 3, 2, 2, 8, 3},                            // TP over two nodes; CP 3
      {6, 1, 5, 3, 8, 2},                                                    // TP 6 straddles nodes of 8
      {3, 1, 7, 5, 8, 2},     {5, 2, 3, 4, 8, 3},      {12, 1, 3, 2, 8, 2},  // DP strides that straddle
      {7, 3, 5, 2, 4, 1},     {1, 1, 13, 3, 6, 2},     {2, 1, 9, 4, 5, 3},
      {9, 1, 1, 7, 10, 2},    {3, 1, 30, 1, 7, 5},     {1, 1, 32, 1, 8, 2, 8},
      {2, 1, 16, 2, 8, 2, 4}, {1, 1, 64, 1, 8, 4, 16},                           // shards in a node, over two nodes
      {1, 1, 32, 1, 8, 2, 2}, {2, 2, 8, 2, 8, 2, 2},                             // several shard groups to a node
      {1, 1, 18, 2, 8, 2, 6}, {1, 1, 24, 1, 8, 1, 12}, {3, 1, 12, 2, 4, 3, 2}};  // that straddle nodes
  return *cases;
}

TEST(LayoutTest, RanksAndCoordinatesAreInverse) {
  for (const Degrees& d : Cases()) {
    const Layout layout = Make(d);
    EXPECT_EQ(layout.world(), d.tp * d.cp * d.dp * d.pp);
    std::int64_t rank = 0;
    for (std::int64_t pp = 0; pp < d.pp; ++pp) {
      for (std::int64_t dp = 0; dp < d.dp; ++dp) {
        for (std::int64_t cp = 0; cp < d.cp; ++cp) {
          for (std::int64_t tp = 0; tp < d.tp; ++tp, ++rank) {
            const Coordinates at{tp, cp, dp, pp};
            ASSERT_EQ(layout.RankOf(at), rank);
            ASSERT_EQ(layout.CoordinatesOf(rank), at);
          }
        }
      }
    }
  }
}

TEST(LayoutTest, PlacementsAreCounted) {
  for (const Degrees& d : Cases()) {
    const Layout layout = Make(d);
    for (const GroupAxis axis : kAxes) {
      for (std::int64_t rank = 0; rank < layout.world(); ++rank) {
        const Coordinates at = layout.CoordinatesOf(rank);
        ASSERT_EQ(layout.PlacementOf(axis, at), Count(d, axis, at))
            << "tp " << d.tp << " cp " << d.cp << " dp " << d.dp << " pp " << d.pp << " gpus " << d.gpus_per_node
            << " axis " << static_cast<int>(axis) << " rank " << rank;
      }
    }
  }
}

// Regular means that a placement depends on the axis alone (and a layout that is called irregular here has a group that
// is placed unlike its like).
TEST(LayoutTest, RegularLayoutsPlaceAllGroupsOfAnAxisAlike) {
  int regular = 0;
  for (const Degrees& d : Cases()) {
    const Layout layout = Make(d);
    bool alike = true;
    for (const GroupAxis axis : kAxes) {
      for (std::int64_t rank = 0; rank < layout.world(); ++rank) {
        alike = alike && layout.PlacementOf(axis, layout.CoordinatesOf(rank)) == layout.PlacementOf(axis, {});
      }
    }
    if (layout.IsRegular()) {
      ++regular;
      EXPECT_TRUE(alike) << d.tp << " " << d.cp << " " << d.dp << " " << d.pp;
    }
  }
  EXPECT_EQ(regular, 6 + 5);
  EXPECT_FALSE(Layout(6, 1, 5, 3, 8, 2).IsRegular());
  EXPECT_NE(Layout(6, 1, 5, 3, 8, 2).PlacementOf(GroupAxis::kTp, {0, 0, 0, 0}),
            Layout(6, 1, 5, 3, 8, 2).PlacementOf(GroupAxis::kTp, {0, 0, 1, 0}));
}

// Leaves of 5 nodes, which no power of two divides, matter only once there is more than one: TP 2, DP 8 on nodes of 4.
TEST(LayoutTest, OneLeafOrNodeForAllIsRegular) {
  EXPECT_TRUE(Layout(2, 1, 8, 1, 4, 5).IsRegular());
  EXPECT_FALSE(Layout(2, 1, 8, 2, 4, 5).IsRegular());
  EXPECT_TRUE(Layout(2, 1, 8, 2, 4, 1'000'000).IsRegular());
  EXPECT_TRUE(Layout(3, 1, 2, 1, 8, 1).IsRegular());
  EXPECT_EQ(Layout(2, 1, 8, 2, 4, 1'000'000).PlacementOf(GroupAxis::kDp, {}), (Placement{8, 4, 2, 2, 1}));
}

// TP 6 on nodes of 8: ranks 0-5 on node 0; 6-11 with two members on node 0 and four on node 1.
TEST(LayoutTest, StraddlingTensorParallelGroupByHand) {
  const Layout layout(6, 1, 4, 1, 8, 2);
  EXPECT_EQ(layout.PlacementOf(GroupAxis::kTp, {0, 0, 0, 0}), (Placement{6, 1, 6, 6, 1}));
  EXPECT_EQ(layout.PlacementOf(GroupAxis::kTp, {0, 0, 1, 0}), (Placement{6, 2, 4, 2, 1}));
}

// TP 2, DP 2, PP 6 on nodes of 8, 2 nodes to a leaf: pipeline rank r of dp 1 begins at GPU 4 r + 2, so that ranks 0 and
// 1 share node 0, 2 and 3 node 1 of the same leaf, 4 and 5 node 2.
TEST(LayoutTest, GroupsOverPipelineRanks) {
  const Layout layout(2, 1, 2, 6, 8, 2);
  EXPECT_EQ(layout.PlacementOf({3}, {1, 0, 1, 0}), (Placement{1, 1, 1, 1, 1}));
  EXPECT_EQ(layout.PlacementOf({0, 1, 2}, {1, 0, 1, 0}), (Placement{3, 2, 2, 1, 1}));
  EXPECT_EQ(layout.PlacementOf({1, 5}, {1, 0, 1, 4}), (Placement{2, 2, 1, 1, 2}));
}

// MegaScale's layout: TP 8, PP 8, DP 192 on nodes of 8, 64 nodes to a leaf. DP groups have one member on each of 192
// nodes, and 192 nodes in a row hang on three leaves; first and last pipeline rank are 7 x 192 nodes apart.
TEST(LayoutTest, MegaScaleByHand) {
  const Layout layout(8, 1, 192, 8, 8, 64);
  EXPECT_TRUE(layout.IsRegular());
  EXPECT_EQ(layout.PlacementOf(GroupAxis::kTp, {3, 0, 5, 2}), (Placement{8, 1, 8, 8, 1}));
  EXPECT_EQ(layout.PlacementOf(GroupAxis::kDp, {3, 0, 5, 2}), (Placement{192, 192, 1, 1, 3}));
  EXPECT_EQ(layout.PlacementOf({0, 7}, Coordinates{3, 0, 5, 2}), (Placement{2, 2, 1, 1, 2}));
  EXPECT_EQ(layout.PlacementOf(GroupAxis::kWorld, {}), (Placement{12288, 1536, 8, 8, 24}));
}

// Hybrid sharding on 4 nodes of 8, two to a leaf: shards in a node, each with a copy in the same place of every node.
TEST(LayoutTest, HybridShardingByHand) {
  const Layout layout(1, 1, 32, 1, 8, 2, 8);
  EXPECT_TRUE(layout.IsRegular());
  EXPECT_EQ(layout.PlacementOf(GroupAxis::kShard, {0, 0, 13, 0}), (Placement{8, 1, 8, 8, 1}));
  EXPECT_EQ(layout.PlacementOf(GroupAxis::kReplica, {0, 0, 13, 0}), (Placement{4, 4, 1, 1, 2}));
  EXPECT_EQ(layout.PlacementOf(GroupAxis::kDp, {0, 0, 13, 0}), (Placement{32, 4, 8, 8, 2}));
  // Six to a shard group: the first fits a node, the second straddles two.
  const Layout straddling(1, 1, 24, 1, 8, 2, 6);
  EXPECT_FALSE(straddling.IsRegular());
  EXPECT_EQ(straddling.PlacementOf(GroupAxis::kShard, {0, 0, 0, 0}), (Placement{6, 1, 6, 6, 1}));
  EXPECT_EQ(straddling.PlacementOf(GroupAxis::kShard, {0, 0, 6, 0}), (Placement{6, 2, 4, 2, 1}));
}

// A million ranks cost no more than a few: 1,048,576 on nodes of 8, every data-parallel group with two members to a
// node.
TEST(LayoutTest, AMillionRanksAreNotEnumerated) {
  const Layout layout(4, 1, 32768, 8, 8, 64);
  for (std::int64_t i = 0; i < 1'000'000; ++i) {
    ASSERT_EQ(layout.PlacementOf(GroupAxis::kDp, {i % 4, 0, i % 32768, i % 8}).max_ranks_per_node, 2);
  }
  EXPECT_EQ(layout.PlacementOf(GroupAxis::kDp, {}), (Placement{32768, 16384, 2, 2, 256}));
}

}  // namespace
}  // namespace orrery::layout
