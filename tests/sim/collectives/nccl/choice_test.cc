// What the search finds and the library chooses, by hand from the rules at the top of channels.h and tuner.h.
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/sim/collectives/nccl/fixture.h"

namespace orrery::collectives::nccl {
namespace {

constexpr std::int64_t kMiB = 1 << 20;
constexpr std::int64_t kGiB = 1 << 30;

std::string Chosen(const std::string& cluster, std::int64_t ranks, std::int64_t nodes, const std::string& version,
                   Operation operation, std::int64_t bytes, const ModelOptions& options = {}) {
  const Communicator comm = On(cluster, ranks, nodes);
  const Model model(comm, Tables(version), TimesOf(comm), options);
  const absl::StatusOr<Price> price = model.PriceOf(operation, bytes);
  if (!price.ok()) return price.status().ToString();
  return AlgorithmName(price->variant.algorithm) + " " + ProtocolName(price->variant.protocol);
}

Channels Search(const std::string& cluster, std::int64_t ranks, std::int64_t nodes, const std::string& version) {
  return SearchChannels(On(cluster, ranks, nodes), Tables(version), {});
}

// 12 links of 20 GB/s: six channels of 40, each split in two of 20; every one twice in the communicator.
TEST(Channels, A100OneNode) {
  const Channels found = Search("selene", 8, 1, "2.18");
  EXPECT_EQ(found.ring.channels, 12);
  EXPECT_EQ(found.ring.intra, 20);
  EXPECT_EQ(found.communicator, 24);
  EXPECT_EQ(found.nvls.channels, 0);
}

// A NIC of 25 GB/s carries one channel of 24; below 25 GB/s nothing is split.
TEST(Channels, A100AcrossNodes) {
  const Channels found = Search("selene", 16, 2, "2.18");
  EXPECT_EQ(found.ring.channels, 8);
  EXPECT_EQ(found.ring.inter, 24);
  EXPECT_EQ(found.communicator, 16);
}

// 18 links of 20.6 are 370.8 GB/s: six rings of 60 (360), split into twelve of 30. As NVLS heads eight GPUs take nine
// shares of a link: 370.8 / 9 = 41.2, so that 40 is the first speed of the list at which all are heads.
TEST(Channels, H100OneNode) {
  const Channels found = Search("dgx-h100-ndr", 8, 1, "2.21");
  EXPECT_EQ(found.ring.channels, 12);
  EXPECT_EQ(found.ring.intra, 30);
  EXPECT_EQ(found.communicator, 24);
  EXPECT_EQ(found.nvls.channels, 8);
  EXPECT_EQ(found.nvls.intra, 40);
  EXPECT_EQ(found.nvls_channels, 16);
}

// 8 x 48 = 384 GB/s, of which a GPU's links carry 7/8, 336 of 370.8; more than four channels below 50 GB/s stay whole.
TEST(Channels, H100AcrossNodes) {
  const Channels found = Search("dgx-h100-ndr", 32, 4, "2.21");
  EXPECT_EQ(found.ring.channels, 8);
  EXPECT_EQ(found.ring.inter, 48);
  EXPECT_EQ(found.communicator, 16);
}

// 18 x 40.1 = 721.8 GB/s: eight rings of 90 = 720, split into 16 of 45. NVLS: 721.8 / 9 = 80.2.
TEST(Channels, B200) {
  const Channels found = Search("dgx-b200-ndr", 8, 1, "2.27");
  EXPECT_EQ(found.ring.channels, 16);
  EXPECT_EQ(found.ring.intra, 45);
  EXPECT_EQ(found.communicator, 32);
  EXPECT_EQ(found.nvls.channels, 8);
  EXPECT_EQ(found.nvls.intra, 80);
}

TEST(Channels, LimitsOfTheUser) {
  const Channels few = SearchChannels(On("dgx-h100-ndr", 8, 1), Tables("2.21"), {.min = 0, .max = 4});
  EXPECT_EQ(few.communicator, 4);
  EXPECT_EQ(few.nvls_channels, 4);
  const Channels many = SearchChannels(On("dgx-h100-ndr", 64, 8), Tables("2.21"), {.min = 24, .max = 0});
  EXPECT_EQ(many.communicator, 24);
}

// Ring LL: 6.6 + 14 x 0.6 = 15.0 us and 141 GB/s of busbw, 141 x 8 / 14 = 80.57 of algbw: 1 MiB takes 15.0 + 13.01.
// NVLS: 25 us and 8 x 40 x 5/6 = 266.7 GB/s: 25 + 3.93. Ring it is; at 4 MiB 67.1 against 40.7.
TEST(Tuner, EightH200ByHand) {
  const Communicator comm = On("dgx-h200-ndr", 8, 1);
  const v1::NcclVersion& version = Tables("2.21");
  const Channels channels = SearchChannels(comm, version, {});
  const Tuner tuner(comm, channels, version, false);
  EXPECT_NEAR(*tuner.Microseconds(Operation::kAllReduce, kMiB, {v1::RING, v1::LL}), 28.01, 0.02);
  EXPECT_NEAR(*tuner.Microseconds(Operation::kAllReduce, kMiB, {v1::NVLS, v1::SIMPLE}), 28.93, 0.02);
  EXPECT_NEAR(*tuner.Microseconds(Operation::kAllReduce, 4 * kMiB, {v1::NVLS, v1::SIMPLE}), 40.73, 0.02);
  EXPECT_FALSE(tuner.Microseconds(Operation::kAllReduce, kMiB, {v1::NVLS_TREE, v1::SIMPLE}).has_value());
  EXPECT_EQ(Chosen("dgx-h200-ndr", 8, 1, "2.21", Operation::kAllReduce, kMiB), "Ring LL");
  EXPECT_EQ(Chosen("dgx-h200-ndr", 8, 1, "2.21", Operation::kAllReduce, 4 * kMiB), "NVLS Simple");
}

// Observed by ml-engineering with NCCL 2.27: NVLS from five H200 and from six B200 on.
TEST(Choice, GpusOfOneNode) {
  for (const std::string version : {"2.21", "2.27", "2.30"}) {
    EXPECT_EQ(Chosen("dgx-h200-ndr", 4, 1, version, Operation::kAllReduce, 8 * kGiB), "Ring Simple") << version;
    EXPECT_EQ(Chosen("dgx-h200-ndr", 5, 1, version, Operation::kAllReduce, 8 * kGiB), "NVLS Simple") << version;
  }
  EXPECT_EQ(Chosen("dgx-b200-ndr", 5, 1, "2.27", Operation::kAllReduce, 8 * kGiB), "Ring Simple");
  EXPECT_EQ(Chosen("dgx-b200-ndr", 6, 1, "2.27", Operation::kAllReduce, 8 * kGiB), "NVLS Simple");
}

TEST(Choice, GatherAndScatterOfOneNodeAreRings) {
  for (const char* cluster : {"dgx-h100-ndr", "dgx-h200-ndr", "dgx-b200-ndr", "selene"}) {
    for (const std::string version : {"2.18", "2.21", "2.27", "2.30"}) {
      for (const Operation operation : {Operation::kAllGather, Operation::kReduceScatter}) {
        for (const std::int64_t bytes : {64 * kMiB, kGiB, 8 * kGiB}) {
          EXPECT_THAT(Chosen(cluster, 8, 1, version, operation, bytes), testing::StartsWith("Ring")) << cluster;
        }
      }
    }
  }
}

// From 2.28 on: NVLSTree of two nodes min(476, 768, 8 x 57.7 = 461.6) against the ring's 384; of four min(476, 384, 8 x
// 45.5 = 364). Before: 320 x 5/6 = 267 of algbw against 205, and 192 x 5/6 = 160 against 198.
TEST(Choice, H100AcrossNodes) {
  for (const std::string version : {"2.21", "2.27", "2.30"}) {
    EXPECT_EQ(Chosen("dgx-h100-ndr", 16, 2, version, Operation::kAllReduce, 8 * kGiB), "NVLSTree Simple") << version;
    EXPECT_EQ(Chosen("dgx-h100-ndr", 32, 4, version, Operation::kAllReduce, 8 * kGiB), "Ring Simple") << version;
  }
  // Where the measured curve of four nodes steps: NVLSTree to 128 MiB, the ring from 256 MiB on.
  EXPECT_EQ(Chosen("dgx-h100-ndr", 32, 4, "2.21", Operation::kAllReduce, 128 * kMiB), "NVLSTree Simple");
  EXPECT_EQ(Chosen("dgx-h100-ndr", 32, 4, "2.21", Operation::kAllReduce, 256 * kMiB), "Ring Simple");
}

TEST(Choice, WhatIsForced) {
  ModelOptions options;
  options.forced = {v1::TREE, v1::LL128};
  EXPECT_EQ(Chosen("dgx-h100-ndr", 8, 1, "2.21", Operation::kAllReduce, kGiB, options), "Tree LL128");
  options.forced = {v1::NVLS, v1::NCCL_PROTOCOL_UNSPECIFIED};
  EXPECT_THAT(Chosen("selene", 8, 1, "2.21", Operation::kAllReduce, kGiB, options),
              testing::HasSubstr("NVLS cannot carry it out on 8 ranks on 1 node"));
}

TEST(Choice, SharpAndPat) {
  ModelOptions options;
  options.sharp = true;
  EXPECT_EQ(Chosen("dgx-h100-ndr", 64, 8, "2.21", Operation::kAllReduce, 8 * kGiB, options), "NVLS Simple");
  EXPECT_EQ(Chosen("dgx-h100-ndr", 64, 64, "2.23", Operation::kAllGather, 65536), "PAT Simple");
  EXPECT_THAT(Chosen("dgx-h100-ndr", 64, 64, "2.21", Operation::kAllGather, 65536), testing::StartsWith("Ring"));
}

TEST(Versions, Nearest) {
  EXPECT_EQ(Tables("2.21.5").name(), "2.21");
  EXPECT_EQ(Tables("2.20.5").name(), "2.21");
  EXPECT_EQ(Tables("2.20-2.21").name(), "2.21");
  EXPECT_EQ(Tables("2.29.7").name(), "2.28");
  EXPECT_EQ(Tables("3.1").name(), "2.30");
  for (const char* wrong : {"", "2", "x", "2.x", "2.21b", "-"}) EXPECT_FALSE(Shelf().Version(wrong).ok()) << wrong;
}

}  // namespace
}  // namespace orrery::collectives::nccl
