// Nodes without NVSwitches: no link carries more than its capacity, and on the graph a group alone takes its price.
#include "sim/collectives/node_links.h"

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "sim/collectives/concurrent_groups.h"
#include "sim/collectives/nccl/hierarchical.h"
#include "tests/sim/collectives/nccl/fixture.h"

namespace orrery::collectives {
namespace {

using nccl::Operation;

constexpr std::int64_t kGiB = 1 << 30;
constexpr double kSize = kGiB;

v1::Cluster ClusterOf(const std::string& preset, const std::string& changes = "") {
  v1::Cluster cluster;
  ORRERY_CHECK(spec::LoadPreset(preset, nccl::Shipped(), &cluster).ok());
  v1::Cluster changed;
  ORRERY_CHECK(google::protobuf::TextFormat::ParseFromString(changes, &changed));
  cluster.MergeFrom(changed);
  return cluster;
}

v1::Cluster Pcie() { return ClusterOf("pcie-server"); }

// As DGX-1: two rings of four GPUs, each with its opposite in the other one; two links or one, six of a GPU.
v1::Cluster Mesh() {
  return ClusterOf("dgx-a100-hdr", R"pb(
    node {
      nvswitches: 0
      nvlinks: 6
      nics: 4
      nvlink_pair { a: 0 b: 1 links: 1 }
      nvlink_pair { a: 0 b: 2 links: 1 }
      nvlink_pair { a: 0 b: 3 links: 2 }
      nvlink_pair { a: 0 b: 4 links: 2 }
      nvlink_pair { a: 1 b: 2 links: 2 }
      nvlink_pair { a: 1 b: 3 links: 1 }
      nvlink_pair { a: 1 b: 5 links: 2 }
      nvlink_pair { a: 2 b: 3 links: 1 }
      nvlink_pair { a: 2 b: 6 links: 2 }
      nvlink_pair { a: 3 b: 7 links: 2 }
      nvlink_pair { a: 4 b: 5 links: 1 }
      nvlink_pair { a: 4 b: 6 links: 1 }
      nvlink_pair { a: 4 b: 7 links: 2 }
      nvlink_pair { a: 5 b: 6 links: 2 }
      nvlink_pair { a: 5 b: 7 links: 1 }
      nvlink_pair { a: 6 b: 7 links: 1 }
    })pb");
}

// Four GPUs, each joined with every other one by four of its twelve links.
v1::Cluster Direct() {
  return ClusterOf("dgx-a100-hdr", R"pb(
    node {
      gpus: 4
      nvswitches: 0
      nvlinks: 12
      nics: 4
      pcie_switches: 4
      nvlink_pair { a: 0 b: 1 links: 4 }
      nvlink_pair { a: 0 b: 2 links: 4 }
      nvlink_pair { a: 0 b: 3 links: 4 }
      nvlink_pair { a: 1 b: 2 links: 4 }
      nvlink_pair { a: 1 b: 3 links: 4 }
      nvlink_pair { a: 2 b: 3 links: 4 }
    })pb");
}

nccl::Communicator On(const v1::Cluster& cluster, std::int64_t ranks, std::int64_t nodes,
                      nccl::Twins twins = nccl::Twins::kActive) {
  const absl::StatusOr<nccl::Communicator> comm =
      CommunicatorOn(cluster, nccl::EvenPlacement(cluster, ranks, nodes), twins);
  EXPECT_TRUE(comm.ok()) << comm.status();
  return comm.ok() ? *comm : nccl::Communicator();
}

double Progress(const nccl::Communicator& comm, Operation operation) {
  const nccl::Model model(comm, nccl::Tables("2.21"), nccl::TimesOf(comm), {});
  const absl::StatusOr<nccl::Price> price = model.PriceOf(operation, kGiB);
  EXPECT_TRUE(price.ok()) << price.status();
  return price.ok() ? SecondsFromTime(price->progress) : 0;
}

// Two sockets of four GPUs: of an all-to-all 4 x 4 pairs with S / 8 each go from one to the other, over 33.28 GB/s.
TEST(NodeLinks, SocketsByHand) {
  EXPECT_NEAR(Progress(On(Pcie(), 8, 1), Operation::kAllToAll), 2 * kSize / 33.28e9, 1e-9);
  // Four GPUs are behind two switches of one socket: 2 x 2 pairs with S / 4 go up from one, over 27.72 GB/s. The other
  // socket's do the same over links of their own.
  for (const nccl::Twins twins : {nccl::Twins::kIdle, nccl::Twins::kActive}) {
    EXPECT_NEAR(Progress(On(Pcie(), 4, 1, twins), Operation::kAllToAll), kSize / 27.72e9, 1e-9);
  }
  // Two groups of five would not fit; of three they do, and the second, on GPUs 3 to 5, has one GPU on the first
  // socket.
  EXPECT_GT(On(Pcie(), 3, 1).node_seconds.all_to_all, On(Pcie(), 3, 1, nccl::Twins::kIdle).node_seconds.all_to_all);
}

// Nodes with pairs and nodes with PCIe alone: each sort is described as if all nodes were of it, the slower one counts
// where it is the slower.
TEST(NodeLinks, SortsThatDiffer) {
  const v1::Cluster pairs = Direct();
  v1::Cluster pcie = pairs;
  pcie.mutable_node()->clear_nvlink_pair();
  const std::vector<NodeSort> sorts = {{pairs.node(), 4}, {pcie.node(), 4}, {pairs.node(), 4}};
  const absl::StatusOr<nccl::Views> views =
      ViewsOn(pairs, sorts, nccl::EvenPlacement(pairs, 8, 2), nccl::Twins::kActive);
  ASSERT_TRUE(views.ok()) << views.status();
  ASSERT_EQ(views->size(), 2u);
  EXPECT_EQ(views->front(), On(pairs, 8, 2));
  EXPECT_EQ(views->back(), On(pcie, 8, 2));
  EXPECT_GT(views->back().node_seconds.inside_nodes, views->front().node_seconds.inside_nodes);
  EXPECT_EQ(nccl::CommonOf(*views).node_seconds.inside_nodes, views->back().node_seconds.inside_nodes);
  EXPECT_EQ(nccl::CommonOf(*views).uplink_bandwidth, views->front().uplink_bandwidth);
}

// A pair's four of twelve links carry 91 GB/s: all of a message, a quarter of an all-to-all's buffer, of which kernels
// reach their share on all links of a port at once.
TEST(NodeLinks, PairsByHand) {
  const nccl::Communicator comm = On(Direct(), 4, 1);
  EXPECT_NEAR(Progress(comm, Operation::kSendRecv), kSize / 91e9, 1e-9);
  const double quarter = kSize / 4 / (91e9 * nccl::TimesOf(comm).nvlink_share().value());
  EXPECT_NEAR(Progress(comm, Operation::kAllToAll), quarter, 1e-2 * quarter);
}

// Rings over all six links of a GPU are bound by its port; over PCIe they would be by 27.72 GB/s.
TEST(NodeLinks, RingsOfAMesh) {
  EXPECT_NEAR(On(Mesh(), 8, 1).node_seconds.ring, 1 / 273e9, 1e-6 / 273e9);
  EXPECT_NEAR(On(Mesh(), 4, 1).node_seconds.ring, 1 / (273e9 * 4 / 6), 1e-6 / 273e9);
  EXPECT_NEAR(On(Pcie(), 8, 1).node_seconds.ring, 1 / 27.72e9, 1e-6 / 27.72e9);
}

TEST(NodeLinks, SwitchesHaveNoBound) {
  const nccl::Communicator comm = On(ClusterOf("dgx-h100-ndr"), 16, 2);
  EXPECT_EQ(comm.node_seconds.ring, 0);
  EXPECT_EQ(comm.node_seconds.all_to_all, 0);
}

// A group on the whole graph of its cluster.
struct Bench {
  Bench(v1::Cluster given, std::int64_t ranks, std::int64_t nodes)
      : cluster(std::move(given)),
        topology(*topology::Topology::Build(cluster)),
        routes(*topology::Routes::Build(topology)),
        groups(routes, *PlaceGroups(cluster, {.ranks = ranks, .nodes = nodes})),
        comm(On(cluster, ranks, nodes, nccl::Twins::kIdle)) {}

  Time Alone(const std::vector<Phase>& phases) {
    const absl::StatusOr<ConcurrentTimes> times = groups.Run(phases);
    EXPECT_TRUE(times.ok()) << times.status();
    return times.ok() ? times->last : Time();
  }

  v1::Cluster cluster;
  topology::Topology topology;
  topology::Routes routes;
  ConcurrentGroups groups;
  nccl::Communicator comm;
};

struct Case {
  const char* name;
  v1::Cluster cluster;
  std::int64_t ranks, nodes;
};

std::vector<Case> Grid() {
  std::vector<Case> cases;
  for (const auto& [ranks, nodes] : {std::pair(2, 1), {4, 1}, {8, 1}, {16, 2}, {8, 2}, {2, 2}, {48, 6}, {16, 16}}) {
    if (ranks > 16 && std::getenv("ORRERY_SANITIZER") != nullptr) continue;
    cases.push_back({"PCIe", Pcie(), ranks, nodes});
    v1::Cluster one_nic = Pcie();
    one_nic.mutable_node()->set_nics(1);
    cases.push_back({"PCIe, one NIC", one_nic, ranks, nodes});
    cases.push_back({"mesh", Mesh(), ranks, nodes});
  }
  for (const auto& [ranks, nodes] : {std::pair(2, 1), {4, 1}, {8, 2}, {40, 10}, {3, 3}}) {
    cases.push_back({"direct", Direct(), ranks, nodes});
  }
  return cases;
}

// To the picosecond: what a link would have to carry faster than it can would make the group on the graph slower.
TEST(NodeLinks, AloneIsThePrice) {
  constexpr Operation kOperations[] = {Operation::kAllReduce, Operation::kReduceScatter, Operation::kAllGather,
                                       Operation::kBroadcast, Operation::kAllToAll,      Operation::kSendRecv};
  const v1::NcclVersion& version = nccl::Tables("2.27");
  for (const Case& at : Grid()) {
    Bench bench(at.cluster, at.ranks, at.nodes);
    const nccl::Channels channels = nccl::SearchChannels(bench.comm, version, {});
    const nccl::Tuner tuner(bench.comm, channels, version, false);
    for (const Operation operation : kOperations) {
      for (const nccl::Variant& variant : tuner.Candidates(operation)) {
        nccl::ModelOptions options;
        options.forced = variant;
        const nccl::Model model(bench.comm, version, nccl::TimesOf(bench.comm), options);
        for (const std::int64_t bytes : {std::int64_t{8}, std::int64_t{1000000}, kGiB}) {
          const absl::StatusOr<nccl::Price> price = model.PriceOf(operation, bytes);
          ASSERT_TRUE(price.ok()) << price.status();
          const absl::StatusOr<Phase> phase = PhaseOf(operation, bytes, *price, bench.groups.groups().front());
          ASSERT_TRUE(phase.ok()) << phase.status();
          EXPECT_EQ(bench.Alone({*phase}), price->total())
              << at.name << ", " << at.ranks << " on " << at.nodes << ": " << nccl::OperationName(operation) << " "
              << nccl::AlgorithmName(variant.algorithm) << " " << nccl::ProtocolName(variant.protocol) << " " << bytes;
        }
      }
    }
  }
}

// Likewise the two phases.
TEST(NodeLinks, HierarchicalAloneIsThePrice) {
  for (const Case& at : Grid()) {
    Bench bench(at.cluster, at.ranks, at.nodes);
    const nccl::HierarchicalAllToAll model(bench.comm, nccl::Tables("2.27"), nccl::TimesOf(bench.comm), {});
    const absl::StatusOr<nccl::TwoPhasePrice> price = model.PriceOf(kGiB);
    ASSERT_TRUE(price.ok()) << price.status();
    const auto footprint = [](const nccl::Price& phase) {
      return Footprint{.operation = Operation::kAllToAll, .variant = phase.variant, .bytes = kGiB};
    };
    const std::vector<Phase> phases = {
        {footprint(price->inside), Among::kNode, price->inside.fixed, price->inside.progress},
        {footprint(price->between), Among::kRail, price->between.fixed, price->between.progress}};
    EXPECT_EQ(bench.Alone(phases), price->total()) << at.name << ", " << at.ranks << " on " << at.nodes;
  }
}

// Other groups never make a price lower.
TEST(NodeLinks, TwinsCost) {
  for (const Case& at : Grid()) {
    for (const Operation operation : {Operation::kAllReduce, Operation::kAllToAll, Operation::kSendRecv}) {
      EXPECT_GE(Progress(On(at.cluster, at.ranks, at.nodes), operation),
                Progress(On(at.cluster, at.ranks, at.nodes, nccl::Twins::kIdle), operation))
          << at.name << ", " << at.ranks << " on " << at.nodes << ": " << nccl::OperationName(operation);
    }
  }
}

}  // namespace
}  // namespace orrery::collectives
