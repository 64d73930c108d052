// A plain evaluator of schedules of F, I and W for tests: start = max(end of the rank's last action, arrival of every
// input), where an input from another rank arrives `latency` after its producer's end. Written without any of the code
// under test.
#ifndef ORRERY_TESTS_SCHEDULES_SPLIT_EVALUATOR_H_
#define ORRERY_TESTS_SCHEDULES_SPLIT_EVALUATOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/family.h"
#include "schedules/schedule.h"

namespace orrery::schedules {

struct SplitEvaluation {
  std::int64_t makespan = 0;
  std::int64_t longest_span = 0;      // last end - first start, of the rank with the longest
  std::int64_t peak_memory = 0;       // of the rank with the highest
  std::int64_t peak_activations = 0;  // one more at F, one less at W
};

// Nothing if it deadlocks.
inline std::optional<SplitEvaluation> EvaluateSplit(const Schedule& schedule, const PlanningCosts& costs) {
  constexpr std::int64_t kMissing = -1;
  const auto stages = static_cast<std::size_t>(schedule.stages());
  const auto m = static_cast<std::size_t>(schedule.micro_batches);
  std::vector<std::int64_t> ends(2 * stages * m, kMissing);
  const auto end = [&](bool forward, std::int32_t stage, std::int32_t k) -> std::int64_t& {
    return ends[((forward ? 0 : stages) + static_cast<std::size_t>(stage)) * m + static_cast<std::size_t>(k)];
  };
  const auto ranks = static_cast<std::size_t>(schedule.ranks());
  std::vector<std::size_t> next(ranks);
  std::vector<std::int64_t> clock(ranks);
  std::vector<std::int64_t> first(ranks, kMissing);
  // Runs the rank's next action, if its input is there.
  const auto step = [&](std::size_t r) {
    if (next[r] == schedule.order[r].size()) return false;
    const Action& action = schedule.order[r][next[r]];
    const std::int32_t stage = schedule.StageOf(static_cast<std::int32_t>(r), action.chunk);
    const bool forward = action.kind == ActionKind::kForward;
    std::int64_t start = clock[r];
    if (action.kind != ActionKind::kWeightGradient) {
      const std::int32_t from = forward ? stage - 1 : stage + 1;
      if (from >= 0 && from < schedule.stages()) {
        const std::int64_t input = end(forward, from, action.micro_batch);
        if (input == kMissing) return false;
        const bool local = schedule.PlaceOf(from, action.micro_batch).rank == static_cast<std::int32_t>(r);
        start = std::max(start, input + (local ? 0 : costs.latency));
      }
    }
    const PassCosts& pass = costs.Of(stage);
    clock[r] = start + (forward                                     ? pass.forward
                        : action.kind == ActionKind::kInputGradient ? pass.input_gradient
                                                                    : pass.weight_gradient);
    if (first[r] == kMissing) first[r] = start;
    if (action.kind != ActionKind::kWeightGradient) end(forward, stage, action.micro_batch) = clock[r];
    ++next[r];
    return true;
  };
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < ranks; ++r) {
      while (step(r)) moved = true;
    }
  }
  SplitEvaluation result;
  for (std::size_t r = 0; r < ranks; ++r) {
    if (next[r] != schedule.order[r].size()) return std::nullopt;
    result.makespan = std::max(result.makespan, clock[r]);
    result.longest_span = std::max(result.longest_span, clock[r] - first[r]);
    std::int64_t memory = 0;
    std::int64_t activations = 0;
    for (const Action& action : schedule.order[r]) {
      const PassMemory& unit = costs.memory;
      if (action.kind == ActionKind::kForward) {
        memory += unit.forward;
        ++activations;
      } else if (action.kind == ActionKind::kInputGradient) {
        memory -= unit.forward - unit.weight;
      } else {
        memory -= unit.weight;
        --activations;
      }
      result.peak_memory = std::max(result.peak_memory, memory);
      result.peak_activations = std::max(result.peak_activations, activations);
    }
  }
  return result;
}

}  // namespace orrery::schedules

#endif  // ORRERY_TESTS_SCHEDULES_SPLIT_EVALUATOR_H_
