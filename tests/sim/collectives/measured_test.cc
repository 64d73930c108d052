// The A100 profile against measured collectives: a few figures here, all of them where the public table is at hand
// (tests/reference.h).
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "sim/collectives/collective_prices.h"
#include "tests/reference.h"

namespace orrery::collectives {
namespace {

CollectivePrices A100(std::int64_t nodes, std::int64_t nics) {
  std::ifstream file(std::string(ORRERY_SOURCE_DIR) + "/specs/profiles/a100.txtpb");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  v1::Profile profile;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &profile));
  v1::Cluster cluster;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      R"(node { gpus: 8 nvlink { bandwidth: 300e9 efficiency: 0.91 latency: 0.6e-6 }
                nic { bandwidth: 25e9 efficiency: 0.96 latency: 1.5e-6 } }
         fabric { nodes_per_leaf: 100 oversubscription: 1 hop_latency: 0.45e-6 })",
      &cluster));
  cluster.set_nodes(nodes);
  cluster.mutable_node()->set_nics(nics);
  return CollectivePrices(*topology::ClusterGraph::Build(cluster), profile.collective());
}

double AllReduce(std::int64_t nodes, std::int64_t nics, std::int64_t bytes) {
  return A100(nodes, nics).Seconds(CollectiveType::kAllReduce, Bytes(bytes), {8 * nodes, nodes, 8, 8, 1});
}

// stas00/ml-engineering, network/README: 8 x A100 SXM, all-reduce. NVIDIA/nccl #652: 256 A100, 4 x HDR.
TEST(A100CollectivesTest, SingleFigures) {
  EXPECT_NEAR(AllReduce(1, 8, std::int64_t{1} << 26), 684.6e-6, 0.10 * 684.6e-6);
  EXPECT_NEAR(AllReduce(1, 8, std::int64_t{1} << 30), 8203.9e-6, 0.02 * 8203.9e-6);
  EXPECT_NEAR(AllReduce(1, 8, std::int64_t{1} << 34), 127.997e-3, 0.005 * 127.997e-3);
  EXPECT_NEAR(AllReduce(32, 4, 8), 62.99e-6, 0.10 * 62.99e-6);
}

// DGX A100 with 8 HDR ports: NVIDIA quotes a bus bandwidth of 192 GB/s across nodes (nccl-tests #59).
TEST(A100CollectivesTest, BusBandwidthAcrossNodes) {
  const double bytes = std::pow(2.0, 34);
  const double bus = bytes / AllReduce(2, 8, std::int64_t{1} << 34) * 2 * 15 / 16 / 1e9;
  EXPECT_NEAR(bus, 192, 2);
}

TEST(A100CollectivesTest, AllMeasuredAllReduces) {
  const std::string path = orrery::tests::ReferenceFile("collectives/measured.csv");
  if (path.empty()) GTEST_SKIP() << "no reference data";
  std::ifstream file(path);
  std::vector<double> errors;
  for (std::string line; std::getline(file, line);) {
    std::vector<std::string> row;
    std::istringstream stream(line);
    for (std::string cell; std::getline(stream, cell, ',');) row.push_back(cell);
    // hardware, nodes, gpus, collective, bytes, time_us ... use: no cell before these is quoted in the A100 rows.
    if (row.size() < 13 || row[1].find("8xA100") != 0 || row[4] != "all_reduce" || row[12] != "fit") continue;
    const double measured = std::stod(row[6]) * 1e-6;
    errors.push_back(std::abs(AllReduce(std::stoll(row[2]), row[2] == "1" ? 8 : 4, std::stoll(row[5])) / measured - 1));
  }
  ASSERT_GE(errors.size(), 15u);
  std::sort(errors.begin(), errors.end());
  const double median = errors[errors.size() / 2];
  const double p90 = errors[errors.size() * 9 / 10];
  std::cout << errors.size() << " rows: median |error| " << median << ", 90th percentile " << p90 << "\n";
  EXPECT_LE(median, 0.03);
  EXPECT_LE(p90, 0.15);
}

}  // namespace
}  // namespace orrery::collectives
