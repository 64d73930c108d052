// Whole runs, from the resolved spec to the answer. Each benchmark checks its answer: a simulation in one way against
// the same run simulated in another, computed once.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "proto/loader.h"
#include "sim/training/simulate.h"

namespace orrery::training {
namespace {

constexpr const char* kRun = ORRERY_SOURCE_DIR "/specs/runs/megascale_175b_12288.txtpb";

absl::StatusOr<v1::Run> Load(std::vector<std::string> overrides) {
  absl::StatusOr<spec::LoadedRun> loaded =
      spec::LoadRun(kRun, {.spec_path = {ORRERY_SOURCE_DIR "/specs"}, .overrides = std::move(overrides)});
  if (!loaded.ok()) return loaded.status();
  return std::move(loaded->run);
}

// Iteration time of a run simulated with these overrides; zero where it fails.
Time TimeOf(std::vector<std::string> overrides) {
  const absl::StatusOr<v1::Run> run = Load(std::move(overrides));
  if (!run.ok()) return Time();
  const absl::StatusOr<Result> result = Simulate(*run);
  return result.ok() ? result->iteration_time : Time();
}

// The run of 12,288 GPUs with a cursor for each.
Time UnfoldedTime() {
  static const Time kTime = TimeOf({"simulation.fold=OFF"});
  return kTime;
}

// Simulates until the benchmark has seen enough, and checks iteration time and number of ranks.
void SimulateChecked(benchmark::State& state, const std::vector<std::string>& overrides, Time expected,
                     std::int64_t ranks_simulated) {
  const absl::StatusOr<v1::Run> run = Load(overrides);
  if (!run.ok()) {
    state.SkipWithError(run.status().ToString().c_str());
    return;
  }
  std::int64_t tasks = 0;
  for (auto _ : state) {
    const absl::StatusOr<Result> result = Simulate(*run);
    if (!result.ok() || expected == Time() || result->iteration_time != expected ||
        result->ranks_simulated != ranks_simulated) {
      state.SkipWithError("not the answer");
      break;
    }
    tasks += result->tasks;
  }
  state.counters["tasks/s"] = benchmark::Counter(static_cast<double>(tasks), benchmark::Counter::kIsRate);
}

void BM_Folded12288(benchmark::State& state) { SimulateChecked(state, {}, UnfoldedTime(), 8); }
BENCHMARK(BM_Folded12288)->Unit(benchmark::kMillisecond);

void BM_FoldedByKernel12288(benchmark::State& state) {
  SimulateChecked(state, {"simulation.granularity=OPERATOR"}, UnfoldedTime(), 8);
}
BENCHMARK(BM_FoldedByKernel12288)->Unit(benchmark::kMillisecond);

void BM_FoldedEventQueue12288(benchmark::State& state) {
  SimulateChecked(state, {"simulation.engine=EVENT_QUEUE"}, UnfoldedTime(), 8);
}
BENCHMARK(BM_FoldedEventQueue12288)->Unit(benchmark::kMillisecond);

void BM_Unfolded12288(benchmark::State& state) {
  static const Time kFolded = TimeOf({});
  SimulateChecked(state, {"simulation.fold=OFF"}, kFolded, 12288);
}
BENCHMARK(BM_Unfolded12288)->Unit(benchmark::kMillisecond)->Iterations(1);

// 1,048,576 GPUs, at the same batch per replica. The event queue gives the answer to compare with.
void BM_FoldedMillion(benchmark::State& state) {
  const std::vector<std::string> million = {"parallelism.dp=16384", "training.global_batch=524288",
                                            "cluster.nodes=131072"};
  static const Time kByQueue = [&] {
    std::vector<std::string> overrides = million;
    overrides.emplace_back("simulation.engine=EVENT_QUEUE");
    return TimeOf(overrides);
  }();
  SimulateChecked(state, million, kByQueue, 8);
}
BENCHMARK(BM_FoldedMillion)->Unit(benchmark::kMillisecond);

// ZeRO-3 of 80 layers and 16 micro-batches over 512 GPUs, sharded by node: two gathers and two reductions a layer. The
// event queue gives the answer.
void BM_FoldedSharded512(benchmark::State& state) {
  const std::vector<std::string> sharded = {"model.layers=80",
                                            "parallelism.tp=1",
                                            "parallelism.pp=1",
                                            "parallelism.dp=512",
                                            "parallelism.zero_stage=3",
                                            "parallelism.shard_ranks=8",
                                            "training.micro_batch=1",
                                            "training.global_batch=8192",
                                            "parallelism.virtual_stages=1",
                                            "software.gather_ahead=1",
                                            "software.reduce_every_micro_batch=true"};
  static const Time kByQueue = [&] {
    std::vector<std::string> overrides = sharded;
    overrides.emplace_back("simulation.engine=EVENT_QUEUE");
    return TimeOf(overrides);
  }();
  SimulateChecked(state, sharded, kByQueue, 1);
}
BENCHMARK(BM_FoldedSharded512)->Unit(benchmark::kMillisecond);

// Configurations of a small sweep, loaded from text and simulated: 96 layers on 1,024 GPUs under tp, pp and
// micro-batch.
void BM_ConfigurationsPerSecond(benchmark::State& state) {
  std::vector<std::vector<std::string>> sweep;
  for (const int tp : {2, 4, 8}) {
    for (const int pp : {4, 8, 16}) {
      for (const int micro_batch : {1, 2}) {
        sweep.push_back({"parallelism.tp=" + std::to_string(tp), "parallelism.pp=" + std::to_string(pp),
                         "parallelism.dp=" + std::to_string(1024 / tp / pp), "training.global_batch=1024",
                         "training.micro_batch=" + std::to_string(micro_batch)});
      }
    }
  }
  std::vector<Time> by_queue;
  for (std::vector<std::string> overrides : sweep) {
    overrides.emplace_back("simulation.engine=EVENT_QUEUE");
    by_queue.push_back(TimeOf(std::move(overrides)));
  }
  for (auto _ : state) {
    for (std::size_t i = 0; i < sweep.size(); ++i) {
      const Time time = TimeOf(sweep[i]);
      if (time == Time() || time != by_queue[i]) {
        state.SkipWithError("not the answer");
        return;
      }
    }
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(sweep.size()));
}
BENCHMARK(BM_ConfigurationsPerSecond)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::training
