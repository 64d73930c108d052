// 1F1B with fused blocks: 2 (p - 1 - r) + 1 forward passes ahead, since every block delays what passes through it.
#include "schedules/families.h"
#include "schedules/loop_orders.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kName = "1f1b-overlap";

absl::Status Check(const Parameters& parameters) { return CheckOneStagePerRank(kName, parameters); }

absl::StatusOr<Schedule> GenerateOrder(const Parameters& parameters) {
  const std::int32_t m = parameters.micro_batches;
  const std::vector<Action> forwards = GroupedForwards(1, m, m);
  const std::vector<Action> backwards = Reversed(forwards, 1, ActionKind::kBackward);
  Schedule schedule{Placement::Loop(parameters.ranks, 1), m, {}};
  for (std::int32_t rank = 0; rank < parameters.ranks; ++rank) {
    const std::int32_t hops = parameters.ranks - 1 - rank;
    schedule.order.push_back(Alternate(forwards, backwards, 2 * hops + 1, Pairing::kFused));
  }
  return schedule;
}

}  // namespace

const Family kOneForwardOneBackwardOverlap = {
    kName,
    "1F1B whose steady pairs are fused blocks, with twice the activations.",
    "PP-Schedule-Visualization, 1f1b_overlap; the blocks are those of Megatron-LM's combined 1F1B",
    "one stage per rank; any number of micro-batches",
    "idle (p-1)(F+B) with blocks that cost F+B, always; peak min(2p, m)",
    &Check,
    &GenerateOrder,
    1,
};

}  // namespace orrery::schedules
