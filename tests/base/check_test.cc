#include "base/check.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(CheckDeathTest, AFailedCheckNamesConditionAndPlaceAndExitsWithOurBug) {
  const int stages = 0;
  EXPECT_EXIT(ORRERY_CHECK(stages > 0), testing::ExitedWithCode(3),
              "CHECK failed: stages > 0 at .*check_test.cc:[0-9]+ \\(please report this bug\\)");
}

TEST(CheckTest, ATrueCheckDoesNothingAndEvaluatesItsConditionOnce) {
  int evaluations = 0;
  ORRERY_CHECK(++evaluations == 1);
  EXPECT_EQ(evaluations, 1);
}

}  // namespace
}  // namespace orrery
