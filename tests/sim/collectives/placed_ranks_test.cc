// Communicators whose nodes differ: what the search and the links make of them, by hand and against uniform ones.
#include "sim/collectives/placed_ranks.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/collectives/concurrent_groups.h"
#include "tests/sim/collectives/nccl/fixture.h"

namespace orrery::collectives {
namespace {

using nccl::Operation;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kGiB = 1 << 30;
constexpr Operation kAll[] = {Operation::kAllReduce, Operation::kAllGather, Operation::kReduceScatter,
                              Operation::kBroadcast, Operation::kAllToAll,  Operation::kSendRecv};

v1::Cluster ClusterOf(const std::string& preset) {
  v1::Cluster cluster;
  ORRERY_CHECK(spec::LoadPreset(preset, nccl::Shipped(), &cluster).ok());
  return cluster;
}

// Nodes of dgx-h100-ndr, of so many GPUs and NICs each.
struct Kind {
  std::int64_t nodes = 1;
  std::int64_t gpus = 8;
  std::int64_t nics = 8;
  double nic_bandwidth = 50e9;
};

v1::Cluster Mixed(const std::vector<Kind>& kinds) {
  v1::Cluster cluster = ClusterOf("dgx-h100-ndr");
  const v1::Node whole = cluster.node();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    v1::Node node = whole;
    node.set_gpus(kinds[i].gpus);
    node.set_nics(kinds[i].nics);
    node.set_pcie_switches(std::min(kinds[i].gpus, kinds[i].nics));
    node.mutable_nic()->set_bandwidth(kinds[i].nic_bandwidth);
    if (i == 0) {
      cluster.set_nodes(kinds[i].nodes);
      *cluster.mutable_node() = node;
      continue;
    }
    v1::NodeGroup* const group = cluster.add_more_nodes();
    group->set_nodes(kinds[i].nodes);
    *group->mutable_node() = node;
  }
  return cluster;
}

struct Placed {
  Placed(v1::Cluster given, std::int64_t ranks, std::int64_t nodes)
      : cluster(std::move(given)),
        topology(*topology::Topology::Build(cluster)),
        routes(*topology::Routes::Build(topology)),
        at(*PlaceRanks(cluster, topology, ranks, nodes, nccl::Twins::kActive)),
        model(at.views, nccl::Tables("2.27"), nccl::TimesOf(at.views.front()), {}) {}

  nccl::Price PriceOf(Operation operation, std::int64_t bytes, const nccl::Variant& variant) const {
    nccl::ModelOptions options;
    options.forced = variant;
    const nccl::Model forced(at.views, nccl::Tables("2.27"), nccl::TimesOf(at.views.front()), options);
    return *forced.PriceOf(operation, bytes);
  }
  std::int64_t RanksOn(std::size_t node) const { return static_cast<std::int64_t>(at.gpus[node].size()); }

  v1::Cluster cluster;
  topology::Topology topology;
  topology::Routes routes;
  PlacedRanks at;
  nccl::Model model;
};

std::vector<std::int64_t> Spread(const v1::Cluster& cluster, std::int64_t ranks, std::int64_t nodes) {
  const Placed placed(cluster, ranks, nodes);
  std::vector<std::int64_t> spread;
  for (const std::vector<std::int64_t>& gpus : placed.at.gpus) spread.push_back(static_cast<std::int64_t>(gpus.size()));
  return spread;
}

TEST(PlacedRanks, AsEvenlyAsGpusAllow) {
  const v1::Cluster alike = Mixed({{.nodes = 3}});
  EXPECT_THAT(Spread(alike, 0, 0), ElementsAre(8));
  EXPECT_THAT(Spread(alike, 13, 3), ElementsAre(5, 4, 4));
  EXPECT_THAT(Spread(alike, 13, 0), ElementsAre(7, 6));
  const v1::Cluster mixed = Mixed({{.gpus = 4, .nics = 4}, {.nodes = 2, .gpus = 6, .nics = 6}});
  EXPECT_THAT(Spread(mixed, 0, 2), ElementsAre(4, 6));
  EXPECT_THAT(Spread(mixed, 9, 2), ElementsAre(4, 5));
  EXPECT_THAT(Spread(mixed, 8, 2), ElementsAre(4, 4));
  EXPECT_THAT(Spread(mixed, 15, 3), ElementsAre(4, 6, 5));
  EXPECT_THAT(Spread(mixed, 11, 0), ElementsAre(4, 4, 3));
  const topology::Topology topology = *topology::Topology::Build(mixed);
  const auto refused = [&](std::int64_t ranks, std::int64_t nodes) {
    return PlaceRanks(mixed, topology, ranks, nodes, nccl::Twins::kIdle).status();
  };
  EXPECT_THAT(refused(11, 2).message(), HasSubstr("11 ranks on 2 nodes of 4 to 6 GPUs; allowed"));
  EXPECT_THAT(refused(1, 2).message(), HasSubstr("1 ranks on 2 nodes"));
  EXPECT_THAT(refused(4, 4).message(), HasSubstr("4 nodes; allowed: up to the 3"));
}

// Two kinds that are equal are one.
TEST(PlacedRanks, EqualKindsAreTheUniformCluster) {
  for (const auto& [ranks, nodes] : {std::pair{32, 4}, {29, 4}, {4, 4}, {13, 3}}) {
    const Placed uniform(Mixed({{.nodes = 4}}), ranks, nodes);
    v1::Cluster twice = Mixed({{.nodes = 1}, {.nodes = 3}});
    twice.mutable_more_nodes(0)->mutable_node()->mutable_nic()->clear_source();
    const Placed mixed(twice, ranks, nodes);
    EXPECT_EQ(mixed.at.views, uniform.at.views);
    EXPECT_EQ(mixed.at.is_regular, ranks % nodes == 0);
    for (const Operation operation : kAll) {
      for (const std::int64_t bytes : {std::int64_t{8}, kMiB, kGiB}) {
        EXPECT_EQ(mixed.model.PriceOf(operation, bytes)->total(), uniform.model.PriceOf(operation, bytes)->total());
      }
    }
  }
  // Even ones have the price of the one description that runs use.
  const Placed uniform(Mixed({{.nodes = 4}}), 32, 4);
  EXPECT_EQ(uniform.at.views, nccl::Views{nccl::On("dgx-h100-ndr", 32, 4)});
}

// 8 NICs of 50 GB/s carry 8 channels of 48; 4 of them 4, which the library makes 8 of 24. The least of both.
TEST(PlacedRanks, SearchTakesTheLeastOfAllNodes) {
  const Placed eight(Mixed({{.nodes = 2}}), 16, 2);
  EXPECT_EQ(eight.model.channels().ring.channels, 8);
  EXPECT_EQ(eight.model.channels().ring.inter, 48);
  const Placed mixed(Mixed({{}, {.nics = 4}}), 16, 2);
  EXPECT_EQ(mixed.model.channels().ring.channels, 8);
  EXPECT_EQ(mixed.model.channels().ring.inter, 24);
  // A node of one GPU has no NVSwitch to reduce in.
  const Placed one(Mixed({{}, {.gpus = 1, .nics = 1}}), 9, 2);
  EXPECT_EQ(one.model.channels().nvls.channels, 0);
}

// All-reduce of 10 ranks, 4 and 6, in rings: 18/10 S leave either node over as many NICs of 47.5 GB/s as the smaller
// has. All-to-all: of the 6 GPUs' buffers 4/10 leave over 6 NICs, but PXN sends them over the 4 rails that the
// receivers have, and 6/10 of the 4 GPUs' over 4 NICs: 24/10 S over 4 NICs either way.
TEST(PlacedRanks, FourAndSix) {
  const Placed placed(Mixed({{.gpus = 4, .nics = 4}, {.gpus = 6, .nics = 6}}), 10, 2);
  ASSERT_EQ(placed.at.views.size(), 2u);
  const double nics = 4 * 47.5e9;
  const double size = kGiB;
  ConcurrentGroups alone(placed.routes, {placed.at.gpus});
  const auto least = [&](Operation operation, v1::NcclAlgorithm algorithm) {
    const Footprint footprint{.operation = operation, .variant = {algorithm, v1::SIMPLE}, .bytes = kGiB};
    return SecondsFromTime(*alone.LeastProgress({.footprint = footprint, .fixed = Time(), .progress = Time()}));
  };
  EXPECT_NEAR(least(Operation::kAllReduce, v1::RING), 1.8 * size / nics, 1e-9);
  EXPECT_NEAR(least(Operation::kAllToAll, v1::P2P), 2.4 * size / nics, 1e-9);
  const nccl::Price ring = placed.PriceOf(Operation::kAllReduce, kGiB, {v1::RING, v1::SIMPLE});
  EXPECT_GE(SecondsFromTime(ring.progress), 1.8 * size / nics);
  EXPECT_LE(SecondsFromTime(ring.progress), 1.5 * 1.8 * size / nics);
  EXPECT_NEAR(ring.bytes.nic, 1.8 * size / 4, 1);
  EXPECT_NEAR(SecondsFromTime(placed.PriceOf(Operation::kAllToAll, kGiB, {}).progress), 2.4 * size / nics, 1e-6);
}

// No link carries more than it can in the time that a group alone takes, and on the graph it takes just that.
TEST(PlacedRanks, LinksHold) {
  struct Case {
    const char* name;
    v1::Cluster cluster;
    std::int64_t ranks, nodes;
  };
  const Case cases[] = {
      {"4 and 6", Mixed({{.gpus = 4, .nics = 4}, {.gpus = 6, .nics = 6}}), 10, 2},
      {"5 and 6 of 8", Mixed({{.nodes = 2}}), 11, 2},
      {"5, 4, 4", Mixed({{.nodes = 3}}), 13, 3},
      {"1 and 8", Mixed({{.gpus = 1, .nics = 1}, {}}), 9, 2},
      {"4 with 4 NICs, 8 with 2", Mixed({{.gpus = 4, .nics = 4}, {.gpus = 8, .nics = 2}}), 12, 2},
      {"slow NICs", Mixed({{.nodes = 2}, {.nodes = 1, .nic_bandwidth = 12.5e9}}), 24, 3},
      {"4, 4, 4, 6", Mixed({{.nodes = 3, .gpus = 4, .nics = 4}, {.gpus = 6, .nics = 6}}), 18, 4},
      {"a graph", ClusterOf("two-servers-graph"), 4, 2},
      {"two of it", ClusterOf("two-servers-graph"), 2, 2},
      {"three of it", ClusterOf("two-servers-graph"), 3, 2},
  };
  for (const Case& at : cases) {
    const Placed placed(at.cluster, at.ranks, at.nodes);
    ConcurrentGroups alone(placed.routes, {placed.at.gpus});
    for (const Operation operation : kAll) {
      for (const nccl::Variant& variant : placed.model.tuner().Candidates(operation)) {
        for (const std::int64_t bytes : {std::int64_t{8}, kMiB, kGiB}) {
          SCOPED_TRACE(std::string(at.name) + " " + nccl::OperationName(operation) + " " +
                       nccl::AlgorithmName(variant.algorithm) + " " + std::to_string(bytes));
          const nccl::Price price = placed.PriceOf(operation, bytes, variant);
          Phase phase = *PhaseOf(operation, bytes, price, placed.at.gpus);
          phase.progress = std::max(price.progress, *alone.LeastProgress(phase));
          const absl::StatusOr<ConcurrentTimes> times = alone.Run({phase});
          ASSERT_TRUE(times.ok()) << times.status();
          EXPECT_EQ(times->last, phase.fixed + phase.progress);
          EXPECT_LE(times->utilisation, 1 + 1e-6);
          // What the formulas leave out is at most this: cross-rail traffic of uneven all-to-alls, a link without PXN.
          EXPECT_LE(SecondsFromTime(phase.progress), 2.5 * SecondsFromTime(price.progress) + 1e-9);
        }
      }
    }
  }
}

// In place of one of the nodes a slower one: of each algorithm and protocol.
TEST(PlacedRanks, ASlowerNodeNeverHelps) {
  const Placed uniform(Mixed({{.nodes = 4}}), 32, 4);
  for (const Kind& slow : {Kind{.nodes = 1, .nic_bandwidth = 25e9}, {.nodes = 1, .nics = 4}, {.nodes = 1, .nics = 2}}) {
    const Placed mixed(Mixed({{.nodes = 3}, slow}), 32, 4);
    for (const Operation operation : kAll) {
      for (const nccl::Variant& variant : mixed.model.tuner().Candidates(operation)) {
        for (std::int64_t bytes = 8; bytes <= 8 * kGiB; bytes *= 16) {
          EXPECT_GE(mixed.PriceOf(operation, bytes, variant).total(),
                    uniform.PriceOf(operation, bytes, variant).total())
              << nccl::OperationName(operation) << " " << nccl::AlgorithmName(variant.algorithm) << " "
              << nccl::ProtocolName(variant.protocol) << " " << bytes << " " << slow.nics;
        }
      }
    }
  }
}

// Both GPUs of a server hang on its one NIC of 23.5 GB/s; four links of 22.75 GB/s join them.
TEST(PlacedRanks, GraphOfTwoServers) {
  const Placed placed(ClusterOf("two-servers-graph"), 4, 2);
  ASSERT_EQ(placed.at.views.size(), 1u);
  const nccl::Communicator& comm = placed.at.views.front();
  EXPECT_FALSE(placed.at.is_regular);
  EXPECT_EQ(comm.ranks_per_node, 2);
  EXPECT_EQ(comm.nics, 1);
  EXPECT_TRUE(comm.nvlink);
  EXPECT_FALSE(comm.nvswitch);
  EXPECT_NEAR(comm.nvlink_bandwidth.count(), 91e9, 1);
  EXPECT_NEAR(comm.nic_bandwidth.count(), 23.5e9, 1);
  EXPECT_NEAR(comm.net_latency, 2e-6, 1e-12);  // two cables
  const nccl::Price ring = placed.PriceOf(Operation::kAllReduce, kGiB, {v1::RING, v1::SIMPLE});
  const double nic = 1.5 * kGiB / 23.5e9;
  EXPECT_GE(SecondsFromTime(ring.progress), nic);
  EXPECT_LE(SecondsFromTime(ring.progress), 1.5 * nic);
  v1::Cluster nameless = placed.cluster;
  nameless.clear_accelerator();
  EXPECT_THAT(PlaceRanks(nameless, placed.topology, 4, 2, nccl::Twins::kIdle).status().message(),
              HasSubstr("accelerator is not stated"));
}

}  // namespace
}  // namespace orrery::collectives
