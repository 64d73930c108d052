// Speed of the engines on 12,288 units. Every benchmark checks its own answer against the closed form, and skips with
// an error when it is wrong. `tasks/s` counts operations evaluated.
#include <benchmark/benchmark.h>

#include "bench/sim/engine/pipeline_world.h"
#include "sim/engine/replay.h"
#include "sim/engine/world.h"

namespace orrery::engine {
namespace {

// Arg 0: batched messages. Arg 1: iterations.
void Replays(benchmark::State& state, EngineKind engine, PipelineShape shape) {
  shape.batched = state.range(0) != 0;
  const World world = MakePipelineWorld(shape);
  ReplayOptions options;
  options.engine = engine;
  options.iterations = static_cast<int>(state.range(1));
  std::int64_t tasks = 0;
  std::int64_t events = 0;
  for (auto _ : state) {
    const absl::StatusOr<Replay> replay = Run(world, options);
    if (!replay.ok() || replay->iteration_ends[0] != PipelineMakespan(shape)) {
      state.SkipWithError("wrong makespan");
      return;
    }
    tasks += replay->tasks;
    events += replay->events;
  }
  state.counters["tasks/s"] = benchmark::Counter(static_cast<double>(tasks), benchmark::Counter::kIsRate);
  if (events > 0)
    state.counters["events/s"] = benchmark::Counter(static_cast<double>(events), benchmark::Counter::kIsRate);
}

void BM_Worklist(benchmark::State& state) { Replays(state, EngineKind::kWorklist, PipelineShape()); }
BENCHMARK(BM_Worklist)->Args({0, 0})->Args({0, 3})->Args({1, 0})->Args({1, 3})->Unit(benchmark::kMillisecond);

void BM_EventQueue(benchmark::State& state) {
  PipelineShape shape;
  shape.micro_batches = 64;
  Replays(state, EngineKind::kEventQueue, shape);
}
BENCHMARK(BM_EventQueue)->Args({0, 0})->Args({1, 0})->Unit(benchmark::kMillisecond);

// Folding sees that all pipelines are alike: one unit per stage is left.
void BM_Fold(benchmark::State& state) {
  const PipelineShape shape;
  const World world = MakePipelineWorld(shape);
  for (auto _ : state) {
    const Folding folding = Fold(world);
    if (folding.world.units.size() != static_cast<std::size_t>(shape.stages)) {
      state.SkipWithError("wrong number of classes");
      return;
    }
  }
}
BENCHMARK(BM_Fold)->Unit(benchmark::kMillisecond);

// The worst case for refinement: a ring of equal units with one different, seen one unit further in each direction per
// round.
void BM_FoldRing(benchmark::State& state) {
  constexpr std::int32_t kUnits = 12'288;
  World world;
  Program program;
  program.num_channels = 2;
  program.host_ops.emplace_back();
  program.segments = {{TimeClass::kCompute, Time(1), Time(), -1}};
  program.parts = {{0, false, 0, Time()}, {1, true, 0, Time()}};
  Op op;
  op.num_segments = 1;
  Op receive = op;
  receive.num_parts = 1;
  Op send = op;
  send.first_part = 1;
  send.num_parts = 1;
  program.ops = {send, receive};
  program.update_op = 1;
  world.programs = {program, program};
  world.programs[1].segments[0].duration = Time(2);
  for (std::int32_t u = 0; u < kUnits; ++u) {
    Unit unit;
    unit.program = u == 0 ? 1 : 0;
    unit.first_rank = u;
    unit.peers = {{(u + kUnits - 1) % kUnits, 1}, {(u + 1) % kUnits, 0}};
    world.units.push_back(unit);
  }
  for (auto _ : state) {
    if (Fold(world).world.units.size() != kUnits) {
      state.SkipWithError("wrong number of classes");
      return;
    }
  }
}
BENCHMARK(BM_FoldRing)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::engine

BENCHMARK_MAIN();
