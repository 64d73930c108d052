#include "base/parallel.h"

#include <gtest/gtest.h>

#include <vector>

namespace orrery {
namespace {

// Whatever the number of threads, every index is worked on once: each cell holds its own square, and was empty before.
TEST(ParallelTest, EveryIndexOnce) {
  for (const int threads : {0, 1, 2, 3, 16}) {
    std::vector<int> cells(100, -1);
    std::vector<int> visits(100, 0);
    ParallelFor(100, threads, [&](std::int64_t i) {
      cells[static_cast<std::size_t>(i)] = static_cast<int>(i * i);
      ++visits[static_cast<std::size_t>(i)];
    });
    for (std::size_t i = 0; i < 100; ++i) {
      EXPECT_EQ(cells[i], static_cast<int>(i * i));
      EXPECT_EQ(visits[i], 1);
    }
  }
}

TEST(ParallelTest, NothingToDo) {
  ParallelFor(0, 4, [](std::int64_t) { FAIL(); });
  EXPECT_GE(HardwareThreads(), 1);
}

}  // namespace
}  // namespace orrery
