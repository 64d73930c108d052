// Loads on links as routes of the engine, by hand.
#include "sim/collectives/link_loads.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace orrery::collectives {
namespace {

using engine::LinkLoad;
using testing::ElementsAre;

constexpr Time kSecond(1'000'000'000'000);

// Shares of 1, 1/4 + 1/4 and 1/3 have 12 as denominator. A unit of progress is the least that puts whole bytes on all:
// 6 bytes, with 6, 3 and 2 on the links. Of 6 GB in a second there are 1e9.
LinkLoads Three() {
  LinkLoadSum sum;
  sum.Add(2, {1, 2}, {2, 3});
  sum.Add(0, {1, 1}, {5, 5});
  sum.Add(1, {1, 4}, {1, 1});
  sum.Add(1, {1, 2}, {1, 2});
  return sum.Take();
}

TEST(LinkLoads, WholeBytesByHand) {
  const LinkLoads loads = Three();
  EXPECT_EQ(loads.denominator, 12);
  const engine::Route route = RouteOf(loads, 6e9, kSecond, std::vector<std::int64_t>(3, 7'000'000'000));
  EXPECT_EQ(route.rate, 1'000'000'000);
  EXPECT_THAT(route.loads, ElementsAre(LinkLoad{0, 6}, LinkLoad{1, 3}, LinkLoad{2, 2}));
}

// What was taken is not counted again.
TEST(LinkLoads, SumsStartAfresh) {
  LinkLoadSum sum;
  sum.Add(3, {1, 7}, {1, 1});
  EXPECT_EQ(sum.Take().shares.size(), 1);
  sum.Add(1, {1, 2}, {1, 1});
  const LinkLoads loads = sum.Take();
  EXPECT_EQ(loads.denominator, 2);
  ASSERT_EQ(loads.shares.size(), 1);
  EXPECT_EQ(loads.shares[0].bytes, 0.5);
}

// A third of a second for 1 GB at 3 GB/s is rounded down to the picosecond: 3 GB/s and a bit, which the link carries
// all the same. One byte per second less than what is asked is too little: more than a picosecond in a second.
TEST(LinkLoads, SlowedBeyondAPicosecondOnly) {
  LinkLoadSum sum;
  sum.Add(0, {1, 1}, {1, 1});
  const LinkLoads loads = sum.Take();
  const engine::Route third = RouteOf(loads, 1e9, Time(333'333'333'333), std::vector<std::int64_t>{3'000'000'000});
  EXPECT_EQ(third.rate, 3'000'000'000);
  EXPECT_THAT(third.loads, ElementsAre(LinkLoad{0, 1}));
  const engine::Route narrow = RouteOf(loads, 3e9, kSecond, std::vector<std::int64_t>{2'999'999'999});
  EXPECT_EQ(narrow.rate, 3'000'000'000);
}

// 1 / 1,000,003 and 1 / 999,983 have no common denominator below a million: rounded to millionths.
TEST(LinkLoads, RoundsWhatHasNoSmallDenominator) {
  LinkLoadSum sum;
  sum.Add(0, {1, 1}, {1, 1});
  sum.Add(1, {2, 1'000'003}, {1, 1});
  sum.Add(2, {1, 4}, {3, 999'983});
  const engine::Route route = RouteOf(sum.Take(), 47.5e9, kSecond, std::vector<std::int64_t>(3, 50'000'000'000));
  EXPECT_EQ(route.rate, 47'500);
  EXPECT_THAT(route.loads, ElementsAre(LinkLoad{0, 1'000'000}, LinkLoad{1, 2}, LinkLoad{2, 1}));
}

}  // namespace
}  // namespace orrery::collectives
