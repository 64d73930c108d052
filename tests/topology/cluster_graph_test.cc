#include "topology/cluster_graph.h"

#include <string>

#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace orrery::topology {
namespace {

using ::testing::HasSubstr;

v1::Cluster Parse(const std::string& text) {
  v1::Cluster cluster;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &cluster));
  return cluster;
}

// 560 nodes of 8 GPUs with 8 HDR NICs, 20 nodes to a leaf.
v1::Cluster Selene() {
  return Parse(R"(nodes: 560
                  node { gpus: 8 nvlink { bandwidth: 300e9 efficiency: 0.9 latency: 0.6e-6 }
                         nics: 8 nic { bandwidth: 25e9 efficiency: 0.96 latency: 1.5e-6 } }
                  fabric { nodes_per_leaf: 20 oversubscription: 1 hop_latency: 0.45e-6 })");
}

// 1,536 nodes of 8 GPUs with 8 x 200G, 64 nodes to a set of top-of-rack switches.
v1::Cluster MegaScale() {
  return Parse(R"(nodes: 1536
                  node { gpus: 8 nvlink { bandwidth: 300e9 efficiency: 0.9 latency: 0.6e-6 }
                         nics: 8 nic { bandwidth: 25e9 efficiency: 0.94 latency: 2e-6 } }
                  fabric { nodes_per_leaf: 64 oversubscription: 1 hop_latency: 1e-6 })");
}

ClusterGraph Build(const v1::Cluster& cluster) {
  auto graph = ClusterGraph::Build(cluster);
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

void ExpectPath(const Path& path, double bandwidth, double latency, int hops) {
  EXPECT_DOUBLE_EQ(path.bandwidth.count(), bandwidth);
  EXPECT_DOUBLE_EQ(path.latency_seconds, latency);
  EXPECT_EQ(path.hops, hops);
}

// 560 nodes: 4,480 GPUs and NICs; 28 leaves on each of 8 rails.
TEST(ClusterGraphTest, SeleneIsCounted) {
  const ClusterGraph graph = Build(Selene());
  EXPECT_EQ(graph.gpus(), 4480);
  EXPECT_EQ(graph.Count(DeviceKind::kGpu), 4480);
  EXPECT_EQ(graph.Count(DeviceKind::kNvSwitch), 560);
  EXPECT_EQ(graph.Count(DeviceKind::kNic), 4480);
  EXPECT_EQ(graph.Count(DeviceKind::kLeaf), 28 * 8);
  EXPECT_EQ(graph.Count(DeviceKind::kSpine), 8);
  EXPECT_EQ(graph.gpus_per_node(), 8);
  EXPECT_EQ(graph.nics_per_node(), 8);
  EXPECT_EQ(graph.nodes_per_leaf(), 20);
}

// Same node: GPU - NVSwitch - GPU, 0.9 x 300 GB/s, 0.6 us. Same leaf: GPU - NIC - leaf - NIC - GPU, 0.96 x 25 GB/s, 1.5
// + 0.45 us. Other leaf: two links and two more switches, 1.5 + 3 x 0.45 us.
TEST(ClusterGraphTest, SelenePathsByHand) {
  const ClusterGraph graph = Build(Selene());
  ExpectPath(graph.Between(Distance::kSameNode), 270e9, 0.6e-6, 2);
  ExpectPath(graph.Between(Distance::kSameLeaf), 24e9, 1.95e-6, 4);
  ExpectPath(graph.Between(Distance::kOtherLeaf), 24e9, 2.85e-6, 6);
  EXPECT_DOUBLE_EQ(graph.NvlinkBandwidth().count(), 270e9);
  EXPECT_DOUBLE_EQ(graph.NicBandwidth().count(), 24e9);
  EXPECT_DOUBLE_EQ(graph.NodeNetworkBandwidth().count(), 192e9);
}

TEST(ClusterGraphTest, MegaScaleByHand) {
  const ClusterGraph graph = Build(MegaScale());
  EXPECT_EQ(graph.Count(DeviceKind::kGpu), 12288);
  EXPECT_EQ(graph.Count(DeviceKind::kLeaf), 24 * 8);
  ExpectPath(graph.Between(Distance::kSameNode), 270e9, 0.6e-6, 2);
  ExpectPath(graph.Between(Distance::kSameLeaf), 23.5e9, 3e-6, 4);
  ExpectPath(graph.Between(Distance::kOtherLeaf), 23.5e9, 5e-6, 6);
}

// 4 : 1: an uplink has a quarter of a NIC's capacity; under one leaf nothing changes.
TEST(ClusterGraphTest, OversubscriptionThinsTheUplinksOnly) {
  v1::Cluster cluster = Selene();
  cluster.mutable_fabric()->set_oversubscription(4);
  const ClusterGraph graph = Build(cluster);
  ExpectPath(graph.Between(Distance::kSameLeaf), 24e9, 1.95e-6, 4);
  ExpectPath(graph.Between(Distance::kOtherLeaf), 6e9, 2.85e-6, 6);
}

TEST(ClusterGraphTest, FewAndManyNicsPerGpu) {
  v1::Cluster cluster = Selene();
  cluster.mutable_node()->set_nics(4);
  EXPECT_DOUBLE_EQ(Build(cluster).NodeNetworkBandwidth().count(), 96e9);
  EXPECT_EQ(Build(cluster).Count(DeviceKind::kNic), 2240);
  ExpectPath(Build(cluster).Between(Distance::kSameLeaf), 24e9, 1.95e-6, 4);
  cluster.mutable_node()->set_nics(16);
  EXPECT_DOUBLE_EQ(Build(cluster).NodeNetworkBandwidth().count(), 384e9);
  ExpectPath(Build(cluster).Between(Distance::kOtherLeaf), 24e9, 2.85e-6, 6);
  cluster.mutable_node()->set_nics(3);
  EXPECT_THAT(std::string(ClusterGraph::Build(cluster).status().message()),
              HasSubstr("cluster.node.nics: found 3; allowed: a divisor or a multiple of node.gpus = 8"));
}

// A distance that no two GPUs of the cluster have costs what it would cost, and counts nothing.
TEST(ClusterGraphTest, PathsDoNotDependOnWhoTakesThem) {
  const auto expect_selene = [](const ClusterGraph& graph) {
    ExpectPath(graph.Between(Distance::kSameNode), 270e9, 0.6e-6, 2);
    ExpectPath(graph.Between(Distance::kSameLeaf), 24e9, 1.95e-6, 4);
    ExpectPath(graph.Between(Distance::kOtherLeaf), 24e9, 2.85e-6, 6);
  };
  v1::Cluster cluster = Selene();
  cluster.set_nodes(20);  // one leaf per rail: no spine
  expect_selene(Build(cluster));
  EXPECT_EQ(Build(cluster).Count(DeviceKind::kSpine), 0);
  EXPECT_EQ(Build(cluster).Count(DeviceKind::kLeaf), 8);
  cluster.set_nodes(1);
  cluster.mutable_node()->set_gpus(1);
  expect_selene(Build(cluster));
  EXPECT_EQ(Build(cluster).Count(DeviceKind::kGpu), 1);
  EXPECT_EQ(Build(cluster).Count(DeviceKind::kNvSwitch), 1);
  EXPECT_EQ(Build(cluster).Count(DeviceKind::kNic), 8);
  cluster.set_nodes(40);
  cluster.mutable_fabric()->set_nodes_per_leaf(1);  // no two nodes under one leaf
  expect_selene(Build(cluster));
  EXPECT_EQ(Build(cluster).Count(DeviceKind::kGpu), 40);
  EXPECT_EQ(Build(cluster).Count(DeviceKind::kLeaf), 40 * 8);
  EXPECT_EQ(Build(cluster).Count(DeviceKind::kSpine), 8);
}

// A last leaf with fewer nodes is still a leaf: 41 nodes on leaves of 20 are three per rail.
TEST(ClusterGraphTest, CountsAPartlyFilledLeaf) {
  v1::Cluster cluster = Selene();
  cluster.set_nodes(41);
  const ClusterGraph graph = Build(cluster);
  EXPECT_EQ(graph.Count(DeviceKind::kLeaf), 3 * 8);
  EXPECT_EQ(graph.Count(DeviceKind::kGpu), 41 * 8);
}

// With free network latency the way over NIC and leaf would be shorter; traffic inside a node stays on NVLink all the
// same.
TEST(ClusterGraphTest, TrafficStaysInsideTheNode) {
  v1::Cluster cluster = Selene();
  cluster.mutable_node()->mutable_nic()->set_latency(0);
  cluster.mutable_fabric()->set_hop_latency(0);
  ExpectPath(Build(cluster).Between(Distance::kSameNode), 270e9, 0.6e-6, 2);
  ExpectPath(Build(cluster).Between(Distance::kOtherLeaf), 24e9, 0, 6);
}

}  // namespace
}  // namespace orrery::topology
