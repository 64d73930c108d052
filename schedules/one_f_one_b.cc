// 1F1B: as few forward passes as fill the pipeline, then one forward and one backward in turn, then the rest.
#include <algorithm>

#include "schedules/families.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kName = "1f1b";

absl::Status Check(const Parameters& parameters) { return CheckOneStagePerRank(kName, parameters); }

Schedule GenerateOrder(const Parameters& parameters) {
  const std::int32_t m = parameters.micro_batches;
  Schedule schedule{parameters.ranks, 1, m, {}};
  for (std::int32_t rank = 0; rank < parameters.ranks; ++rank) {
    const std::int32_t warmup = OneForwardOneBackwardWarmup(parameters, rank);
    std::vector<Action> order;
    for (std::int32_t k = 0; k < warmup; ++k) order.push_back({ActionKind::kForward, 0, k});
    for (std::int32_t k = 0; k < m; ++k) {
      if (k + warmup < m) order.push_back({ActionKind::kForward, 0, k + warmup});
      order.push_back({ActionKind::kBackward, 0, k});
    }
    schedule.order.push_back(std::move(order));
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
    &Check,
    &GenerateOrder,
};

}  // namespace orrery::schedules
