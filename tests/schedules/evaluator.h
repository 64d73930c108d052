// A plain evaluator of schedules for tests: start = max(end of the rank's last action, arrival of every input), where
// an input from another rank arrives `latency` after its producer's end. Written without any of the code under test.
#ifndef ORRERY_TESTS_SCHEDULES_EVALUATOR_H_
#define ORRERY_TESTS_SCHEDULES_EVALUATOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "schedules/schedule.h"

namespace orrery::schedules {

struct StageCosts {
  std::vector<std::int64_t> forward;  // by stage
  std::vector<std::int64_t> backward;
  std::int64_t latency = 0;
};

inline StageCosts Uniform(const Schedule& schedule, std::int64_t forward, std::int64_t backward, std::int64_t latency) {
  const auto stages = static_cast<std::size_t>(schedule.ranks() * schedule.chunks());
  return {std::vector<std::int64_t>(stages, forward), std::vector<std::int64_t>(stages, backward), latency};
}

// Makespan of a schedule of forward and full backward passes, or nothing if it deadlocks.
inline std::optional<std::int64_t> Evaluate(const Schedule& schedule, const StageCosts& costs) {
  const std::int32_t stages = schedule.ranks() * schedule.chunks();
  std::vector<std::int64_t> ends(static_cast<std::size_t>(2 * stages * schedule.micro_batches), -1);
  const auto end = [&](bool forward, std::int32_t stage, std::int32_t k) -> std::int64_t& {
    return ends[static_cast<std::size_t>(((forward ? 1 : 0) * stages + stage) * schedule.micro_batches + k)];
  };
  std::vector<std::size_t> next(schedule.order.size());
  std::vector<std::int64_t> clock(schedule.order.size());
  std::size_t left = 0;
  for (const auto& order : schedule.order) left += order.size();
  bool moved = true;
  while (moved) {
    moved = false;
    for (std::int32_t rank = 0; rank < schedule.ranks(); ++rank) {
      const auto r = static_cast<std::size_t>(rank);
      for (; next[r] < schedule.order[r].size(); ++next[r], --left, moved = true) {
        const Action& action = schedule.order[r][next[r]];
        const bool forward = action.kind == ActionKind::kForward;
        const std::int32_t stage = action.chunk * schedule.ranks() + rank;
        const std::int32_t source = forward ? stage - 1 : stage + 1;
        std::int64_t start = clock[r];
        if (!forward) {
          if (end(true, stage, action.micro_batch) < 0) break;
          start = std::max(start, end(true, stage, action.micro_batch));
        }
        if (source >= 0 && source < stages) {
          if (end(forward, source, action.micro_batch) < 0) break;
          const std::int64_t latency = source % schedule.ranks() == rank ? 0 : costs.latency;
          start = std::max(start, end(forward, source, action.micro_batch) + latency);
        }
        const auto s = static_cast<std::size_t>(stage);
        clock[r] = start + (forward ? costs.forward[s] : costs.backward[s]);
        end(forward, stage, action.micro_batch) = clock[r];
      }
    }
  }
  if (left > 0) return std::nullopt;
  return *std::max_element(clock.begin(), clock.end());
}

// Most chunk activations that a rank holds: one more with every forward pass, one less with every backward pass.
inline std::int64_t CountPeak(const std::vector<Action>& order) {
  std::int64_t live = 0;
  std::int64_t peak = 0;
  for (const Action& action : order) {
    live += action.kind == ActionKind::kForward ? 1 : -1;
    peak = std::max(peak, live);
  }
  return peak;
}

// Group sizes that the interleaved schedule takes for p ranks and m micro-batches, from its definition.
inline std::vector<std::int32_t> LegalGroupSizes(std::int32_t p, std::int32_t m) {
  if (m < p) return {m};
  std::vector<std::int32_t> sizes;
  for (std::int32_t n = p; n <= m; ++n) {
    if (m % n == 0 || m % n >= p) sizes.push_back(n);
  }
  return sizes;
}

}  // namespace orrery::schedules

#endif  // ORRERY_TESTS_SCHEDULES_EVALUATOR_H_
