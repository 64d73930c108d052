// An order for given costs, latency and memory limit: as good as every published schedule of the same placement at that
// memory, improved by search, with a lower bound on what any order could reach.
//
//   1. candidates   every registered family that is legal, of the placement, and within the limit; blocks and B are
//                   split into F, I, W, which never takes longer
//   2. beam search  over partial orders with dominance (beam.h), wider and wider; a pass that cuts nothing is a proof
//   3. local search on the best order (local_search.h), then beam search again
//
// The answer depends on the request alone: effort is counted in passes, not in seconds. Figures are those of Evaluate.
#ifndef ORRERY_SIM_PIPELINE_OPTIMIZER_OPTIMIZE_H_
#define ORRERY_SIM_PIPELINE_OPTIMIZER_OPTIMIZE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/progress.h"
#include "schedules/placement.h"
#include "schedules/schedule.h"
#include "sim/pipeline/evaluate.h"
#include "sim/pipeline/optimizer/model.h"

namespace orrery::pipeline {

using optimizer::Objective;

// One way to cut the model across the ranks, with the costs of its stages. All cuts of a request share one unit of time
// and one of memory.
struct Cut {
  schedules::Placement placement;  // a loop or a wave
  Costs costs;                     // without `block`
};

// Passes timed or bounded: some seconds.
inline constexpr std::int64_t kDefaultEffort = 400'000'000;

struct OptimizeRequest {
  std::vector<Cut> cuts;
  std::int32_t micro_batches = 1;
  // Most that a rank may hold, in the unit of Costs::memory; 0: no limit.
  std::int64_t memory_limit = 0;
  Objective objective = Objective::kMakespan;
  // Shared evenly by the cuts.
  std::int64_t effort = kDefaultEffort;
  // Asked now and then; true ends the search early. Then, and only then, the answer depends on more than the request.
  std::function<bool()> stop;
  // In millions of passes, `effort` in all; may be null.
  Progress* progress = nullptr;
};

// Most that a pass or a message may cost.
std::int64_t MostCost(const schedules::Placement& placement, std::int32_t micro_batches);

// A published schedule at the request's costs.
struct Published {
  std::string family;
  std::size_t cut = 0;
  std::int64_t value = 0;  // of the objective, split
  std::int64_t peak_memory = 0;
};

struct Optimized {
  schedules::Schedule schedule;
  std::size_t cut = 0;
  Evaluation evaluation;
  std::int64_t value = 0;        // of the objective
  std::int64_t lower_bound = 0;  // no order of any of the cuts within the limit has less; equal to value: optimal
  // The family that `schedule` is of, "search", or "one at a time".
  std::string origin;
  // Those within the limit, best first; of equal ones the earlier cut and name.
  std::vector<Published> published;
  std::int64_t effort = 0;
  bool stopped = false;

  bool optimal() const { return value == lower_bound; }
};

// INVALID_ARGUMENT: no cut, sizes out of range, a placement that is no loop or wave. OUT_OF_RANGE: a cost or memory
// below 0 or too large (MostCost). RESOURCE_EXHAUSTED: no order of any cut keeps to the limit; says how much the least
// needs.
absl::StatusOr<Optimized> Optimize(const OptimizeRequest& request);

}  // namespace orrery::pipeline

#endif  // ORRERY_SIM_PIPELINE_OPTIMIZER_OPTIMIZE_H_
