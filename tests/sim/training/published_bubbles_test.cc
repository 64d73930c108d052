// Plain 1F1B with messages that take time, through programs and engine: published bubble rates, and how exposure grows
// with the number of micro-batches.
#include <gtest/gtest.h>

#include "sim/engine/replay.h"
#include "sim/training/world_builder.h"
#include "tests/sim/training/constant_pricer.h"

namespace orrery::training::testing {
namespace {

struct Pass {
  std::int64_t forward;
  std::int64_t backward;
  std::int64_t message;
};

// Makespan of one iteration from cold.
std::int64_t Makespan(std::int64_t p, std::int64_t m, const Pass& pass, v1::MessageMode mode) {
  ConstantCosts costs;
  costs.forward.assign(static_cast<std::size_t>(p), {0, pass.forward});
  costs.backward.assign(static_cast<std::size_t>(p), {0, pass.backward});
  costs.message = pass.message;
  const Plan plan = *MakePlan(MakeRun({.pp = p, .micro_batches = m, .group_size = p, .message_mode = mode}));
  ConstantPricer pricer(plan, costs);
  const TrainingWorld built = *BuildWorld(plan, pricer);
  engine::ReplayOptions options;
  options.iterations = 1;
  const absl::StatusOr<engine::Replay> replay = engine::Run(built.world, options);
  EXPECT_TRUE(replay.ok()) << replay.status();
  return replay.ok() ? replay->iteration_ends[0].count() : 0;
}

// Qi et al., "Zero Bubble Pipeline Parallelism" (ICLR 2024), bubble rates of 1F1B that the authors computed from
// profiled times of F, B, W and of a message; rate = 1 - m (F + B + W) / cost. Printed with four digits, from times of
// three.
TEST(PublishedBubbles, OneForwardOneBackward) {
  struct Row {
    std::int64_t p, m, forward, backward, weights, message;  // microseconds
    double rate;
  };
  constexpr Row kRows[] = {
      {8, 24, 18522, 18086, 9337, 601, .2431},   {8, 32, 18513, 18086, 9331, 626, .1985},
      {8, 64, 18546, 18097, 9321, 762, .1240},   {8, 24, 29718, 29444, 19927, 527, .2347},
      {8, 32, 29802, 29428, 19530, 577, .1898},  {8, 64, 29935, 29621, 19388, 535, .1091},
      {16, 48, 11347, 11248, 8132, 377, .2552},  {16, 64, 11307, 11254, 8101, 379, .2082},
      {16, 128, 11325, 11308, 8109, 378, .1251}, {32, 96, 10419, 10207, 7715, 408, .2646},
      {32, 128, 10408, 10204, 7703, 408, .2168}, {32, 256, 10402, 10248, 7698, 460, .1352},
  };
  for (const Row& row : kRows) {
    const std::int64_t both = row.backward + row.weights;
    const std::int64_t cost = Makespan(row.p, row.m, {row.forward, both, row.message}, v1::EAGER);
    const double rate = 1 - static_cast<double>(row.m * (row.forward + both)) / static_cast<double>(cost);
    EXPECT_NEAR(rate, row.rate, 1e-4) << row.p << " ranks, " << row.m << " micro-batches";
  }
}

// What a message exposes per micro-batch in the steady state, p = 4, F = 100, B = 200, c = 3. Eager: a micro-batch goes
// down and up p ranks before the first may begin the p-th after it: 2 (p - 1) c in p micro-batches. Where the rank
// waits for its messages, every pass of every rank is followed by one exchange, which takes c: 2 c a micro-batch.
TEST(PublishedBubbles, ExposureGrowsWithMicroBatches) {
  constexpr Pass kPass = {.forward = 100, .backward = 200, .message = 3};
  const auto growth = [&](v1::MessageMode mode) {
    return Makespan(4, 32, kPass, mode) - Makespan(4, 16, kPass, mode) - std::int64_t{16} * (100 + 200);
  };
  EXPECT_EQ(growth(v1::EAGER), 16 / 4 * 2 * 3 * 3);
  EXPECT_EQ(growth(v1::BATCHED), 16 * 2 * 3);
}

}  // namespace
}  // namespace orrery::training::testing
