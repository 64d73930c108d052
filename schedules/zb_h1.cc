// ZB-H1: 1F1B with weight gradients held back, so that input gradients leave sooner, at the memory of 1F1B.
#include "schedules/families.h"
#include "schedules/loop_orders.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kName = "zb-h1";

absl::Status Check(const Parameters& parameters) { return CheckOneStagePerRank(kName, parameters); }

absl::StatusOr<Schedule> GenerateOrder(const Parameters& parameters) {
  const std::int32_t m = parameters.micro_batches;
  const std::vector<Action> forwards = GroupedForwards(1, m, m);
  const std::vector<Action> input_gradients = Reversed(forwards, 1, ActionKind::kInputGradient);
  Schedule schedule{Placement::Loop(parameters.ranks, 1), m, {}};
  for (std::int32_t rank = 0; rank < parameters.ranks; ++rank) {
    const std::int32_t hops = parameters.ranks - 1 - rank;
    schedule.order.push_back(AlternateSplit(forwards, input_gradients, hops, rank));
  }
  return schedule;
}

}  // namespace

const Family kZbH1 = {
    kName,
    "1F1B with split backward passes at the memory of 1F1B: a third of its bubble where F, I and W are equal.",
    "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024 (arXiv 2401.10241), section 2",
    "one stage per rank; any number of micro-batches",
    "idle (p-1)(F+I-W) for m >= p and W <= min(F, I); peak min(p, m)",
    &Check,
    &GenerateOrder,
    1,
};

}  // namespace orrery::schedules
