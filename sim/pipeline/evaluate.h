// A schedule alone, with constant costs: builds the programs of its ranks and runs the engine. For tables of actions,
// closed forms, pictures and searches; a training run prices its passes itself (sim/training).
//
// start of an action = max(end of the rank's previous action, end of each input + latency if it is on another rank). A
// message blocks nobody. A block (Action::fused) starts when both members may, costs `block` (or the sum of both), and
// both results appear at its end.
#ifndef ORRERY_SIM_PIPELINE_EVALUATE_H_
#define ORRERY_SIM_PIPELINE_EVALUATE_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "schedules/family.h"
#include "schedules/schedule.h"

namespace orrery::pipeline {

// In any unit; the results are in the same one.
struct Costs {
  // By stage, or one entry for all.
  std::vector<schedules::PassCosts> stages = {schedules::PassCosts{}};
  std::int64_t latency = 0;
  // Of a block as a whole; without it F + I + W.
  std::optional<std::int64_t> block;
  schedules::PassMemory memory = {.forward = 1, .weight = 1};

  const schedules::PassCosts& Of(std::int32_t stage) const {
    return stages.size() == 1 ? stages.front() : stages[static_cast<std::size_t>(stage)];
  }
};

struct Span {
  std::int64_t start = 0;
  std::int64_t end = 0;

  friend bool operator==(const Span&, const Span&) = default;
};

struct RankEvaluation {
  std::int64_t first_start = 0;
  std::int64_t last_end = 0;
  std::int64_t busy = 0;
  // Chunk activations: one more at every F, one less at the end of a W or B.
  std::int64_t peak_activations = 0;
  // In units of Costs::memory: F takes `forward`, I frees forward - weight, W frees weight, B frees forward.
  std::int64_t peak_memory = 0;

  std::int64_t span() const { return last_end - first_start; }
};

struct Evaluation {
  std::int64_t makespan = 0;
  // Of the rank with the longest: the zero-bubble literature's cost.
  std::int64_t longest_span = 0;
  // By rank. Wall idle of a rank = makespan - busy; its span bubble = span() - busy.
  std::vector<RankEvaluation> ranks;
  // By rank and action; the members of a block have the block's span. Only on request.
  std::vector<std::vector<Span>> spans;
  // Messages between ranks, both directions.
  std::int64_t messages = 0;
};

struct EvaluateOptions {
  bool spans = false;
  // Ties in the opposite order: the answer must be the same.
  bool reverse_ties = false;
};

// The status of schedules::Validate where the schedule is not legal (FAILED_PRECONDITION: it deadlocks);
// INVALID_ARGUMENT for negative costs, the wrong number of stages, or sums beyond 64 bits.
absl::StatusOr<Evaluation> Evaluate(const schedules::Schedule& schedule, const Costs& costs,
                                    const EvaluateOptions& options = {});

}  // namespace orrery::pipeline

#endif  // ORRERY_SIM_PIPELINE_EVALUATE_H_
