// Groups on the links of clusters: alone they take the analytic price, together what the links leave.
#include "sim/collectives/concurrent_groups.h"

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/sim/collectives/nccl/fixture.h"

namespace orrery::collectives {
namespace {

using nccl::Operation;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr std::int64_t kGiB = 1 << 30;

v1::Cluster ClusterOf(const std::string& preset) {
  v1::Cluster cluster;
  ORRERY_CHECK(spec::LoadPreset(preset, nccl::Shipped(), &cluster).ok());
  return cluster;
}

// A cluster with routes, and groups of it.
struct Bench {
  explicit Bench(v1::Cluster given, GroupPlacement at)
      : cluster(std::move(given)),
        topology(*topology::Topology::Build(cluster)),
        routes(*topology::Routes::Build(topology)),
        groups(routes, *PlaceGroups(cluster, at)) {
    comm = *nccl::DescribeCommunicator(cluster, nccl::EvenPlacement(cluster, at.ranks, at.nodes));
    comm.oversubscription = 1;
  }

  nccl::Price PriceOf(Operation operation, std::int64_t bytes, const nccl::Variant& forced = {}) const {
    nccl::ModelOptions options;
    options.forced = forced;
    const auto* version = *nccl::Shelf().Version("2.27");
    const nccl::Model model(comm, *version, nccl::TimesOf(comm), options);
    return *model.PriceOf(operation, bytes);
  }

  ConcurrentTimes Run(Operation operation, std::int64_t bytes, const nccl::Price& price) {
    const absl::StatusOr<Phase> phase = PhaseOf(operation, bytes, price, groups.groups().front());
    EXPECT_TRUE(phase.ok()) << phase.status();
    const absl::StatusOr<ConcurrentTimes> times = groups.Run({*phase});
    EXPECT_TRUE(times.ok()) << times.status();
    return times.ok() ? *times : ConcurrentTimes();
  }

  v1::Cluster cluster;
  topology::Topology topology;
  topology::Routes routes;
  nccl::Communicator comm;
  ConcurrentGroups groups;
};

// To the picosecond: no link of a fabric without oversubscription is in the way of one group.
TEST(ConcurrentGroups, AloneIsTheAnalyticPrice) {
  struct Case {
    const char* cluster;
    std::int64_t ranks, nodes;
  };
  for (const Case& at : {Case{"dgx-h100-ndr", 8, 1},
                         {"dgx-h100-ndr", 4, 1},
                         {"dgx-h100-ndr", 16, 2},
                         {"dgx-h100-ndr", 40, 5},
                         {"dgx-h100-ndr", 8, 8},
                         {"dgx-h100-ndr", 34, 34},
                         {"selene", 32, 4},
                         {"dgx-b200-ndr", 16, 2},
                         {"deepseek-h800", 64, 8},
                         {"gb200-nvl72", 144, 2}}) {
    v1::Cluster cluster = ClusterOf(at.cluster);
    cluster.set_nodes(at.nodes);
    Bench bench(cluster, {.ranks = at.ranks, .nodes = at.nodes});
    const auto* version = *nccl::Shelf().Version("2.27");
    const nccl::Channels channels = nccl::SearchChannels(bench.comm, *version, {});
    const nccl::Tuner tuner(bench.comm, channels, *version, false);
    for (const Operation operation : {Operation::kAllReduce, Operation::kAllGather, Operation::kBroadcast,
                                      Operation::kAllToAll, Operation::kSendRecv}) {
      for (const nccl::Variant& variant : tuner.Candidates(operation)) {
        for (const std::int64_t bytes : {std::int64_t{8}, std::int64_t{1000000}, kGiB}) {
          const nccl::Price price = bench.PriceOf(operation, bytes, variant);
          const ConcurrentTimes times = bench.Run(operation, bytes, price);
          EXPECT_EQ(times.last, price.total())
              << at.cluster << " " << at.ranks << " on " << at.nodes << " " << nccl::OperationName(operation) << " "
              << nccl::AlgorithmName(variant.algorithm) << " " << nccl::ProtocolName(variant.protocol) << " " << bytes;
          EXPECT_EQ(times.first, times.last);
        }
      }
    }
  }
}

// Two rings of messages over the same two NICs, each of which would fill them: twice the progress part.
TEST(ConcurrentGroups, TwoOnTheSameNics) {
  Bench bench(ClusterOf("dgx-h100-ndr"), {.ranks = 16, .nodes = 2, .groups = 2});
  const nccl::Price price = bench.PriceOf(Operation::kSendRecv, kGiB);
  const ConcurrentTimes times = bench.Run(Operation::kSendRecv, kGiB, price);
  const double expected = SecondsFromTime(price.fixed) + 2 * SecondsFromTime(price.progress);
  EXPECT_NEAR(SecondsFromTime(times.last), expected, 1e-5 * expected);
  ASSERT_TRUE(times.busiest.has_value());
  EXPECT_EQ(bench.topology.NameOf(bench.topology.link(*times.busiest).from), "node0/nic0");
  // Eight groups of one GPU per node have a NIC each.
  Bench apart(ClusterOf("dgx-h100-ndr"), {.ranks = 2, .nodes = 2, .groups = 8});
  const nccl::Price alone = apart.PriceOf(Operation::kSendRecv, kGiB);
  EXPECT_EQ(apart.Run(Operation::kSendRecv, kGiB, alone).last, alone.total());
}

// Two nodes under a leaf each, uplinks half as wide as NICs: half of all bytes cross, in twice the time.
TEST(ConcurrentGroups, Oversubscription) {
  v1::Cluster cluster = ClusterOf("dgx-h100-ndr");
  cluster.mutable_fabric()->set_oversubscription(2);
  Bench bench(cluster, {.ranks = 16, .nodes = 2, .groups = 1, .node_stride = 32});
  const nccl::Price price = bench.PriceOf(Operation::kAllToAll, kGiB);
  // One node of 32 under the leaf: its uplinks are wide enough for it alone.
  EXPECT_EQ(bench.Run(Operation::kAllToAll, kGiB, price).last, price.total());
  // All 32 of both.
  Bench full(cluster, {.ranks = 512, .nodes = 64});
  const nccl::Price whole = full.PriceOf(Operation::kAllToAll, kGiB);
  const double expected = SecondsFromTime(whole.fixed) + kGiB / 2.0 * 2 / 47.5e9;
  EXPECT_NEAR(SecondsFromTime(full.Run(Operation::kAllToAll, kGiB, whole).last), expected, 1e-5 * expected);
}

// A group alone takes its analytic price on narrow uplinks too: eight nodes, two of them under each leaf; five nodes,
// with one under the last leaf; eight GPUs of a node each, which may take PAT.
TEST(ConcurrentGroups, AloneOnAnOversubscribedFabric) {
  const auto& version = **nccl::Shelf().Version("2.27");
  std::set<std::string> seen;
  for (const auto& [ranks, nodes] : {std::pair<std::int64_t, std::int64_t>{64, 8}, {40, 5}, {8, 8}}) {
    for (const double oversubscription : {3.0, 16.0, 1000.0}) {
      v1::Cluster cluster = ClusterOf("dgx-h100-ndr");
      cluster.set_nodes(nodes);
      cluster.mutable_fabric()->set_nodes_per_leaf(2);
      cluster.mutable_fabric()->set_oversubscription(oversubscription);
      Bench bench(cluster, {.ranks = ranks, .nodes = nodes});
      nccl::Communicator narrow = bench.comm;
      narrow.oversubscription = oversubscription;
      const nccl::Tuner tuner(narrow, nccl::SearchChannels(narrow, version, {}), version, false);
      for (const Operation operation : {Operation::kAllReduce, Operation::kAllGather, Operation::kBroadcast,
                                        Operation::kReduce, Operation::kAllToAll, Operation::kSendRecv}) {
        for (const nccl::Variant& variant : tuner.Candidates(operation)) {
          for (const std::int64_t bytes : {std::int64_t{1000000}, kGiB}) {
            nccl::ModelOptions options;
            options.forced = variant;
            const nccl::Model model(narrow, version, nccl::TimesOf(narrow), options);
            const double analytic = SecondsFromTime(model.PriceOf(operation, bytes)->total());
            const nccl::Price price = bench.PriceOf(operation, bytes, variant);
            EXPECT_NEAR(SecondsFromTime(bench.Run(operation, bytes, price).last), analytic, 1e-5 * analytic)
                << ranks << " on " << nodes << " 1:" << oversubscription << " " << nccl::OperationName(operation) << " "
                << nccl::AlgorithmName(variant.algorithm) << " " << nccl::ProtocolName(variant.protocol) << " "
                << bytes;
            seen.insert(std::string(nccl::AlgorithmName(variant.algorithm)));
          }
        }
      }
    }
  }
  EXPECT_THAT(seen, testing::UnorderedElementsAre("Ring", "Tree", "NVLSTree", "PAT", "P2P"));
}

// By hand, eight nodes, two under each leaf. First tree: 1-2, 2-4, 3-2, 4-0, 5-6, 6-4, 7-6; the second, its mirror
// image: 6-5, 5-3, 4-5, 3-7, 2-1, 1-3, 0-1. Leaf {4, 5} has 4-2, 4-0, 5-6, 4-6 of the one and 5-6, 5-3 of the other on
// its uplinks: six halves. PAT: of 2 nodes 1 leaves at distance 1, both at 2 and at 4: (1 x 1 + 2 x 2 + 2 x 4) / 7 of
// what a node moves.
TEST(ConcurrentGroups, TreesLeaveALeafMoreThanOnce) {
  v1::Cluster cluster = ClusterOf("dgx-h100-ndr");
  cluster.set_nodes(8);
  cluster.mutable_fabric()->set_nodes_per_leaf(2);
  Bench trees(cluster, {.ranks = 64, .nodes = 8});
  const double share = kGiB / 16.0;
  EXPECT_DOUBLE_EQ(trees.PriceOf(Operation::kAllReduce, kGiB, {v1::TREE, v1::SIMPLE}).bytes.uplink, 3 * share);
  EXPECT_DOUBLE_EQ(trees.PriceOf(Operation::kAllReduce, kGiB, {v1::NVLS_TREE, v1::SIMPLE}).bytes.uplink, 3 * share);
  EXPECT_DOUBLE_EQ(trees.PriceOf(Operation::kAllGather, kGiB, {v1::RING, v1::SIMPLE}).bytes.uplink, 63.0 / 64 * share);
  Bench pat(cluster, {.ranks = 8, .nodes = 8});
  EXPECT_DOUBLE_EQ(pat.PriceOf(Operation::kAllGather, kGiB, {v1::PAT, v1::SIMPLE}).bytes.uplink,
                   13.0 / 7 * (7.0 / 8 * kGiB) / 2);
}

// One GPU with a NIC at its own PCIe switch and one at another, which it does not use.
TEST(ConcurrentGroups, FarNics) {
  v1::Cluster cluster = ClusterOf("dgx-h100-ndr");
  cluster.set_nodes(4);
  v1::Node& node = *cluster.mutable_node();
  node.set_gpus(1);
  node.set_nics(2);
  node.set_pcie_switches(2);
  Bench bench(cluster, {.ranks = 4, .nodes = 4});
  for (const Operation operation : {Operation::kAllReduce, Operation::kAllToAll, Operation::kSendRecv}) {
    const nccl::Price price = bench.PriceOf(operation, kGiB);
    EXPECT_EQ(bench.Run(operation, kGiB, price).last, price.total()) << nccl::OperationName(operation);
  }
}

// 256 rings, one rank per node, between four leaves: spread over all cables they do not meet; hashed they do.
TEST(ConcurrentGroups, HashedFlowsCollide) {
  for (const bool hashed : {false, true}) {
    v1::Cluster cluster = ClusterOf("dgx-h100-ndr");
    if (hashed) cluster.mutable_fabric()->set_routing(v1::HASHED);
    Bench bench(cluster, {.ranks = 4, .nodes = 4, .groups = 256, .node_stride = 32});
    const nccl::Price price = bench.PriceOf(Operation::kAllReduce, kGiB, {v1::RING, v1::SIMPLE});
    const ConcurrentTimes times = bench.Run(Operation::kAllReduce, kGiB, price);
    if (!hashed) {
      EXPECT_EQ(times.last, price.total());
      continue;
    }
    // Several rings on one cable share it evenly.
    EXPECT_GT(SecondsFromTime(times.last), 1.9 * SecondsFromTime(price.total()));
    EXPECT_GT(times.last, times.first);
  }
}

// Phases follow each other, each with its own flows: with two groups on all GPUs either takes twice its progress, if
// its links are full; NVLink is not, and NICs are.
TEST(ConcurrentGroups, Phases) {
  Bench bench(ClusterOf("dgx-h100-ndr"), {.ranks = 16, .nodes = 2, .groups = 2});
  const Time second(1'000'000'000'000);
  // 2 x 47.5e9 bytes, of which half leave the node: a NIC's second. NVLink: 7/8 of 2 x 47.5e9 of 396e9.
  const Footprint footprint{.operation = Operation::kAllToAll, .variant = {}, .bytes = 95'000'000'000};
  const std::vector<Phase> phases = {{footprint, Among::kNode, second, second},
                                     {footprint, Among::kRail, second, second}};
  const absl::StatusOr<ConcurrentTimes> times = bench.groups.Run(phases);
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_NEAR(SecondsFromTime(times->last), 1 + 1 + 1 + 2, 1e-5);
}

TEST(ConcurrentGroups, Placement) {
  v1::Cluster cluster = ClusterOf("dgx-h100-ndr");
  cluster.set_nodes(4);
  const auto place = [&](GroupPlacement at) { return PlaceGroups(cluster, at); };
  // Two GPUs per node: groups 0 to 3 side by side on nodes 0 and 2, 4 to 7 on 1 and 3, then the first GPUs again.
  const auto groups = place({.ranks = 4, .nodes = 2, .groups = 9, .node_stride = 2});
  ASSERT_TRUE(groups.ok()) << groups.status();
  EXPECT_THAT((*groups)[1], ElementsAre(ElementsAre(2, 3), ElementsAre(18, 19)));
  EXPECT_THAT((*groups)[4], ElementsAre(ElementsAre(8, 9), ElementsAre(24, 25)));
  EXPECT_EQ((*groups)[8], (*groups)[0]);
  EXPECT_THAT(place({.ranks = 5, .nodes = 2}).status().message(), HasSubstr("5 GPUs on 2 nodes; allowed"));
  EXPECT_THAT(place({.ranks = 6, .nodes = 2}).status().message(), HasSubstr("divisors of 8"));
  EXPECT_THAT(place({.ranks = 2, .nodes = 2, .groups = 1, .node_stride = 4}).status().message(),
              HasSubstr("up to the 4 nodes"));
  EXPECT_TRUE(place({.ranks = 2, .nodes = 2, .groups = 8, .node_stride = 3}).ok());
  EXPECT_FALSE(place({.ranks = 2, .nodes = 2, .groups = 9, .node_stride = 3}).ok());
  EXPECT_THAT(place({.ranks = 2, .nodes = 2, .groups = 0}).status().message(), HasSubstr("0 groups"));
}

TEST(ConcurrentGroups, Refusals) {
  Bench bench(ClusterOf("dgx-h100-ndr"), {.ranks = 2048, .nodes = 256});
  const Phase phase{.footprint = {.operation = Operation::kAllToAll, .variant = {}, .bytes = 1000},
                    .fixed = Time(1),
                    .progress = Time(1000000)};
  EXPECT_THAT(bench.groups.Run({phase}).status().message(),
              HasSubstr("2048 GPUs; allowed where links are shared: up to 1024"));
  nccl::Price sharp;
  sharp.variant = {v1::COLLNET_DIRECT, v1::SIMPLE};
  EXPECT_EQ(PhaseOf(Operation::kAllReduce, 8, sharp, bench.groups.groups().front()).status().code(),
            absl::StatusCode::kUnimplemented);
}

}  // namespace
}  // namespace orrery::collectives
