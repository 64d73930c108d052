#include "base/statistics.h"

#include <gtest/gtest.h>

#include <vector>

namespace orrery {
namespace {

TEST(QuantileTest, InterpolatesBetweenSortedValues) {
  const std::vector<double> values = {3, 1, 4, 2};
  EXPECT_DOUBLE_EQ(Quantile(values, 0), 1);
  EXPECT_DOUBLE_EQ(Quantile(values, 0.5), 2.5);
  EXPECT_DOUBLE_EQ(Quantile(values, 0.9), 3.7);
  EXPECT_DOUBLE_EQ(Quantile(values, 1), 4);
  EXPECT_DOUBLE_EQ(Quantile({5}, 0.9), 5);
  EXPECT_DOUBLE_EQ(Quantile({}, 0.5), 0);
}

// Of -0.3, -0.1, 0.2: sizes 0.1, 0.2, 0.3; nine tenths of the way from the first to the last is 0.28.
TEST(SummariseErrorsTest, SizesAndSign) {
  const ErrorSummary summary = SummariseErrors({0.2, -0.3, -0.1});
  EXPECT_EQ(summary.rows, 3);
  EXPECT_DOUBLE_EQ(summary.median, 0.2);
  EXPECT_DOUBLE_EQ(summary.p90, 0.28);
  EXPECT_DOUBLE_EQ(summary.bias, -0.1);
}

}  // namespace
}  // namespace orrery
