// Combined 1F1B: interleaved 1F1B with one more forward pass ahead, so that the passes of a steady pair do not need
// each other. A pair runs as one block, in which the expert all-to-all of one pass hides under the other's compute.
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedules/families.h"
#include "schedules/loop_orders.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kName = "combined-1f1b";

absl::Status Check(const Parameters& parameters) {
  ABSL_RETURN_IF_ERROR(CheckInterleavedGroups(kName, parameters));
  if (parameters.ranks > 1 || parameters.chunks == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("combined-1f1b: chunks = ", parameters.chunks, ", allowed: 1 on a single rank"));
}

absl::StatusOr<Schedule> GenerateOrder(const Parameters& parameters) {
  const std::int32_t v = parameters.chunks;
  const std::vector<Action> forwards = GroupedForwards(v, parameters.micro_batches, InterleavedGroupSize(parameters));
  const std::vector<Action> backwards = Reversed(forwards, v, ActionKind::kBackward);
  Schedule schedule{Placement::Loop(parameters.ranks, v), parameters.micro_batches, {}};
  for (std::int32_t rank = 0; rank < parameters.ranks; ++rank) {
    schedule.order.push_back(Alternate(forwards, backwards, InterleavedWarmup(parameters, rank) + 1, Pairing::kFused));
  }
  return schedule;
}

}  // namespace

const Family kCombined = {
    kName,
    "Interleaved 1F1B whose steady pairs are fused blocks that hide the expert all-to-all, for one more activation.",
    "Megatron-LM overlap_moe_expert_parallel_comm (combined 1F1B)",
    "the groups of interleaved-1f1b; one rank with one stage runs F0, blocks of B of k - 1 and F of k, and the last B",
    "idle (p-1)(F+B)/v, F and B of the rank's share, for m >= p and blocks that cost F+B; peak ((v-1)N + 2p)/v",
    &Check,
    &GenerateOrder,
};

}  // namespace orrery::schedules
