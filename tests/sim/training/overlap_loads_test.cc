// What communication takes from the compute beside it, by hand on A100 nodes: 108 multiprocessors, 2,039 GB/s, 300 GB/s
// of NVLink per GPU, eight NICs of 25 GB/s.
#include "sim/training/overlap_loads.h"

#include <gtest/gtest.h>

#include "sim/training/pass_prices.h"
#include "tests/sim/training/example_runs.h"

namespace orrery::training::testing {
namespace {

using collectives::Price;
using collectives::nccl::Operation;
using engine::kWholeRate;
using layout::Placement;

constexpr double kMemory = 2039e9;

v1::Run DynamicRun() { return SmallRun({"simulation.overlap=DYNAMIC"}); }

// Of 1 GB, which takes so long.
Taken TakenBy(Operation operation, const Placement& placement, double seconds) {
  const v1::Run run = DynamicRun();
  const Plan plan = *MakePlan(run);
  Price price = CollectivePricesOf(plan).PriceOf(operation, Bytes(1'000'000'000), placement);
  price.seconds = seconds;
  return OverlapPricer(run).OfCollective(price, placement);
}

TEST(OverlapPricer, Machine) {
  ASSERT_EQ(DynamicRun().cluster().accelerator().sms(), 108);
  ASSERT_EQ(DynamicRun().cluster().accelerator().memory_bandwidth(), kMemory);
}

// On one node the library finds a ring of 12 channels at 20 GB/s (../shared/reference/facts/nccl.md, section 5) and
// runs each twice: 24 of 108. Of an all-reduce of 1 GB a rank receives 2 x 7/8 GB: written and read, 3.5 GB; and reads
// and writes the tensor, 2 GB.
TEST(OverlapPricer, AllReduceOnANode) {
  const Placement node = {.ranks = 8, .nodes = 1, .max_ranks_per_node = 8, .min_ranks_per_node = 8};
  const Taken taken = TakenBy(Operation::kAllReduce, node, 0.01);
  EXPECT_DOUBLE_EQ(taken.multiprocessors, 24.0 / 108);
  EXPECT_NEAR(taken.memory_bandwidth, 5.5e9 / 0.01 / kMemory, 1e-12);
}

// One rank on each of four nodes: its NIC has room for one channel at 24 GB/s, which runs twice. Of a reduce-scatter it
// receives 3/4, written and read, and sends as much through a buffer; it reads the tensor and writes a quarter.
TEST(OverlapPricer, ReduceScatterAcrossNodes) {
  const Placement spread = {.ranks = 4, .nodes = 4, .max_ranks_per_node = 1, .min_ranks_per_node = 1};
  const Taken taken = TakenBy(Operation::kReduceScatter, spread, 0.1);
  EXPECT_DOUBLE_EQ(taken.multiprocessors, 2.0 / 108);
  EXPECT_NEAR(taken.memory_bandwidth, (1.5 + 1.5 + 1.25) * 1e9 / 0.1 / kMemory, 1e-12);
}

// Messages across nodes have max(2, ceil(25 / 14)) channels; either end moves three times the bytes, but within a node
// the sender reads them only.
TEST(OverlapPricer, Messages) {
  const v1::Run run = DynamicRun();
  const OverlapPricer pricer(run);
  const Plan plan = *MakePlan(run);
  Price price = CollectivePricesOf(plan).MessagePrice(Bytes(10'000'000), 0, 8);
  price.seconds = 1e-3;
  const auto taken = [&](bool is_send, bool across_nodes) { return pricer.OfMessage(price, is_send, across_nodes); };
  EXPECT_DOUBLE_EQ(taken(true, true).multiprocessors, 2.0 / 108);
  EXPECT_NEAR(taken(true, true).memory_bandwidth, 30e9 / kMemory, 1e-12);
  EXPECT_NEAR(taken(false, true).memory_bandwidth, 30e9 / kMemory, 1e-12);
  EXPECT_NEAR(taken(false, false).memory_bandwidth, 30e9 / kMemory, 1e-12);
  EXPECT_NEAR(taken(true, false).memory_bandwidth, 10e9 / kMemory, 1e-12);
  EXPECT_EQ(pricer.OfMessage(Price(), true, true), Taken());
  EXPECT_EQ(OverlapPricer(SmallRun()).OfMessage(price, true, true), Taken());
}

// Without a rule shares are taken by what bounds a kernel; a rule replaces both beside its passes, for data-parallel
// communication alone.
TEST(OverlapLoads, RulesReplaceShares) {
  const Communication communication = {.duration = Time(100),
                                       .taken = {.multiprocessors = 0.25, .memory_bandwidth = 0.1}};
  OverlapLoads none(nullptr, nullptr);
  ASSERT_EQ(none.IndexOf(communication, v1::DP), 0);
  EXPECT_EQ(none.IndexOf(communication, v1::PP), 0);
  const std::int64_t quarter = kWholeRate / 4;
  const std::int64_t tenth = kWholeRate / 10;
  EXPECT_EQ(none.loads()[0].takes, (engine::Load::Shares{0, quarter, tenth, quarter, tenth, tenth}));
  EXPECT_EQ(none.loads()[0].at_least, engine::Load::Shares{});
  EXPECT_EQ(none.IndexOf({.duration = Time(), .taken = communication.taken}, v1::DP), -1);
  EXPECT_EQ(none.IndexOf({.duration = Time(100)}, v1::DP), -1);

  v1::OverlapRule rule;
  rule.set_compute_factor(2);
  rule.set_communication_factor(1.25);
  OverlapLoads loads(nullptr, &rule);
  ASSERT_EQ(loads.IndexOf(communication, v1::DP), 0);
  ASSERT_EQ(loads.IndexOf(communication, v1::PP), 1);
  EXPECT_EQ(loads.loads()[0].takes, (engine::Load::Shares{0, quarter, tenth, 0, 0, tenth}));
  EXPECT_EQ(loads.loads()[0].at_least, (engine::Load::Shares{0, 0, 0, kWholeRate / 2, kWholeRate / 2, 0}));
  EXPECT_EQ(loads.loads()[0].slows, (engine::Load::Shares{0, 0, 0, kWholeRate / 5, kWholeRate / 5, 0}));
  EXPECT_EQ(loads.loads()[1], none.loads()[0]);
}

}  // namespace
}  // namespace orrery::training::testing
