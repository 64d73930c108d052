// Interleaved 1F1B with split backward passes, PyTorch's zero-bubble schedule: rank r holds back the first r weight
// gradients, and its warm-up is shorter by p - 1 - r, because the gradient comes back sooner.
#include "schedules/families.h"
#include "schedules/loop_orders.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kName = "interleaved-zb";

absl::Status Check(const Parameters& parameters) { return CheckTorchGroups(kName, parameters); }

absl::StatusOr<Schedule> GenerateOrder(const Parameters& parameters) {
  const std::int32_t p = parameters.ranks;
  const std::int32_t v = parameters.chunks;
  const std::int32_t group = TorchGroupSize(parameters);
  const std::vector<Action> forwards = GroupedForwards(v, parameters.micro_batches, group);
  const std::vector<Action> input_gradients = Reversed(forwards, v, ActionKind::kInputGradient);
  Schedule schedule{Placement::Loop(p, v), parameters.micro_batches, {}};
  for (std::int32_t rank = 0; rank < p; ++rank) {
    schedule.order.push_back(AlternateSplit(forwards, input_gradients, (v - 1) * group + p - 1 - rank, rank));
  }
  return schedule;
}

}  // namespace

const Family kInterleavedZb = {
    kName,
    "Interleaved 1F1B whose weight gradients fill the gaps; with one stage per rank it is ZB-H1.",
    "PyTorch torch.distributed.pipelining ScheduleInterleavedZeroBubble, after Qi et al., ICLR 2024 (arXiv 2401.10241)",
    "micro-batches: a multiple of the rounds max(1, m / p), divided as integers; the group size N = m / rounds follows",
    "idle (p-1)(F+I-W)/v, F, I and W of the rank's share, for m >= p and W <= min(F, I); peak ((v-1)N + p)/v",
    &Check,
    &GenerateOrder,
};

}  // namespace orrery::schedules
