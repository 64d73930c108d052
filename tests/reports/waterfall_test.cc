// The waterfall of every shipped example: its steps add up, none is negative, little is left over, and each is what
// simulating its printed spec gives.
#include "reports/waterfall.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/sim/training/example_runs.h"

namespace orrery::reports {
namespace {

using training::testing::Example;
using training::testing::ExampleNames;
using training::testing::FromText;
using training::testing::Simulated;

class WaterfallTest : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(Examples, WaterfallTest, ::testing::ValuesIn(ExampleNames()),
                         [](const auto& test) { return test.param; });

// Achieved iteration time - steps - remainder = model FLOPs at peak, to the picosecond; and in MFU, achieved + steps +
// remainder = 1. The remainder is at most 5 % of the iteration's time; where stages are even it is the rounding of
// kernels to picoseconds, of either sign.
TEST_P(WaterfallTest, AddsUpAndEveryStepIsReproducedFromItsPrintedSpec) {
  const v1::Run run = Example(GetParam());
  const training::Result result = Simulated(run);
  const absl::StatusOr<Waterfall> waterfall = MakeWaterfall(run, result);
  ASSERT_TRUE(waterfall.ok()) << waterfall.status();
  ASSERT_EQ(waterfall->steps.size(), WaterfallCauses().size());
  Time time = waterfall->remainder;
  double mfu = waterfall->achieved_mfu + waterfall->remainder_mfu;
  for (const WaterfallStep& step : waterfall->steps) {
    EXPECT_GE(step.time, Time()) << step.name;
    EXPECT_EQ(step.note, "") << step.name;
    time += step.time;
    mfu += step.mfu;
  }
  const double at_peak = result.model_flops.count() / (static_cast<double>(result.gpus) * result.peak.count());
  EXPECT_EQ(result.iteration_time - time, TimeFromSeconds(at_peak));
  EXPECT_NEAR(mfu, 1, 1e-12);
  // Negative where the convention counts what is not executed, as attention under the mask, and then says so.
  EXPECT_EQ(waterfall->remainder < Time(-1000), !waterfall->remainder_note.empty());
  EXPECT_LE(SecondsFromTime(waterfall->remainder), 0.07 * SecondsFromTime(result.iteration_time));

  Time expected = result.iteration_time;
  for (std::size_t steps = 0; steps <= waterfall->steps.size(); ++steps) {
    if (steps > 0) expected -= waterfall->steps[steps - 1].time;
    const std::string printed = spec::ResolvedText(RunOfStep(run, steps));
    EXPECT_EQ(Simulated(FromText(printed)).iteration_time, expected) << "without " << steps << " causes";
  }
}

TEST(WaterfallCauses, AreAllCausesOnceWithNames) {
  const std::vector<v1::Cause> causes = WaterfallCauses();
  ASSERT_EQ(static_cast<int>(causes.size()), v1::Cause_ARRAYSIZE - 1) << "all but CAUSE_UNSPECIFIED";
  for (std::size_t i = 0; i < causes.size(); ++i) {
    EXPECT_EQ(causes[i], static_cast<v1::Cause>(i + 1)) << "the order in which the spec documents them";
    EXPECT_NE(CauseName(causes[i]), "");
  }
  EXPECT_EQ(CauseName(v1::CAUSE_UNSPECIFIED), "");
}

// A spec that is already without a cause gains nothing from its step.
TEST(RunOfStep, CauseThatIsOffAlreadyIsAZeroStep) {
  v1::Run run = training::testing::SmallRun({"simulation.without=[CAUSE_OPTIMIZER]"});
  EXPECT_EQ(RunOfStep(run, 2).simulation().without_size(), 2);
  const absl::StatusOr<Waterfall> waterfall = MakeWaterfall(run, Simulated(run));
  ASSERT_TRUE(waterfall.ok()) << waterfall.status();
  EXPECT_EQ(waterfall->steps[1].cause, v1::CAUSE_OPTIMIZER);
  EXPECT_EQ(waterfall->steps[1].time, Time());
}

// A slow GPU is a cause of the jitter step: it hides what it costs.
TEST(RunOfStep, SlowGpusGoWithJitter) {
  const v1::Run run = training::testing::SmallRun({"perturbation.slow_gpus={rank: 3 factor: 1.5}"});
  EXPECT_EQ(Simulated(RunOfStep(run, 1)).iteration_time, Simulated(training::testing::SmallRun()).iteration_time);
  EXPECT_GT(Simulated(run).iteration_time, Simulated(RunOfStep(run, 1)).iteration_time);
}

}  // namespace
}  // namespace orrery::reports
