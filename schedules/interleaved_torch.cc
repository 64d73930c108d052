// Interleaved 1F1B as PyTorch has it: the order of Megatron-LM's, with groups of equal size that the schedule chooses.
#include "schedules/families.h"
#include "schedules/loop_orders.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kName = "interleaved-1f1b-torch";

absl::Status Check(const Parameters& parameters) { return CheckTorchGroups(kName, parameters); }

absl::StatusOr<Schedule> GenerateOrder(const Parameters& parameters) {
  Parameters grouped = parameters;
  grouped.group_size = TorchGroupSize(parameters);
  const std::int32_t v = parameters.chunks;
  const std::vector<Action> forwards = GroupedForwards(v, parameters.micro_batches, grouped.group_size);
  const std::vector<Action> backwards = Reversed(forwards, v, ActionKind::kBackward);
  Schedule schedule{Placement::Loop(parameters.ranks, v), parameters.micro_batches, {}};
  for (std::int32_t rank = 0; rank < parameters.ranks; ++rank) {
    schedule.order.push_back(Alternate(forwards, backwards, InterleavedWarmup(grouped, rank), Pairing::kNone));
  }
  return schedule;
}

}  // namespace

const Family kInterleavedTorch = {
    kName,
    "Interleaved 1F1B with PyTorch's equal groups of N = m / max(1, m / p) micro-batches.",
    "PyTorch torch.distributed.pipelining ScheduleInterleaved1F1B",
    "micro-batches: a multiple of the rounds max(1, m / p), divided as integers; the group size follows",
    "idle (p-1)(F+B)/v, F and B of the rank's share, for m >= p; peak ((v-1)N + 2p-1)/v",
    &Check,
    &GenerateOrder,
};

}  // namespace orrery::schedules
