// Small problems for the tests of the optimiser.
#ifndef ORRERY_TESTS_SIM_PIPELINE_OPTIMIZER_CASES_H_
#define ORRERY_TESTS_SIM_PIPELINE_OPTIMIZER_CASES_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sim/pipeline/optimizer/optimize.h"

namespace orrery::pipeline {

struct CostVector {
  const char* name;
  schedules::PassCosts costs;
  std::int64_t latency;
  bool uneven;  // first stage with an embedding, last with a head
};

inline const std::vector<CostVector>& CostVectors() {
  static const std::vector<CostVector> vectors = {
      {"unit", {1, 1, 1}, 0, false},        {"F5 I6 W4", {5, 6, 4}, 0, false}, {"F10 I12 W7 c1", {10, 12, 7}, 1, false},
      {"F3 I4 W6 c1", {3, 4, 6}, 1, false}, {"uneven", {6, 7, 5}, 1, true},
  };
  return vectors;
}

// Those that loops run over: fewer under a sanitizer.
inline std::vector<CostVector> TestedCostVectors() {
  if (std::getenv("ORRERY_SANITIZER") == nullptr) return CostVectors();
  return {CostVectors().end() - 2, CostVectors().end()};
}

// M_B = 2 and M_W = 1; `limit` in M_B.
inline OptimizeRequest Problem(const schedules::Placement& placement, std::int32_t micro_batches,
                               const CostVector& vector, std::int64_t limit) {
  Cut cut{placement, {}};
  cut.costs.stages.assign(static_cast<std::size_t>(placement.stages()), vector.costs);
  if (vector.uneven) {
    cut.costs.stages.front().forward += 1;
    cut.costs.stages.back().forward += 4;
    cut.costs.stages.back().input_gradient += 3;
    cut.costs.stages.back().weight_gradient += 2;
  }
  cut.costs.latency = vector.latency;
  cut.costs.memory = {.forward = 2, .weight = 1};
  OptimizeRequest request;
  request.cuts = {cut};
  request.micro_batches = micro_batches;
  request.memory_limit = 2 * limit;
  return request;
}

inline std::string Name(const OptimizeRequest& request, const CostVector& vector) {
  const schedules::Placement& placement = request.cuts.front().placement;
  return absl::StrCat(request.objective == Objective::kMakespan ? "makespan" : "span", ", p = ", placement.ranks(),
                      ", stages = ", placement.stages(), ", m = ", request.micro_batches, ", ", vector.name,
                      ", memory limit = ", request.memory_limit);
}

}  // namespace orrery::pipeline

#endif  // ORRERY_TESTS_SIM_PIPELINE_OPTIMIZER_CASES_H_
