#include "topology/topology.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/loader.h"
#include "tests/topology/topology_fixture.h"
#include "topology/named_links.h"
#include "topology/problems.h"
#include "topology/routes.h"
#include "topology/summary.h"

namespace orrery::topology {
namespace {

using ::testing::HasSubstr;

spec::LoadOptions Shipped() { return {.spec_path = {ORRERY_SOURCE_DIR "/specs"}, .overrides = {}}; }

// Two nodes of the fixture by hand: 16 GPUs and NICs; 18 NVLinks of each GPU; a PCIe cable of each GPU, NIC and PCIe
// switch; a cable between sockets in either node; 8 leaves with 32 uplinks to 256 / 64 = 4 spines.
TEST(TopologyTest, TwoNodesByHand) {
  const Topology topology = BuildTopology(HgxCluster(2));
  const Summary summary = Summarise(topology);
  EXPECT_THAT(summary.devices, testing::ElementsAre(16, 8, 16, 4, 16, 8, 4, 0));
  EXPECT_THAT(summary.cables, testing::ElementsAre(288, 48, 2, 16, 256, 0, 0));
  EXPECT_EQ(topology.NameOf(topology.gpu(11)), "node1/gpu3");
  EXPECT_EQ(topology.HostOf(topology.gpu(11)), "node1");
  EXPECT_EQ(topology.GpuNumber(topology.gpu(11)), 11);
  for (const char* name : {"gpu:11", "node1/gpu3"}) EXPECT_EQ(*topology.Find(name), topology.gpu(11)) << name;
  EXPECT_EQ(topology.NameOf(*topology.Find("nic:9")), "node1/nic1");
  EXPECT_EQ(topology.NameOf(*topology.Find("leaf:7")), "leaf7");
  EXPECT_EQ(topology.NameOf(*topology.Find("spine3")), "spine3");
  for (const char* name : {"gpu:16", "node2/gpu0", "gpu:-1", "leaf8", "node1", ""}) {
    EXPECT_FALSE(topology.Find(name).ok()) << name;
  }
  EXPECT_THAT(std::string(topology.Find("gpu:16").status().message()), HasSubstr("gpu:0 to gpu:15"));
}

// Both directions count. A GPU has four NVSwitches and a PCIe switch beside it, a rail one cable in either node.
TEST(TopologyTest, LinksByName) {
  const Topology topology = BuildTopology(HgxCluster(2));
  EXPECT_EQ(LinksNamed(topology, "gpu:11")->size(), 2 * 5);
  EXPECT_EQ(LinksNamed(topology, "rail3")->size(), 2 * 2);
  const std::vector<LinkId> one = *LinksNamed(topology, "node1/nic3", "leaf3");
  ASSERT_EQ(one.size(), 2);
  EXPECT_EQ(one[1], Opposite(one[0]));
  EXPECT_EQ(topology.NameOf(topology.link(one[0]).from) + topology.NameOf(topology.link(one[0]).to), "node1/nic3leaf3");
}

// Achieved capacities are bandwidth x efficiency, parallel cables together.
TEST(TopologyTest, LinksHaveAchievedCapacity) {
  v1::Cluster cluster = HgxCluster(64);
  cluster.mutable_node()->mutable_nvlink()->set_efficiency(0.88);
  cluster.mutable_node()->mutable_nic()->set_efficiency(0.95);
  const Topology topology = BuildTopology(cluster);
  const Link nvlink = topology.link(topology.LinksFrom(topology.gpu(0)).front());
  EXPECT_EQ(topology.NameOf(nvlink.to), "node0/nvswitch0");
  EXPECT_EQ(nvlink.capacity, 110'000'000'000);  // 5 of 18 of 396
  EXPECT_EQ(nvlink.cables, 5);
  const Link uplink = topology.link(topology.LinksFrom(*topology.Find("leaf0")).back());
  EXPECT_EQ(topology.NameOf(uplink.to), "spine7");
  EXPECT_EQ(uplink.cables, 4);
  EXPECT_EQ(uplink.capacity, 190'000'000'000);  // 4 x 47.5
  EXPECT_EQ(topology.link(Opposite(topology.LinksFrom(topology.gpu(0)).front())).to, topology.gpu(0));
}

// Half of 64 nodes sends over 32 x 8 NICs; at 4 : 1 a quarter of that. 3 : 1 leaves 32 / 3 cables: 11 thinner ones.
TEST(TopologyTest, BisectionAndOversubscription) {
  EXPECT_EQ(Summarise(BuildTopology(HgxCluster(64))).bisection, std::int64_t{32} * 8 * 50'000'000'000);
  const Summary thin = Summarise(BuildTopology(HgxCluster(64, "oversubscription: 4")));
  EXPECT_EQ(thin.bisection, std::int64_t{8} * 8 * 50'000'000'000);
  EXPECT_DOUBLE_EQ(thin.bisection_share, 0.25);
  EXPECT_DOUBLE_EQ(thin.levels[0].Oversubscription(), 4);
  EXPECT_DOUBLE_EQ(thin.levels[1].Oversubscription(), 0);
  const Summary odd = Summarise(BuildTopology(HgxCluster(64, "oversubscription: 3")));
  EXPECT_EQ(odd.cables[static_cast<std::size_t>(LinkKind::kLeafSpine)], 16 * 11);
  EXPECT_NEAR(odd.levels[0].Oversubscription(), 3, 1e-9);
  EXPECT_NEAR(odd.bisection_share, 1.0 / 3, 1e-9);
  // Pods of 32 nodes joined at 1 : 7: of the 32 x 8 NICs of the first half a seventh.
  const Summary pods = Summarise(BuildTopology(HgxCluster(64, "nodes_per_pod: 32 pod_oversubscription: 7")));
  EXPECT_NEAR(pods.bisection_share, 1.0 / 7, 1e-9);
  // One leaf has all three nodes: the one of the first half sends what its NICs have.
  EXPECT_EQ(Summarise(BuildTopology(HgxCluster(3, "rail_optimised: false"))).bisection, 8 * 50'000'000'000);
  EXPECT_EQ(Summarise(BuildTopology(HgxCluster(1))).bisection, 0);
}

TEST(TopologyTest, OddShapes) {
  // 4 + 6 GPUs.
  v1::Cluster mixed = HgxCluster(1, "", "gpus: 4 nics: 4 pcie_switches: 0");
  v1::NodeGroup* group = mixed.add_more_nodes();
  group->set_nodes(1);
  *group->mutable_node() = mixed.node();
  group->mutable_node()->set_gpus(6);
  group->mutable_node()->set_nics(6);
  const Topology ten = BuildTopology(mixed);
  EXPECT_EQ(ten.gpus(), 10);
  EXPECT_EQ(ten.Count(DeviceKind::kLeaf), 6);
  EXPECT_EQ(ten.NameOf(ten.gpu(9)), "node1/gpu5");
  const Routes routes = *Routes::Build(ten);
  EXPECT_EQ(routes.Between(1, 4 + 1).network_links, 2);
  EXPECT_EQ(routes.Between(0, 9).network_links, 4);       // no NIC 5 here
  EXPECT_EQ(routes.Between(9, 0).forwarder, ten.gpu(4));  // GPU 0 of node 1 has the NIC of rail 0
  // One GPU; two GPUs on one NIC.
  EXPECT_EQ(BuildTopology(HgxCluster(1, "", "gpus: 1 nics: 1 pcie_switches: 0")).gpus(), 1);
  EXPECT_EQ(BuildTopology(HgxCluster(1, "rail_optimised: false")).Count(DeviceKind::kSpine), 0);
  EXPECT_EQ(BuildTopology(HgxCluster(3, "", "gpus: 2 nics: 1 pcie_switches: 0 nvswitches: 0 nvlinks: 0")).gpus(), 6);
}

TEST(TopologyTest, RefusesByName) {
  EXPECT_THAT(BuildError(HgxCluster(2, "", "nics: 3")), HasSubstr("cluster.node.nics: found 3"));
  EXPECT_THAT(BuildError(HgxCluster(2, "", "nvlinks: 3")), HasSubstr("cluster.node.nvlinks: found 3"));
  EXPECT_THAT(BuildError(HgxCluster(2, "", "hosts: 3")),
              HasSubstr("cluster.node.gpus: found 8; allowed: a multiple of hosts = 3"));
  EXPECT_THAT(BuildError(HgxCluster(2, "", "nic { bandwidth: 0 }")), HasSubstr("cluster.node.nic: a capacity of 0"));
  EXPECT_THAT(BuildError(HgxCluster(2, "nodes_per_pod: 48")), HasSubstr("nodes_per_pod: found 48"));
  EXPECT_THAT(BuildError(HgxCluster(2, "separate_rails: true rail_optimised: false")), HasSubstr("separate_rails"));
  EXPECT_THAT(BuildError(HgxCluster(2000)), HasSubstr("16128 cables need 252 spine switches"));
  EXPECT_THAT(BuildError(HgxCluster(10'000'000, "switch_ports: 100000 nodes_per_leaf: 1000000")),
              HasSubstr("allowed: up to 16777216"));
  v1::Cluster pairs = HgxCluster(1, "", "nvswitches: 0 nvlinks: 2");
  v1::NvlinkPair* pair = pairs.mutable_node()->add_nvlink_pair();
  pair->set_a(3);
  pair->set_b(8);
  pair->set_links(1);
  EXPECT_THAT(BuildError(pairs), HasSubstr("nvlink_pair[0]: found GPUs 3 and 8"));
  pair->set_b(4);
  pair->set_links(3);
  EXPECT_THAT(BuildError(pairs), HasSubstr("GPU 3 gets 3 NVLinks; allowed: up to nvlinks = 2"));
}

// Two GPUs with a CPU and a NIC each, and a switch.
std::string Pair(const std::string& more = "") {
  std::string text = "graph { routing: ADAPTIVE hash_seed: 1 device { id: \"sw\" kind: NETWORK_SWITCH } ";
  for (const char* host : {"a", "b"}) {
    absl::StrAppend(&text, "device { id: \"", host, "gpu\" kind: GPU } device { id: \"", host, "nic\" kind: NIC } ",
                    "cable { a: \"", host, "gpu\" b: \"", host,
                    "nic\" link { bandwidth: 30e9 efficiency: 1 latency: 0 } count: 1 } ");
  }
  return absl::StrCat(text, more, "}");
}

std::string CableText(const std::string& a, const std::string& b, const std::string& count = "1") {
  return absl::StrCat("cable { a: \"", a, "\" b: \"", b,
                      "\" link { bandwidth: 25e9 efficiency: 1 latency: 1e-6 } count: ", count, " } ");
}

TEST(FreeFormTest, IsLikeAGeneratedOne) {
  const Topology topology = BuildTopology(
      ParseCluster(Pair(CableText("anic", "sw", "2") + CableText("sw", "bnic") + CableText("bnic", "sw"))));
  EXPECT_EQ(topology.gpus(), 2);
  EXPECT_EQ(topology.nodes(), 2);
  EXPECT_EQ(topology.Count(DeviceKind::kLeaf), 1);
  EXPECT_EQ(topology.Cables(LinkKind::kNicLeaf), 4);
  EXPECT_EQ(topology.NameOf(topology.gpu(1)), "bgpu");
  EXPECT_EQ(*topology.Find("bgpu"), topology.gpu(1));
  const Routes routes = *Routes::Build(topology);
  const Route route = routes.Between(0, 1);
  EXPECT_EQ(route.links, 4);
  EXPECT_EQ(route.latency, Time(2'000'000));
  EXPECT_EQ(routes.Bottleneck(route), 30'000'000'000);
  EXPECT_EQ(Summarise(topology).bisection, 50'000'000'000);
}

// "agpu" is GPU 0. As "gpu:1" its id goes before the number, which is that of the other GPU.
TEST(FreeFormTest, AnIdGoesBeforeANumber) {
  const auto named = [](const char* a, const char* b) {
    return BuildTopology(ParseCluster(absl::StrCat("graph { device { id: \"", a, "\" kind: GPU } device { id: \"", b,
                                                   "\" kind: GPU } ", CableText(a, b), "}")));
  };
  const Topology numbered = named("x", "y");
  EXPECT_EQ(*numbered.Find("gpu:1"), numbered.gpu(1));
  const Topology topology = named("gpu:1", "y");
  EXPECT_EQ(topology.NameOf(topology.gpu(0)), "gpu:1");
  EXPECT_EQ(*topology.Find("gpu:1"), topology.gpu(0));
  EXPECT_EQ(*topology.Find("gpu:0"), topology.gpu(0));  // no id: the number
  EXPECT_EQ(*topology.Find("y"), topology.gpu(1));
  // As with rails: the one cable of this device.
  EXPECT_EQ(LinksNamed(named("rail3", "y"), "rail3")->size(), 2);
}

// NICs back to back, without a switch.
TEST(FreeFormTest, BackToBack) {
  const Topology topology = BuildTopology(ParseCluster(Pair(CableText("anic", "bnic"))));
  const Routes routes = *Routes::Build(topology);
  EXPECT_EQ(routes.Between(0, 1).network_links, 1);
  EXPECT_EQ(Summarise(topology).bisection, 25'000'000'000);
}

TEST(FreeFormTest, RefusesByName) {
  const auto error = [](const std::string& more) { return BuildError(ParseCluster(Pair(more))); };
  EXPECT_THAT(error(CableText("anic", "sw")),
              HasSubstr("cluster.graph: GPU 0 (agpu) and GPU 1 (bgpu) cannot reach each other"));
  EXPECT_THAT(error("device { id: \"agpu\" kind: NIC } "), HasSubstr("device[5].id: \"agpu\" is the id of device[1]"));
  EXPECT_THAT(error(CableText("anic", "nobody")),
              HasSubstr("cable[2] (\"anic\" - \"nobody\"): there is no device \"nobody\""));
  EXPECT_THAT(error(CableText("sw", "sw")), HasSubstr("joins a device to itself"));
  EXPECT_THAT(error(CableText("agpu", "sw")), HasSubstr("joins GPU and NETWORK_SWITCH"));
  EXPECT_THAT(error("cable { a: \"anic\" b: \"sw\" link { bandwidth: 0 efficiency: 1 } }"),
              HasSubstr("cable[2] (\"anic\" - \"sw\"): a capacity of 0"));
  EXPECT_THAT(BuildError(ParseCluster("graph { device { id: \"x\" kind: NIC } }")), HasSubstr("has no GPU"));
  // Three GPUs in a row: never through the one in the middle.
  EXPECT_THAT(BuildError(ParseCluster(
                  "graph { device { id: \"x\" kind: GPU } device { id: \"y\" kind: GPU } device { id: \"z\" kind: "
                  "GPU } " +
                  CableText("x", "y") + CableText("y", "z") + "}")),
              HasSubstr("GPU 0 (x) and GPU 2 (z) cannot reach each other"));
}

// Every shipped preset is a topology, as it is and with other numbers of nodes.
TEST(ShippedClustersTest, AllBuild) {
  const std::vector<std::string> names = *spec::ListPresets("clusters", Shipped());
  for (const std::string& name : names) {
    const absl::StatusOr<v1::Cluster> cluster = spec::LoadCluster(name, Shipped());
    ASSERT_TRUE(cluster.ok()) << cluster.status();
    for (const std::int64_t nodes : {cluster->nodes(), std::int64_t{1}, std::int64_t{2}, std::int64_t{100}}) {
      v1::Cluster sized = *cluster;
      sized.set_nodes(nodes);
      const absl::StatusOr<Topology> topology = Topology::Build(sized);
      ASSERT_TRUE(topology.ok()) << name << ": " << topology.status();
      const absl::StatusOr<Routes> routes = Routes::Build(*topology);
      EXPECT_GT(routes->Bottleneck(routes->Between(0, topology->gpus() - 1)), 0) << name;
    }
  }
}

// The presets of vendors' fabrics have their numbers of switches: vendor_tables_test.cc has the tables.
TEST(ShippedClustersTest, CountsAreTheVendors) {
  const auto switches = [](const std::string& name, std::int64_t nodes) {
    const spec::LoadOptions options{.spec_path = Shipped().spec_path, .overrides = {absl::StrCat("nodes=", nodes)}};
    const Topology topology = BuildTopology(*spec::LoadCluster(name, options));
    return std::vector<std::int64_t>{topology.Count(DeviceKind::kLeaf), topology.Count(DeviceKind::kSpine),
                                     topology.Count(DeviceKind::kCore)};
  };
  EXPECT_THAT(switches("dgx-h100-ndr", 95), testing::ElementsAre(24, 16, 0));
  EXPECT_THAT(switches("dgx-h100-ndr", 127), testing::ElementsAre(32, 16, 0));
  EXPECT_THAT(switches("dgx-b200-ndr", 512), testing::ElementsAre(128, 128, 64));
  EXPECT_THAT(switches("dgx-b200-ndr", 2048), testing::ElementsAre(512, 512, 256));
  EXPECT_THAT(switches("dgx-b300-xdr", 576), testing::ElementsAre(64, 36, 0));
  EXPECT_THAT(switches("dgx-b300-spectrum-x", 1024), testing::ElementsAre(256, 128, 0));
  EXPECT_THAT(switches("deepseek-h800", 2048), testing::ElementsAre(512, 256, 0));
}

// Of oversubscription 1 to 8 the 12,288 GPUs have a fabric, each of a bisection as small as that.
TEST(ShippedClustersTest, MegaScaleOversubscribed) {
  for (int ratio = 1; ratio <= 8; ++ratio) {
    const spec::LoadOptions options{.spec_path = Shipped().spec_path,
                                    .overrides = {absl::StrCat("fabric.oversubscription=", ratio)}};
    const Topology topology = BuildTopology(*spec::LoadCluster("megascale-clos", options));
    EXPECT_NEAR(Summarise(topology).bisection_share, 1.0 / ratio, 1e-8);
  }
}

TEST(ShippedClustersTest, GoByNaturalNames) {
  EXPECT_EQ(spec::LoadCluster("dgx_h100", Shipped())->name(), "dgx-h100-ndr");
  EXPECT_EQ(spec::LoadCluster("gb200_nvl72", Shipped())->name(), "gb200-nvl72");
  EXPECT_EQ(spec::LoadCluster("dgx_h100_32", Shipped())->nodes(), 32);
  EXPECT_EQ(spec::LoadCluster(ORRERY_SOURCE_DIR "/specs/clusters/dgx_h100_32.txtpb", Shipped())->nodes(), 32);
  EXPECT_THAT(std::string(spec::LoadCluster("dgx_b300", Shipped()).status().message()),
              HasSubstr("dgx-b300-spectrum-x"));
}

// What a topology refuses is said where it was written.
TEST(ShippedClustersTest, ProblemsHavePlaces) {
  const auto check = [](const v1::Cluster& cluster) { return ProblemsOf(Topology::Build(cluster).status()); };
  std::vector<spec::SpecError> errors;
  const spec::LoadOptions options{.spec_path = Shipped().spec_path, .overrides = {"node.nics=3"}};
  EXPECT_FALSE(spec::LoadCluster("dgx_h100", options, check, &errors).ok());
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].file, "--set node.nics=3");
  EXPECT_EQ(errors[0].field, "node.nics");
  EXPECT_THAT(errors[0].message, HasSubstr("found 3; allowed: a divisor or a multiple"));
}

}  // namespace
}  // namespace orrery::topology
