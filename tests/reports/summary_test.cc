#include "reports/summary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/format.h"
#include "reports/time_classes.h"
#include "tests/sim/training/example_runs.h"

namespace orrery::reports {
namespace {

using ::testing::HasSubstr;
using training::testing::Simulated;
using training::testing::SmallRun;

std::string SummaryOf(const v1::Run& run, const training::Result& result) {
  const Provenance provenance{
      .version = "1.2.3",
      .spec_sha256 = "0123456789abcdef",
      .profile = "a100",
      .software = "megatron-lm-2022",
      .expected_error = ExpectedError{.p50 = 0.04, .p90 = 0.1, .family = "megatron-lm-2022 on a100", .runs = 9}};
  return Summary(result, *MakeWaterfall(run, result), provenance, {.wall_seconds = 0.25, .peak_rss_bytes = 4096});
}

// What to mind is said to people as well as to scripts.
TEST(SummaryTest, PrintsWarnings) {
  const v1::Run run = SmallRun({"model.rotary_fraction=0.5"});
  EXPECT_THAT(SummaryOf(run, Simulated(run)),
              ::testing::HasSubstr("warning: model.rotary_fraction without positions ROTARY plays no part\n"));
}

TEST(SummaryTest, NamesEveryFigure) {
  const v1::Run run = SmallRun({"perturbation.jitter={mode: EXPECTED}"});
  const training::Result result = Simulated(run);
  const std::string text = SummaryOf(run, result);
  SCOPED_TRACE(text);
  EXPECT_THAT(text, HasSubstr("small: gpt-1.7b on 32 x a100-sxm-80gb"));
  EXPECT_THAT(text, HasSubstr("TP 2, PP 4, DP 4"));
  EXPECT_THAT(text, HasSubstr("schedule 1f1b; 8 micro-batches of 1 x 2,048 tokens"));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("iteration time            ",
                                           FormatFixed(1e3 * SecondsFromTime(result.iteration_time), 3), " ms")));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("first iteration ",
                                           FormatFixed(1e3 * SecondsFromTime(result.first_iteration_time), 3), " ms")));
  EXPECT_THAT(text, HasSubstr("tokens/s"));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("MFU                       ", FormatPercent(result.Mfu()),
                                           "   convention \"model\", peak 312.0 TFLOP/s")));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("HFU                       ", FormatPercent(result.Hfu()))));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("largest span bubble ", FormatPercent(result.span_bubble_fraction))));
  EXPECT_THAT(text, HasSubstr(absl::StrCat("exposed communication     ",
                                           FormatPercent(result.ExposedCommunicationFraction()))));
  for (const NamedTimeClass& named : TimeClasses()) {
    const bool listed = text.find(absl::StrCat("\n", std::string(named.key), " ")) != std::string::npos;
    EXPECT_EQ(listed, result.Fraction(named.time_class) > 0) << named.key;
  }
  for (const v1::Cause cause : WaterfallCauses()) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("\n", std::string(CauseName(cause)), " ")));
  }
  EXPECT_THAT(text, HasSubstr("model FLOPs at peak"));
  EXPECT_THAT(text, HasSubstr("remainder"));
  EXPECT_THAT(text, HasSubstr("fits: "));
  EXPECT_THAT(text, HasSubstr("software level megatron-lm-2022, profile a100, cluster selene, expected jitter of"));
  EXPECT_THAT(text, HasSubstr("spec 0123456789ab, orrery 1.2.3"));
  EXPECT_THAT(text, HasSubstr("tasks of 4 distinct ranks"));
}

TEST(SummaryTest, NamesStayOnTheirLine) {
  const v1::Run run = SmallRun({"name=\"two\\nlines \\033[31m\""});
  EXPECT_THAT(SummaryOf(run, Simulated(run)), HasSubstr("two\\nlines \\x1b[31m: gpt-1.7b"));
}

TEST(SummaryTest, SaysWhereItDoesNotFit) {
  const v1::Run run = SmallRun({"cluster.accelerator.memory_capacity_bytes=4000000000"});
  EXPECT_THAT(SummaryOf(run, Simulated(run)), HasSubstr("DOES NOT FIT"));
}

// Key and description of each, once.
TEST(TimeClassesTest, KeysAreDistinct) {
  std::set<std::string_view> keys;
  for (const NamedTimeClass& named : TimeClasses()) {
    EXPECT_TRUE(keys.insert(named.key).second) << named.key;
    EXPECT_FALSE(named.description.empty());
  }
}

}  // namespace
}  // namespace orrery::reports
