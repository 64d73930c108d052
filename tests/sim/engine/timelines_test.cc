// Timelines derived by hand, which together exercise every time class. Intervals are [begin, end) in picoseconds.
#include <gtest/gtest.h>

#include <initializer_list>
#include <utility>

#include "bench/sim/engine/pipeline_world.h"
#include "sim/engine/replay.h"
#include "sim/engine/world.h"
#include "tests/sim/engine/program_builder.h"

namespace orrery::engine::testing {
namespace {

using enum TimeClass;

TimeByClass Classes(std::initializer_list<std::pair<TimeClass, std::int64_t>> entries) {
  TimeByClass classes{};
  for (const auto& [time_class, time] : entries) classes[static_cast<std::size_t>(time_class)] = Time(time);
  return classes;
}

// Every timeline is checked with both engines and ties either way.
class TimelinesTest : public ::testing::TestWithParam<std::pair<EngineKind, bool>> {
 protected:
  static Replay Play(const WorldBuilder& world, int iterations, std::vector<std::int32_t> traced = {}) {
    ReplayOptions options;
    options.engine = GetParam().first;
    options.reverse_ties = GetParam().second;
    options.iterations = iterations;
    options.traced_units = std::move(traced);
    auto replay = engine::Run(world.world(), options);
    EXPECT_TRUE(replay.ok()) << replay.status();
    return replay.ok() ? *std::move(replay) : Replay();
  }
};

INSTANTIATE_TEST_SUITE_P(Engines, TimelinesTest,
                         ::testing::Values(std::pair(EngineKind::kWorklist, false),
                                           std::pair(EngineKind::kWorklist, true),
                                           std::pair(EngineKind::kEventQueue, false),
                                           std::pair(EngineKind::kEventQueue, true)),
                         [](const auto& test) {
                           return std::string(test.param.first == EngineKind::kWorklist ? "Worklist" : "Queue") +
                                  (test.param.second ? "Reversed" : "");
                         });

// Two pipeline ranks, one micro-batch, eager messages of 3, F = 10, B = 20, update 5.
//   rank 0: F [0,10)   ........................... B [46,66) U [66,71)
//   rank 1:            F [13,23) B [23,43) U [43,48), then iteration 1: waits for rank 0's F [71,81)
// Rank 1's F misses its message until rank 0 has sent at 10 and it transfers until 13; rank 0's B misses its until 43,
// transfer until
// 46. The cold window is [0,71): rank 0 bubble 33 = 43 - 10, pp 3; rank 1 bubble 10 + (71 - 48) = 33, pp 3.
TEST_P(TimelinesTest, EagerPipelineWithOptimizer) {
  ProgramBuilder first;
  first.Compute(10).pipeline = true;
  first.Send(0, 3);
  first.Compute(20).pipeline = true;
  first.Receive(0, 3);
  first.Update(5);
  ProgramBuilder last;
  last.Compute(10).pipeline = true;
  last.Receive(0, 3);
  last.Compute(20).pipeline = true;
  last.Send(0, 3);
  last.Update(5);
  WorldBuilder world;
  world.Add(first.program());
  world.Add(last.program());
  world.Link({0, 0}, {1, 0});

  const Replay replay = Play(world, 0, {1});
  EXPECT_EQ(replay.window_begin, Time(0));
  EXPECT_EQ(replay.window_end, Time(71));
  EXPECT_EQ(replay.units[0].classes, Classes({{kCompute, 30}, {kBubble, 33}, {kExposedPp, 3}, {kOptimizer, 5}}));
  EXPECT_EQ(replay.units[1].classes, Classes({{kCompute, 30}, {kBubble, 33}, {kExposedPp, 3}, {kOptimizer, 5}}));
  // Rank 0 is busy for 30 between 0 and 66, rank 1 for 30 between 13 and 43: it has no span bubble.
  EXPECT_EQ(replay.units[0].pipeline_first_start, Time(0));
  EXPECT_EQ(replay.units[0].pipeline_last_end, Time(66));
  EXPECT_EQ(replay.units[0].pipeline_busy, Time(30));
  EXPECT_EQ(replay.units[1].pipeline_first_start, Time(13));
  EXPECT_EQ(replay.units[1].pipeline_last_end, Time(43));
  EXPECT_EQ(replay.units[1].pipeline_busy, Time(30));
  // F, B and U of iteration 0, and F of iteration 1, which is ready, and waits, inside the window.
  ASSERT_EQ(replay.trace.size(), 4u);
  EXPECT_EQ(replay.trace[0].ready, Time(0));
  EXPECT_EQ(replay.trace[0].start, Time(13));
  EXPECT_EQ(replay.trace[0].end, Time(23));
  EXPECT_EQ(replay.trace[3].iteration, 1);
  EXPECT_EQ(replay.trace[3].ready, Time(48));
  EXPECT_EQ(replay.trace[3].start, Time(84));

  // Rank 0's update couples iterations: every period is 71. Accounts of the steady state are the same here.
  const Replay steady = Play(world, 5);
  EXPECT_TRUE(steady.periodic);
  EXPECT_EQ(steady.window_end - steady.window_begin, Time(71));
  EXPECT_EQ(steady.units[0].classes, replay.units[0].classes);
  EXPECT_EQ(steady.units[1].classes, replay.units[1].classes);
}

// Eager messages taken up in another order than sent. Rank 0 computes 10, sends message 0 (of 2), computes 20, sends
// message 1 (of 7). Rank 1 first takes up message 1, which arrives at 37, and runs [37,41), then message 0, there since
// 12, and runs [41,44).
TEST_P(TimelinesTest, EagerMessagesInAnotherOrder) {
  ProgramBuilder zero;
  zero.Compute(10);
  zero.Send(0, 2);
  zero.Compute(20);
  zero.Send(0, 7);
  zero.Update(0);
  ProgramBuilder one;
  one.Compute(4);
  one.Receive(0, 7);
  one.Compute(3);
  one.Receive(0, 2);
  one.Update(0);
  std::swap(one.program().parts[0].sequence, one.program().parts[1].sequence);
  WorldBuilder world;
  world.Add(zero.program());
  world.Add(one.program());
  world.Link({0, 0}, {1, 0});

  const Replay replay = Play(world, 0, {1});
  EXPECT_EQ(replay.window_end, Time(44));
  EXPECT_EQ(replay.units[1].classes, Classes({{kCompute, 7}, {kBubble, 30}, {kExposedPp, 7}}));
  ASSERT_GE(replay.trace.size(), 2u);
  EXPECT_EQ(replay.trace[0].start, Time(37));
  EXPECT_EQ(replay.trace[1].start, Time(41));
}

// A blocking message of 4: rank 0 is ready at 10, rank 1 at 25. Both transfer [25,29). Then a batch at rank 0, ready at
// 29: to rank 1, ready at 29 + 6 = 35, for 5: [35,40); from rank 2, ready at 50, for 7: [50,57). Rank 0: missing
// [29,35), transfer [35,40), missing [40,50), transfer [50,57).
TEST_P(TimelinesTest, BlockingAndBatchedMessages) {
  ProgramBuilder zero;
  zero.Compute(10);
  zero.Exchange();
  zero.Send(0, 4);
  zero.Exchange();
  zero.Send(0, 5);
  zero.Receive(1, 7);
  zero.Update(3);
  ProgramBuilder one;
  one.Compute(25);
  one.Exchange();
  one.Receive(0, 4);
  one.Compute(6);
  one.Exchange();
  one.Receive(0, 5);
  one.Update(20);
  ProgramBuilder two;
  two.Compute(50);
  two.Exchange();
  two.Send(0, 7);
  two.Update(3);
  WorldBuilder world;
  world.Add(zero.program());
  world.Add(one.program());
  world.Add(two.program());
  world.Link({0, 0}, {1, 0});
  world.Link({0, 1}, {2, 0});

  // All updates end at 60.
  const Replay replay = Play(world, 0);
  EXPECT_EQ(replay.window_end, Time(60));
  EXPECT_EQ(replay.units[0].classes,
            Classes({{kCompute, 10}, {kBubble, 15 + 6 + 10}, {kExposedPp, 4 + 5 + 7}, {kOptimizer, 3}}));
  EXPECT_EQ(replay.units[1].classes, Classes({{kCompute, 31}, {kExposedPp, 9}, {kOptimizer, 20}}));
  EXPECT_EQ(replay.units[2].classes, Classes({{kCompute, 50}, {kExposedPp, 7}, {kOptimizer, 3}}));
}

// A gradient all-reduce over {0, 1} on stream 1 after each rank's first kernel: rank 0's ends at 10, rank 1's at 4, so
// that it starts at 10, leads 2 and transfers [12,42). Rank 0's next kernel waits for a message that rank 1 sends at 25
// and that takes 5: bubble [10,25), although the all-reduce is in flight; pp [25,30); runs [30,36). Its update then
// waits for the all-reduce: exposed dp [36,42). Rank 1 computes until 25 and waits for it [25,42).
TEST_P(TimelinesTest, DataParallelTransferInFlightDuringABubble) {
  ProgramBuilder zero;
  zero.Compute(10);
  const std::int32_t gradients = zero.Record();
  zero.Collective(0, kExposedDp, kWaitDp, 2, 30, 1).waits[0] = gradients;
  const std::int32_t reduced = zero.Record();
  zero.Compute(6);
  zero.Receive(0, 5);
  zero.Update(7).waits[0] = reduced;
  ProgramBuilder one;
  one.Compute(4);
  const std::int32_t gradients_1 = one.Record();
  one.Collective(0, kExposedDp, kWaitDp, 2, 30, 1).waits[0] = gradients_1;
  const std::int32_t reduced_1 = one.Record();
  one.Compute(21);
  one.Send(0, 5);
  one.Update(7).waits[0] = reduced_1;
  WorldBuilder world;
  world.Add(zero.program());
  world.Add(one.program());
  world.Link({0, 0}, {1, 0});
  world.Join({0, 1});

  const Replay replay = Play(world, 0);
  EXPECT_EQ(replay.window_end, Time(49));
  EXPECT_EQ(replay.units[0].classes,
            Classes({{kCompute, 16}, {kBubble, 15}, {kExposedPp, 5}, {kExposedDp, 6}, {kOptimizer, 7}}));
  EXPECT_EQ(replay.units[1].classes, Classes({{kCompute, 25}, {kExposedDp, 17}, {kOptimizer, 7}}));
}

// A late peer on the compute stream. Rank 0 computes 10, rank 1 computes 16. The tp collective starts at 16, leads 3
// and transfers [19,27): rank 0 waits [10,19), rank 1 [16,19). Then cp: both ready at 27, lead 1, transfer 2: until 30.
// Then rank 1 computes 4 and an ep collective without lead takes 6: [34,40), rank 0 waits [30,34). Update 5: until 45.
TEST_P(TimelinesTest, LatePeerInCollectives) {
  ProgramBuilder builders[2];
  for (int rank : {0, 1}) {
    ProgramBuilder& builder = builders[rank];
    builder.Compute(rank == 0 ? 10 : 16);
    builder.Collective(0, kExposedTp, kWaitTp, 3, 8);
    builder.Collective(0, kExposedCp, kWaitCp, 1, 2);
    if (rank == 1) builder.Compute(4);
    builder.Collective(0, kExposedEp, kWaitEp, 0, 6);
    builder.Update(5);
  }
  WorldBuilder world;
  world.Add(builders[0].program());
  world.Add(builders[1].program());
  world.Join({0, 1});

  const Replay replay = Play(world, 0, {0});
  EXPECT_EQ(replay.window_end, Time(45));
  EXPECT_EQ(replay.units[0].classes, Classes({{kCompute, 10},
                                              {kWaitTp, 9},
                                              {kExposedTp, 8},
                                              {kWaitCp, 1},
                                              {kExposedCp, 2},
                                              {kWaitEp, 4},
                                              {kExposedEp, 6},
                                              {kOptimizer, 5}}));
  EXPECT_EQ(replay.units[1].classes, Classes({{kCompute, 20},
                                              {kWaitTp, 3},
                                              {kExposedTp, 8},
                                              {kWaitCp, 1},
                                              {kExposedCp, 2},
                                              {kExposedEp, 6},
                                              {kOptimizer, 5}}));
  EXPECT_EQ(replay.trace[1].ready, Time(10));
  EXPECT_EQ(replay.trace[1].start, Time(19));
  EXPECT_EQ(replay.trace[1].end, Time(27));
}

// A late peer on another stream is a dp wait once the update waits for it. Rank 0 records its gradients at 10 and has
// nothing more to do; rank 1 records its at 30. Rank 0: wait dp [10,30), exposed dp [30,50). Rank 1: exposed dp
// [30,50).
TEST_P(TimelinesTest, LatePeerOnTheCommunicationStream) {
  ProgramBuilder builders[2];
  for (int rank : {0, 1}) {
    ProgramBuilder& builder = builders[rank];
    builder.Compute(rank == 0 ? 10 : 30);
    const std::int32_t gradients = builder.Record();
    builder.Collective(0, kExposedDp, kWaitDp, 0, 20, 1).waits[0] = gradients;
    const std::int32_t reduced = builder.Record();
    builder.Update(5).waits[0] = reduced;
  }
  WorldBuilder world;
  world.Add(builders[0].program());
  world.Add(builders[1].program());
  world.Join({0, 1});

  const Replay replay = Play(world, 0);
  EXPECT_EQ(replay.units[0].classes, Classes({{kCompute, 10}, {kWaitDp, 20}, {kExposedDp, 20}, {kOptimizer, 5}}));
  EXPECT_EQ(replay.units[1].classes, Classes({{kCompute, 30}, {kExposedDp, 20}, {kOptimizer, 5}}));
}

// Three segments of 5, 5 (tp) and 5 issued at 0, 9 and 12: [0,5), host [5,9), [9,14), [14,19). By the identity, D = 15
// and K = max(0 + 15, 9 + 10, 12 + 5) = 19: the end is max(0 + 15, 0 + 19). The host takes 22 for them, so that the
// next kernel, issued 2 after, is not there until 24: host [19,24). It runs [24,30), the update, of the same host op
// and issued 1 after its start, [30,34).
TEST_P(TimelinesTest, HostBoundKernels) {
  ProgramBuilder builder;
  builder.Local({Seg(kCompute, 5), Seg(kExposedTp, 5, 9), Seg(kCompute, 5, 12)});
  builder.NextHostOp(22);
  builder.Local({Seg(kCompute, 6, 2)});
  builder.Local({Seg(kOptimizer, 4, 1)});
  builder.program().update_op = 2;
  builder.program().host_ops.back().duration = Time(3);
  WorldBuilder world;
  world.Add(builder.program());

  const Replay replay = Play(world, 0);
  EXPECT_EQ(replay.window_end, Time(34));
  EXPECT_EQ(replay.units[0].classes, Classes({{kCompute, 16}, {kExposedTp, 5}, {kHost, 9}, {kOptimizer, 4}}));

  // Iteration 1: its host ops begin at 22 + 3 = 25 and 47. The stream is busy until 34, when two of the segments have
  // been issued and the third will be in time: [34,49). The next kernel is issued at 49: [49,55), and the update
  // [55,59). Nothing waits for the host.
  const Replay later = Play(world, 1);
  EXPECT_EQ(later.window_end - later.window_begin, Time(25));
  EXPECT_EQ(later.units[0].classes, Classes({{kCompute, 16}, {kExposedTp, 5}, {kOptimizer, 4}}));
}

// Input is loaded on stream 1 for 15. Rank's first kernel waits for it: data [0,15). Its second belongs to a host op
// that waits for the second load, [15,40): while the host waits, the kernel, free from 25 on, is blocked on data: data
// [25,40).
TEST_P(TimelinesTest, WaitingForInput) {
  ProgramBuilder builder;
  builder.Local({Seg(kData, 15)}, 1);
  const std::int32_t first = builder.Record();
  builder.Local({Seg(kData, 25)}, 1);
  const std::int32_t second = builder.Record();
  builder.Compute(10).waits[0] = first;
  builder.NextHostOp(0, second);
  builder.Compute(7);
  builder.Update(3);
  WorldBuilder world;
  world.Add(builder.program());

  const Replay replay = Play(world, 0);
  EXPECT_EQ(replay.window_end, Time(50));
  EXPECT_EQ(replay.units[0].classes, Classes({{kData, 30}, {kCompute, 17}, {kOptimizer, 3}}));
}

// The update waits for a collective on stream 1 that waits for an event on stream 2 that waits for a message: every
// stretch counts as what the last of the chain did. Rank 0: kernel [0,5). Stream 2: local op of class tp 8 that
// receives from rank 1, sent at 12, transfer 4: bubble [0,12), pp [12,16), tp [16,24). Stream 1: dp collective, rank 1
// ready at 30: follows stream 2 until 24, then wait dp [24,30), transfer [30,36). Rank 0's update meets: bubble [5,12),
// pp [12,16), tp [16,24), wait dp [24,30), dp [30,36).
TEST_P(TimelinesTest, BlockedThroughSeveralStreams) {
  ProgramBuilder zero;
  zero.Compute(5);
  zero.Local({Seg(kExposedTp, 8)}, 2);
  zero.Receive(0, 4);
  const std::int32_t done = zero.Record();
  zero.Collective(0, kExposedDp, kWaitDp, 0, 6, 1).waits[0] = done;
  const std::int32_t reduced = zero.Record();
  zero.Update(4).waits[0] = reduced;
  ProgramBuilder one;
  one.Compute(12);
  one.Send(0, 4);
  one.Compute(18);
  one.Collective(0, kExposedDp, kWaitDp, 0, 6);
  one.Update(4);
  WorldBuilder world;
  world.Add(zero.program());
  world.Add(one.program());
  world.Link({0, 0}, {1, 0});
  world.Join({0, 1});

  const Replay replay = Play(world, 0);
  EXPECT_EQ(replay.window_end, Time(40));
  EXPECT_EQ(replay.units[0].classes, Classes({{kCompute, 5},
                                              {kBubble, 7},
                                              {kExposedPp, 4},
                                              {kExposedTp, 8},
                                              {kWaitDp, 6},
                                              {kExposedDp, 6},
                                              {kOptimizer, 4}}));
}

// Two ranks that never meet: periods 20 and 30. With n = 1 the window is [30,60). Rank 0's iterations are [0,20),
// [20,40), [40,60), each dp 6, compute 10, optimizer 4: the border cuts the compute segment [26,36) of iteration 1, of
// which 6 count. With n = 2, [60,90): iteration 3 whole and 10 of iteration 4: dp 6, compute 4.
TEST_P(TimelinesTest, WindowCutsSegments) {
  ProgramBuilder zero;
  zero.Local({Seg(kExposedDp, 6), Seg(kCompute, 10)});
  zero.Update(4);
  ProgramBuilder one;
  one.Compute(26);
  one.Update(4);
  WorldBuilder world;
  world.Add(zero.program());
  world.Add(one.program());

  const Replay first = Play(world, 1);
  EXPECT_EQ(first.units[0].classes, Classes({{kCompute, 16}, {kExposedDp, 6}, {kOptimizer, 8}}));
  EXPECT_EQ(first.units[1].classes, Classes({{kCompute, 26}, {kOptimizer, 4}}));
  const Replay second = Play(world, 2);
  EXPECT_FALSE(second.periodic);
  EXPECT_EQ(second.units[0].classes, Classes({{kCompute, 14}, {kExposedDp, 12}, {kOptimizer, 4}}));
}

// A rank that is done with iteration 2n + 1 before the window ends idles. Periods 5 and 30, n = 1: rank 0 has finished
// iteration 3 at 20, and the window is [30,60).
TEST_P(TimelinesTest, NothingLeftIsBubble) {
  ProgramBuilder zero;
  zero.Update(5);
  ProgramBuilder one;
  one.Update(30);
  WorldBuilder world;
  world.Add(zero.program());
  world.Add(one.program());
  EXPECT_EQ(Play(world, 1).units[0].classes, Classes({{kBubble, 30}}));
}

// What follows the update belongs to the next window. One rank: kernel 10, update 4, then an all-gather of 6 on the
// compute stream: the first window [0,14) has none of it, later ones, of 20, begin with it.
TEST_P(TimelinesTest, WorkAfterTheUpdate) {
  ProgramBuilder builder;
  builder.Compute(10);
  builder.Update(4);
  builder.Local({Seg(kExposedDp, 6)});
  WorldBuilder world;
  world.Add(builder.program());
  EXPECT_EQ(Play(world, 0).units[0].classes, Classes({{kCompute, 10}, {kOptimizer, 4}}));
  EXPECT_EQ(Play(world, 1).units[0].classes, Classes({{kCompute, 10}, {kOptimizer, 4}, {kExposedDp, 6}}));
  const Replay steady = Play(world, 4);
  EXPECT_TRUE(steady.periodic);
  EXPECT_EQ(steady.units[0].classes, Classes({{kCompute, 10}, {kOptimizer, 4}, {kExposedDp, 6}}));
}

// A host without cost stands still at 0 and a stream that nobody waits for runs ahead: replay is periodic all the same.
// Kernel 10 and update 4 against a load of 1: period 14, found after iteration 0, which starts at 0 everywhere.
TEST_P(TimelinesTest, PeriodicThoughTheHostAndAStreamRunAhead) {
  ProgramBuilder builder;
  builder.Local({Seg(kData, 1)}, 1);
  builder.Compute(10);
  builder.Update(4);
  WorldBuilder world;
  world.Add(builder.program());
  const Replay replay = Play(world, 6);
  EXPECT_TRUE(replay.periodic);
  EXPECT_EQ(replay.iterations_evaluated, 2);
  EXPECT_EQ(replay.tasks, 2 * 3);
  EXPECT_EQ(replay.units[0].classes, Classes({{kCompute, 10}, {kOptimizer, 4}}));
}

// 1F1B: a cold iteration takes (m + p - 1) (F + B) (Narayanan et al., SC21, section 2.2), with eager and with batched
// messages of no duration, for F < B, F = B and F > B.
TEST_P(TimelinesTest, OneForwardOneBackwardClosedForm) {
  for (std::int32_t p : {1, 2, 3, 8}) {
    for (std::int32_t m : {1, 2, 5, 16}) {
      for (std::int64_t forward : {3, 7, 12}) {
        for (bool batched : {false, true}) {
          const PipelineShape shape = {2, p, m, Time(forward), Time(7), batched};
          ReplayOptions options;
          options.engine = GetParam().first;
          options.reverse_ties = GetParam().second;
          options.iterations = 0;
          const auto replay = engine::Run(MakePipelineWorld(shape), options);
          ASSERT_TRUE(replay.ok()) << replay.status();
          EXPECT_EQ(replay->window_end, PipelineMakespan(shape)) << p << " " << m << " " << forward << " " << batched;
        }
      }
    }
  }
}

// Both ranks receive before they send: each receive waits for a send that comes after the other's.
TEST_P(TimelinesTest, DeadlockNamesTheCycle) {
  ProgramBuilder builder;
  builder.Compute(1);
  builder.Exchange();
  builder.Receive(0, 1);
  builder.Exchange();
  builder.Send(0, 1);
  builder.Update(1);
  WorldBuilder world;
  world.Add(builder.program());
  world.Add(builder.program());
  world.Link({0, 0}, {1, 0});
  ReplayOptions options;
  options.engine = GetParam().first;
  options.reverse_ties = GetParam().second;
  const auto replay = engine::Run(world.world(), options);
  EXPECT_EQ(replay.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(replay.status().message(),
            "deadlock: rank 0 stream 0 op 1 waits for send 0 of rank 1 in its op 2; "
            "rank 1 stream 0 op 1 waits for send 0 of rank 0 in its op 2");
}

// The host waits for an event of an operation that it has yet to issue; rank 1 is only held up by rank 0, and not part
// of the cycle.
TEST_P(TimelinesTest, DeadlockThroughTheHostAndAGroup) {
  ProgramBuilder zero;
  zero.Compute(1);
  zero.NextHostOp(0, 0);
  zero.Collective(0, kExposedDp, kWaitDp, 0, 1);
  zero.Record();
  zero.Update(1);
  ProgramBuilder one;
  one.Collective(0, kExposedDp, kWaitDp, 0, 1);
  one.Update(1);
  WorldBuilder world;
  world.Add(one.program());
  world.Add(zero.program());
  world.Join({0, 1});
  ReplayOptions options;
  options.engine = GetParam().first;
  options.reverse_ties = GetParam().second;
  const auto replay = engine::Run(world.world(), options);
  EXPECT_EQ(replay.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(replay.status().message(),
            "deadlock: rank 1 stream 0 op 1 waits for host op 1; rank 1 host waits for op 1 of its stream 0");
}

}  // namespace
}  // namespace orrery::engine::testing
