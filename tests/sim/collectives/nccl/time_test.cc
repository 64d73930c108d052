// Times by hand from the formulas at the top of time.h, and what must hold for all of them.
#include <cmath>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/sim/collectives/nccl/fixture.h"

namespace orrery::collectives::nccl {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kGiB = 1 << 30;

double Seconds(const std::string& cluster, std::int64_t ranks, std::int64_t nodes, const std::string& version,
               Operation operation, std::int64_t bytes, const ModelOptions& options = {}) {
  const Communicator comm = On(cluster, ranks, nodes);
  const Model model(comm, Tables(version), TimesOf(comm), options);
  const absl::StatusOr<Price> price = model.PriceOf(operation, bytes);
  EXPECT_TRUE(price.ok()) << price.status();
  return price.ok() ? SecondsFromTime(price->total()) : 0;
}

double BusBandwidth(const std::string& cluster, std::int64_t ranks, std::int64_t nodes, const std::string& version,
                    std::int64_t bytes) {
  return static_cast<double>(bytes) / Seconds(cluster, ranks, nodes, version, Operation::kAllReduce, bytes) *
         BusFactor(Operation::kAllReduce, ranks) / 1e9;
}

// Round constants: launch 1 us, steps of 10 us over NVLink and 40 over the network, channels of 20 GB/s.
v1::NcclTimes Round() {
  v1::NcclTimes times = TimesFrom(90);
  times.mutable_launch()->set_value(1e-6);
  times.mutable_nvlink_step()->set_value(10e-6);
  times.mutable_net_step()->set_value(40e-6);
  times.mutable_channel_bandwidth()->set_value(20e9);
  times.mutable_nvlink_share()->set_value(1);
  times.mutable_nvls_launch()->set_value(20e-6);
  times.mutable_nvls_chunk()->set_value(1e-6);
  times.mutable_nvls_channel_bandwidth()->set_value(16e9);
  return times;
}

// 8 H100, Ring Simple, 24 channels. 192 MiB are 1 MiB per rank and channel, one loop of 14 steps: a channel's own limit
// 10 us + 1 MiB / 20 GB/s = 62.43 us; all 24 on a link of 396 GB/s 63.55 us; together (62.43^4 + 63.55^4)^(1/4) =
// 74.92 us. 1 + 8.4 + 14 x 74.92 = 1058.2 us.
TEST(Time, RingByHand) {
  const Communicator comm = On("dgx-h100-ndr", 8, 1);
  const v1::NcclTimes times = Round();
  ModelOptions options;
  options.forced = {v1::RING, v1::SIMPLE};
  const Model model(comm, Tables("2.21"), times, options);
  EXPECT_NEAR(SecondsFromTime(model.PriceOf(Operation::kAllReduce, 192 * kMiB)->total()) * 1e6, 1058.2, 0.5);
  // Loops follow each other: 768 MiB are two of 384 MiB, with chunks of 2 MiB: 114.86 and 127.10 us give 144.4;
  // 1 + 8.4 + 28 x 144.4 = 4052.
  EXPECT_NEAR(SecondsFromTime(model.PriceOf(Operation::kAllReduce, 768 * kMiB)->total()) * 1e6, 4052, 3);
  // Half the steps: 1 + 8.4 + 7 x 74.92.
  EXPECT_NEAR(SecondsFromTime(model.PriceOf(Operation::kAllGather, 192 * kMiB)->total()) * 1e6, 533.9, 0.3);
}

// 8 H100, NVLS, 16 channels, 8 heads: below 1 GiB chunks of 64 KiB, a loop 8 MiB. 256 MiB: 32 loops and one to fill,
// of 8 x (1 us + 64 KiB / 16 GB/s = 4.096 us): 1 + 20 + 33 x 40.77 = 1366.3 us. From 1 GiB on chunks of 128 KiB:
// 1 + 20 + 65 x 8 x (1 + 8.192) = 4800.8 us, which is less than 129 x 40.77.
TEST(Time, NvlsByHand) {
  const Communicator comm = On("dgx-h100-ndr", 8, 1);
  const v1::NcclTimes times = Round();
  const Model model(comm, Tables("2.21"), times, {});
  EXPECT_NEAR(SecondsFromTime(model.PriceOf(Operation::kAllReduce, 256 * kMiB)->total()) * 1e6, 1366.3, 0.5);
  EXPECT_NEAR(SecondsFromTime(model.PriceOf(Operation::kAllReduce, kGiB)->total()) * 1e6, 4800.8, 0.5);
  // No size takes longer than a larger one.
  EXPECT_LE(model.PriceOf(Operation::kAllReduce, kGiB - 1)->total(),
            model.PriceOf(Operation::kAllReduce, kGiB)->total());
}

// busbw at large sizes, published: 8 H100 ring 363-367 and NVLS 479-482 GB/s, two nodes 467 (NVLSTree); 8 B200 838-846;
// GB200 racks 1, 2, 20: 835, 810, 406.
TEST(Time, ScalesOut) {
  EXPECT_NEAR(BusBandwidth("dgx-h100-ndr", 8, 1, "2.21", 8 * kGiB), 480, 0.05 * 480);
  EXPECT_NEAR(BusBandwidth("dgx-h100-ndr", 16, 2, "2.21", 8 * kGiB), 467, 0.05 * 467);
  EXPECT_NEAR(BusBandwidth("dgx-b200-ndr", 8, 1, "2.27", 16 * kGiB), 842, 0.05 * 842);
  EXPECT_NEAR(BusBandwidth("gb200-nvl72", 72, 1, "2.26", 8 * kGiB), 835, 0.05 * 835);
  EXPECT_NEAR(BusBandwidth("gb200-nvl72", 144, 2, "2.26", 16 * kGiB), 810, 0.05 * 810);
  EXPECT_NEAR(BusBandwidth("gb200-nvl72", 1440, 20, "2.26", 16 * kGiB), 406, 0.15 * 406);
}

// Two nodes of B300 at 800 Gb/s per GPU: 15/16 x 2 x 96 = 180 GB/s of busbw, measured 181.
TEST(Time, AllToAllReachesTheNics) {
  const double seconds = Seconds("dgx-b300-xdr", 16, 2, "2.28", Operation::kAllToAll, 8 * kGiB);
  EXPECT_NEAR(8 * kGiB / seconds * 15 / 16 / 1e9, 180, 2);
}

struct Case {
  const char* cluster;
  std::int64_t ranks, nodes;
};
constexpr Case kCases[] = {{"selene", 2, 1},        {"selene", 8, 1},          {"selene", 64, 8},
                           {"dgx-h100-ndr", 5, 1},  {"dgx-h100-ndr", 8, 1},    {"dgx-h100-ndr", 16, 2},
                           {"dgx-h100-ndr", 10, 2}, {"dgx-h100-ndr", 512, 64}, {"dgx-h100-ndr", 16, 16},
                           {"dgx-b200-ndr", 16, 2}, {"gb200-nvl72", 72, 1},    {"gb200-nvl72", 144, 2}};
constexpr Operation kOperations[] = {Operation::kAllReduce, Operation::kReduceScatter, Operation::kAllGather,
                                     Operation::kBroadcast, Operation::kReduce,        Operation::kAllToAll,
                                     Operation::kSendRecv};

// No link carries more than its capacity, and a larger operation takes no less.
TEST(Time, LinksAndSizes) {
  for (const Case& at : kCases) {
    const Communicator comm = On(at.cluster, at.ranks, at.nodes);
    for (const bool sharp : {false, true}) {
      for (const char* version : {"2.18", "2.23", "2.27", "2.30"}) {
        const Channels channels = SearchChannels(comm, Tables(version), {});
        const Tuner tuner(comm, channels, Tables(version), sharp);
        const TimeModel time(comm, channels, Tables(version), TimesOf(comm), tuner);
        for (const Operation operation : kOperations) {
          for (const Variant& variant : tuner.Candidates(operation)) {
            const std::string what = std::string(at.cluster) + " " + std::to_string(at.ranks) + " " + version + " " +
                                     OperationName(operation) + " " + AlgorithmName(variant.algorithm) + " " +
                                     ProtocolName(variant.protocol);
            double before = 0;
            for (double size = 8; size < 40e9; size *= 1.3) {
              const Duration duration = time.Of(operation, static_cast<std::int64_t>(size), variant);
              ASSERT_TRUE(std::isfinite(duration.seconds()) && duration.seconds() > 0) << what;
              ASSERT_GE(duration.seconds(), before * (1 - 1e-12)) << what << " " << size;
              before = duration.seconds();
              const double most = duration.progress * (1 + 1e-9);
              ASSERT_LE(duration.bytes.nvlink, most * time.NvlinkCapacity()) << what << " " << size;
              ASSERT_LE(duration.bytes.nic, most * time.NicCapacity()) << what << " " << size;
              ASSERT_LE(duration.bytes.uplink, most * time.UplinkCapacity()) << what << " " << size;
            }
          }
        }
      }
    }
  }
}

// A flat ring leaves a node once through all of its NICs: 2 (n - 1) / n S per node; a hierarchical all-reduce sends S
// over each rail's share instead. At N = 2, n = 16 and 400 GB/s per node: busbw at most 400, and at most 750.
TEST(Time, TwoAccountings) {
  const Communicator comm = On("dgx-b200-ndr", 16, 2);
  const Channels channels = SearchChannels(comm, Tables("2.27"), {});
  const Tuner tuner(comm, channels, Tables("2.27"), false);
  const TimeModel time(comm, channels, Tables("2.27"), TimesOf(comm), tuner);
  const double size = 16e9;
  const auto bytes = [&](v1::NcclAlgorithm algorithm) {
    return time.Of(Operation::kAllReduce, static_cast<std::int64_t>(size), {algorithm, v1::SIMPLE}).bytes.nic;
  };
  EXPECT_DOUBLE_EQ(bytes(v1::RING), size * 30 / 16 / 8);
  EXPECT_DOUBLE_EQ(bytes(v1::NVLS_TREE), size / 8);
}

// A channel is one multiprocessor: of a rank's data and flags it moves 20 GB/s, in a tree of any protocol 5.
TEST(Time, EveryProtocolNeedsChannels) {
  const v1::NcclTimes times = Round();
  ASSERT_EQ(times.tree_channel_bandwidth().value(), 5e9);
  const auto progress = [&](const Communicator& comm, Operation operation, const Variant& variant,
                            std::int64_t channels) {
    ModelOptions options;
    options.forced = variant;
    options.sharp = true;
    options.channels = {.min = channels, .max = channels};
    const Model model(comm, Tables("2.23"), times, options);
    const absl::StatusOr<Price> price = model.PriceOf(operation, kGiB);
    EXPECT_TRUE(price.ok()) << price.status();
    return price.ok() ? SecondsFromTime(price->progress) : 0;
  };
  const double second = kGiB / 20e9;
  const Communicator node = On("dgx-h100-ndr", 8, 1);
  for (const std::int64_t channels : {1, 2}) {
    const double c = static_cast<double>(channels);
    // 2 x 7/8 S, with flags 16/15 and twice that.
    const auto ring = [&](v1::NcclProtocol protocol) {
      return progress(node, Operation::kAllReduce, {v1::RING, protocol}, channels);
    };
    EXPECT_NEAR(ring(v1::LL128), second / c * 7 / 4 * 16 / 15, 1e-9);
    EXPECT_NEAR(ring(v1::LL), second / c * 7 / 4 * 2, 1e-9);
    EXPECT_GE(ring(v1::SIMPLE), second / c * 7 / 4);
    EXPECT_NEAR(progress(node, Operation::kBroadcast, {v1::RING, v1::LL128}, channels), second / c * 16 / 15, 1e-9);
    // 4 S of 5 GB/s is S of 20, twice that for flags; the first chunk of 32 KiB goes 14 hops.
    EXPECT_NEAR(progress(node, Operation::kAllReduce, {v1::TREE, v1::LL}, channels),
                second / c * 8 + 14 * 2 * 32768 / 20e9, 1e-9);
    // Up to the switch and down.
    const Communicator several = On("dgx-h100-ndr", 32, 4);
    for (const v1::NcclAlgorithm algorithm : {v1::COLLNET_DIRECT, v1::COLLNET_CHAIN}) {
      EXPECT_NEAR(progress(several, Operation::kAllReduce, {algorithm, v1::SIMPLE}, channels), second / c * 2, 1e-9);
    }
    EXPECT_NEAR(progress(On("dgx-h100-ndr", 8, 8), Operation::kAllGather, {v1::PAT, v1::SIMPLE}, channels),
                second / c * 7 / 8, 1e-9);
  }
  // The 24 of the library's search do not bind: LL128 is what its formula says, bus 331.2 GB/s (0.92 of 12 x 30).
  EXPECT_NEAR(progress(node, Operation::kAllReduce, {v1::RING, v1::LL128}, 24), 1.75 * kGiB / 331.2e9, 1e-9);
}

// Whatever crosses the network takes the wires' time at least once: here 10 ms.
TEST(Time, LongWiresCountInEveryAlgorithm) {
  constexpr double kWires = 10e-3;
  for (const Case& at : {Case{"dgx-h100-ndr", 32, 4}, {"dgx-h100-ndr", 4, 4}}) {
    Communicator comm = On(at.cluster, at.ranks, at.nodes);
    comm.net_latency = kWires;
    for (const bool sharp : {false, true}) {
      const Channels channels = SearchChannels(comm, Tables("2.27"), {});
      const Tuner tuner(comm, channels, Tables("2.27"), sharp);
      const TimeModel time(comm, channels, Tables("2.27"), TimesOf(comm), tuner);
      for (const Operation operation : kOperations) {
        for (const Variant& variant : tuner.Candidates(operation)) {
          EXPECT_GE(time.Of(operation, 8, variant).seconds(), kWires)
              << OperationName(operation) << " " << AlgorithmName(variant.algorithm) << " "
              << ProtocolName(variant.protocol);
        }
      }
      // Two trees of four nodes are two hops deep: up and down 40 ms. A ring crosses 8 times.
      EXPECT_NEAR(time.Of(Operation::kAllReduce, 8, {v1::TREE, v1::LL}).fixed, 40e-3, 0.2e-3);
      EXPECT_NEAR(time.Of(Operation::kAllReduce, 8, {v1::RING, v1::LL}).fixed, at.ranks == 4 ? 60e-3 : 80e-3, 0.2e-3);
    }
  }
}

// A ring leaves a leaf once: 1 GiB over the uplinks of 32 nodes of 8 NICs, a thousandth of 47.5 GB/s each, is 88.3 ms.
// The first chunk passes hundreds of hops inside the leaf meanwhile, each faster than that.
TEST(Time, BroadcastAcrossNarrowUplinks) {
  Communicator comm = On("dgx-h100-ndr", 512, 64);
  comm.oversubscription = 1000;
  const double uplinks = 32 * 8 * 47.5e9 / 1000;
  for (const Operation operation : {Operation::kBroadcast, Operation::kReduce}) {
    ModelOptions options;
    options.forced = {v1::RING, v1::SIMPLE};
    const Model model(comm, Tables("2.21"), TimesOf(comm), options);
    EXPECT_NEAR(SecondsFromTime(model.PriceOf(operation, kGiB)->progress), kGiB / uplinks, 1e-9);
  }
}

TEST(Time, NothingToDo) {
  const Communicator comm = On("dgx-h100-ndr", 1, 1);
  const Model model(comm, Tables("2.21"), TimesOf(comm), {});
  EXPECT_EQ(model.PriceOf(Operation::kAllReduce, kMiB)->total(), Time(0));
  EXPECT_FALSE(model.PriceOf(Operation::kAllReduce, -1).ok());
}

}  // namespace
}  // namespace orrery::collectives::nccl
