// Generates and evaluates every family at p = 64, m = 512. The right answer: the closed form where there is one; of
// automatic families, a span not above that of a fixed order with the same placement and no lower peak.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "schedules/closed_form.h"
#include "schedules/family.h"
#include "sim/pipeline/evaluate.h"

namespace orrery::schedules {
namespace {

constexpr std::int32_t kRanks = 64;
constexpr std::int32_t kMicroBatches = 512;
constexpr PassCosts kEqual = {1, 1, 1};
constexpr PassCosts kProfiled = {18522, 18086, 9337};

absl::StatusOr<pipeline::Evaluation> Run(const Family& family, const PassCosts& passes, std::int64_t latency) {
  Parameters parameters{kRanks, family.fixed_chunks > 0 ? family.fixed_chunks : 2, kMicroBatches};
  parameters.planning.stages = {passes};
  parameters.planning.latency = latency;
  if (const absl::Status status = family.check(parameters); !status.ok()) return status;
  const absl::StatusOr<Schedule> schedule = family.generate(parameters);
  if (!schedule.ok()) return schedule.status();
  pipeline::Costs costs;
  costs.stages = {passes};
  costs.latency = latency;
  return pipeline::Evaluate(*schedule, costs);
}

// A family whose span at these costs an automatic one must not exceed, with no more memory.
std::string_view YardstickOf(const Family& family) {
  if (family.name == "zb-1p" || family.name == "zb-auto") return "zb-h1";
  if (family.name == "zb-2p") return "zb-h2";
  return "zb-v";
}

std::optional<std::int64_t> IdleOf(const Family& family) {
  const Parameters parameters{kRanks, family.fixed_chunks > 0 ? family.fixed_chunks : 2, kMicroBatches};
  return ClosedFormIdle(family.name, parameters, {kEqual});
}

std::int64_t MegabytesSoFar() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss / 1024;
}

void GenerateAndEvaluate(benchmark::State& state, const Family& family, const PassCosts& passes, std::int64_t latency) {
  std::int64_t makespan = 0;
  std::int64_t span = 0;
  std::int64_t work = 0;
  for (auto _ : state) {
    const absl::StatusOr<pipeline::Evaluation> evaluation = Run(family, passes, latency);
    if (!evaluation.ok()) return state.SkipWithError(std::string(evaluation.status().message()).c_str());
    makespan = evaluation->makespan;
    span = evaluation->longest_span;
    work = evaluation->ranks.front().busy;
  }
  if (family.automatic && span > Run(**FindFamily(YardstickOf(family)), passes, latency)->longest_span) {
    return state.SkipWithError("a fixed order has a shorter span");
  }
  const std::optional<std::int64_t> idle = latency == 0 ? IdleOf(family) : std::nullopt;
  if (idle && makespan - work != *idle) return state.SkipWithError("the idle time is not the closed form's");
  state.counters["makespan"] = static_cast<double>(makespan);
  state.counters["span"] = static_cast<double>(span);
  state.counters["megabytes_so_far"] = static_cast<double>(MegabytesSoFar());
}

void RegisterAll() {
  for (const Family& family : Families()) {
    const std::string name(family.name);
    const auto add = [&](const std::string& suffix, const PassCosts& passes, std::int64_t latency) {
      benchmark::RegisterBenchmark((name + suffix).c_str(), [&family, passes, latency](benchmark::State& state) {
        GenerateAndEvaluate(state, family, passes, latency);
      })->Unit(benchmark::kMillisecond);
    };
    add("/equal", kEqual, 0);
    if (family.automatic) add("/profiled", kProfiled, 601);
  }
}

}  // namespace
}  // namespace orrery::schedules

int main(int argc, char** argv) {
  orrery::schedules::RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
