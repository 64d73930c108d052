// A ring all-reduce message by message. Hops inside a node and between nodes differ; every result is checked.
#include <cstdint>
#include <vector>

#include "benchmark/benchmark.h"
#include "sim/collectives/ring_messages.h"

namespace orrery::collectives {
namespace {

constexpr Time kInside(3'400'001);
constexpr Time kBetween(14'000'003);

std::vector<Time> NodesOfEight(std::int64_t nodes) {
  std::vector<Time> hops;
  for (std::int64_t rank = 0; rank < 8 * nodes; ++rank) hops.push_back((rank + 1) % 8 == 0 ? kBetween : kInside);
  return hops;
}

void AllReduce(benchmark::State& state, const RingOptions& options) {
  const std::int64_t nodes = state.range(0);
  const std::int64_t steps = 2 * (8 * nodes - 1);
  std::int64_t messages = 0;
  for (auto _ : state) {
    const auto run = RunRing(NodesOfEight(nodes), steps, options);
    // Every step waits for the slowest hop of the one before.
    if (!run.ok() || run->time != kBetween * steps) {
      state.SkipWithError("wrong answer");
      return;
    }
    messages += run->replayed;
  }
  state.counters["messages/s"] = benchmark::Counter(static_cast<double>(messages), benchmark::Counter::kIsRate);
}

void RingEveryMessage(benchmark::State& state) { AllReduce(state, {.fold = false, .stop_when_periodic = false}); }
BENCHMARK(RingEveryMessage)->Arg(128)->Unit(benchmark::kMillisecond);

void RingFoldedEveryStep(benchmark::State& state) { AllReduce(state, {.fold = true, .stop_when_periodic = false}); }
BENCHMARK(RingFoldedEveryStep)->Arg(1536)->Unit(benchmark::kMillisecond);

void RingFolded(benchmark::State& state) { AllReduce(state, {}); }
BENCHMARK(RingFolded)->Arg(1536)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::collectives
