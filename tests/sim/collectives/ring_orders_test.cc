// Rings over pairs of NVLinks: counted by hand, and none takes a link of another.
#include "sim/collectives/ring_orders.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/sim/collectives/nccl/fixture.h"

namespace orrery::collectives {
namespace {

using testing::ElementsAre;

topology::Topology Pairs(std::int64_t gpus, std::int64_t nvlinks, const std::vector<std::vector<int>>& pairs) {
  v1::Cluster cluster;
  ORRERY_CHECK(spec::LoadPreset("dgx-a100-hdr", nccl::Shipped(), &cluster).ok());
  cluster.set_nodes(2);
  v1::Node* const node = cluster.mutable_node();
  node->set_gpus(gpus);
  node->set_nvswitches(0);
  node->set_nvlinks(nvlinks);
  node->set_nics(gpus);
  node->set_pcie_switches(gpus);
  for (const std::vector<int>& pair : pairs) {
    v1::NvlinkPair* const added = node->add_nvlink_pair();
    added->set_a(pair[0]);
    added->set_b(pair[1]);
    added->set_links(pair[2]);
  }
  absl::StatusOr<topology::Topology> topology = topology::Topology::Build(cluster);
  ORRERY_CHECK(topology.ok());
  return *std::move(topology);
}

// How many of the orders pass from one GPU to another.
std::map<std::pair<std::int64_t, std::int64_t>, int> Passes(const std::vector<RanksByNode>& orders) {
  std::map<std::pair<std::int64_t, std::int64_t>, int> passes;
  for (const RanksByNode& order : orders) {
    for (const std::vector<std::int64_t>& ranks : order) {
      for (std::size_t i = 0; i < ranks.size(); ++i) ++passes[{ranks[i], ranks[(i + 1) % ranks.size()]}];
    }
  }
  return passes;
}

// As DGX-1: six links of a GPU make three rings, both ways; together they use every link.
TEST(RingOrders, Mesh) {
  const std::vector<std::vector<int>> pairs = {{0, 1, 1}, {0, 2, 1}, {0, 3, 2}, {0, 4, 2}, {1, 2, 2}, {1, 3, 1},
                                               {1, 5, 2}, {2, 3, 1}, {2, 6, 2}, {3, 7, 2}, {4, 5, 1}, {4, 6, 1},
                                               {4, 7, 2}, {5, 6, 2}, {5, 7, 1}, {6, 7, 1}};
  const topology::Topology topology = Pairs(8, 6, pairs);
  const std::vector<RanksByNode> orders = RingOrders(topology, {{0, 1, 2, 3, 4, 5, 6, 7}});
  EXPECT_EQ(orders.size(), 6U);
  const auto passes = Passes(orders);
  for (const std::vector<int>& pair : pairs) {
    EXPECT_EQ(passes.at({pair[0], pair[1]}), pair[2]);
    EXPECT_EQ(passes.at({pair[1], pair[0]}), pair[2]);
  }
  EXPECT_EQ(passes.size(), 2 * pairs.size());
  // GPUs 0 to 3 have four links each among them: two rings, in both nodes alike.
  const std::vector<RanksByNode> halves = RingOrders(topology, {{0, 1, 2, 3}, {8, 9, 10, 11}});
  EXPECT_EQ(halves.size(), 4U);
  for (const RanksByNode& order : halves) {
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(order[0][i] + 8, order[1][i]);
  }
}

// A square has one ring, whatever the numbers of its corners; a star has none.
TEST(RingOrders, OneOrNone) {
  const RanksByNode group = {{0, 1, 2, 3}};
  const topology::Topology square = Pairs(4, 2, {{0, 2, 1}, {1, 2, 1}, {1, 3, 1}, {0, 3, 1}});
  EXPECT_THAT(RingOrders(square, group),
              ElementsAre(ElementsAre(ElementsAre(0, 2, 1, 3)), ElementsAre(ElementsAre(3, 1, 2, 0))));
  const topology::Topology star = Pairs(4, 3, {{0, 1, 1}, {0, 2, 1}, {0, 3, 1}});
  EXPECT_THAT(RingOrders(star, group), ElementsAre(group));
  EXPECT_THAT(RingOrders(square, {{0, 2}}), ElementsAre(RanksByNode{{0, 2}}));
}

// Four GPUs joined by four links each: six rings, and every pair is passed by a third of the twelve orders.
TEST(RingOrders, FlowsAreSpread) {
  const topology::Topology topology = Pairs(4, 12, {{0, 1, 4}, {0, 2, 4}, {0, 3, 4}, {1, 2, 4}, {1, 3, 4}, {2, 3, 4}});
  const RanksByNode group = {{0, 1, 2, 3}};
  EXPECT_EQ(RingOrders(topology, group).size(), 12U);
  std::map<std::pair<std::int64_t, std::int64_t>, double> shares;
  for (const Flow& flow : FlowsOn(topology, {.variant = {v1::RING, v1::SIMPLE}}, group)) {
    shares[{flow.from, flow.to}] += static_cast<double>(flow.numerator) / static_cast<double>(flow.denominator);
  }
  EXPECT_EQ(shares.size(), 12U);
  for (const auto& [pair, share] : shares) EXPECT_NEAR(share, 1.0 / 3, 1e-12);
}

}  // namespace
}  // namespace orrery::collectives
