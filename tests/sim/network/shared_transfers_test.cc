// Replays in which transfers share links.
#include "sim/network/shared_transfers.h"

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "sim/engine/replay.h"
#include "tests/sim/engine/program_builder.h"
#include "tests/sim/engine/random_world.h"

namespace orrery::network {
namespace {

using engine::EngineKind;
using engine::Replay;
using engine::ReplayOptions;
using engine::World;
using engine::testing::RandomWorld;
using engine::testing::ShareLinks;

constexpr std::uint64_t kWorlds = 1000;
constexpr int kIterations = 3;

Replay MustReplay(const World& world, bool reverse_ties = false, int iterations = kIterations, bool stop = false) {
  absl::StatusOr<SharedTransfers> transfers = SharedTransfers::Make(world);
  EXPECT_TRUE(transfers.ok()) << transfers.status();
  ReplayOptions options;
  options.engine = EngineKind::kEventQueue;
  options.iterations = iterations;
  options.reverse_ties = reverse_ties;
  options.stop_when_periodic = stop;
  options.traced_units = {0};
  options.transfers = &*transfers;
  absl::StatusOr<Replay> replay = engine::Run(world, options);
  EXPECT_TRUE(replay.ok()) << replay.status();
  return replay.ok() ? *std::move(replay) : Replay();
}

Replay WithoutSharing(const World& world) {
  ReplayOptions options;
  options.iterations = kIterations;
  options.stop_when_periodic = false;
  absl::StatusOr<Replay> replay = engine::Run(world, options);
  EXPECT_TRUE(replay.ok()) << replay.status();
  return replay.ok() ? *std::move(replay) : Replay();
}

// Links that are wide enough for all change nothing, to the picosecond.
TEST(SharedTransfersTest, WideLinksAreConstantDurations) {
  for (std::uint64_t seed = 0; seed < kWorlds && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    World world = RandomWorld(seed);
    ShareLinks(seed, 150, &world);
    const Replay shared = MustReplay(world);
    const Replay constant = WithoutSharing(world);
    ASSERT_EQ(shared.timeline_hash, constant.timeline_hash);
    ASSERT_EQ(shared.iteration_ends, constant.iteration_ends);
    for (std::size_t u = 0; u < world.units.size(); ++u) {
      ASSERT_EQ(shared.units[u].classes, constant.units[u].classes);
    }
  }
}

// Narrow ones do, and then neither folding nor the order of ties shows.
TEST(SharedTransfersTest, FoldedIsUnfoldedAndTiesDoNotShow) {
  int slower = 0;
  std::size_t units = 0;
  std::size_t folded_units = 0;
  for (std::uint64_t seed = 0; seed < kWorlds && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    World world = RandomWorld(seed);
    ShareLinks(seed, 1, &world);
    const Replay unfolded = MustReplay(world);
    ASSERT_EQ(MustReplay(world, true).timeline_hash, unfolded.timeline_hash);
    const engine::Folding folding = engine::Fold(world);
    const Replay folded = MustReplay(folding.world);
    ASSERT_EQ(folded.timeline_hash, unfolded.timeline_hash);
    ASSERT_EQ(folded.iteration_ends, unfolded.iteration_ends);
    for (std::size_t u = 0; u < world.units.size(); ++u) {
      ASSERT_EQ(folded.units[static_cast<std::size_t>(folding.class_of[u])].classes, unfolded.units[u].classes);
      Time sum;
      for (const Time time : unfolded.units[u].classes) sum += time;
      ASSERT_EQ(sum, unfolded.window_end - unfolded.window_begin);
    }
    units += world.units.size();
    folded_units += folding.world.units.size();
    if (unfolded.iteration_ends != WithoutSharing(world).iteration_ends) ++slower;
  }
  EXPECT_GT(slower, static_cast<int>(kWorlds) / 10);
  EXPECT_LT(folded_units, units * 9 / 10);
}

// Loads of transfers that share wide links are those of constant durations; in narrow ones neither folding nor the
// order of ties shows.
TEST(SharedTransfersTest, LoadsWhileTransfersShareLinks) {
  for (std::uint64_t seed = 0; seed < kWorlds / 4 && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    World world = RandomWorld(seed);
    engine::testing::AddLoads(seed, 8, false, &world);
    ReplayOptions options;
    options.engine = EngineKind::kEventQueue;
    options.iterations = kIterations;
    options.stop_when_periodic = false;
    const absl::StatusOr<Replay> constant = engine::Run(world, options);
    ASSERT_TRUE(constant.ok()) << constant.status();
    World wide = world;
    ShareLinks(seed, 150, &wide);
    ASSERT_EQ(MustReplay(wide).timeline_hash, constant->timeline_hash);
    ShareLinks(seed, 1, &world);
    const Replay narrow = MustReplay(world);
    ASSERT_EQ(MustReplay(world, true).timeline_hash, narrow.timeline_hash);
    ASSERT_EQ(MustReplay(engine::Fold(world).world).timeline_hash, narrow.timeline_hash);
  }
}

// Of the compute stream, in the window: counted from its begin.
std::vector<std::tuple<std::int32_t, Time, Time>> SpansOf(const Replay& replay) {
  std::vector<std::tuple<std::int32_t, Time, Time>> spans;
  for (const engine::TracedSpan& span : replay.trace) {
    if (span.stream != engine::kComputeStream || span.start >= replay.window_end) continue;
    spans.emplace_back(span.op, span.start - replay.window_begin, span.end - replay.window_begin);
  }
  return spans;
}

// A replay that has recognised a state goes on as before, whatever shares links and slows compute.
TEST(SharedTransfersTest, StoppingWhenPeriodicChangesNothing) {
  constexpr int kMany = 8;
  int periodic = 0;
  int early = 0;
  for (std::uint64_t seed = 0; seed < kWorlds && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    World world = RandomWorld(seed);
    if (seed % 3 == 0) engine::testing::AddLoads(seed, 8, false, &world);
    if (seed % 3 != 1) ShareLinks(seed, seed % 2 == 0 ? 1 : 4, &world);
    const Replay full = MustReplay(world, false, kMany);
    for (const bool reverse_ties : {false, true}) {
      const Replay stopped = MustReplay(world, reverse_ties, kMany, true);
      ASSERT_EQ(stopped.window_end - stopped.window_begin, full.window_end - full.window_begin);
      ASSERT_EQ(SpansOf(stopped), SpansOf(full));
      for (std::size_t u = 0; u < world.units.size(); ++u) {
        SCOPED_TRACE(absl::StrCat("unit ", u));
        const engine::UnitResult& found = stopped.units[u];
        const engine::UnitResult& expected = full.units[u];
        ASSERT_EQ(found.classes, expected.classes);
        ASSERT_EQ(found.pipeline_busy, expected.pipeline_busy);
        ASSERT_EQ(found.pipeline_last_end - found.pipeline_first_start,
                  expected.pipeline_last_end - expected.pipeline_first_start);
      }
      if (reverse_ties) {
        ASSERT_EQ(stopped.iteration_ends.size(), static_cast<std::size_t>(early));
      }
      early = static_cast<int>(stopped.iteration_ends.size());
      if (stopped.periodic) ++periodic;
    }
  }
  EXPECT_GT(periodic, static_cast<int>(kWorlds) / 2);
  EXPECT_LT(periodic, 2 * static_cast<int>(kWorlds));
}

TEST(SharedTransfersTest, RefusesRoutesThatMakeNoSense) {
  const auto code = [](const World& world) { return SharedTransfers::Make(world).status().code(); };
  World world;
  world.link_capacities = {5};
  world.routes = {{.rate = 1, .loads = {{0, 1}}}};
  EXPECT_EQ(code(world), absl::StatusCode::kOk);
  for (const engine::LinkLoad& load : {engine::LinkLoad{1, 1}, {-1, 1}, {0, 0}}) {
    World bad = world;
    bad.routes[0].loads = {load};
    EXPECT_EQ(code(bad), absl::StatusCode::kInvalidArgument);
  }
  World bad = world;
  bad.routes[0].rate = 0;
  EXPECT_EQ(code(bad), absl::StatusCode::kInvalidArgument);
  bad = world;
  bad.link_capacities[0] = 0;
  EXPECT_EQ(code(bad), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace orrery::network
