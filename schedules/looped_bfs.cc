// Looped breadth-first: every chunk runs all micro-batches before the next chunk does, backward in reverse.
#include "schedules/families.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kName = "looped-bfs";

absl::Status Check(const Parameters& parameters) { return CheckCommon(kName, parameters); }

absl::StatusOr<Schedule> GenerateOrder(const Parameters& parameters) {
  const std::int32_t v = parameters.chunks;
  const std::int32_t m = parameters.micro_batches;
  Schedule schedule{Placement::Loop(parameters.ranks, v), m, {}};
  std::vector<Action> order;
  for (std::int32_t chunk = 0; chunk < v; ++chunk) {
    for (std::int32_t k = 0; k < m; ++k) order.push_back({ActionKind::kForward, chunk, k});
  }
  for (std::int32_t chunk = v - 1; chunk >= 0; --chunk) {
    for (std::int32_t k = m - 1; k >= 0; --k) order.push_back({ActionKind::kBackward, chunk, k});
  }
  schedule.order.assign(static_cast<std::size_t>(parameters.ranks), order);
  return schedule;
}

}  // namespace

const Family kLoopedBfs = {
    kName,
    "All micro-batches through one chunk before the next; each chunk's weights are gathered and reduced once.",
    "Lamy-Poirier, Breadth-First Pipeline Parallelism, MLSys 2023 (arXiv 2211.05953); PyTorch ScheduleLoopedBFS, which "
    "runs the backward passes in reverse",
    "any number of stages per rank and of micro-batches",
    "idle (p-1)(F+B)/v, F and B of the rank's share, for m >= p; peak m",
    &Check,
    &GenerateOrder,
};

}  // namespace orrery::schedules
