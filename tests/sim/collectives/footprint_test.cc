// What algorithms put on links, by hand and against what the model of times counts.
#include "sim/collectives/footprint.h"

#include <map>
#include <vector>

#include "gtest/gtest.h"
#include "tests/sim/collectives/nccl/fixture.h"

namespace orrery::collectives {
namespace {

using nccl::Operation;
using nccl::Variant;
using Nodes = std::vector<std::vector<std::int64_t>>;

Nodes Ranks(std::int64_t nodes, std::int64_t local) {
  Nodes ranks(static_cast<std::size_t>(nodes));
  for (std::int64_t r = 0; r < nodes * local; ++r) ranks[static_cast<std::size_t>(r / local)].push_back(r);
  return ranks;
}

// Bytes by sender, inside its node and to other nodes.
struct Sent {
  std::map<std::int64_t, double> inside, across;
  double all_across = 0;
};

Sent SentBy(const Footprint& footprint, std::int64_t nodes, std::int64_t local) {
  const Nodes ranks = Ranks(nodes, local);
  const double moved = MovedBy(footprint, ranks);
  Sent sent;
  for (const Flow& flow : FlowsOf(footprint, ranks)) {
    const double bytes = moved * static_cast<double>(flow.numerator) / static_cast<double>(flow.denominator);
    const bool same = flow.from / local == flow.to / local;
    (same ? sent.inside : sent.across)[flow.from] += bytes;
    if (!same) sent.all_across += bytes;
  }
  return sent;
}

// Two nodes of two ranks, all-reduce of 1,200 bytes: 2 x 3/4 x 1,200 = 1,800 pass every rank, half of it to the other
// rank of the node, half to the rank of the same place in the other node.
TEST(FootprintTest, RingByHand) {
  const Sent sent = SentBy({Operation::kAllReduce, {v1::RING, v1::SIMPLE}, 1200}, 2, 2);
  for (std::int64_t rank = 0; rank < 4; ++rank) {
    EXPECT_DOUBLE_EQ(sent.inside.at(rank), 900);
    EXPECT_DOUBLE_EQ(sent.across.at(rank), 900);
  }
  // LL sends as many flags as data; one half of an all-reduce moves half.
  EXPECT_DOUBLE_EQ(SentBy({Operation::kAllGather, {v1::RING, v1::LL}, 1200}, 2, 2).inside.at(0), 900);
  // On one node the ring closes there.
  EXPECT_DOUBLE_EQ(SentBy({Operation::kAllReduce, {v1::RING, v1::SIMPLE}, 1200}, 1, 4).inside.at(3), 1800);
}

// Five nodes of one rank, 600 bytes. The first tree joins 1 and 3 to 2, 2 to 4, 4 to 0 (whose parent 8 there is not);
// the second, shifted by one, 2 and 4 to 3, 3 to 0, 0 to 1. Every edge carries 300 either way.
TEST(FootprintTest, TreesByHand) {
  const Sent sent = SentBy({Operation::kAllReduce, {v1::TREE, v1::SIMPLE}, 600}, 5, 1);
  const std::vector<double> edges = {1 + 2, 1 + 1, 3 + 1, 1 + 3, 2 + 1};
  for (std::int64_t rank = 0; rank < 5; ++rank) {
    EXPECT_DOUBLE_EQ(sent.across.at(rank), 300 * edges[static_cast<std::size_t>(rank)]) << rank;
  }
}

// Bruck's steps: 1, 2, 4 further with 1, 2 and 6 - 4 = 2 sixths, of 5/6 of 600 bytes.
TEST(FootprintTest, PatByHand) {
  const Sent sent = SentBy({Operation::kAllGather, {v1::PAT, v1::SIMPLE}, 600}, 6, 1);
  for (std::int64_t rank = 0; rank < 6; ++rank) EXPECT_DOUBLE_EQ(sent.across.at(rank), 500);
}

// A tree over N nodes has N - 1 edges, and each carries every byte up and down; NVLink ports see what the model counts.
TEST(FootprintTest, BytesAreThoseOfTheModel) {
  constexpr std::int64_t kBytes = 1 << 20;
  for (const std::int64_t nodes : {1, 2, 3, 4, 7, 8, 32}) {
    for (const std::int64_t local : {2, 4, 8}) {
      const nccl::Communicator comm = nccl::On("dgx-h100-ndr", nodes * local, nodes);
      for (const v1::NcclAlgorithm algorithm : {v1::RING, v1::TREE, nodes == 1 ? v1::NVLS : v1::NVLS_TREE}) {
        nccl::ModelOptions options;
        options.forced = {algorithm, v1::SIMPLE};
        const nccl::Model model(comm, nccl::Tables("2.21"), nccl::TimesOf(comm), options);
        const absl::StatusOr<nccl::Price> price = model.PriceOf(Operation::kAllReduce, kBytes);
        ASSERT_TRUE(price.ok()) << price.status();
        const Sent sent = SentBy({Operation::kAllReduce, options.forced, kBytes}, nodes, local);
        double most_inside = 0;
        for (const auto& [rank, bytes] : sent.inside) most_inside = std::max(most_inside, bytes);
        const bool chain_of_two = algorithm == v1::TREE && local == 2;  // has no rank in the middle
        EXPECT_NEAR(most_inside * (chain_of_two ? 2 : 1), price->bytes.nvlink, 1) << nodes << " x " << local;
        const double ring = price->bytes.nic * static_cast<double>(nodes * local);
        const double trees = 2.0 * kBytes * static_cast<double>(nodes - 1);
        EXPECT_NEAR(sent.all_across, algorithm == v1::RING ? ring : trees, 1) << nodes << " x " << local;
        // No node sends more than the model's busiest.
        std::map<std::int64_t, double> by_node;
        for (const auto& [rank, bytes] : sent.across) by_node[rank / local] += bytes;
        for (const auto& [node, bytes] : by_node) {
          EXPECT_LE(bytes, price->bytes.nic * static_cast<double>(local) * (1 + 1e-9)) << nodes << " x " << local;
        }
      }
    }
  }
}

}  // namespace
}  // namespace orrery::collectives
