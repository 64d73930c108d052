#include "base/parallel.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace orrery {

int HardwareThreads() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

void ParallelFor(std::int64_t count, int threads, const std::function<void(std::int64_t)>& work) {
  std::atomic<std::int64_t> next = 0;
  const auto drain = [&] {
    for (std::int64_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::thread> others;
  for (std::int64_t i = 1; i < std::min<std::int64_t>(threads, count); ++i) others.emplace_back(drain);
  drain();
  for (std::thread& other : others) other.join();
}

}  // namespace orrery
