// What holds for every route, on many small clusters drawn from their numbers: generated ones and free-form graphs.
#include <algorithm>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/dijkstra_shortest_paths.hpp>
#include <cstdlib>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gtest/gtest.h"
#include "tests/topology/topology_fixture.h"
#include "topology/routes.h"

namespace orrery::topology {
namespace {

std::size_t At(std::int64_t i) { return static_cast<std::size_t>(i); }

// Whole numbers drawn one after the other.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}
  std::int64_t Below(std::int64_t n) {
    return static_cast<std::int64_t>(HashCombine(seed_, ++drawn_) % static_cast<std::uint64_t>(n));
  }
  std::int64_t OneOf(std::vector<std::int64_t> values) {
    return values[At(Below(static_cast<std::int64_t>(values.size())))];
  }

 private:
  std::uint64_t seed_;
  std::uint64_t drawn_ = 0;
};

const char* RoutingOf(Draws* draws) {
  return std::vector<const char*>{"ADAPTIVE", "HASHED", "BY_DESTINATION"}[At(draws->Below(3))];
}

v1::Cluster DrawCluster(std::uint64_t seed) {
  Draws draws(seed);
  const std::int64_t switches = draws.OneOf({0, 1, 2, 3});
  const std::int64_t per_leaf = draws.OneOf({1, 2, 3});
  const bool rails = draws.Below(3) > 0;
  const bool separate = rails && draws.Below(2) > 0;
  const std::string fabric =
      absl::StrCat("nodes_per_leaf: ", per_leaf, " nodes_per_pod: ", draws.OneOf({0, 0, per_leaf, 2 * per_leaf}),
                   " oversubscription: ", draws.OneOf({1, 2, 3}), " planes: ", draws.OneOf({1, 1, 2}),
                   " uplink_bandwidth: ", draws.OneOf({5, 12, 50}), "e9 rail_optimised: ", rails ? "true" : "false",
                   " separate_rails: ", separate ? "true" : "false", " switch_ports: 512 routing: ", RoutingOf(&draws));
  const std::string node =
      absl::StrCat("gpus: ", draws.OneOf({1, 2, 4, 8}), " nics: ", draws.OneOf({1, 2, 4, 8}), " nvswitches: ", switches,
                   " nvlinks: ", switches == 0 ? 0 : switches + draws.Below(9),
                   " pcie_switches: ", draws.OneOf({0, 2, 4}), " cpus: ", draws.OneOf({1, 2}));
  return HgxCluster(1 + draws.Below(9), fabric, node);
}

// A ring of 3 to 6 switches with chords, cables of different latency, and one or two servers on each.
v1::Cluster DrawGraph(std::uint64_t seed) {
  Draws draws(HashCombine(seed, 7));
  const std::int64_t switches = 3 + draws.Below(4);
  std::string text = absl::StrCat("graph { routing: ", RoutingOf(&draws), " hash_seed: 1 ");
  const auto add = [&](const std::string& a, const std::string& b, const std::string& link, std::int64_t count) {
    absl::StrAppend(&text, "cable { a: \"", a, "\" b: \"", b, "\" count: ", count, " link { efficiency: 1 ", link,
                    " } } ");
  };
  const auto device = [&](const std::string& id, const char* kind) {
    absl::StrAppend(&text, "device { id: \"", id, "\" kind: ", kind, " } ");
  };
  const auto between = [&](std::int64_t a, std::int64_t b) {
    const std::string link =
        absl::StrCat("bandwidth: ", draws.OneOf({10, 25, 50}), "e9 latency: ", draws.OneOf({1, 2}), "e-6");
    add(absl::StrCat("s", a), absl::StrCat("s", b), link, 1 + draws.Below(3));
  };
  for (std::int64_t i = 0; i < switches; ++i) device(absl::StrCat("s", i), "NETWORK_SWITCH");
  for (std::int64_t i = 0; i < switches; ++i) between(i, (i + 1) % switches);
  for (std::int64_t i = 0; i < 3; ++i) {
    const std::int64_t a = draws.Below(switches);
    const std::int64_t b = draws.Below(switches);
    if (a != b) between(a, b);
  }
  const std::int64_t servers = switches + draws.Below(switches);
  for (std::int64_t server = 0; server < servers; ++server) {
    const std::string cpu = absl::StrCat("h", server, "cpu");
    const std::string nic = absl::StrCat("h", server, "nic");
    device(cpu, "CPU");
    device(nic, "NIC");
    add(nic, cpu, "bandwidth: 30e9 latency: 1e-7", 1);
    add(nic, absl::StrCat("s", server % switches), "bandwidth: 25e9 latency: 1e-6", 1);
    const std::int64_t gpus = 1 + draws.Below(3);
    for (std::int64_t i = 0; i < gpus; ++i) {
      const std::string gpu = absl::StrCat("h", server, "gpu", i);
      device(gpu, "GPU");
      add(gpu, cpu, "bandwidth: 30e9 latency: 1e-7", 1);
    }
  }
  return ParseCluster(text + "}");
}

// Network links, latency, links: as routes.h counts.
struct Cost {
  std::int64_t network_links = 0;
  std::int64_t latency = 0;
  std::int64_t links = 0;
  friend auto operator<=>(const Cost&, const Cost&) = default;
  friend Cost operator+(const Cost& a, const Cost& b) {
    return {a.network_links + b.network_links, a.latency + b.latency, a.links + b.links};
  }
};

struct Edge {
  Cost cost;
};
using PlainGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, boost::no_property, Edge>;

// Least costs from one device to all by Dijkstra over the whole graph; GPUs and NICs may be left through those links
// only that `admits` says.
template <typename Admits>
std::vector<Cost> Dijkstra(const Topology& topology, DeviceId from, const Admits& admits) {
  PlainGraph graph(At(topology.devices()));
  for (LinkId id = 0; id < topology.links(); ++id) {
    const auto living = topology.LinksFrom(topology.link(id).from);
    if (std::find(living.begin(), living.end(), id) == living.end()) continue;
    const Link link = topology.link(id);
    if (!admits(link)) continue;
    boost::add_edge(At(link.from), At(link.to), {{IsNetwork(link.kind) ? 1 : 0, link.latency.count(), 1}}, graph);
  }
  std::vector<Cost> costs(At(topology.devices()));
  boost::dijkstra_shortest_paths(
      graph, At(from),
      boost::distance_map(boost::make_iterator_property_map(costs.begin(), boost::get(boost::vertex_index, graph)))
          .weight_map(boost::get(&Edge::cost, graph))
          .distance_compare(std::less<Cost>())
          .distance_combine(std::plus<Cost>())
          .distance_inf(Cost{std::numeric_limits<std::int64_t>::max(), 0, 0})
          .distance_zero(Cost{}));
  return costs;
}

// All bytes leave the source, arrive at the destination and pass every device between unchanged; nothing comes back to
// a device that bytes have left; no GPU but the forwarder is on the way.
void ExpectSound(const Topology& topology, DeviceId from, DeviceId to, const Route& route) {
  std::map<DeviceId, std::int64_t> balance;
  std::set<DeviceId> left;
  std::set<LinkId> used;
  for (const LinkShare& share : route.shares) {
    const Link link = topology.link(share.link);
    EXPECT_GT(share.weight, 0);
    EXPECT_LE(share.weight, route.denominator);
    EXPECT_TRUE(used.insert(share.link).second);
    EXPECT_FALSE(left.contains(link.to)) << topology.NameOf(link.to);
    left.insert(link.from);
    balance[link.from] -= share.weight;
    balance[link.to] += share.weight;
    const bool is_passed = topology.device(link.to).kind == DeviceKind::kGpu && link.to != to;
    EXPECT_TRUE(!is_passed || link.to == route.forwarder);
  }
  for (const auto& [device, sum] : balance) {
    EXPECT_EQ(sum, device == from ? -route.denominator
                   : device == to ? route.denominator
                                  : 0)
        << topology.NameOf(device);
  }
}

Time LatencyOfOneWay(const Topology& topology, DeviceId from, const Route& route) {
  std::map<DeviceId, Time> since = {{from, Time()}};
  Time last;
  for (const LinkShare& share : route.shares) {
    const Link link = topology.link(share.link);
    last = since.at(link.from) + link.latency;
    const auto [it, is_new] = since.emplace(link.to, last);
    EXPECT_EQ(it->second, last);  // ways that meet are equally long
  }
  return last;
}

// The parts between the ends that the route names, each against plain Dijkstra.
void ExpectMinimal(const Topology& topology, DeviceId from, DeviceId to, const Route& route) {
  const auto kind = [&](DeviceId id) { return topology.device(id).kind; };
  const auto is_end = [&](DeviceId id) { return kind(id) == DeviceKind::kGpu || kind(id) == DeviceKind::kNic; };
  const auto leg = [&](DeviceId source, DeviceId target, const auto& admits) {
    return Dijkstra(topology, source, [&](const Link& link) {
      return admits(link.kind) && (!is_end(link.from) || link.from == source) &&
             (!is_end(link.to) || link.to == target);
    })[At(target)];
  };
  const auto nvlink = [](LinkKind one) { return one == LinkKind::kNvlink; };
  const auto pcie = [](LinkKind one) { return one == LinkKind::kPcie || one == LinkKind::kSocket; };
  const auto unreached = std::numeric_limits<std::int64_t>::max();
  Cost least;
  if (route.from_nic == kNoDevice) {
    EXPECT_EQ(topology.device(from).node, topology.device(to).node);
    least = leg(from, to, nvlink);
    if (least.network_links == unreached) least = leg(from, to, pcie);
  } else {
    const bool forwards = route.forwarder != kNoDevice;
    if (forwards) least = leg(from, route.forwarder, nvlink);
    least = least + leg(forwards ? route.forwarder : from, route.from_nic, pcie) +
            leg(route.from_nic, route.to_nic, IsNetwork) + leg(route.to_nic, to, pcie);
    // No way at all has fewer network links, but for NICs that are not the GPU's own.
    const Cost any = Dijkstra(
        topology, from, [&](const Link& link) { return kind(link.to) != DeviceKind::kGpu || link.to == to; })[At(to)];
    EXPECT_GE(route.network_links, any.network_links);
    const bool one_rail = topology.device(route.from_nic).index == topology.device(route.to_nic).index;
    EXPECT_TRUE(!one_rail || topology.is_free_form() || route.network_links == any.network_links);
  }
  EXPECT_EQ(route.network_links, least.network_links);
  EXPECT_EQ(route.latency, Time(least.latency));
  EXPECT_EQ(route.links, least.links);
}

int Cases() { return std::getenv("ORRERY_SANITIZER") != nullptr ? 20 : 300; }

void CheckRoutes(const Topology* topology, std::uint64_t seed, const std::vector<bool>& pxn_or_not) {
  for (const bool pxn : pxn_or_not) {
    const absl::StatusOr<Routes> routes = Routes::Build(*topology, {.pxn = pxn});
    ASSERT_TRUE(routes.ok());
    Draws draws(HashCombine(seed, 3));
    for (int i = 0; i < 6; ++i) {
      const std::int64_t a = draws.Below(topology->gpus());
      const std::int64_t b = draws.Below(topology->gpus());
      if (a == b) continue;
      const Route route = routes->Between(a, b, draws.Below(4));
      SCOPED_TRACE(absl::StrCat(a, " to ", b));
      ExpectSound(*topology, topology->gpu(a), topology->gpu(b), route);
      ExpectMinimal(*topology, topology->gpu(a), topology->gpu(b), route);
      EXPECT_EQ(LatencyOfOneWay(*topology, topology->gpu(a), route), route.latency);
      EXPECT_GE(routes->Ways(a, b), 1);
      EXPECT_TRUE(pxn || route.forwarder == kNoDevice);
      // One way in the network, and over one PCIe path; only NVLink spreads.
      const bool spreads = topology->routing() == v1::ADAPTIVE || route.from_nic == kNoDevice || pxn;
      EXPECT_TRUE(spreads || route.denominator == 1);
    }
  }
}

void CheckCluster(const v1::Cluster& cluster, std::uint64_t seed) {
  SCOPED_TRACE(cluster.ShortDebugString());
  const absl::StatusOr<Topology> topology = Topology::Build(cluster);
  ASSERT_TRUE(topology.ok()) << topology.status();
  CheckRoutes(&*topology, seed, {true, false});
}

// A few dead cables of the network, as long as all GPUs still reach each other.
TEST(RoutesPropertyTest, DeadLinks) {
  int damaged = 0;
  for (int seed = 0; seed < Cases() && !testing::Test::HasFailure(); ++seed) {
    const v1::Cluster cluster = DrawCluster(static_cast<std::uint64_t>(seed));
    SCOPED_TRACE(cluster.ShortDebugString());
    const absl::StatusOr<Topology> whole = Topology::Build(cluster);
    ASSERT_TRUE(whole.ok()) << whole.status();
    std::vector<LinkId> network;
    for (LinkId id = 0; id < whole->links(); ++id) {
      if (IsNetwork(whole->link(id).kind)) network.push_back(id);
    }
    if (network.empty()) continue;
    Draws draws(HashCombine(static_cast<std::uint64_t>(seed), 4));
    std::vector<LinkId> dead;
    for (int i = 0; i < 3; ++i) dead.push_back(network[At(draws.Below(static_cast<std::int64_t>(network.size())))]);
    const absl::StatusOr<Topology> left = whole->Without(dead);
    if (!left.ok()) continue;
    ++damaged;
    for (const LinkId link : dead) {
      for (const LinkId direction : {link, Opposite(link)}) {
        const auto links = left->LinksFrom(left->link(direction).from);
        EXPECT_EQ(std::count(links.begin(), links.end(), direction), 0);
      }
    }
    CheckRoutes(&*left, static_cast<std::uint64_t>(seed), {true});
  }
  EXPECT_GT(damaged, Cases() / 3);
}

TEST(RoutesPropertyTest, GeneratedClusters) {
  for (int seed = 0; seed < Cases() && !testing::Test::HasFailure(); ++seed) {
    CheckCluster(DrawCluster(static_cast<std::uint64_t>(seed)), static_cast<std::uint64_t>(seed));
  }
}

TEST(RoutesPropertyTest, FreeFormGraphs) {
  for (int seed = 0; seed < Cases() && !testing::Test::HasFailure(); ++seed) {
    CheckCluster(DrawGraph(static_cast<std::uint64_t>(seed)), static_cast<std::uint64_t>(seed));
  }
}

}  // namespace
}  // namespace orrery::topology
