#include "base/units.h"

#include <gtest/gtest.h>

namespace orrery {
namespace {

TEST(UnitsTest, ATimeIsTheNearestPicosecondWithHalvesAwayFromZero) {
  EXPECT_EQ(TimeFromSeconds(1.0).count(), 1'000'000'000'000);
  EXPECT_EQ(TimeFromSeconds(0.5e-12).count(), 1);
  EXPECT_EQ(TimeFromSeconds(-0.5e-12).count(), -1);
  EXPECT_EQ(TimeFromSeconds(0.49e-12).count(), 0);
}

TEST(UnitsTest, RatesTurnAmountsIntoSeconds) {
  // 300 GB at 600 GB/s, and 156 TFLOP at 312 TFLOP/s: half a second each.
  EXPECT_EQ(SecondsAt(Bytes(300'000'000'000), BytesPerSecond(600e9)), 0.5);
  EXPECT_EQ(SecondsAt(Flops(156e12), FlopsPerSecond(312e12)), 0.5);
  EXPECT_EQ(SecondsFromTime(Time(250'000'000'000)), 0.25);
}

TEST(UnitsTest, QuantitiesOfOneUnitAddSubtractScaleAndCompare) {
  Time time = Time(7) + Time(5) - Time(2);
  time += Time(1);
  time -= Time(3);
  EXPECT_EQ(time, Time(8));
  EXPECT_EQ(3 * time / 4, Time(6));
  EXPECT_LT(Time(1), Time(2));
}

}  // namespace
}  // namespace orrery
