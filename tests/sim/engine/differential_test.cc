// One world, every engine, one answer: random worlds through the longest path, the worklist and the queue, ties
// reversed, folded and unfolded, compared to the picosecond. A failing case prints its seed.
#include <gtest/gtest.h>

#include <cstdint>
#include <iterator>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sim/engine/replay.h"
#include "sim/engine/world.h"
#include "tests/sim/engine/class_by_instant.h"
#include "tests/sim/engine/longest_path.h"
#include "tests/sim/engine/must_run.h"
#include "tests/sim/engine/random_world.h"

namespace orrery::engine::testing {
namespace {

constexpr std::uint64_t kWorlds = 1500;
constexpr int kIterations = 3;

struct Variant {
  const char* name;
  EngineKind engine;
  bool reverse_ties;
};
constexpr Variant kVariants[] = {
    {"worklist", EngineKind::kWorklist, false},
    {"worklist, ties reversed", EngineKind::kWorklist, true},
    {"queue", EngineKind::kEventQueue, false},
    {"queue, ties reversed", EngineKind::kEventQueue, true},
};

ReplayOptions OptionsOf(const Variant& variant, int iterations, bool stop) {
  ReplayOptions options = BasicOptions(variant.engine, variant.reverse_ties, iterations);
  options.stop_when_periodic = stop;
  return options;
}

Time Sum(const TimeByClass& classes) {
  Time sum;
  for (Time time : classes) sum += time;
  return sum;
}

void ExpectSameUnit(const UnitResult& a, const UnitResult& b) {
  EXPECT_EQ(a.classes, b.classes);
  EXPECT_EQ(a.timeline_hash, b.timeline_hash);
  EXPECT_EQ(a.pipeline_first_start, b.pipeline_first_start);
  EXPECT_EQ(a.pipeline_last_end, b.pipeline_last_end);
  EXPECT_EQ(a.pipeline_busy, b.pipeline_busy);
}

// Ends, window, hashes and classes of every engine are those of the two oracles.
TEST(DifferentialTest, EnginesAgreeWithTheOracles) {
  for (std::uint64_t seed = 0; seed < kWorlds && !HasFailure(); ++seed) {
    const World world = RandomWorld(seed);
    ASSERT_TRUE(CheckWorld(world).ok()) << "seed " << seed << ": " << CheckWorld(world);
    const auto path = FindLongestPath(world, kIterations);
    ASSERT_TRUE(path.ok()) << "seed " << seed;
    // Replay covers as many iterations as the window needs.
    const auto further = FindLongestPath(world, 2 * kIterations);
    ASSERT_TRUE(further.ok()) << "seed " << seed;
    const Time begin = path->iteration_ends[kIterations - 1];
    const Time end = path->iteration_ends[kIterations];
    for (const Variant& variant : kVariants) {
      SCOPED_TRACE(absl::StrCat("seed ", seed, ", ", variant.name));
      const Replay replay = MustRun(world, OptionsOf(variant, kIterations, false));
      ASSERT_EQ(replay.iteration_ends.size(), std::size_t{kIterations + 1});
      for (std::size_t k = 0; k <= kIterations; ++k) ASSERT_EQ(replay.iteration_ends[k], path->iteration_ends[k]);
      ASSERT_EQ(replay.timeline_hash, path->timeline_hash);
      ASSERT_EQ(replay.window_begin, begin);
      ASSERT_EQ(replay.window_end, end);
      LongestPath replayed = *further;
      replayed.ops.resize(static_cast<std::size_t>(replay.iterations_evaluated));
      replayed.iterations = kIterations;
      for (std::size_t u = 0; u < world.units.size() && !HasFailure(); ++u) {
        SCOPED_TRACE(absl::StrCat("unit ", u));
        ASSERT_EQ(replay.units[u].timeline_hash, path->unit_hashes[u]);
        ASSERT_EQ(Sum(replay.units[u].classes), end - begin);
        const auto id = static_cast<std::int32_t>(u);
        ASSERT_EQ(replay.units[u].classes, ClassesByInstant(world, replayed, id, begin, end));
        ASSERT_EQ(replay.units[u].pipeline_busy, PipelineBusyByInstant(world, replayed, id));
      }
    }
  }
}

// Stopping when periodic changes neither period nor account, and all variants stop at the same point.
TEST(DifferentialTest, StoppingWhenPeriodicChangesNothing) {
  int periodic = 0;
  for (std::uint64_t seed = 0; seed < kWorlds && !HasFailure(); ++seed) {
    const World world = RandomWorld(seed);
    const int iterations = 8;
    const Replay full = MustRun(world, OptionsOf(kVariants[0], iterations, false));
    Replay first;
    for (const Variant& variant : kVariants) {
      SCOPED_TRACE(absl::StrCat("seed ", seed, ", ", variant.name));
      ReplayOptions options = OptionsOf(variant, iterations, true);
      options.whole_iterations = true;  // so that all evaluate as many operations
      const Replay stopped = MustRun(world, options);
      ASSERT_EQ(stopped.window_end - stopped.window_begin, full.window_end - full.window_begin);
      for (std::size_t u = 0; u < world.units.size(); ++u) {
        SCOPED_TRACE(absl::StrCat("unit ", u));
        ASSERT_EQ(stopped.units[u].classes, full.units[u].classes);
        ASSERT_EQ(stopped.units[u].pipeline_busy, full.units[u].pipeline_busy);
        ASSERT_EQ(stopped.units[u].pipeline_last_end - stopped.units[u].pipeline_first_start,
                  full.units[u].pipeline_last_end - full.units[u].pipeline_first_start);
      }
      if (&variant == &kVariants[0]) {
        first = stopped;
        periodic += stopped.periodic ? 1 : 0;
        continue;
      }
      ASSERT_EQ(stopped.periodic, first.periodic);
      ASSERT_EQ(stopped.tasks, first.tasks);
      ASSERT_EQ(stopped.timeline_hash, first.timeline_hash);
      for (std::size_t u = 0; u < world.units.size(); ++u) ExpectSameUnit(stopped.units[u], first.units[u]);
    }
  }
  // Many worlds settle within eight iterations; in others some units never meet and drift apart for ever.
  EXPECT_GT(periodic, static_cast<int>(kWorlds) / 3);
  EXPECT_LT(periodic, static_cast<int>(kWorlds));
}

// What the queue leaves out of the iterations after the window shows in nothing but the work.
TEST(DifferentialTest, LeavingOutWhatIsBehindTheWindowChangesNothing) {
  std::int64_t left_out = 0;
  for (std::uint64_t seed = 0; seed < kWorlds && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const World world = RandomWorld(seed);
    ReplayOptions options = OptionsOf(kVariants[2], kIterations, false);
    for (std::size_t u = 0; u < world.units.size(); u += 1 + seed % 3) {
      options.traced_units.push_back(static_cast<std::int32_t>(u));
    }
    const Replay cut = MustRun(world, options);
    options.whole_iterations = true;
    const Replay whole = MustRun(world, options);
    ASSERT_EQ(cut.iteration_ends, whole.iteration_ends);
    ASSERT_EQ(cut.timeline_hash, whole.timeline_hash);
    for (std::size_t u = 0; u < world.units.size(); ++u) ExpectSameUnit(cut.units[u], whole.units[u]);
    ASSERT_EQ(cut.trace.size(), whole.trace.size());
    for (std::size_t i = 0; i < cut.trace.size(); ++i) {
      const TracedSpan& a = cut.trace[i];
      const TracedSpan& b = whole.trace[i];
      ASSERT_EQ(std::tie(a.unit, a.stream, a.op, a.iteration, a.ready, a.start, a.end),
                std::tie(b.unit, b.stream, b.op, b.iteration, b.ready, b.start, b.end));
    }
    ASSERT_LE(cut.tasks, whole.tasks);
    left_out += whole.tasks - cut.tasks;
  }
  EXPECT_GT(left_out, 0);
}

// A class of the folding has the result of each of its units; hashes add up by multiplicity.
TEST(DifferentialTest, FoldedEqualsUnfolded) {
  int folded_units = 0;
  int units = 0;
  for (std::uint64_t seed = 0; seed < kWorlds && !HasFailure(); ++seed) {
    const World world = RandomWorld(seed);
    const Folding folding = Fold(world);
    ASSERT_TRUE(CheckWorld(folding.world).ok()) << "seed " << seed << ": " << CheckWorld(folding.world);
    units += static_cast<int>(world.units.size());
    folded_units += static_cast<int>(folding.world.units.size());
    for (const Variant& variant : kVariants) {
      for (bool stop : {false, true}) {
        SCOPED_TRACE(absl::StrCat("seed ", seed, ", ", variant.name, stop ? ", stopping" : ""));
        const Replay unfolded = MustRun(world, OptionsOf(variant, kIterations, stop));
        const Replay folded = MustRun(folding.world, OptionsOf(variant, kIterations, stop));
        ASSERT_EQ(folded.timeline_hash, unfolded.timeline_hash);
        ASSERT_EQ(folded.iteration_ends, unfolded.iteration_ends);
        ASSERT_EQ(folded.periodic, unfolded.periodic);
        for (std::size_t u = 0; u < world.units.size(); ++u) {
          ExpectSameUnit(folded.units[static_cast<std::size_t>(folding.class_of[u])], unfolded.units[u]);
        }
      }
    }
  }
  EXPECT_LT(folded_units, units * 3 / 4);  // the test would be empty if nothing folded
}

// The comparison finds a single operation that ends one picosecond late, in each engine.
TEST(DifferentialTest, FaultOfOnePicosecondIsFound) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const World world = RandomWorld(seed);
    const auto path = FindLongestPath(world, kIterations);
    ASSERT_TRUE(path.ok());
    for (const Variant& variant : kVariants) {
      SCOPED_TRACE(absl::StrCat("seed ", seed, ", ", variant.name));
      ReplayOptions options = OptionsOf(variant, kIterations, false);
      options.fault = Time(1);
      EXPECT_NE(MustRun(world, options).timeline_hash, path->timeline_hash);
    }
  }
}

// Traces: the same spans from all engines, those of the longest path, and all that intersect the window.
TEST(DifferentialTest, TracesAreTheLongestPaths) {
  for (std::uint64_t seed = 0; seed < 300 && !HasFailure(); ++seed) {
    const World world = RandomWorld(seed);
    const auto path = FindLongestPath(world, 2 * kIterations);
    ASSERT_TRUE(path.ok());
    const auto unit = static_cast<std::int32_t>(world.units.size() - 1);
    const Program& program = world.programs[static_cast<std::size_t>(world.units.back().program)];
    for (const Variant& variant : kVariants) {
      SCOPED_TRACE(absl::StrCat("seed ", seed, ", ", variant.name));
      ReplayOptions options = OptionsOf(variant, kIterations, false);
      options.traced_units = {unit};
      const Replay replay = MustRun(world, options);
      std::size_t expected = 0;
      for (int k = 0; k < replay.iterations_evaluated; ++k) {
        for (const OpTimes& times : path->ops[static_cast<std::size_t>(k)][static_cast<std::size_t>(unit)]) {
          const bool empty_at_begin = times.ready == times.end && times.end == replay.window_begin;
          if (times.ready < replay.window_end && (times.end > replay.window_begin || empty_at_begin)) ++expected;
        }
      }
      ASSERT_EQ(replay.trace.size(), expected);
      for (const TracedSpan& span : replay.trace) {
        const OpTimes& times = path->ops[static_cast<std::size_t>(span.iteration)][static_cast<std::size_t>(unit)]
                                        [static_cast<std::size_t>(span.op)];
        ASSERT_EQ(span.ready, times.ready);
        ASSERT_EQ(span.start, times.start);
        ASSERT_EQ(span.end, times.end);
        ASSERT_EQ(span.stream, program.ops[static_cast<std::size_t>(span.op)].stream);
      }
    }
  }
}

// The trace of a periodic replay that stopped is that of one that went on, shifted in time and iteration, for streams
// in phase.
TEST(DifferentialTest, PeriodicTraceIsAShift) {
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 500 && !HasFailure(); ++seed) {
    const World world = RandomWorld(seed);
    ReplayOptions options = OptionsOf(kVariants[seed % std::size(kVariants)], 9, true);
    options.traced_units = {0};
    const Replay stopped = MustRun(world, options);
    options.stop_when_periodic = false;
    const Replay full = MustRun(world, options);
    if (!stopped.periodic) continue;
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const Time shift = full.window_begin - stopped.window_begin;
    const auto by = static_cast<std::int32_t>(full.iteration_ends.size() - stopped.iteration_ends.size());
    // The compute stream is always in phase. Of others, a stopped replay knows only what repeats.
    std::vector<TracedSpan> expected;
    for (const TracedSpan& span : full.trace) {
      if (span.stream == kComputeStream) expected.push_back(span);
    }
    std::vector<TracedSpan> found;
    for (const TracedSpan& span : stopped.trace) {
      if (span.stream == kComputeStream) found.push_back(span);
    }
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      ASSERT_EQ(found[i].op, expected[i].op);
      ASSERT_EQ(found[i].iteration + by, expected[i].iteration);
      ASSERT_EQ(found[i].ready + shift, expected[i].ready);
      ASSERT_EQ(found[i].start + shift, expected[i].start);
      ASSERT_EQ(found[i].end + shift, expected[i].end);
    }
    ++compared;
  }
  EXPECT_GT(compared, 100);
}

}  // namespace
}  // namespace orrery::engine::testing
