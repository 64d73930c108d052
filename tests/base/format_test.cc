#include "base/format.h"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(FormatTest, DoubleIsTheShortestTextThatReadsBack) {
  EXPECT_EQ(FormatDouble(0.1), "0.1");
  EXPECT_EQ(FormatDouble(0.1 + 0.2), "0.30000000000000004");
  EXPECT_EQ(FormatDouble(8), "8");
  EXPECT_EQ(FormatDouble(1e22), "1e+22");
  EXPECT_EQ(FormatDouble(-5e-324), "-5e-324");
}

TEST(FormatTest, FixedRoundsAndDropsTheSignOfZero) {
  EXPECT_EQ(FormatFixed(2.345, 1), "2.3");
  EXPECT_EQ(FormatFixed(-2.5, 1), "-2.5");
  EXPECT_EQ(FormatFixed(-0.04, 1), "0.0");
  EXPECT_EQ(FormatFixed(-0.0, 0), "0");
  EXPECT_EQ(FormatFixed(std::numeric_limits<double>::max(), 0).size(), 309u);
}

TEST(FormatTest, SecondsInTheUnitThatReadsBest) {
  EXPECT_EQ(FormatSeconds(8.571), "8.57 s");
  EXPECT_EQ(FormatSeconds(0.01234), "12.3 ms");
  EXPECT_EQ(FormatSeconds(4e-6), "4.0 us");
  EXPECT_EQ(FormatSeconds(250e-9), "250.0 ns");
  EXPECT_EQ(FormatSeconds(0), "0 s");
  EXPECT_EQ(FormatSeconds(-0.002), "-2.0 ms");
  EXPECT_EQ(FormatSeconds(0.99994), "999.9 ms");
  EXPECT_EQ(FormatSeconds(0.99996), "1.00 s");  // not 1000.0 ms
}

TEST(FormatTest, BytesCountsAndPercent) {
  EXPECT_EQ(FormatBytes(Bytes(80'000'000'000)), "74.51 GiB");  // 80e9 / 2^30 = 74.506
  EXPECT_EQ(FormatCount(0), "0");
  EXPECT_EQ(FormatCount(999), "999");
  EXPECT_EQ(FormatCount(12288), "12,288");
  EXPECT_EQ(FormatCount(-1048576), "-1,048,576");
  EXPECT_EQ(FormatCount(std::numeric_limits<std::int64_t>::min()), "-9,223,372,036,854,775,808");
  EXPECT_EQ(FormatPercent(0.4123), "41.2 %");
  EXPECT_EQ(FormatPercent(0.5, 0), "50 %");
}

}  // namespace
}  // namespace orrery
