#include "tests/sim/training/example_runs.h"

#include <algorithm>
#include <filesystem>
#include <stdexcept>
#include <utility>

#include "sim/training/run_schedule.h"

namespace orrery::training::testing {
namespace {

template <typename T>
T OrThrow(absl::StatusOr<T> value) {
  if (!value.ok()) throw std::runtime_error(value.status().ToString());
  return *std::move(value);
}

}  // namespace

spec::LoadOptions ShippedSpecs(std::vector<std::string> overrides) {
  return {.spec_path = {ORRERY_SOURCE_DIR "/specs"},
          .overrides = std::move(overrides),
          .stages_per_rank = training::StagesPerRank};
}

std::vector<std::string> ExampleNames() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(ORRERY_SOURCE_DIR "/specs/runs")) {
    if (entry.path().extension() == ".txtpb") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

v1::Run Example(const std::string& name, std::vector<std::string> overrides) {
  return OrThrow(spec::LoadRun(ORRERY_SOURCE_DIR "/specs/runs/" + name + ".txtpb", ShippedSpecs(std::move(overrides))))
      .run;
}

v1::Run FromText(const std::string& text, std::vector<std::string> overrides) {
  return OrThrow(spec::LoadRunFromText(text, "test.txtpb", ShippedSpecs(std::move(overrides)))).run;
}

v1::Run SmallRun(std::vector<std::string> overrides) {
  return FromText(R"(
      name: "small"
      model { preset: "gpt-1.7b" }
      cluster { preset: "selene" }
      software { preset: "megatron-lm-2022" }
      parallelism { tp: 2 pp: 4 dp: 4 }
      training { micro_batch: 1 global_batch: 32 })",
                  std::move(overrides));
}

Result Simulated(const v1::Run& run, const SimulateOptions& options) { return OrThrow(Simulate(run, options)); }

}  // namespace orrery::training::testing
