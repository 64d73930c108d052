// Grouped interleaved 1F1B with split backward passes: groups smaller than the number of ranks hold fewer activations.
// Gradients leave after I, and W follows at once. A short last group leaves its missing places empty.
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedules/families.h"
#include "schedules/loop_orders.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kName = "grouped-1f1b";

std::int32_t GroupSize(const Parameters& parameters) {
  return parameters.group_size > 0 ? parameters.group_size : parameters.ranks;
}

absl::Status Check(const Parameters& parameters) {
  ABSL_RETURN_IF_ERROR(CheckCommon(kName, parameters));
  const std::int32_t p = parameters.ranks;
  const std::int32_t least = p - p / 2;
  const std::int32_t group = GroupSize(parameters);
  if (group >= least && group <= p) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("grouped-1f1b: group_size = ", group, ", allowed: ", least,
                                                 " (half of the ranks) to ranks (", p, ")"));
}

absl::StatusOr<Schedule> GenerateOrder(const Parameters& parameters) {
  const std::int32_t p = parameters.ranks;
  const std::int32_t v = parameters.chunks;
  const std::int32_t m = parameters.micro_batches;
  const std::int32_t group = GroupSize(parameters);
  const std::int32_t places = (m + group - 1) / group * group;
  const std::vector<Action> forwards = GroupedForwards(v, places, group);
  const std::vector<Action> input_gradients = Reversed(forwards, v, ActionKind::kInputGradient);
  Schedule schedule{Placement::Loop(p, v), m, {}};
  for (std::int32_t rank = 0; rank < p; ++rank) {
    std::vector<Action> order = AlternateSplit(forwards, input_gradients, (v - 1) * group + p - 1 - rank, 0);
    std::erase_if(order, [m](const Action& action) { return action.micro_batch >= m; });
    schedule.order.push_back(std::move(order));
  }
  return schedule;
}

}  // namespace

const Family kGrouped = {
    kName,
    "Interleaved 1F1B with groups down to half of the ranks, for fewer activations; I is sent before W runs.",
    "Wan et al., PipeOffload, ICML 2025 (arXiv 2503.01328); zero-bubble-pipeline-parallelism group_interleaved_1f1b",
    "half of the ranks <= group size <= ranks; any number of micro-batches",
    "idle (p-1)(F+I)/v, F and I of the rank's share, where N = p divides m; (v-1)(p-N)F/v more for F = I = W "
    "where N divides m; peak ((v-1)N + p)/v",
    &Check,
    &GenerateOrder,
};

}  // namespace orrery::schedules
