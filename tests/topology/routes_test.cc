#include "topology/routes.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/topology/topology_fixture.h"

namespace orrery::topology {
namespace {

// The first GPU of the last of 64 nodes.
constexpr std::int64_t kLast = 504;

Routes BuildRoutes(const Topology& topology, const RouteOptions& options = {}) {
  absl::StatusOr<Routes> routes = Routes::Build(topology, options);
  EXPECT_TRUE(routes.ok()) << routes.status();
  return *std::move(routes);
}

// "node0/gpu0 > node0/nvswitch0 5/18" for each link.
std::vector<std::string> Text(const Topology& topology, const Route& route) {
  std::vector<std::string> text;
  for (const LinkShare& share : route.shares) {
    const Link link = topology.link(share.link);
    text.push_back(topology.NameOf(link.from) + " > " + topology.NameOf(link.to) + " " + std::to_string(share.weight) +
                   "/" + std::to_string(route.denominator));
  }
  return text;
}

// Inside a node of 18 NVLinks over four NVSwitches, 5, 5, 4 and 4: the bytes divide like the cables, so that a pair has
// all of the GPU's 450 GB/s; 0.3 us to the switch and 0.3 us on.
TEST(RoutesTest, NvlinkSpreadsLikeItsCables) {
  const Topology topology = BuildTopology(HgxCluster(1));
  const Routes routes = BuildRoutes(topology);
  const Route route = routes.Between(1, 6);
  EXPECT_THAT(Text(topology, route),
              testing::ElementsAre("node0/gpu1 > node0/nvswitch0 5/18", "node0/gpu1 > node0/nvswitch1 5/18",
                                   "node0/gpu1 > node0/nvswitch2 4/18", "node0/gpu1 > node0/nvswitch3 4/18",
                                   "node0/nvswitch0 > node0/gpu6 5/18", "node0/nvswitch1 > node0/gpu6 5/18",
                                   "node0/nvswitch2 > node0/gpu6 4/18", "node0/nvswitch3 > node0/gpu6 4/18"));
  EXPECT_EQ(route.latency, Time(600'000));
  EXPECT_EQ(route.links, 2);
  EXPECT_EQ(route.network_links, 0);
  EXPECT_EQ(routes.Bottleneck(route), 450'000'000'000);
  EXPECT_EQ(routes.Ways(1, 6), 1);
  EXPECT_TRUE(routes.Between(3, 3).shares.empty());
}

// One rail, one leaf: GPU - PCIe switch - NIC - leaf - NIC - PCIe switch - GPU; half of the NIC's 1.5 us and of the
// hop's 0.5 us on either side of the leaf.
TEST(RoutesTest, OneRailUnderOneLeaf) {
  const Topology topology = BuildTopology(HgxCluster(2));
  const Routes routes = BuildRoutes(topology);
  const Route route = routes.Between(3, 8 + 3);
  EXPECT_THAT(
      Text(topology, route),
      testing::ElementsAre("node0/gpu3 > node0/pcie3 1/1", "node0/pcie3 > node0/nic3 1/1", "node0/nic3 > leaf3 1/1",
                           "leaf3 > node1/nic3 1/1", "node1/nic3 > node1/pcie3 1/1", "node1/pcie3 > node1/gpu3 1/1"));
  EXPECT_EQ(route.latency, Time(2'000'000));
  EXPECT_EQ(route.network_links, 2);
  EXPECT_EQ(routes.Bottleneck(route), 50'000'000'000);
}

// Another rail: PXN crosses NVLink to GPU 5 first; without it the transfer takes its own NIC and a spine.
TEST(RoutesTest, PxnForwardsToTheRail) {
  const Topology topology = BuildTopology(HgxCluster(2));
  const Routes with = BuildRoutes(topology);
  const Route forwarded = with.Between(3, 8 + 5);
  EXPECT_EQ(forwarded.forwarder, topology.gpu(5));
  EXPECT_EQ(topology.NameOf(forwarded.from_nic), "node0/nic5");
  EXPECT_EQ(forwarded.network_links, 2);
  EXPECT_EQ(forwarded.latency, Time(600'000 + 2'000'000));
  // A leaf has 32 uplinks; 16 leaves of 2 groups would have 8 spines, 8 leaves of one group 4: 256 / 64.
  const Routes without = BuildRoutes(topology, {.pxn = false});
  const Route direct = without.Between(3, 8 + 5);
  EXPECT_EQ(direct.forwarder, kNoDevice);
  EXPECT_EQ(topology.NameOf(direct.from_nic), "node0/nic3");
  EXPECT_EQ(direct.network_links, 4);
  EXPECT_EQ(direct.latency, Time(3'000'000));  // two more switches
  EXPECT_EQ(without.Ways(3, 8 + 5), 4);
  EXPECT_EQ(without.Bottleneck(direct), 50'000'000'000);
}

// Across leaves one rail still needs no forwarder, and another one takes it: as many links, and the rail at the far
// end.
TEST(RoutesTest, AcrossLeaves) {
  const Topology topology = BuildTopology(HgxCluster(64));
  const Routes routes = BuildRoutes(topology);
  const Route same = routes.Between(0, kLast);
  EXPECT_EQ(same.forwarder, kNoDevice);
  EXPECT_EQ(same.network_links, 4);
  EXPECT_EQ(routes.Ways(0, kLast), 8);  // 512 uplinks / 64 ports
  EXPECT_EQ(same.denominator, 8);
  const Route other = routes.Between(0, kLast + 7);
  EXPECT_EQ(topology.NameOf(other.forwarder), "node0/gpu7");
  EXPECT_EQ(other.network_links, 4);
}

// Two GPUs and two NICs on a PCIe switch (DGX A100): each GPU has one of the NICs that are as near to both. NICs that
// serve two GPUs each, and two NICs for each GPU, by flow.
TEST(RoutesTest, NicsAreDealtToTheNearestGpus) {
  const auto nics = [](const Routes& routes, std::int64_t gpu) {
    std::vector<std::string> names;
    for (const DeviceId nic : routes.NicsOf(gpu)) names.push_back(routes.topology().NameOf(nic));
    return names;
  };
  const Topology a100 = BuildTopology(HgxCluster(1, "", "pcie_switches: 4"));
  const Routes paired = BuildRoutes(a100);
  EXPECT_THAT(nics(paired, 4), testing::ElementsAre("node0/nic4"));
  EXPECT_THAT(nics(paired, 5), testing::ElementsAre("node0/nic5"));
  const Topology half = BuildTopology(HgxCluster(2, "", "nics: 4"));
  const Routes shared = BuildRoutes(half);
  EXPECT_THAT(nics(shared, 4), testing::ElementsAre("node0/nic2"));
  EXPECT_THAT(nics(shared, 5), testing::ElementsAre("node0/nic2"));
  EXPECT_EQ(shared.Between(0, 8 + 1).network_links, 2);
  const Topology twice = BuildTopology(HgxCluster(2, "", "nics: 16"));
  const Routes several = BuildRoutes(twice);
  EXPECT_THAT(nics(several, 1), testing::ElementsAre("node0/nic2", "node0/nic3"));
  EXPECT_EQ(twice.NameOf(several.Between(1, 8 + 1, 0).from_nic), "node0/nic2");
  EXPECT_EQ(twice.NameOf(several.Between(1, 8 + 1, 1).from_nic), "node0/nic3");
  EXPECT_EQ(twice.NameOf(several.Between(1, 8 + 1, 1).to_nic), "node1/nic3");
}

// Separate rails have no way from one to another but over NVLink; without it (and without PXN) over PCIe and sockets to
// the NIC.
TEST(RoutesTest, SeparateRailsChangeInsideANode) {
  const Topology topology = BuildTopology(HgxCluster(64, "separate_rails: true"));
  const Route route = BuildRoutes(topology).Between(0, kLast + 7);
  EXPECT_EQ(topology.NameOf(route.forwarder), "node0/gpu7");
  const Route plain = BuildRoutes(topology, {.pxn = false}).Between(0, kLast + 7);
  EXPECT_EQ(plain.forwarder, kNoDevice);
  EXPECT_EQ(topology.device(plain.from_nic).index, topology.device(plain.to_nic).index);
}

// A NIC of two ports on two planes: half of the bytes on each, and all of the NIC's capacity.
TEST(RoutesTest, PlanesShareANic) {
  const Topology topology = BuildTopology(HgxCluster(64, "planes: 2 uplink_bandwidth: 25e9"));
  const Routes routes = BuildRoutes(topology);
  const Route route = routes.Between(0, kLast);
  EXPECT_EQ(routes.Bottleneck(route), 50'000'000'000);
  EXPECT_EQ(routes.Ways(0, kLast), 2 * 8);
  EXPECT_EQ(topology.Count(DeviceKind::kLeaf), 2 * 16);
  EXPECT_EQ(topology.NameOf(topology.link(route.shares[2].link).to), "leaf0");
  EXPECT_EQ(route.shares[2].weight * 2, route.denominator);
}

// DGX-1's mesh of six links per GPU: neighbours have one or two NVLinks; others go over PCIe and never through a third
// GPU.
TEST(RoutesTest, MeshWithoutSwitch) {
  v1::Cluster cluster = HgxCluster(2, "", "nics: 4 pcie_switches: 4");
  *cluster.mutable_node() = ParseCluster(R"(node {
    gpus: 8 nvlink { bandwidth: 150e9 efficiency: 1 latency: 0.6e-6 } nvswitches: 0 nvlinks: 6
    nics: 4 nic { bandwidth: 12.5e9 efficiency: 1 latency: 1.5e-6 }
    pcie { bandwidth: 16e9 efficiency: 1 latency: 0 } pcie_switches: 4 cpus: 2
    cpu_link { bandwidth: 20e9 efficiency: 1 latency: 0 } hosts: 1
    nvlink_pair { a: 0 b: 1 links: 1 } nvlink_pair { a: 0 b: 2 links: 1 } nvlink_pair { a: 0 b: 3 links: 2 }
    nvlink_pair { a: 0 b: 4 links: 2 } nvlink_pair { a: 1 b: 2 links: 2 } nvlink_pair { a: 1 b: 3 links: 1 }
    nvlink_pair { a: 1 b: 5 links: 2 } nvlink_pair { a: 2 b: 3 links: 1 } nvlink_pair { a: 2 b: 6 links: 2 }
    nvlink_pair { a: 3 b: 7 links: 2 } nvlink_pair { a: 4 b: 5 links: 1 } nvlink_pair { a: 4 b: 6 links: 1 }
    nvlink_pair { a: 4 b: 7 links: 2 } nvlink_pair { a: 5 b: 6 links: 2 } nvlink_pair { a: 5 b: 7 links: 1 }
    nvlink_pair { a: 6 b: 7 links: 1 } })")
                                .node();
  const Topology topology = BuildTopology(cluster);
  EXPECT_EQ(topology.Cables(LinkKind::kNvlink), 2 * 24);
  const Routes routes = BuildRoutes(topology);
  EXPECT_EQ(routes.Bottleneck(routes.Between(0, 1)), 25'000'000'000);
  EXPECT_EQ(routes.Bottleneck(routes.Between(0, 3)), 50'000'000'000);
  const Route apart = routes.Between(0, 7);
  EXPECT_THAT(Text(topology, apart),
              testing::ElementsAre("node0/gpu0 > node0/pcie0 1/1", "node0/pcie0 > node0/cpu0 1/1",
                                   "node0/cpu0 > node0/cpu1 1/1", "node0/cpu1 > node0/pcie3 1/1",
                                   "node0/pcie3 > node0/gpu7 1/1"));
  EXPECT_EQ(routes.Bottleneck(apart), 16'000'000'000);
}

// No NVLink at all: PCIe inside, own NICs outside.
TEST(RoutesTest, PcieOnly) {
  const Topology topology = BuildTopology(HgxCluster(2, "", "nvswitches: 0 nvlinks: 0 pcie_switches: 0"));
  EXPECT_EQ(topology.Cables(LinkKind::kNvlink), 0);
  const Routes routes = BuildRoutes(topology);
  EXPECT_EQ(routes.Between(0, 3).links, 2);  // one socket
  EXPECT_EQ(routes.Between(0, 4).links, 3);  // two
  EXPECT_EQ(routes.Between(0, 8 + 4).forwarder, kNoDevice);
  EXPECT_EQ(routes.Between(0, 8 + 4).network_links, 4);
}

// Hashed flows collide: 32 flows on 32 uplinks leave some unused, as 32 balls in 32 bins do (32 (1 - 1/e) = 20 used on
// average, the deviation is 1.7). Seeds differ, the same seed gives the same ways, and every uplink is some flow's.
TEST(RoutesTest, HashedFlowsCollide) {
  const Topology topology = BuildTopology(HgxCluster(64, "routing: HASHED"));
  EXPECT_EQ(topology.Cables(LinkKind::kLeafSpine), 512);
  const auto uplinks = [&](std::uint64_t seed, int flows) {
    const Routes routes = BuildRoutes(topology, {.hash_seed = seed});
    std::map<LinkId, int> used;
    for (int flow = 0; flow < flows; ++flow) {
      const Route route = routes.Between(0, kLast, flow);
      EXPECT_EQ(route.denominator, 1);
      EXPECT_EQ(route.shares.size(), 8u);
      ++used[route.shares[3].link];
    }
    return used;
  };
  const std::map<LinkId, int> few = uplinks(1, 32);
  EXPECT_GE(few.size(), 14u);
  EXPECT_LE(few.size(), 27u);
  EXPECT_EQ(few, uplinks(1, 32));
  EXPECT_NE(few, uplinks(2, 32));
  const std::map<LinkId, int> many = uplinks(1, 3200);
  EXPECT_EQ(many.size(), 32u);
  // 100 on average, deviation 10.
  for (const auto& [link, flows] : many) {
    EXPECT_GT(flows, 50);
    EXPECT_LT(flows, 150);
  }
}

// By destination: the 32 nodes under a leaf get its 32 uplinks, one each, whoever sends; so does the way down.
TEST(RoutesTest, DestinationsHaveWaysOfTheirOwn) {
  const Topology topology = BuildTopology(HgxCluster(64, "routing: BY_DESTINATION"));
  const Routes routes = BuildRoutes(topology);
  std::set<LinkId> up;
  std::set<LinkId> down;
  for (std::int64_t node = 32; node < 64; ++node) {
    const Route route = routes.Between(0, node * 8);
    up.insert(route.shares[3].link);
    down.insert(route.shares[4].link);
    EXPECT_EQ(topology.link(routes.Between(8, node * 8).shares[3].link).to, topology.link(route.shares[3].link).to);
  }
  EXPECT_EQ(up.size(), 32u);
  EXPECT_EQ(down.size(), 32u);
}

// Three levels: 32 uplinks to 16 spines of the pod, two cables each and merged; of a spine's 32 uplinks 8 cores; then
// one way down.
TEST(RoutesTest, ThreeLevels) {
  const Topology topology = BuildTopology(HgxCluster(1024, "nodes_per_pod: 64"));
  const Routes routes = BuildRoutes(topology);
  const Route route = routes.Between(0, 8000);
  EXPECT_EQ(route.network_links, 6);
  EXPECT_EQ(routes.Ways(0, 8000), 16 * 8);
  EXPECT_EQ(route.denominator, 128);
  EXPECT_EQ(routes.Bottleneck(route), 50'000'000'000);
  EXPECT_EQ(route.latency, Time(1'500'000 + 5 * 500'000));
  EXPECT_EQ(routes.Between(0, 320).network_links, 4);  // in the pod
}

TEST(RoutesTest, RackOfSeventyTwo) {
  const Topology topology = BuildTopology(
      HgxCluster(2, "nodes_per_leaf: 8 switch_ports: 1000",
                 "gpus: 72 nics: 72 nvswitches: 18 pcie_switches: 0 cpus: 36 hosts: 18 nvlink { bandwidth: 900e9 }"));
  EXPECT_EQ(topology.HostOf(topology.gpu(4)), "node0/host1");
  EXPECT_EQ(topology.Cables(LinkKind::kSocket), 2 * 18);
  const Routes routes = BuildRoutes(topology);
  const Route route = routes.Between(0, 71);
  EXPECT_EQ(route.shares.size(), 36u);
  EXPECT_EQ(route.denominator, 18);
  EXPECT_EQ(routes.Bottleneck(route), 900'000'000'000);
}

}  // namespace
}  // namespace orrery::topology
