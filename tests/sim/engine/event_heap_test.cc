// Against a sorted list: what comes out is in the order (time, key), whatever came in between.
#include "sim/engine/event_heap.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/random.h"
#include "gtest/gtest.h"

namespace orrery::engine {
namespace {

TEST(EventHeap, OrdersByTimeThenKey) {
  EventHeap heap;
  EXPECT_TRUE(heap.empty());
  EXPECT_TRUE(heap.Soon().empty());
  heap.Push({Time(2), 1});
  heap.Push({Time(1), ~std::uint64_t{0}});
  heap.Push({Time(1), 7});
  heap.Push({Time(2), 0});
  const std::pair<std::int64_t, std::uint64_t> expected[] = {{1, 7}, {1, ~std::uint64_t{0}}, {2, 0}, {2, 1}};
  for (const auto& [time, key] : expected) {
    ASSERT_FALSE(heap.empty());
    EXPECT_EQ(heap.top().time, Time(time));
    EXPECT_EQ(heap.top().key, key);
    heap.Pop();
  }
  EXPECT_TRUE(heap.empty());
}

// Times never go back, as in a simulation; many are equal, and some events are equal in both.
TEST(EventHeap, IsASortedList) {
  EventHeap heap;
  std::multiset<std::pair<std::int64_t, std::uint64_t>> list;
  std::int64_t now = 0;
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    const std::uint64_t draw = HashCombine(2, i);
    // Grows to some hundreds, and empties now and then.
    const bool push = list.empty() || draw % 1000 < (i / 1000 % 2 == 0 ? 700u : 300u);
    if (push) {
      const std::int64_t time = now + static_cast<std::int64_t>((draw >> 16) % 50);
      const std::uint64_t key = (draw >> 32) % 8;
      heap.Push({Time(time), key});
      list.emplace(time, key);
    } else {
      now = list.begin()->first;
      heap.Pop();
      list.erase(list.begin());
    }
    ASSERT_EQ(heap.empty(), list.empty());
    if (list.empty()) continue;
    ASSERT_EQ(heap.top().time.count(), list.begin()->first);
    ASSERT_EQ(heap.top().key, list.begin()->second);
    ASSERT_EQ(heap.Soon().size(), std::min<std::size_t>(4, list.size() - 1));
    if (list.size() < 2) continue;
    const auto second = *std::next(list.begin());
    const auto soon = heap.Soon();
    ASSERT_TRUE(std::any_of(soon.begin(), soon.end(), [&](const Event& event) {
      return event.time.count() == second.first && event.key == second.second;
    }));
  }
}

}  // namespace
}  // namespace orrery::engine
