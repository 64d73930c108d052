#include "sim/training/unused_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/sim/training/example_runs.h"

namespace orrery::training {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Unused(const std::vector<std::string>& overrides) {
  return UnusedSettings(testing::SmallRun(overrides));
}

TEST(UnusedSettings, WhatIsUsedIsNotNamed) {
  EXPECT_THAT(Unused({}), IsEmpty());
  EXPECT_THAT(Unused({"training.recompute=FULL", "training.recompute_layers=1"}), IsEmpty());
  EXPECT_THAT(Unused({"parallelism.zero_stage=1", "parallelism.shard_ranks=2"}), IsEmpty());
}

TEST(UnusedSettings, EachIsNamedWithItsReason) {
  EXPECT_THAT(Unused({"training.recompute=NONE", "training.recompute_layers=1"}),
              ElementsAre("training.recompute_layers without recompute FULL plays no part"));
  EXPECT_THAT(Unused({"training.recompute=FULL", "training.recompute_modules=[NORMS]"}),
              ElementsAre("training.recompute_modules without recompute SELECTIVE plays no part"));
  EXPECT_THAT(Unused({"parallelism.zero_stage=0", "parallelism.shard_ranks=2"}),
              ElementsAre("parallelism.shard_ranks with zero_stage 0 plays no part"));
  EXPECT_THAT(Unused({"model.rotary_fraction=0.5"}),
              ElementsAre("model.rotary_fraction without positions ROTARY plays no part"));
  EXPECT_THAT(Unused({"schedule.name=gpipe", "schedule.pipelines=2"}),
              ElementsAre("schedule.pipelines with gpipe plays no part"));
  EXPECT_THAT(Unused({"schedule.name=chimera", "schedule.pipelines=2"}), IsEmpty());
}

// A reduction beside every backward pass has no use for a rule about the last ones, and the other way round.
TEST(UnusedSettings, OverlapRules) {
  const auto rule = [](const std::string& micro_batches) {
    return "software.overlap_rules=[{axis: DP pass: BACKWARD micro_batches: " + micro_batches +
           " compute_factor: 2 communication_factor: 2}]";
  };
  const std::string overlapped = "software.gradient_reduction=OVERLAPPED";
  const std::string every = "software.reduce_every_micro_batch=true";
  EXPECT_THAT(Unused({overlapped, rule("LAST")}), IsEmpty());
  EXPECT_THAT(Unused({overlapped, every, rule("ALL")}), IsEmpty());
  EXPECT_THAT(Unused({overlapped, rule("ALL")}), ElementsAre(HasSubstr("BACKWARD passes of ALL micro-batches")));
  EXPECT_THAT(Unused({overlapped, every, rule("LAST")}), ElementsAre(HasSubstr("BACKWARD passes of LAST")));
  EXPECT_THAT(Unused({rule("LAST")}), ElementsAre(HasSubstr("software.overlap_rules[0]")));
}

}  // namespace
}  // namespace orrery::training
