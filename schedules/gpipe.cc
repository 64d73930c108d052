// GPipe: all forward passes, then all backward passes in the same micro-batch order.
#include "schedules/families.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kName = "gpipe";

absl::Status Check(const Parameters& parameters) { return CheckOneStagePerRank(kName, parameters); }

absl::StatusOr<Schedule> GenerateOrder(const Parameters& parameters) {
  Schedule schedule{Placement::Loop(parameters.ranks, 1), parameters.micro_batches, {}};
  std::vector<Action> order;
  for (const ActionKind kind : {ActionKind::kForward, ActionKind::kBackward}) {
    for (std::int32_t k = 0; k < parameters.micro_batches; ++k) order.push_back({kind, 0, k});
  }
  schedule.order.assign(static_cast<std::size_t>(parameters.ranks), order);
  return schedule;
}

}  // namespace

const Family kGpipe = {
    kName,
    "All forward passes, then all backward passes; holds the activations of every micro-batch.",
    "Huang et al., GPipe, NeurIPS 2019 (arXiv 1811.06965), section 2.3",
    "one stage per rank",
    "idle (p-1)(F+B), always; peak m",
    &Check,
    &GenerateOrder,
    1,
};

}  // namespace orrery::schedules
