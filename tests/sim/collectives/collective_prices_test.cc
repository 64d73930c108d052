#include "sim/collectives/collective_prices.h"

#include <cmath>
#include <string>
#include <vector>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace orrery::collectives {
namespace {

using layout::Placement;

template <typename Message>
Message Parse(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

// 100 nodes of 8 GPUs, 10 nodes to a leaf; NVLink 250 GB/s, 8 NICs of 20 GB/s; a hop costs 1 us.
v1::Cluster TestCluster() {
  return Parse<v1::Cluster>(R"(nodes: 100
      node { gpus: 8 nvlink { bandwidth: 250e9 efficiency: 1 latency: 1e-6 }
             nics: 8 nic { bandwidth: 25e9 efficiency: 0.8 latency: 2e-6 } }
      fabric { nodes_per_leaf: 10 oversubscription: 1 hop_latency: 1e-6 })");
}

// Base 10 us, 2 us per step inside a node, 20 us between nodes; no fill; rings at 0.8 of NVLink (200 GB/s), trees at
// half.
v1::CollectiveProfile TestProfile() {
  return Parse<v1::CollectiveProfile>(R"(
      base_latency { value: 10e-6 } intra_step_latency { value: 2e-6 } inter_step_latency { value: 20e-6 }
      fill_bytes { value: 0 } message_latency { value: 5e-6 }
      ring_efficiency { value: 0.8 } tree_efficiency { value: 0.5 } nvlink_message_efficiency { value: 0.6 })");
}

CollectivePrices Make(const v1::Cluster& cluster, const v1::CollectiveProfile& profile) {
  return CollectivePrices(*topology::ClusterGraph::Build(cluster), profile);
}

const Bytes kGB{1'000'000'000};
const Placement kOneNode{8, 1, 8, 8, 1};

// All-reduce of 1 GB in a node: 10 us + 14 x 2 us + 2 x 7/8 GB / 200 GB/s = 38 us + 8.75 ms. Reduce-scatter and
// all-gather: half the steps and half the bytes, 24 us + 4.375 ms. Broadcast: 7 steps, 1 GB: 24 us + 5 ms.
TEST(CollectivePricesTest, RingInsideANodeByHand) {
  const CollectivePrices prices = Make(TestCluster(), TestProfile());
  EXPECT_DOUBLE_EQ(prices.Seconds(CollectiveType::kAllReduce, kGB, kOneNode), 38e-6 + 8.75e-3);
  EXPECT_DOUBLE_EQ(prices.Seconds(CollectiveType::kReduceScatter, kGB, kOneNode), 24e-6 + 4.375e-3);
  EXPECT_DOUBLE_EQ(prices.Seconds(CollectiveType::kAllGather, kGB, kOneNode), 24e-6 + 4.375e-3);
  EXPECT_DOUBLE_EQ(prices.Seconds(CollectiveType::kBroadcast, kGB, kOneNode), 24e-6 + 5e-3);
}

// Four whole nodes under one leaf: 31 steps of all-gather, 3 of them between nodes: 10 + 28 x 2 + 3 x 20 = 126 us; the
// node's NICs, 160 GB/s, are below NVLink's 200: 31/32 GB / 160 GB/s.
TEST(CollectivePricesTest, RingAcrossNodesIsBoundByTheNodesNics) {
  const CollectivePrices prices = Make(TestCluster(), TestProfile());
  EXPECT_DOUBLE_EQ(prices.Seconds(CollectiveType::kAllGather, kGB, {32, 4, 8, 8, 1}), 126e-6 + 31.0 / 32 / 160);
}

// One member on each of four nodes: a share of one NIC in eight, 20 GB/s, and no step inside a node.
TEST(CollectivePricesTest, OneMemberPerNodeHasItsShareOfTheNics) {
  const CollectivePrices prices = Make(TestCluster(), TestProfile());
  EXPECT_DOUBLE_EQ(prices.Seconds(CollectiveType::kAllGather, kGB, {4, 4, 1, 1, 1}), 70e-6 + 0.75 / 20);
}

// A wire longer than a step of the profile counts instead of it: NICs of 29 us and a hop of 1 us make steps between
// nodes 30 us instead of 20, NVLinks of 3 us make those inside 3 instead of 2: 10 + 28 x 3 + 3 x 30 = 184 us. A message
// starts 5 us and a step.
TEST(CollectivePricesTest, LongWiresCountInsteadOfSteps) {
  v1::Cluster cluster = TestCluster();
  cluster.mutable_node()->mutable_nvlink()->set_latency(3e-6);
  cluster.mutable_node()->mutable_nic()->set_latency(29e-6);
  const CollectivePrices prices = Make(cluster, TestProfile());
  EXPECT_DOUBLE_EQ(prices.Seconds(CollectiveType::kAllGather, kGB, {32, 4, 8, 8, 1}), 184e-6 + 31.0 / 32 / 160);
  EXPECT_DOUBLE_EQ(prices.MessageSeconds(Bytes(0), 0, 8), 35e-6);
  EXPECT_DOUBLE_EQ(prices.MessageSeconds(Bytes(0), 0, 1), 8e-6);
}

// Four NICs for eight GPUs: half a NIC each.
TEST(CollectivePricesTest, FewerNicsThanGpusAreShared) {
  v1::Cluster cluster = TestCluster();
  cluster.mutable_node()->set_nics(4);
  const CollectivePrices prices = Make(cluster, TestProfile());
  EXPECT_DOUBLE_EQ(prices.Seconds(CollectiveType::kAllGather, kGB, {4, 4, 1, 1, 1}), 70e-6 + 0.75 / 10);
}

// Six ranks as 4 + 2: the node with two members has 40 GB/s of NICs. 5 steps, 1 of them between nodes: 10 + 4 x 2 + 20
// = 38 us.
TEST(CollectivePricesTest, UnevenGroupsArePricedByTheirEmptiestNode) {
  const CollectivePrices prices = Make(TestCluster(), TestProfile());
  EXPECT_DOUBLE_EQ(prices.Seconds(CollectiveType::kAllGather, kGB, {6, 2, 4, 2, 1}), 38e-6 + 5.0 / 6 / 40);
  EXPECT_GT(prices.Seconds(CollectiveType::kAllGather, kGB, {6, 2, 4, 2, 1}),
            prices.Seconds(CollectiveType::kAllGather, kGB, {6, 2, 3, 3, 1}));
}

// 8 bytes on 64 nodes of 8, one leaf of 64 nodes: the ring takes 10 + 2 (512 - 64) 2 + 2 x 63 x 20 = 4,322 us; the tree
// 10 + 2 x 7 x 2 + 2 x 6 x 20 = 278 us.
TEST(CollectivePricesTest, TreesWinWhereLatencyCounts) {
  v1::Cluster cluster = TestCluster();
  cluster.mutable_fabric()->set_nodes_per_leaf(64);
  const CollectivePrices prices = Make(cluster, TestProfile());
  EXPECT_NEAR(prices.Seconds(CollectiveType::kAllReduce, Bytes(8), {512, 64, 8, 8, 1}), 278e-6, 1e-9);
  // 60 nodes need as many levels.
  EXPECT_NEAR(prices.Seconds(CollectiveType::kAllReduce, Bytes(8), {480, 60, 8, 8, 1}), 278e-6, 1e-9);
  // No tree for the others: 10 + 448 x 2 + 63 x 20 us.
  EXPECT_NEAR(prices.Seconds(CollectiveType::kAllGather, Bytes(8), {512, 64, 8, 8, 1}), 2166e-6, 1e-9);
}

// Two leaves, two nodes each, one member per node: 3 steps of which 3 x 2/4 = 1.5 cross leaves, through two more
// switches of 1 us.
TEST(CollectivePricesTest, CrossingLeavesAddsTheirSwitches) {
  const CollectivePrices prices = Make(TestCluster(), TestProfile());
  EXPECT_DOUBLE_EQ(prices.Seconds(CollectiveType::kAllGather, kGB, {4, 4, 1, 1, 2}), 73e-6 + 0.75 / 20);
}

// One node to a leaf: no pair of nodes shares one, and every step between nodes goes through two more switches of 1 us:
// 5 + 20 + 2 us for a message, 70 + 3 x 2 us for a ring of four. More nodes to a leaf are never slower, and more than
// there are change nothing; nor do they on one node.
TEST(CollectivePricesTest, OneNodePerLeafCrossesLeavesAtEveryStep) {
  v1::Cluster cluster = TestCluster();
  const auto at = [&](std::int64_t nodes, std::int64_t nodes_per_leaf) {
    cluster.set_nodes(nodes);
    cluster.mutable_fabric()->set_nodes_per_leaf(nodes_per_leaf);
    return Make(cluster, TestProfile());
  };
  EXPECT_DOUBLE_EQ(at(4, 1).MessageSeconds(kGB, 0, 8), 27e-6 + 1.0 / 20);
  EXPECT_DOUBLE_EQ(at(4, 1).Seconds(CollectiveType::kAllGather, kGB, {4, 4, 1, 1, 4}), 76e-6 + 0.75 / 20);
  EXPECT_DOUBLE_EQ(at(4, 2).Seconds(CollectiveType::kAllGather, kGB, {4, 4, 1, 1, 2}), 73e-6 + 0.75 / 20);
  EXPECT_DOUBLE_EQ(at(4, 4).Seconds(CollectiveType::kAllGather, kGB, {4, 4, 1, 1, 1}), 70e-6 + 0.75 / 20);
  EXPECT_DOUBLE_EQ(at(4, 4).MessageSeconds(kGB, 0, 24), 25e-6 + 1.0 / 20);
  EXPECT_EQ(at(4, 1'000'000).MessageSeconds(kGB, 0, 24), at(4, 4).MessageSeconds(kGB, 0, 24));
  for (const std::int64_t nodes_per_leaf : {1, 2, 1'000'000}) {
    EXPECT_DOUBLE_EQ(at(1, nodes_per_leaf).MessageSeconds(kGB, 0, 7), 7e-6 + 1.0 / 150);
    EXPECT_DOUBLE_EQ(at(1, nodes_per_leaf).Seconds(CollectiveType::kAllGather, kGB, kOneNode), 24e-6 + 4.375e-3);
  }
}

// 4 : 1 above the leaves. A ring of 8 nodes on 2 leaves leaves each once for 4 nodes: nothing lost. On 4 leaves half is
// lost, on 8 three quarters.
TEST(CollectivePricesTest, OversubscriptionCountsByNodesPerLeaf) {
  v1::Cluster cluster = TestCluster();
  cluster.mutable_fabric()->set_oversubscription(4);
  cluster.mutable_fabric()->set_hop_latency(0);
  const CollectivePrices prices = Make(cluster, TestProfile());
  const double latency = 10e-6 + 7 * 20e-6;
  EXPECT_DOUBLE_EQ(prices.Seconds(CollectiveType::kAllGather, kGB, {8, 8, 1, 1, 2}), latency + 0.875 / 20);
  EXPECT_DOUBLE_EQ(prices.Seconds(CollectiveType::kAllGather, kGB, {8, 8, 1, 1, 4}), latency + 0.875 / 10);
  EXPECT_DOUBLE_EQ(prices.Seconds(CollectiveType::kAllGather, kGB, {8, 8, 1, 1, 8}), latency + 0.875 / 5);
}

// 16 MB over 8 ranks: chunks of 2 MB, slices of 1 MB, 7 of them: 7 MB more to move. 1 GB: slices at their cap of 4 MB,
// 28 MB more. One member on each of four nodes has 20 GB/s, a tenth of the NVLink ring's 200: 3 slices of 0.4 MB.
TEST(CollectivePricesTest, FillIsASlicePerStep) {
  v1::CollectiveProfile profile = TestProfile();
  profile.mutable_fill_bytes()->set_value(4e6);
  const CollectivePrices prices = Make(TestCluster(), profile);
  EXPECT_DOUBLE_EQ(prices.Seconds(CollectiveType::kAllGather, Bytes(16'000'000), kOneNode),
                   24e-6 + (14e6 + 7e6) / 200e9);
  EXPECT_DOUBLE_EQ(prices.Seconds(CollectiveType::kAllGather, kGB, kOneNode), 24e-6 + (875e6 + 28e6) / 200e9);
  EXPECT_DOUBLE_EQ(prices.Seconds(CollectiveType::kAllGather, kGB, {4, 4, 1, 1, 1}), 70e-6 + (750e6 + 1.2e6) / 20e9);
}

// A protocol of base 1 us, 1 us per step and a tenth of the bandwidth: 8 us + 10 x as long for the bytes. It is taken
// for 16 bytes and not for 1 GB.
TEST(CollectivePricesTest, TakesTheCheapestProtocol) {
  v1::CollectiveProfile profile = TestProfile();
  *profile.add_protocol() = Parse<v1::ProtocolProfile>(R"(
      name: "low" base_latency { value: 1e-6 } intra_step_latency { value: 1e-6 } inter_step_latency { value: 10e-6 }
      intra_efficiency { value: 0.1 } inter_efficiency { value: 0.05 })");
  const CollectivePrices prices = Make(TestCluster(), profile);
  EXPECT_NEAR(prices.Seconds(CollectiveType::kAllGather, Bytes(16), kOneNode), 8e-6 + 14 / 20e9, 1e-15);
  EXPECT_DOUBLE_EQ(prices.Seconds(CollectiveType::kAllGather, kGB, kOneNode), 24e-6 + 4.375e-3);
  // Across nodes its other share: 1 + 3 x 10 us.
  EXPECT_NEAR(prices.Seconds(CollectiveType::kAllGather, Bytes(16), {4, 4, 1, 1, 1}), 31e-6 + 12 / 1e9, 1e-15);
}

TEST(CollectivePricesTest, OneRankOrNoBytesAreFree) {
  const CollectivePrices prices = Make(TestCluster(), TestProfile());
  for (const auto type : {CollectiveType::kAllReduce, CollectiveType::kReduceScatter, CollectiveType::kAllGather,
                          CollectiveType::kBroadcast}) {
    EXPECT_EQ(prices.Seconds(type, kGB, {1, 1, 1, 1, 1}), 0);
    EXPECT_EQ(prices.Seconds(type, Bytes(0), kOneNode), 0);
  }
}

// A single message reaches another share of a link than rings do, which keep theirs: half of a 25 GB/s NIC instead of
// 0.8; half of NVLink's 250 GB/s x the profile's 0.6. Where four NICs serve eight GPUs each has half of one; where they
// serve four GPUs, or sixteen serve eight, one whole NIC.
TEST(CollectivePricesTest, MessagesHaveAnEfficiencyOfTheirOwn) {
  v1::Cluster cluster = TestCluster();
  cluster.mutable_node()->mutable_nic()->set_message_efficiency(0.5);
  cluster.mutable_node()->mutable_nvlink()->set_message_efficiency(0.5);
  const auto message = [&](std::int64_t gpus, std::int64_t nics) {
    cluster.mutable_node()->set_gpus(gpus);
    cluster.mutable_node()->set_nics(nics);
    return Make(cluster, TestProfile()).MessageSeconds(kGB, 0, gpus);
  };
  EXPECT_DOUBLE_EQ(message(8, 8), 25e-6 + 1.0 / 12.5);
  EXPECT_DOUBLE_EQ(message(8, 4), 25e-6 + 1.0 / 6.25);
  EXPECT_DOUBLE_EQ(message(4, 4), 25e-6 + 1.0 / 12.5);
  EXPECT_DOUBLE_EQ(message(8, 16), 25e-6 + 1.0 / 12.5);
  message(8, 8);
  EXPECT_DOUBLE_EQ(Make(cluster, TestProfile()).MessageSeconds(kGB, 0, 1), 7e-6 + 1.0 / 75);
  EXPECT_DOUBLE_EQ(Make(cluster, TestProfile()).Seconds(CollectiveType::kAllGather, kGB, {4, 4, 1, 1, 1}),
                   70e-6 + 0.75 / 20);
}

// Same node: 5 + 2 us + 1 GB / (0.6 x 250 GB/s). Same leaf: 5 + 20 us + 1 GB / 20 GB/s. Other leaf: 2 us of switches
// more.
TEST(CollectivePricesTest, MessagesByHand) {
  v1::Cluster cluster = TestCluster();
  CollectivePrices prices = Make(cluster, TestProfile());
  EXPECT_DOUBLE_EQ(prices.MessageSeconds(kGB, 0, 7), 7e-6 + 1.0 / 150);
  EXPECT_DOUBLE_EQ(prices.MessageSeconds(kGB, 0, 8), 25e-6 + 1.0 / 20);
  EXPECT_DOUBLE_EQ(prices.MessageSeconds(kGB, 79, 80), 27e-6 + 1.0 / 20);  // node 9 to node 10
  EXPECT_EQ(prices.MessageSeconds(kGB, 3, 3), 0);
  // Two GPUs to a NIC: half of it each. Two NICs to a GPU: a pair still uses one.
  cluster.mutable_node()->set_nics(4);
  EXPECT_DOUBLE_EQ(Make(cluster, TestProfile()).MessageSeconds(kGB, 0, 8), 25e-6 + 1.0 / 10);
  cluster.mutable_node()->set_nics(16);
  EXPECT_DOUBLE_EQ(Make(cluster, TestProfile()).MessageSeconds(kGB, 0, 8), 25e-6 + 1.0 / 20);
  // 4 : 1 above the leaves.
  cluster = TestCluster();
  cluster.mutable_fabric()->set_oversubscription(4);
  EXPECT_DOUBLE_EQ(Make(cluster, TestProfile()).MessageSeconds(kGB, 79, 80), 27e-6 + 1.0 / 5);
  EXPECT_DOUBLE_EQ(Make(cluster, TestProfile()).MessageSeconds(kGB, 0, 8), 25e-6 + 1.0 / 20);
}

std::vector<Placement> Placements() {
  std::vector<Placement> placements;
  for (const std::int64_t per_node : {1, 2, 3, 4, 8}) {
    for (const std::int64_t nodes : {1, 2, 3, 7, 10, 20, 57, 100}) {
      placements.push_back({per_node * nodes, nodes, per_node, per_node, (nodes + 9) / 10});
    }
  }
  return placements;
}

v1::CollectiveProfile FullProfile() {
  v1::CollectiveProfile profile = TestProfile();
  profile.mutable_fill_bytes()->set_value(2e6);
  *profile.add_protocol() = Parse<v1::ProtocolProfile>(R"(
      name: "low" base_latency { value: 1e-6 } intra_step_latency { value: 1e-6 } inter_step_latency { value: 10e-6 }
      intra_efficiency { value: 0.3 } inter_efficiency { value: 0.1 })");
  return profile;
}

// No link carries more than its capacity: in an all-reduce every GPU sends 2 (n - 1) / n S at least, and so do all NICs
// of a node that the group owns together, whether ring or tree; half of that in an all-gather.
TEST(CollectivePricesTest, NoLinkExceedsItsCapacity) {
  const CollectivePrices prices = Make(TestCluster(), FullProfile());
  for (const Placement& group : Placements()) {
    for (std::int64_t bytes = 1; bytes <= 100'000'000'000; bytes *= 10) {
      const double share =
          static_cast<double>(bytes) * static_cast<double>(group.ranks - 1) / static_cast<double>(group.ranks);
      for (const auto& [type, sent] :
           {std::pair{CollectiveType::kAllReduce, 2 * share}, std::pair{CollectiveType::kAllGather, share}}) {
        const double seconds = prices.Seconds(type, Bytes(bytes), group);
        EXPECT_TRUE(group.max_ranks_per_node == 1 || seconds * 250e9 >= sent);
        EXPECT_TRUE(group.nodes == 1 || seconds * 20e9 * static_cast<double>(group.max_ranks_per_node) >= sent);
      }
    }
  }
}

TEST(CollectivePricesTest, MoreBytesAreNeverCheaper) {
  const CollectivePrices prices = Make(TestCluster(), FullProfile());
  for (const Placement& group : Placements()) {
    for (const auto type : {CollectiveType::kAllReduce, CollectiveType::kReduceScatter, CollectiveType::kBroadcast}) {
      double last = 0;
      for (std::int64_t bytes = 1; bytes <= 100'000'000'000; bytes = bytes * 3 / 2 + 1) {
        const double seconds = prices.Seconds(type, Bytes(bytes), group);
        EXPECT_GE(seconds, last);
        last = seconds;
      }
    }
  }
}

// Whole nodes, or one member per node, under one leaf: the NICs per node stay the same, and every further node adds
// steps and bytes. (More members per node bring more NICs and may well be cheaper.) Inside a node every further rank
// does.
TEST(CollectivePricesTest, MoreRanksAreNeverCheaper) {
  v1::Cluster cluster = TestCluster();
  cluster.mutable_fabric()->set_nodes_per_leaf(100);
  const CollectivePrices prices = Make(cluster, FullProfile());
  for (const std::int64_t bytes : {8, 100'000, 50'000'000, 2'000'000'000}) {
    double last = 0;
    for (std::int64_t ranks = 1; ranks <= 8; ++ranks) {
      const double seconds = prices.Seconds(CollectiveType::kAllReduce, Bytes(bytes), {ranks, 1, ranks, ranks, 1});
      EXPECT_GE(seconds, last) << ranks << " ranks, " << bytes << " bytes";
      last = seconds;
    }
    for (const std::int64_t per_node : {1, 8}) {
      last = 0;
      for (std::int64_t nodes = 1; nodes <= 100; ++nodes) {
        const double seconds =
            prices.Seconds(CollectiveType::kAllReduce, Bytes(bytes), {per_node * nodes, nodes, per_node, per_node, 1});
        EXPECT_GE(seconds, last) << per_node << " x " << nodes << " ranks, " << bytes << " bytes";
        last = seconds;
      }
    }
  }
}

}  // namespace
}  // namespace orrery::collectives
