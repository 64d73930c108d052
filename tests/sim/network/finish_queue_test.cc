// Against a list that is searched: random times, few of them, so that items share them, move and leave.
#include "sim/network/finish_queue.h"

#include <algorithm>
#include <vector>

#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace orrery::network {
namespace {

TEST(FinishQueue, TakesTheItemsOfATimeInTheOrderInWhichTheyGotIt) {
  FinishQueue queue;
  EXPECT_EQ(queue.First(), kNever);
  queue.Set(2, Time(5));
  queue.Set(0, Time(3));
  queue.Set(1, Time(5));
  queue.Set(3, Time(5));
  queue.Set(0, Time(5));  // moved: behind the others
  queue.Set(1, Time(5));  // not moved
  queue.Set(3, kNever);   // out
  EXPECT_EQ(queue.First(), Time(5));
  std::vector<std::int32_t> items;
  queue.TakeFirst(items);
  EXPECT_THAT(items, testing::ElementsAre(2, 1, 0));
  EXPECT_EQ(queue.First(), kNever);
}

TEST(FinishQueue, IsAListThatIsSearched) {
  constexpr std::int32_t kItems = 200;
  FinishQueue queue;
  std::vector<Time> times(kItems, kNever);
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const std::uint64_t draw = HashCombine(1, i);
    const Time first = *std::min_element(times.begin(), times.end());
    ASSERT_EQ(queue.First(), first);
    if (draw % 8 == 0 && first != kNever) {
      // Equal times may be in several entries; together they are all of that time.
      std::vector<std::int32_t> items;
      while (queue.First() == first) queue.TakeFirst(items);
      std::vector<std::int32_t> expected;
      for (std::int32_t item = 0; item < kItems; ++item) {
        Time& time = times[static_cast<std::size_t>(item)];
        if (time == first) {
          expected.push_back(item);
          time = kNever;
        }
      }
      ASSERT_THAT(items, testing::UnorderedElementsAreArray(expected));
      continue;
    }
    const auto item = static_cast<std::int32_t>((draw >> 8) % kItems);
    const Time time = draw % 8 == 1 ? kNever : Time(static_cast<std::int64_t>((draw >> 32) % 500));
    queue.Set(item, time);
    times[static_cast<std::size_t>(item)] = time;
  }
}

}  // namespace
}  // namespace orrery::network
