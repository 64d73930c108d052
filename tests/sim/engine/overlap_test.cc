// Rates that change: timelines derived by hand, and random worlds against the stepwise oracle. Intervals are [begin,
// end) in picoseconds.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sim/engine/replay.h"
#include "sim/engine/world.h"
#include "tests/sim/engine/class_by_instant.h"
#include "tests/sim/engine/must_run.h"
#include "tests/sim/engine/program_builder.h"
#include "tests/sim/engine/random_world.h"
#include "tests/sim/engine/stepwise.h"

namespace orrery::engine::testing {
namespace {

using enum TimeClass;

ReplayOptions Queue(int iterations, bool reverse_ties) {
  return BasicOptions(EngineKind::kEventQueue, reverse_ties, iterations);
}

// Takes, and slows, as shares of a kernel of kind 1.
Load Taking(double takes, double slows = 0) {
  Load load;
  load.takes[1] = static_cast<std::int64_t>(takes * static_cast<double>(kWholeRate));
  load.slows[1] = static_cast<std::int64_t>(slows * static_cast<double>(kWholeRate));
  return load;
}
Load TakingAtLeast(double share) {
  Load load;
  load.at_least[1] = static_cast<std::int64_t>(share * static_cast<double>(kWholeRate));
  return load;
}

// The compute stream runs kind 1; every collective has the first load, or the second on stream 2.
Program WithLoads(Program program, std::vector<Load> loads) {
  for (const Op& op : program.ops) {
    const bool meets = op.kind == OpKind::kCollective;
    program.op_loads.push_back(static_cast<std::int16_t>(meets ? (op.stream == 2 && loads.size() > 1 ? 1 : 0) : -1));
  }
  program.part_loads.assign(program.parts.size(), 0);
  for (const Segment& segment : program.segments) {
    program.segment_kinds.push_back(segment.time_class == kCompute ? 1 : 0);
  }
  program.loads = std::move(loads);
  return program;
}

// Two units of one program and one group, the first iteration with ties either way: whoever looks at `check` sees both.
void PlayPair(const Program& program, const std::function<void(const Replay&)>& check) {
  for (const bool reverse : {false, true}) {
    SCOPED_TRACE(reverse);
    WorldBuilder world;
    world.Add(program);
    world.Add(program);
    for (std::int32_t slot = 0; slot < program.num_groups; ++slot) world.Join({0, 1}, slot);
    ReplayOptions options = Queue(0, reverse);
    options.nothing_follows = true;
    options.traced_units = {0, 1};
    check(MustRun(world.world(), options));
  }
}

Time EndOf(const Replay& replay, std::int32_t unit, std::int32_t op) {
  for (const TracedSpan& span : replay.trace) {
    if (span.unit == unit && span.op == op && span.iteration == 0) return span.end;
  }
  return Time(-1);
}

// Compute of 100 beside a collective [20,50) that takes half: 20 alone, 30 / 2 = 15 beside it, 65 after it: [0,115).
TEST(OverlapTest, RateChangesWhileAnOperationRuns) {
  ProgramBuilder builder;
  builder.Local({Seg(kData, 20)}, 1);
  builder.Collective(0, kExposedDp, kWaitDp, 0, 30, 1);
  builder.Compute(100).pipeline = true;
  builder.Update(5);
  PlayPair(WithLoads(builder.program(), {Taking(0.5)}), [](const Replay& replay) {
    EXPECT_EQ(EndOf(replay, 0, 1), Time(50));
    EXPECT_EQ(EndOf(replay, 0, 2), Time(115));
    EXPECT_EQ(replay.window_end, Time(120));
    EXPECT_EQ(replay.units[1].classes[static_cast<std::size_t>(kCompute)], Time(115));
    EXPECT_EQ(replay.units[1].classes[static_cast<std::size_t>(kOptimizer)], Time(5));
    EXPECT_EQ(replay.units[1].pipeline_busy, Time(115));
  });
}

// The lead of a collective takes nothing: as above, with a local operation of 5 and a lead of 15.
TEST(OverlapTest, NothingIsTakenWhileAMemberIsMissing) {
  ProgramBuilder builder;
  builder.Local({Seg(kData, 5)}, 1);
  builder.Collective(0, kExposedDp, kWaitDp, 15, 30, 1);
  builder.Compute(100);
  builder.Update(5);
  PlayPair(WithLoads(builder.program(), {Taking(0.5)}),
           [](const Replay& replay) { EXPECT_EQ(EndOf(replay, 0, 2), Time(115)); });
}

// Collectives [0,40) and [20,60), a quarter each. Added up: 15 + 10 + 15 by 60, and 60 more: [0,120). Of at_least the
// largest counts: 45 by 60, and 55 more: [0,115). One of each: 1/4 + 1/4 as long as both run.
TEST(OverlapTest, TwoCommunicationsBesideOneOperation) {
  ProgramBuilder builder;
  builder.Collective(0, kExposedDp, kWaitDp, 0, 40, 1);
  builder.Local({Seg(kData, 20)}, 2);
  builder.Collective(1, kExposedDp, kWaitDp, 0, 40, 2);
  builder.Compute(100);
  builder.Update(0);
  PlayPair(WithLoads(builder.program(), {Taking(0.25)}),
           [](const Replay& replay) { EXPECT_EQ(EndOf(replay, 1, 3), Time(120)); });
  PlayPair(WithLoads(builder.program(), {TakingAtLeast(0.25)}),
           [](const Replay& replay) { EXPECT_EQ(EndOf(replay, 1, 3), Time(115)); });
  PlayPair(WithLoads(builder.program(), {Taking(0.25), TakingAtLeast(0.25)}),
           [](const Replay& replay) { EXPECT_EQ(EndOf(replay, 1, 3), Time(120)); });
}

// Compute of 50 at half speed ends at 100, the instant at which the collective does; the next 10 run alone.
TEST(OverlapTest, ChangeAtTheInstantOfAnEnd) {
  ProgramBuilder builder;
  builder.Collective(0, kExposedDp, kWaitDp, 0, 100, 1);
  builder.Compute(50);
  builder.Compute(10);
  builder.Update(0);
  PlayPair(WithLoads(builder.program(), {Taking(0.5)}), [](const Replay& replay) {
    EXPECT_EQ(EndOf(replay, 0, 1), Time(100));
    EXPECT_EQ(EndOf(replay, 0, 2), Time(110));
  });
}

// A third taken: 10 at 2/3 take 15; 11 take 16.5, so 17 in whole picoseconds. Two segments of 11 end at 17 and 34. More
// than all taken leaves a hundredth: 1 takes 100.
TEST(OverlapTest, EndsAreRoundedUp) {
  const auto end_of = [](std::vector<Segment> segments, const Load& load) {
    ProgramBuilder builder;
    builder.Collective(0, kExposedDp, kWaitDp, 0, 1000, 1);
    builder.Local(std::move(segments));
    builder.Update(0);
    Time end;
    PlayPair(WithLoads(builder.program(), {load}), [&](const Replay& replay) { end = EndOf(replay, 0, 1); });
    return end;
  };
  EXPECT_EQ(end_of({Seg(kCompute, 10)}, Taking(1.0 / 3)), Time(15));
  EXPECT_EQ(end_of({Seg(kCompute, 11)}, Taking(1.0 / 3)), Time(17));
  EXPECT_EQ(end_of({Seg(kCompute, 11), Seg(kCompute, 11)}, Taking(1.0 / 3)), Time(34));
  EXPECT_EQ(end_of({Seg(kCompute, 1)}, Taking(1)), Time(100));
}

// Segments: compute 20, exposed tp 30, not issued until 60, compute 20, beside a collective of 70 that takes half and
// is slowed by half. Compute [0,40), tp [40,70), compute [70,110). The collective: 20 by 40, 30 by 70, then 20 at
// half: 110. Alone after that: 20 more kernels of 5. The same as three operations.
TEST(OverlapTest, SegmentsSlowAndAreSlowedOneByOne) {
  const std::vector<Segment> segments = {Seg(kCompute, 20), Seg(kExposedTp, 30), Seg(kCompute, 20, 60)};
  for (const bool apart : {false, true}) {
    SCOPED_TRACE(apart);
    ProgramBuilder builder;
    builder.Collective(0, kExposedDp, kWaitDp, 0, 70, 1);
    if (apart) {
      for (const Segment& segment : segments) builder.Local({segment});
    } else {
      builder.Local(segments);
    }
    builder.Compute(5);
    builder.Update(0);
    PlayPair(WithLoads(builder.program(), {Taking(0.5, 0.5)}), [&](const Replay& replay) {
      EXPECT_EQ(EndOf(replay, 0, 0), Time(110));
      EXPECT_EQ(EndOf(replay, 0, apart ? 3 : 1), Time(110));
      EXPECT_EQ(replay.window_end, Time(115));
      EXPECT_EQ(replay.units[0].classes[static_cast<std::size_t>(kCompute)], Time(85));
      EXPECT_EQ(replay.units[0].classes[static_cast<std::size_t>(kExposedTp)], Time(30));
    });
  }
}

// Issue gaps are no kernels: compute 10, then one issued at 30, beside a collective of 25 slowed by half: 5 by 10, 20
// by 30: it ends at 30, and compute [30,40) is alone.
TEST(OverlapTest, NothingSlowsWhatIsNotIssued) {
  ProgramBuilder builder;
  builder.Collective(0, kExposedDp, kWaitDp, 0, 25, 1);
  builder.Local({Seg(kCompute, 10), Seg(kCompute, 10, 30)});
  builder.Update(0);
  PlayPair(WithLoads(builder.program(), {Taking(0, 0.5)}), [](const Replay& replay) {
    EXPECT_EQ(EndOf(replay, 0, 0), Time(30));
    EXPECT_EQ(EndOf(replay, 0, 1), Time(40));
    EXPECT_EQ(replay.units[0].classes[static_cast<std::size_t>(kHost)], Time(20));
  });
}

// An eager message [10,30) slows both ends: the sender's next 40 by a half, 10 + 30 more: [10,60); the receiver's 50,
// begun at 0, by a quarter: 10 + 15 + 25: [0,55).
TEST(OverlapTest, MessagesSlowBothEnds) {
  ProgramBuilder sender;
  sender.Compute(10);
  sender.Send(0, 20);
  sender.Compute(40);
  sender.Update(0);
  ProgramBuilder receiver;
  receiver.Compute(50);
  receiver.Compute(0);
  receiver.Receive(0, 20);
  receiver.Update(0);
  for (const bool reverse : {false, true}) {
    WorldBuilder world;
    world.Add(WithLoads(sender.program(), {Taking(0.5)}));
    world.Add(WithLoads(receiver.program(), {Taking(0.25)}));
    world.Link({0, 0}, {1, 0});
    ReplayOptions options = Queue(0, reverse);
    options.nothing_follows = true;
    options.traced_units = {0, 1};
    const Replay replay = MustRun(world.world(), options);
    EXPECT_EQ(EndOf(replay, 0, 1), Time(60));
    EXPECT_EQ(EndOf(replay, 1, 0), Time(55));
  }
}

// --- Random worlds.

constexpr int kIterations = 2;
const std::uint64_t kWorlds = std::getenv("ORRERY_SANITIZER") != nullptr ? 60 : 500;

void ExpectSameUnit(const UnitResult& a, const UnitResult& b) {
  EXPECT_EQ(a.classes, b.classes);
  EXPECT_EQ(a.timeline_hash, b.timeline_hash);
  EXPECT_EQ(a.pipeline_first_start, b.pipeline_first_start);
  EXPECT_EQ(a.pipeline_last_end, b.pipeline_last_end);
  EXPECT_EQ(a.pipeline_busy, b.pipeline_busy);
}

// Ends, hashes, classes and busy times are the oracle's, with ties either way, and so are those of the folded world.
TEST(OverlapDifferentialTest, TheQueueAgreesWithTheOracle) {
  int slowed = 0, folded_units = 0, units = 0;
  for (std::uint64_t seed = 0; seed < kWorlds && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    World world = RandomWorld(seed);
    const std::uint64_t alone = MustRun(world, Queue(kIterations, false)).timeline_hash;
    AddLoads(seed, 1 + static_cast<std::int32_t>(seed % 12), seed % 3 != 0, &world);
    ASSERT_TRUE(CheckWorld(world).ok()) << CheckWorld(world);
    const LongestPath expected = AdvanceStepwise(world, kIterations);
    slowed += expected.timeline_hash != alone ? 1 : 0;
    const Time begin = expected.iteration_ends[kIterations - 1];
    const Time end = expected.iteration_ends[kIterations];
    const Folding folding = Fold(world);
    units += static_cast<int>(world.units.size());
    folded_units += static_cast<int>(folding.world.units.size());
    for (const bool reverse : {false, true}) {
      SCOPED_TRACE(reverse);
      const Replay replay = MustRun(world, Queue(kIterations, reverse));
      ASSERT_EQ(replay.timeline_hash, expected.timeline_hash);
      for (std::size_t k = 0; k <= kIterations; ++k) ASSERT_EQ(replay.iteration_ends[k], expected.iteration_ends[k]);
      const Replay folded = MustRun(folding.world, Queue(kIterations, reverse));
      ASSERT_EQ(folded.timeline_hash, expected.timeline_hash);
      LongestPath replayed = expected;
      replayed.ops.resize(static_cast<std::size_t>(replay.iterations_evaluated));
      for (std::size_t u = 0; u < world.units.size() && !HasFailure(); ++u) {
        SCOPED_TRACE(absl::StrCat("unit ", u));
        const auto id = static_cast<std::int32_t>(u);
        ASSERT_EQ(replay.units[u].timeline_hash, expected.unit_hashes[u]);
        ASSERT_EQ(replay.units[u].classes, ClassesByInstant(world, replayed, id, begin, end));
        ASSERT_EQ(replay.units[u].pipeline_busy, PipelineBusyByInstant(world, replayed, id));
        ExpectSameUnit(folded.units[static_cast<std::size_t>(folding.class_of[u])], replay.units[u]);
      }
    }
  }
  EXPECT_GT(slowed, static_cast<int>(kWorlds) / 3);
  EXPECT_LT(folded_units, units * 3 / 4);
}

// Loads that take nothing: the same events, times and accounts as without, to the picosecond.
TEST(OverlapDifferentialTest, NothingTakenIsNothingChanged) {
  for (std::uint64_t seed = 0; seed < kWorlds && !HasFailure(); ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    World world = RandomWorld(seed);
    const Replay alone = MustRun(world, Queue(3, false));
    AddLoads(seed, 0, true, &world);
    const Replay loaded = MustRun(world, Queue(3, false));
    ASSERT_EQ(loaded.timeline_hash, alone.timeline_hash);
    ASSERT_EQ(loaded.iteration_ends, alone.iteration_ends);
    ASSERT_EQ(loaded.events, alone.events);
    for (std::size_t u = 0; u < world.units.size(); ++u) ExpectSameUnit(loaded.units[u], alone.units[u]);
  }
}

// The comparison finds an operation that ends one picosecond late.
TEST(OverlapDifferentialTest, FaultOfOnePicosecondIsFound) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    World world = RandomWorld(seed);
    AddLoads(seed, 8, true, &world);
    ReplayOptions options = Queue(kIterations, false);
    options.fault = Time(1);
    EXPECT_NE(MustRun(world, options).timeline_hash, AdvanceStepwise(world, kIterations).timeline_hash) << seed;
  }
}

TEST(OverlapTest, BadProgramsAndOptionsAreRefused) {
  ProgramBuilder builder;
  builder.Collective(0, kExposedDp, kWaitDp, 0, 10, 1);
  builder.Compute(10);
  builder.Update(0);
  const Program good = WithLoads(builder.program(), {Taking(0.5)});
  EXPECT_TRUE(CheckProgram(good).ok());
  Program bad = good;
  bad.op_loads[0] = 1;
  EXPECT_FALSE(CheckProgram(bad).ok());
  bad = good;
  bad.loads[0].takes[0] = 1;
  EXPECT_FALSE(CheckProgram(bad).ok());
  bad = good;
  bad.loads[0].slows[1] = kWholeRate + 1;
  EXPECT_FALSE(CheckProgram(bad).ok());
  bad = good;
  bad.segment_kinds[0] = kKernelKinds;
  EXPECT_FALSE(CheckProgram(bad).ok());
  WorldBuilder world;
  world.Add(good);
  world.Join({0});
  ReplayOptions options;
  options.engine = EngineKind::kWorklist;
  EXPECT_FALSE(engine::Run(world.world(), options).ok());
}

}  // namespace
}  // namespace orrery::engine::testing
