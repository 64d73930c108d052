// What the accountant keeps of streams between iterations, and the hash by which it is recognised.
#include "sim/engine/accounting.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "sim/engine/program_index.h"
#include "tests/sim/engine/program_builder.h"

namespace orrery::engine::testing {
namespace {

using enum TimeClass;

// The compute stream's update waits for a transfer on stream 1.
class HistoriesTest : public ::testing::Test {
 protected:
  HistoriesTest() {
    ProgramBuilder builder;
    builder.Collective(0, kExposedDp, kWaitDp, 0, 10, kStream);
    const std::int32_t moved = builder.Record();
    builder.Update(5).waits[0] = moved;
    world_.Add(builder.program());
    world_.Join({0});
  }

  // After the stream has missed others on [begin, start) and moved data on [start, end), and the compute stream has
  // ended an operation at `compute`; instants count from `now`.
  std::uint64_t HashAfter(std::int64_t begin, std::int64_t start, std::int64_t end, std::int64_t compute,
                          std::int64_t now) const {
    Clocks clocks(world_.world());
    const ReplayOptions options;
    const std::vector<ProgramIndex> indices = *IndexWorld(world_.world());
    Accountant accountant(world_.world(), indices, clocks, options);
    accountant.BeginIteration(0, AccountMode::kNone, Time(), Time());
    const Time event_end(end);
    accountant.Report({.unit = 0,
                       .op = 0,
                       .previous_end = Time(begin),
                       .host_start = Time(),
                       .ready = Time(begin),
                       .start = Time(start),
                       .end = Time(end),
                       .event_ends = &event_end,
                       .transfers = {}});
    clocks.stream[0] = Time(compute);
    return accountant.HashHistories(Time(now));
  }

  static constexpr std::uint8_t kStream = 1;
  WorldBuilder world_;
};

TEST_F(HistoriesTest, WhatLaterReportsLookAtCounts) {
  const std::uint64_t hash = HashAfter(100, 140, 200, 120, 210);
  EXPECT_NE(HashAfter(100, 150, 200, 120, 210), hash);  // missed others for longer, ended as before
  EXPECT_NE(HashAfter(100, 140, 190, 120, 210), hash);
}

TEST_F(HistoriesTest, WhatLiesBeforeTheComputeStreamDoesNot) {
  const std::uint64_t hash = HashAfter(100, 110, 200, 120, 210);
  EXPECT_EQ(HashAfter(100, 115, 200, 120, 210), hash);
  EXPECT_EQ(HashAfter(90, 90, 200, 120, 210), hash);
}

TEST_F(HistoriesTest, InstantsCountFromNow) {
  EXPECT_EQ(HashAfter(1100, 1140, 1200, 1120, 1210), HashAfter(100, 140, 200, 120, 210));
  EXPECT_NE(HashAfter(100, 140, 200, 120, 211), HashAfter(100, 140, 200, 120, 210));
}

}  // namespace
}  // namespace orrery::engine::testing
