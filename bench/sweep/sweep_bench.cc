// Sweeps from spec to rows. The right answer: what every point gives when it is loaded from text and simulated by the
// event queue, computed once.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "proto/loader.h"
#include "sim/training/plan.h"
#include "sim/training/simulate.h"
#include "sweep/sweep.h"

namespace orrery::sweep {
namespace {

constexpr const char* kRun = ORRERY_SOURCE_DIR "/specs/runs/megatron_175b_12288.txtpb";

spec::LoadOptions OptionsWith(std::vector<std::string> overrides) {
  return {.spec_path = {ORRERY_SOURCE_DIR "/specs"}, .overrides = std::move(overrides), .check = training::ProblemsOf};
}

struct Case {
  spec::BaseRun base;
  Points points;
};

// 175B on as many GPUs as tp 8, pp and dp 64 make: three schedules by pipeline ranks and micro-batches.
Case TypicalSweep() {
  std::vector<Axis> axes;
  for (const char* const vary :
       {"schedule=1f1b,gpipe,interleaved-1f1b", "pp=4,8,16", "microbatches=8,16,32,64", "dp=64"}) {
    axes.push_back(ParseVary(vary).value());
  }
  return {spec::BaseRun::Read(kRun, OptionsWith({"parallelism.virtual_stages=3"})).value(),
          Points::Make(std::move(axes)).value()};
}

// Iteration times in seconds, 0 where a point is refused.
std::vector<double> TimesByQueue(const Points& points) {
  std::vector<double> times;
  for (std::int64_t i = 0; i < points.size(); ++i) {
    std::vector<std::string> overrides = {"parallelism.virtual_stages=3", "simulation.engine=EVENT_QUEUE"};
    const Variation variation = points.VariationOf(i);
    overrides.insert(overrides.end(), variation.overrides.begin(), variation.overrides.end());
    spec::LoadOptions options = OptionsWith(std::move(overrides));
    options.micro_batches = variation.micro_batches;
    const absl::StatusOr<spec::LoadedRun> loaded = spec::LoadRun(kRun, options);
    const absl::StatusOr<training::Result> result =
        loaded.ok() ? training::Simulate(loaded->run) : absl::StatusOr<training::Result>(loaded.status());
    times.push_back(result.ok() ? SecondsFromTime(result->iteration_time) : 0);
  }
  return times;
}

void BM_Sweep(benchmark::State& state) {
  const Case typical = TypicalSweep();
  static const std::vector<double> kTimes = TimesByQueue(typical.points);
  const Options options{.threads = static_cast<int>(state.range(0))};
  for (auto _ : state) {
    std::vector<double> times;
    const absl::Status status = RunPoints(typical.base, typical.points, options, [&](const Row& row) {
      times.push_back(row.figures.iteration_time_s);
      return absl::OkStatus();
    });
    if (!status.ok() || times != kTimes || kTimes[0] == 0) {
      state.SkipWithError("not the answer");
      return;
    }
  }
  state.SetItemsProcessed(state.iterations() * typical.points.size());
}
BENCHMARK(BM_Sweep)->Arg(1)->Arg(2)->UseRealTime()->MeasureProcessCPUTime()->Unit(benchmark::kMillisecond);

// One configuration, loaded anew (0) or from the base (1).
void BM_Resolve(benchmark::State& state) {
  const Case typical = TypicalSweep();
  const std::vector<std::string> overrides = {"parallelism.pp=16", "parallelism.virtual_stages=2", "parallelism.dp=64",
                                              "parallelism.gpus=8192"};
  const std::string expected = spec::ResolvedText(spec::LoadRun(kRun, OptionsWith(overrides)).value().run);
  v1::Run run;
  for (auto _ : state) {
    run = state.range(0) == 0 ? spec::LoadRun(kRun, OptionsWith(overrides)).value().run
                              : typical.base.Resolve(overrides).value();
  }
  if (spec::ResolvedText(run) != expected) state.SkipWithError("not the answer");
}
BENCHMARK(BM_Resolve)->Arg(0)->Arg(1)->Unit(benchmark::kMicrosecond);

}  // namespace
}  // namespace orrery::sweep
