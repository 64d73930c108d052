#include "schedules/loop_orders.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "base/status_macros.h"
#include "schedules/families.h"

namespace orrery::schedules {

std::vector<Action> GroupedForwards(std::int32_t chunks, std::int32_t micro_batches, std::int32_t group) {
  std::vector<Action> forwards;
  forwards.reserve(static_cast<std::size_t>(chunks) * static_cast<std::size_t>(micro_batches));
  for (std::int32_t first = 0; first < micro_batches; first += std::min(group, micro_batches - first)) {
    const std::int32_t end = first + std::min(group, micro_batches - first);
    for (std::int32_t chunk = 0; chunk < chunks; ++chunk) {
      for (std::int32_t k = first; k < end; ++k) forwards.push_back({ActionKind::kForward, chunk, k});
    }
  }
  return forwards;
}

std::vector<Action> Reversed(const std::vector<Action>& forwards, std::int32_t chunks, ActionKind kind) {
  std::vector<Action> backwards;
  backwards.reserve(forwards.size());
  for (const Action& action : forwards) backwards.push_back({kind, chunks - 1 - action.chunk, action.micro_batch});
  return backwards;
}

std::vector<Action> Alternate(const std::vector<Action>& forwards, const std::vector<Action>& backwards,
                              std::int32_t warmup, Pairing pairing) {
  const std::size_t ahead = std::min(static_cast<std::size_t>(warmup), forwards.size());
  std::vector<Action> order(forwards.begin(), forwards.begin() + static_cast<std::ptrdiff_t>(ahead));
  order.reserve(forwards.size() + backwards.size());
  for (std::size_t k = 0; k < backwards.size(); ++k) {
    if (k + ahead < forwards.size()) {
      order.push_back(forwards[k + ahead]);
      order.back().joined = pairing == Pairing::kJoined;
      order.back().fused = pairing == Pairing::kFused;
    }
    order.push_back(backwards[k]);
  }
  return order;
}

std::vector<Action> AlternateSplit(const std::vector<Action>& forwards, const std::vector<Action>& input_gradients,
                                   std::int32_t warmup, std::int32_t delay) {
  const std::size_t behind = std::min(static_cast<std::size_t>(delay), input_gradients.size());
  std::vector<Action> order;
  order.reserve(3 * forwards.size());
  std::size_t due = 0;  // input gradients so far
  const auto weight_gradient = [&](std::size_t k) {
    order.push_back({ActionKind::kWeightGradient, input_gradients[k].chunk, input_gradients[k].micro_batch});
  };
  for (const Action& action : Alternate(forwards, input_gradients, warmup, Pairing::kNone)) {
    order.push_back(action);
    if (action.kind == ActionKind::kForward) continue;
    if (++due > behind) weight_gradient(due - 1 - behind);
  }
  for (std::size_t k = input_gradients.size() - behind; k < input_gradients.size(); ++k) weight_gradient(k);
  return order;
}

Schedule SplitOneForwardOneBackward(const Parameters& parameters, std::int32_t depth) {
  const std::int32_t m = parameters.micro_batches;
  const std::vector<Action> forwards = GroupedForwards(1, m, m);
  const std::vector<Action> input_gradients = Reversed(forwards, 1, ActionKind::kInputGradient);
  Schedule schedule{Placement::Loop(parameters.ranks, 1), m, {}};
  for (std::int32_t rank = 0; rank < parameters.ranks; ++rank) {
    const std::int32_t hops = parameters.ranks - 1 - rank;
    schedule.order.push_back(AlternateSplit(forwards, input_gradients, depth * hops, depth * rank));
  }
  return schedule;
}

std::int32_t TorchGroupSize(const Parameters& parameters) {
  return parameters.micro_batches / std::max(1, parameters.micro_batches / parameters.ranks);
}

absl::Status CheckTorchGroups(std::string_view family, const Parameters& parameters) {
  ABSL_RETURN_IF_ERROR(CheckCommon(family, parameters));
  const std::int32_t rounds = std::max(1, parameters.micro_batches / parameters.ranks);
  const absl::string_view name(family.data(), family.size());
  if (parameters.micro_batches % rounds != 0) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": micro_batches = ", parameters.micro_batches,
                                                   ", allowed: a multiple of ", rounds,
                                                   ", the number of whole groups of ranks (", parameters.ranks, ")"));
  }
  const std::int32_t group = TorchGroupSize(parameters);
  if (parameters.group_size != 0 && parameters.group_size != group) {
    return absl::InvalidArgumentError(absl::StrCat(name, ": group_size = ", parameters.group_size, ", allowed: ", group,
                                                   " (micro_batches / ", rounds, ") or none"));
  }
  return absl::OkStatus();
}

}  // namespace orrery::schedules
