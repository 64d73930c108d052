// Operations made of messages, and versions that are not listed: by hand.
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "sim/collectives/nccl/hierarchical.h"
#include "tests/sim/collectives/nccl/fixture.h"

namespace orrery::collectives::nccl {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kGiB = 1 << 30;
constexpr double kNic = 47.5e9;  // bytes/s of a GPU of dgx-h100-ndr
constexpr double kPort = 396e9;  // of its NVLink
constexpr double kSize = kGiB;

// Launch 1 us, a batch of messages 10 us over NVLink and 40 over the network, channels of 30 GB/s.
v1::NcclTimes Round() {
  v1::NcclTimes times = TimesFrom(90);
  times.mutable_launch()->set_value(1e-6);
  times.mutable_nvlink_step()->set_value(10e-6);
  times.mutable_net_step()->set_value(40e-6);
  times.mutable_channel_bandwidth()->set_value(30e9);
  times.mutable_nvlink_share()->set_value(1);
  return times;
}

Price PriceOn(const Communicator& comm, Operation operation) {
  const v1::NcclTimes times = Round();
  const Model model(comm, Tables("2.21"), times, {});
  const absl::StatusOr<Price> price = model.PriceOf(operation, kGiB);
  EXPECT_TRUE(price.ok()) << price.status();
  return price.ok() ? *price : Price();
}

double Progress(const Communicator& comm, Operation operation) {
  return SecondsFromTime(PriceOn(comm, operation).progress);
}

// 48 nodes under leaves of 32 and 16: of what the 32 send, a third goes to the other 16, over uplinks a quarter as wide
// as 32 nodes' NICs; of what the 16 send, two thirds do, over uplinks of the same width: S 16 2/3 / 32 = S / 3 again.
TEST(Messages, AllToAllAcrossLeaves) {
  Communicator comm = On("dgx-h100-ndr", 384, 48);
  EXPECT_NEAR(Progress(comm, Operation::kAllToAll), kSize * 47 / 48 / kNic, 1e-9);
  comm.oversubscription = 4;
  EXPECT_NEAR(Progress(comm, Operation::kAllToAll), kSize / 3 * 4 / kNic, 1e-9);
  EXPECT_NEAR(PriceOn(comm, Operation::kAllToAll).bytes.uplink, kSize / 3, 1);
  // Two full leaves: a half leaves.
  comm = On("dgx-h100-ndr", 512, 64);
  comm.oversubscription = 4;
  EXPECT_NEAR(Progress(comm, Operation::kAllToAll), kSize / 2 * 4 / kNic, 1e-9);
}

// Four nodes of a GPU, each under a leaf of its own: 3/4 S over a NIC of 47.5 GB/s behind PCIe of 9, and over uplinks
// of 47.5 / oversubscription. The slower one counts.
TEST(Messages, SlowPcieAndNarrowUplinks) {
  for (const auto& [oversubscription, slowest] : {std::pair(1.0, 9e9), {2.0, 9e9}, {5.0, 9e9}, {10.0, 4.75e9}}) {
    v1::Cluster cluster = Preset("dgx-h100-ndr");
    cluster.set_nodes(4);
    v1::Node& node = *cluster.mutable_node();
    node.set_gpus(1);
    node.set_nics(1);
    node.mutable_pcie()->set_bandwidth(10e9);
    node.mutable_pcie()->set_efficiency(0.9);
    cluster.mutable_fabric()->set_nodes_per_leaf(1);
    cluster.mutable_fabric()->set_oversubscription(oversubscription);
    const absl::StatusOr<Communicator> comm = DescribeCommunicator(cluster, EvenPlacement(cluster, 4, 4));
    ASSERT_TRUE(comm.ok()) << comm.status();
    EXPECT_NEAR(Progress(*comm, Operation::kAllToAll), kSize * 3 / 4 / slowest, 1e-9) << oversubscription;
    // In a ring, too, 3/4 S.
    ModelOptions ring;
    ring.forced = {v1::RING, v1::SIMPLE};
    const v1::NcclTimes times = Round();
    const Model model(*comm, Tables("2.21"), times, ring);
    EXPECT_NEAR(SecondsFromTime(model.PriceOf(Operation::kAllGather, kGiB)->progress), kSize * 3 / 4 / slowest,
                0.01 * kSize / slowest)
        << oversubscription;
  }
}

// Rank r sends to r + 1: one message of a node goes over the network, and one of a leaf leaves it, over the uplinks of
// 32 NICs of its rail: 1/4 of these still carry it easily, 1/64 is half of one NIC.
TEST(Messages, SendRecvCrossesALeafOnce) {
  Communicator comm = On("dgx-h100-ndr", 64, 64);
  comm.oversubscription = 4;
  const double alone = Progress(comm, Operation::kSendRecv);
  const Price price = PriceOn(comm, Operation::kSendRecv);
  EXPECT_NEAR(price.bytes.nic, kSize, 1);
  EXPECT_NEAR(price.bytes.uplink, kSize / 32, 1);
  comm.oversubscription = 1;
  EXPECT_NEAR(Progress(comm, Operation::kSendRecv), alone, 1e-12);
  comm.oversubscription = 64;
  EXPECT_NEAR(Progress(comm, Operation::kSendRecv), kSize * 2 / kNic, 1e-9);
  // Eight GPUs of two nodes: the message between nodes has a NIC to itself, the others NVLink.
  EXPECT_NEAR(Progress(On("dgx-h100-ndr", 16, 2), Operation::kSendRecv), kSize / kNic, 1e-9);
  // Two GPUs share a NIC, and only one of them uses it.
  Communicator shared = On("dgx-h100-ndr", 16, 2);
  shared.nics = 4;
  EXPECT_NEAR(Progress(shared, Operation::kSendRecv), kSize / kNic, 1e-9);
  EXPECT_NEAR(PriceOn(shared, Operation::kSendRecv).bytes.nic, kSize / 2, 1);
}

// 50 GB/s of a NIC want four channels of 14 GB/s each for a peer, but 16 channels serve all ranks four times over: two
// of 32 ranks, one of 64, which moves 30 GB/s.
TEST(Messages, ChannelsForAPeerAreFewerAmongMany) {
  EXPECT_NEAR(Progress(On("dgx-h100-ndr", 32, 4), Operation::kSendRecv), kSize / kNic, 1e-9);
  EXPECT_NEAR(Progress(On("dgx-h100-ndr", 64, 8), Operation::kSendRecv), kSize / 30e9, 1e-9);
}

v1::NcclProtocol ProtocolOn(const Communicator& comm, Operation operation, std::int64_t bytes) {
  const v1::NcclTimes times = Round();
  const Model model(comm, Tables("2.21"), times, {});
  const absl::StatusOr<Price> price = model.PriceOf(operation, bytes);
  EXPECT_TRUE(price.ok()) << price.status();
  return price.ok() ? price->variant.protocol : v1::NCCL_PROTOCOL_UNSPECIFIED;
}

TEST(Messages, LlUpTo16KiBOfAChannel) {
  constexpr std::int64_t kKiB = 1024;
  const Communicator comm = On("dgx-h100-ndr", 8, 1);
  EXPECT_EQ(ProtocolOn(comm, Operation::kSendRecv, 16 * kKiB), v1::LL);
  EXPECT_EQ(ProtocolOn(comm, Operation::kSendRecv, 16 * kKiB + 1), v1::SIMPLE);
  EXPECT_EQ(ProtocolOn(comm, Operation::kAllToAll, 128 * kKiB), v1::LL);
  EXPECT_EQ(ProtocolOn(comm, Operation::kAllToAll, 128 * kKiB + 8), v1::SIMPLE);
  // Channels share a message from 128 KiB on: never so finely. Over PCIe inside a node two of a peer do from 32 KiB on.
  EXPECT_EQ(ProtocolOn(comm, Operation::kSendRecv, 128 * kKiB), v1::SIMPLE);
  const Communicator pcie = On("pcie-server", 4, 1);
  EXPECT_EQ(ProtocolOn(pcie, Operation::kSendRecv, 32 * kKiB), v1::LL);
  EXPECT_EQ(ProtocolOn(pcie, Operation::kSendRecv, 32 * kKiB + 1), v1::SIMPLE);
}

// A launch, the ring's base and one hop in NCCL's tables, 6.6 + 0.6 us; over the network 2.7. Then twice the bytes at
// 0.72 of the port.
TEST(Messages, LlByHand) {
  const v1::NcclTimes times = Round();
  ModelOptions options;
  options.forced.protocol = v1::LL;
  const Communicator comm = On("dgx-h100-ndr", 8, 1);
  const Model model(comm, Tables("2.21"), times, options);
  EXPECT_NEAR(SecondsFromTime(model.PriceOf(Operation::kSendRecv, 8)->total()), 8.2e-6, 1e-9);
  const absl::StatusOr<Price> large = model.PriceOf(Operation::kSendRecv, kGiB);
  ASSERT_TRUE(large.ok()) << large.status();
  EXPECT_NEAR(SecondsFromTime(large->progress), 2 * kSize / (0.72 * kPort), 1e-9);
  EXPECT_NEAR(large->bytes.nvlink, 2 * kSize, 1);
  const Communicator two = On("dgx-h100-ndr", 16, 2);
  EXPECT_NEAR(SecondsFromTime(Model(two, Tables("2.21"), times, options).PriceOf(Operation::kSendRecv, 8)->total()),
              10.3e-6, 1e-9);
  options.forced.protocol = v1::LL128;
  EXPECT_THAT(Model(comm, Tables("2.21"), times, options).PriceOf(Operation::kSendRecv, 8).status().message(),
              HasSubstr("LL128 cannot carry it out"));
}

// Four nodes of eight: 7/8 S over NVLink, one batch; then 3/4 S over the rail's NIC, one batch in place of four.
TEST(Messages, HierarchicalAllToAll) {
  const v1::NcclTimes times = Round();
  const Communicator comm = On("dgx-h100-ndr", 32, 4);
  const HierarchicalAllToAll model(comm, Tables("2.21"), times, {});
  const absl::StatusOr<TwoPhasePrice> price = model.PriceOf(kGiB);
  ASSERT_TRUE(price.ok()) << price.status();
  EXPECT_NEAR(SecondsFromTime(price->inside.total()), 11e-6 + kSize * 7 / 8 / kPort, 1e-9);
  EXPECT_NEAR(SecondsFromTime(price->between.total()), 41e-6 + kSize * 3 / 4 / kNic, 1e-9);
  EXPECT_EQ(price->Sum().total(), price->total());
  EXPECT_NEAR(price->Sum().bytes.nvlink, kSize * 7 / 8, 1);
  EXPECT_NEAR(price->Sum().bytes.nic, kSize * 3 / 4, 1);
  // Small: two launches and two batches against one launch and four batches of the network.
  EXPECT_NEAR(SecondsFromTime(model.PriceOf(8)->total()), 52e-6, 0.1e-6);
  EXPECT_NEAR(SecondsFromTime(Model(comm, Tables("2.21"), times, {}).PriceOf(Operation::kAllToAll, 8)->total()), 161e-6,
              0.1e-6);
  // One node is one phase.
  const HierarchicalAllToAll one(On("dgx-h100-ndr", 8, 1), Tables("2.21"), times, {});
  EXPECT_EQ(one.PriceOf(kGiB)->between.total(), Time());
  const HierarchicalAllToAll uneven(On("dgx-h100-ndr", 15, 2), Tables("2.21"), times, {});
  EXPECT_THAT(uneven.PriceOf(kGiB).status().message(), HasSubstr("15 ranks on 2 nodes; allowed: as many on every"));
}

// A GPU uses the NICs nearest to it. One GPU, two NICs, two PCIe switches: the second NIC is at the other switch. Three
// GPUs and six NICs: two GPUs share three NICs, one each at least. As many NICs as GPUs on every switch: as counted.
TEST(Communicators, NicsThatAreNear) {
  const auto nics = [](std::int64_t gpus, std::int64_t of_node, std::int64_t switches) {
    v1::Cluster cluster = Preset("dgx-h100-ndr");
    v1::Node& node = *cluster.mutable_node();
    node.set_gpus(gpus);
    node.set_nics(of_node);
    node.set_pcie_switches(switches);
    const absl::StatusOr<Communicator> comm = DescribeCommunicator(cluster, EvenPlacement(cluster, 2 * gpus, 2));
    EXPECT_TRUE(comm.ok()) << comm.status();
    return comm.ok() ? comm->nics : 0;
  };
  EXPECT_EQ(nics(1, 2, 2), 1);
  EXPECT_EQ(nics(1, 2, 1), 2);
  EXPECT_EQ(nics(3, 6, 2), 3);
  EXPECT_EQ(nics(8, 16, 4), 16);
  EXPECT_EQ(nics(8, 4, 8), 4);
}

// NCCL's constants are those of an architecture, and serve no older one.
TEST(Communicators, OlderThanTheConstants) {
  v1::Cluster cluster = Preset("dgx-h100-ndr");
  cluster.mutable_accelerator()->set_compute_capability(70);
  EXPECT_THAT(DescribeCommunicator(cluster, EvenPlacement(cluster, 8, 1)).status().message(),
              HasSubstr("compute_capability: found 70; allowed: from 90 on, which nccl_times sm90 serve"));
}

TEST(Versions, WhichTablesStandIn) {
  EXPECT_EQ(Shelf().CoverageOf("2.21.5+cuda12.4"), Coverage::kListed);
  EXPECT_EQ(Shelf().StandIn("2.20-2.21"), "");
  EXPECT_EQ(Shelf().CoverageOf("2.22"), Coverage::kBetween);
  EXPECT_EQ(Shelf().StandIn("2.22"), "NCCL 2.22 is not listed: the tables of 2.21 are used");
  EXPECT_EQ(Shelf().CoverageOf("3.1"), Coverage::kOutside);
  EXPECT_EQ(Shelf().StandIn("2.99"), "NCCL 2.99 is newer than all that are listed: the tables of 2.30 are used");
  EXPECT_EQ(Shelf().StandIn("2.4"), "NCCL 2.4 is older than all that are listed: the tables of 2.18 are used");
  for (const char* nonsense : {"", "2", "2.", "2.21.", "-2.21", "2.21-", "2.21.x", "2.21 ", "v2.21", "0.5", "2.-1"}) {
    EXPECT_THAT(Shelf().Version(nonsense).status().message(), HasSubstr("allowed: a number such as 2.18")) << nonsense;
  }
}

}  // namespace
}  // namespace orrery::collectives::nccl
