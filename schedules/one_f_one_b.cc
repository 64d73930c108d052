// 1F1B: as few forward passes as fill the pipeline, then one forward and one backward in turn, then the rest.
#include <algorithm>

#include "schedules/families.h"
#include "schedules/loop_orders.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kName = "1f1b";

absl::Status Check(const Parameters& parameters) { return CheckOneStagePerRank(kName, parameters); }

absl::StatusOr<Schedule> GenerateOrder(const Parameters& parameters) {
  const std::int32_t m = parameters.micro_batches;
  const std::vector<Action> forwards = GroupedForwards(1, m, m);
  const std::vector<Action> backwards = Reversed(forwards, 1, ActionKind::kBackward);
  Schedule schedule{Placement::Loop(parameters.ranks, 1), m, {}};
  for (std::int32_t rank = 0; rank < parameters.ranks; ++rank) {
    const std::int32_t warmup = OneForwardOneBackwardWarmup(parameters, rank);
    schedule.order.push_back(Alternate(forwards, backwards, warmup, Pairing::kNone));
  }
  return schedule;
}

}  // namespace

std::int32_t OneForwardOneBackwardWarmup(const Parameters& parameters, std::int32_t rank) {
  return std::min(parameters.ranks - 1 - rank, parameters.micro_batches);
}

const Family kOneForwardOneBackward = {
    kName,
    "One forward, one backward in turn once the pipeline is full; rank r holds at most p - r micro-batches.",
    "Narayanan et al., Memory-Efficient Pipeline-Parallel DNN Training (PipeDream-Flush), ICML 2021 (arXiv "
    "2006.09503); "
    "Fan et al., DAPPLE, PPoPP 2021 (arXiv 2007.01045)",
    "one stage per rank; any number of micro-batches",
    "idle (p-1)(F+B), always; peak min(p, m)",
    &Check,
    &GenerateOrder,
    1,
};

}  // namespace orrery::schedules
