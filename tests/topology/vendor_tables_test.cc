// Switches and cables of generated fabrics against what vendors print for theirs.
#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/topology/topology_fixture.h"

namespace orrery::topology {
namespace {

struct Row {
  std::int64_t nodes;
  std::int64_t leaves;
  std::int64_t spines;
  std::int64_t cores;
  std::int64_t cables;  // between leaves and spines, and between spines and cores where there are any
};

void ExpectRow(const v1::Cluster& cluster, const Row& row, std::int64_t cables_each = 1) {
  const Topology topology = BuildTopology(cluster);
  SCOPED_TRACE(row.nodes);
  EXPECT_EQ(topology.Count(DeviceKind::kGpu), row.nodes * 8);
  EXPECT_EQ(topology.Count(DeviceKind::kLeaf), row.leaves);
  EXPECT_EQ(topology.Count(DeviceKind::kSpine), row.spines);
  EXPECT_EQ(topology.Count(DeviceKind::kCore), row.cores);
  EXPECT_EQ(topology.Cables(LinkKind::kLeafSpine), row.cables * cables_each);
  EXPECT_EQ(topology.Cables(LinkKind::kSpineCore), row.cores > 0 ? row.cables * cables_each : 0);
}

// DGX SuperPOD reference architecture, DGX H100: scalable units of 32 nodes, eight leaves each; one node per SuperPOD
// gives place to UFM, whose four cables the table counts with those of the nodes.
TEST(VendorTablesTest, DgxH100SuperPod) {
  const std::vector<Row> rows = {{31, 8, 4, 0, 256}, {63, 16, 8, 0, 512}, {95, 24, 16, 0, 768}, {127, 32, 16, 0, 1024}};
  const std::vector<std::int64_t> compute_and_ufm = {252, 508, 764, 1020};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ExpectRow(HgxCluster(rows[i].nodes), rows[i]);
    EXPECT_EQ(BuildTopology(HgxCluster(rows[i].nodes)).Cables(LinkKind::kNicLeaf) + 4, compute_and_ufm[i]);
  }
}

// The same of DGX B200: two tiers to 8 units, then three. Pods of two units are one way to cable the printed counts.
TEST(VendorTablesTest, DgxB200SuperPod) {
  for (const Row& row : std::vector<Row>{{64, 16, 8, 0, 512}, {128, 32, 16, 0, 1024}, {256, 64, 32, 0, 2048}}) {
    ExpectRow(HgxCluster(row.nodes), row);
  }
  for (const Row& row :
       std::vector<Row>{{512, 128, 128, 64, 4096}, {1024, 256, 256, 128, 8192}, {2048, 512, 512, 256, 16384}}) {
    const v1::Cluster cluster = HgxCluster(row.nodes, "nodes_per_pod: 64");
    ExpectRow(cluster, row);
    EXPECT_EQ(BuildTopology(cluster).Cables(LinkKind::kNicLeaf), row.cables);
  }
}

// DGX B300 on Spectrum-X: units of 64 nodes, two planes of 400 Gb/s per GPU. Switches have 64 ports of 800 Gb/s, cabled
// as 128 of 400; the table counts cables of 800.
TEST(VendorTablesTest, DgxB300SpectrumX) {
  const std::string fabric = "nodes_per_leaf: 64 planes: 2 uplink_bandwidth: 50e9 switch_ports: 128";
  for (const Row& row : std::vector<Row>{{64, 16, 8, 0, 512},
                                         {128, 32, 16, 0, 1024},
                                         {256, 64, 32, 0, 2048},
                                         {512, 128, 64, 0, 4096},
                                         {1024, 256, 128, 0, 8192}}) {
    const v1::Cluster cluster = HgxCluster(row.nodes, fabric, "nic { bandwidth: 100e9 }");
    ExpectRow(cluster, row, /*cables_each=*/2);
    EXPECT_EQ(BuildTopology(cluster).Cables(LinkKind::kNicLeaf), 2 * row.cables);
  }
}

// DGX B300 on XDR InfiniBand: units of 72 nodes, switches with 144 ports. (For 18 units the table prints 9,216 GPUs
// beside 10,368 cables; 1,296 nodes have 10,368.)
TEST(VendorTablesTest, DgxB300Xdr) {
  for (const Row& row : std::vector<Row>{{72, 8, 4, 0, 576},
                                         {144, 16, 8, 0, 1152},
                                         {288, 32, 18, 0, 2304},
                                         {576, 64, 36, 0, 4608},
                                         {1296, 144, 72, 0, 10368}}) {
    const v1::Cluster cluster = HgxCluster(row.nodes, "nodes_per_leaf: 72 uplink_bandwidth: 100e9 switch_ports: 144",
                                           "nic { bandwidth: 100e9 }");
    ExpectRow(cluster, row);
    EXPECT_EQ(BuildTopology(cluster).Cables(LinkKind::kNicLeaf), row.cables);
  }
}

// MegaScale (NSDI 2024, section 3.6): 64 servers on eight top-of-rack switches, whose 400G ports go down as two of
// 200G, 32 up and 32 (64) down; three levels, 1:1. A pod of 32 + 32 switches has 256 servers; 1,536 servers are six
// pods. In the third level spine i of six pods has 6 x 32 = 192 cables: three switches of 64 ports would carry them,
// four divide its 32 uplinks.
TEST(VendorTablesTest, MegaScale) {
  const v1::Cluster cluster = HgxCluster(1536, "nodes_per_leaf: 64 nodes_per_pod: 256", "nic { bandwidth: 25e9 }");
  ExpectRow(cluster, {1536, 192, 192, 128, 6144});
  EXPECT_EQ(BuildTopology(cluster).Cables(LinkKind::kNicLeaf), 12288);
}

// DeepSeek's multi-plane fat tree (arXiv 2505.09343): 16,384 endpoints on eight planes of two layers, 768 switches of
// 64 ports; one such plane is the two-layer fat tree of 2,048 endpoints and 96 switches.
TEST(VendorTablesTest, DeepSeekMultiPlane) {
  const v1::Cluster cluster = HgxCluster(2048, "separate_rails: true");
  ExpectRow(cluster, {2048, 512, 256, 0, 16384});
  EXPECT_EQ((512 + 256) / 8, 96);
}

// The three-layer fat tree of the same table: 65,536 endpoints, 5,120 switches. 64 pods of 32 leaves and 32 spines,
// 1,024 cores.
TEST(VendorTablesTest, ThreeLayerFatTree) {
  ExpectRow(HgxCluster(8192, "nodes_per_pod: 128"), {8192, 2048, 2048, 1024, 65536});
}

// Meta's pods of 3,072 GPUs, non-blocking inside, 1:7 between pods (Llama 3, arXiv 2407.21783, section 3.3.1); 2
// servers to a rack switch, here plain: 16 ports down, 16 up. A pod's 192 rack switches have 3,072 uplinks; spines of
// 256 ports keep 224 for them: 13.7, so 16. Each has 3,072 / 16 = 192 cables down and 192 / 7 = 27.4 up, so 28.
TEST(VendorTablesTest, PodsOversubscribedSevenfold) {
  const Topology topology = BuildTopology(HgxCluster(
      3072, "nodes_per_leaf: 2 rail_optimised: false nodes_per_pod: 384 pod_oversubscription: 7 switch_ports: 256"));
  EXPECT_EQ(topology.Count(DeviceKind::kLeaf), 8 * 192);
  EXPECT_EQ(topology.Count(DeviceKind::kSpine), 8 * 16);
  EXPECT_EQ(topology.Cables(LinkKind::kLeafSpine), 24576);
  EXPECT_EQ(topology.Cables(LinkKind::kSpineCore), 8 * 16 * 28);
}

}  // namespace
}  // namespace orrery::topology
