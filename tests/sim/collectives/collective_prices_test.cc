// Prices of a run's groups: those of nccl::Model on the group's placement, and messages by hand.
#include "sim/collectives/collective_prices.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/sim/collectives/nccl/fixture.h"

namespace orrery::collectives {
namespace {

using layout::Placement;
using nccl::Operation;
using nccl::Twins;

v1::Cluster Shipped(const std::string& preset) {
  v1::Cluster cluster;
  EXPECT_TRUE(spec::LoadPreset(preset, nccl::Shipped(), &cluster).ok());
  return cluster;
}

const Bytes kGB{1'000'000'000};

TEST(CollectivePricesTest, AreThoseOfTheModel) {
  const v1::Cluster cluster = Shipped("dgx-h100-ndr");
  for (const Placement& group : {Placement{8, 1, 8, 8, 1}, Placement{16, 2, 8, 8, 1}, Placement{4, 4, 1, 1, 1}}) {
    const absl::StatusOr<nccl::Communicator> comm = nccl::DescribeCommunicator(cluster, group);
    ASSERT_TRUE(comm.ok());
    const nccl::Model model(*comm, nccl::Tables("2.21"), cluster.accelerator().nccl_times(), {});
    const CollectivePrices prices(cluster, nccl::Tables("2.21"), Twins::kActive);
    for (const std::int64_t bytes : {8, 1'000'000, 1'000'000'000}) {
      const absl::StatusOr<nccl::Price> price = model.PriceOf(Operation::kAllReduce, bytes);
      ASSERT_TRUE(price.ok());
      const Price found = prices.PriceOf(Operation::kAllReduce, Bytes(bytes), group);
      EXPECT_EQ(TimeFromSeconds(found.seconds), price->total());
      EXPECT_EQ(TimeFromSeconds(found.progress), price->progress);
      EXPECT_EQ(found.footprint, (Footprint{Operation::kAllReduce, price->variant, bytes}));
    }
    EXPECT_TRUE(prices.status().ok());
  }
}

TEST(CollectivePricesTest, OneRankOrNoBytesAreFree) {
  const v1::Cluster cluster = Shipped("dgx-h100-ndr");
  const CollectivePrices prices(cluster, nccl::Tables("2.21"), Twins::kActive);
  EXPECT_EQ(prices.Seconds(Operation::kAllReduce, kGB, {}), 0);
  EXPECT_EQ(prices.Seconds(Operation::kAllGather, Bytes(0), {8, 1, 8, 8, 1}), 0);
  EXPECT_EQ(prices.MessageSeconds(kGB, 3, 3), 0);
}

// MegaScale's network: A100, NVLink 273 GB/s, of which a message reaches 0.72; NICs of 23.5 GB/s; 2 us over a NIC and
// 1 us per switch, 64 nodes to a leaf. A message starts with NCCL's 8.4 us and a step: 12 us over NVLink, 14 over the
// network, two switches more between leaves. Two channels of 12.1 GB/s carry it to another node.
TEST(CollectivePricesTest, MessagesByHand) {
  v1::Cluster cluster = Shipped("megascale-clos");
  const auto message = [&](std::int64_t from, std::int64_t to, Twins twins = Twins::kActive) {
    return CollectivePrices(cluster, nccl::Tables("2.18"), twins).MessageSeconds(kGB, from, to);
  };
  const double inside = 8.4e-6 + 12e-6 + 1 / (0.72 * 273);
  const double leaf = 8.4e-6 + 14e-6;
  EXPECT_NEAR(message(0, 7), inside, 1e-9);
  EXPECT_NEAR(message(0, 8), leaf + 1 / 23.5, 1e-9);
  EXPECT_NEAR(message(511, 512), leaf + 2e-6 + 1 / 23.5, 1e-9);  // node 63 to node 64
  // 4 : 1 above the leaves counts for what leaves them, where all GPUs send.
  cluster.mutable_fabric()->set_oversubscription(4);
  EXPECT_NEAR(message(0, 8), leaf + 1 / 23.5, 1e-9);
  EXPECT_NEAR(message(511, 512), leaf + 2e-6 + 4 / 23.5, 1e-9);
  EXPECT_NEAR(message(511, 512, Twins::kIdle), leaf + 2e-6 + 1 / 23.5, 1e-9);
  // Two GPUs to a NIC: half of it each, where both send. PCIe then serves one NIC each.
  cluster.mutable_node()->set_nics(4);
  EXPECT_NEAR(message(0, 8), leaf + 2 / 23.5, 1e-9);
  EXPECT_NEAR(message(0, 8, Twins::kIdle), leaf + 1 / 23.5, 1e-9);
  // A message has an efficiency of its own.
  cluster.mutable_node()->mutable_nic()->set_message_efficiency(0.5);
  EXPECT_NEAR(message(0, 8, Twins::kIdle), leaf + 1 / 12.5, 1e-9);
}

// A wire longer than a step counts instead of it: 30 us over NICs of 29 us and a switch of 1 us, 20 over NVLink. A byte
// starts as a ring's LL does, 100 kB as its Simple.
TEST(CollectivePricesTest, LongWiresCountInsteadOfSteps) {
  v1::Cluster cluster = Shipped("megascale-clos");
  cluster.mutable_node()->mutable_nic()->set_latency(29e-6);
  cluster.mutable_node()->mutable_nvlink()->set_latency(20e-6);
  const CollectivePrices prices(cluster, nccl::Tables("2.18"), Twins::kActive);
  EXPECT_NEAR(prices.MessageSeconds(Bytes(1), 0, 8), 6.6e-6 + 30e-6, 1e-9);
  EXPECT_NEAR(prices.MessageSeconds(Bytes(1), 0, 1), 6.6e-6 + 20e-6, 1e-9);
  const auto start = [&](std::int64_t to) {
    const Price price = prices.MessagePrice(Bytes(100'000), 0, to);
    return price.seconds - price.progress;
  };
  EXPECT_NEAR(start(8), 8.4e-6 + 30e-6, 1e-9);
  EXPECT_NEAR(start(1), 8.4e-6 + 20e-6, 1e-9);
}

// One rank on each of four nodes, large: the ring moves 3/4 of it through one NIC. With half a NIC per GPU, twice that
// where the other groups send, too.
TEST(CollectivePricesTest, GroupsShareTheNicsOfANode) {
  v1::Cluster cluster = Shipped("megascale-clos");
  const Placement group{4, 4, 1, 1, 1};
  const auto gather = [&](Twins twins) {
    return CollectivePrices(cluster, nccl::Tables("2.18"), twins).Seconds(Operation::kAllGather, kGB, group);
  };
  const double whole = gather(Twins::kActive);
  EXPECT_EQ(gather(Twins::kIdle), whole);
  EXPECT_GE(whole, 0.75 / 23.5);
  cluster.mutable_node()->set_nics(4);
  EXPECT_EQ(gather(Twins::kIdle), whole);
  EXPECT_GE(gather(Twins::kActive), 2 * 0.75 / 23.5);
}

// NICs slower than any speed that the search tries still carry a ring.
TEST(CollectivePricesTest, SlowNetworksHaveOneChannel) {
  v1::Cluster cluster = Shipped("megascale-clos");
  cluster.mutable_node()->mutable_nic()->set_bandwidth(0.05e9);
  const CollectivePrices prices(cluster, nccl::Tables("2.18"), Twins::kActive);
  const double seconds = prices.Seconds(Operation::kAllGather, kGB, {4, 4, 1, 1, 1});
  EXPECT_TRUE(prices.status().ok()) << prices.status();
  EXPECT_GE(seconds, 0.75 / (0.94 * 0.05));
  EXPECT_LT(seconds, 1.1 * 0.75 / (0.94 * 0.05));
}

TEST(CollectivePricesTest, SaysWhatHasNoPrice) {
  v1::Cluster cluster = Shipped("megascale-clos");
  cluster.mutable_accelerator()->clear_compute_capability();
  const CollectivePrices prices(cluster, nccl::Tables("2.18"), Twins::kActive);
  EXPECT_EQ(prices.Seconds(Operation::kAllGather, kGB, {4, 4, 1, 1, 1}), 0);
  EXPECT_EQ(prices.status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace orrery::collectives
