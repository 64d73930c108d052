#include "sim/collectives/ring_messages.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "base/random.h"
#include "gtest/gtest.h"

namespace orrery::collectives {
namespace {

// `nodes` of `gpus`: the last GPU of a node reaches the next node.
std::vector<Time> NodeRing(std::int64_t nodes, std::int64_t gpus, Time inside, Time between) {
  std::vector<Time> hops;
  for (std::int64_t rank = 0; rank < nodes * gpus; ++rank) {
    hops.push_back((rank + 1) % gpus == 0 && nodes > 1 ? between : inside);
  }
  return hops;
}

// The definition, step by step: a rank is done with a step when its message and that of the rank before it are.
Time Reference(const std::vector<Time>& hops, std::int64_t steps) {
  const std::size_t n = hops.size();
  std::vector<Time> done(n);
  for (std::int64_t step = 0; step < steps; ++step) {
    std::vector<Time> sent(n);
    for (std::size_t r = 0; r < n; ++r) sent[r] = std::max(done[r], done[(r + 1) % n]) + hops[r];
    for (std::size_t r = 0; r < n; ++r) done[r] = std::max(sent[r], sent[(r + n - 1) % n]);
  }
  return *std::max_element(done.begin(), done.end());
}

constexpr RingOptions kUnfolded{.fold = false, .stop_when_periodic = true};
constexpr RingOptions kEveryMessage{.fold = false, .stop_when_periodic = false};

TEST(RingMessagesTest, EqualHopsTakeTheirSum) {
  for (const std::int64_t n : {2, 3, 8, 12288}) {
    const std::vector<Time> hops(static_cast<std::size_t>(n), Time(7));
    const auto run = RunRing(hops, 2 * (n - 1));
    ASSERT_TRUE(run.ok()) << run.status();
    EXPECT_EQ(run->time, Time(7) * (2 * (n - 1)));
    EXPECT_EQ(run->ranks_simulated, 1);
    EXPECT_EQ(run->messages, 2 * (n - 1) * n);
  }
}

// One slow hop holds every step back once its delay has gone around: a step of it alone takes its time.
TEST(RingMessagesTest, SlowestHopDecides) {
  const std::vector<Time> hops = {Time(1), Time(1), Time(1), Time(10)};
  EXPECT_EQ(RunRing(hops, 1)->time, Time(10));
  EXPECT_EQ(RunRing(hops, 6)->time, Time(60));
}

TEST(RingMessagesTest, FoldedIsUnfolded) {
  for (const std::int64_t nodes : {8, 32, 128}) {
    const std::vector<Time> hops = NodeRing(nodes, 8, Time(3'400'001), Time(14'000'003));
    const std::int64_t steps = 2 * (8 * nodes - 1);
    const auto folded = RunRing(hops, steps);
    ASSERT_TRUE(folded.ok()) << folded.status();
    EXPECT_EQ(folded->ranks_simulated, 8);
    EXPECT_EQ(RunRing(hops, steps, kUnfolded)->time, folded->time);
    EXPECT_EQ(RunRing(hops, steps, kEveryMessage)->time, folded->time);
  }
}

TEST(RingMessagesTest, RandomRingsFollowTheDefinition) {
  std::uint64_t draws = 0;
  const auto draw = [&](std::uint64_t low, std::uint64_t high) {
    return static_cast<std::int64_t>(low + Mix(++draws) % (high - low + 1));
  };
  for (int i = 0; i < 200; ++i) {
    std::vector<Time> hops;
    const auto period = static_cast<std::size_t>(draw(1, 6));
    for (std::size_t r = 0; r < period; ++r) hops.emplace_back(draw(0, 9));
    const auto copies = static_cast<std::size_t>(draw(2, 4));
    for (std::size_t r = period; r < period * copies; ++r) hops.push_back(hops[r - period]);
    const std::int64_t steps = draw(1, 40);
    const Time expected = Reference(hops, steps);
    for (const RingOptions& options : {RingOptions{}, kUnfolded, kEveryMessage}) {
      const auto run = RunRing(hops, steps, options);
      ASSERT_TRUE(run.ok()) << run.status();
      EXPECT_EQ(run->time, expected) << i;
    }
    EXPECT_EQ(RunRing(hops, steps, kEveryMessage)->replayed, steps * static_cast<std::int64_t>(hops.size()));
  }
}

TEST(RingMessagesTest, Refusals) {
  const auto code = [](const std::vector<Time>& hops, std::int64_t steps) {
    return RunRing(hops, steps).status().code();
  };
  const std::vector<Time> good = {Time(1), Time(2)};
  EXPECT_EQ(code({Time(1)}, 1), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(good, 0), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({Time(-1), Time(1)}, 1), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code({Time(std::int64_t{1} << 62), Time(1)}, 2), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace orrery::collectives
