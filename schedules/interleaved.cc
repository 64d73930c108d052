// Interleaved 1F1B: every rank holds v stages and works through the micro-batches in groups of N, all of its stages in
// turn for one group before the next group. The k-th forward pass of a rank is entry k of that table; the k-th backward
// pass is the same entry with the stages in reverse.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedules/families.h"
#include "schedules/loop_orders.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kName = "interleaved-1f1b";

absl::Status Check(const Parameters& parameters) {
  ABSL_RETURN_IF_ERROR(CheckInterleavedGroups(kName, parameters));
  if (parameters.ranks > 1) return absl::OkStatus();
  return absl::InvalidArgumentError("interleaved-1f1b: ranks = 1, allowed: at least 2");
}

absl::StatusOr<Schedule> GenerateOrder(const Parameters& parameters) {
  const std::int32_t v = parameters.chunks;
  const std::vector<Action> forwards = GroupedForwards(v, parameters.micro_batches, InterleavedGroupSize(parameters));
  const std::vector<Action> backwards = Reversed(forwards, v, ActionKind::kBackward);
  Schedule schedule{Placement::Loop(parameters.ranks, v), parameters.micro_batches, {}};
  for (std::int32_t rank = 0; rank < parameters.ranks; ++rank) {
    schedule.order.push_back(Alternate(forwards, backwards, InterleavedWarmup(parameters, rank), Pairing::kJoined));
  }
  return schedule;
}

}  // namespace

absl::Status CheckInterleavedGroups(std::string_view family, const Parameters& parameters) {
  const std::int32_t p = parameters.ranks;
  const std::int32_t m = parameters.micro_batches;
  const std::int32_t n = InterleavedGroupSize(parameters);
  ABSL_RETURN_IF_ERROR(CheckCommon(family, parameters));
  const auto error = [family](const auto&... text) {
    return absl::InvalidArgumentError(absl::StrCat(absl::string_view(family.data(), family.size()), ": ", text...));
  };
  // Fewer micro-batches than ranks: Megatron-LM refuses them, PyTorch runs them as one group.
  if (m < p && n != m) {
    return error("group_size = ", n, ", allowed: micro_batches (", m, "), because there are fewer than ranks (", p,
                 ")");
  }
  if (m >= p && (n < p || n > m)) {
    return error("group_size = ", n, ", allowed: ranks (", p, ") to micro_batches (", m, ")");
  }
  // A short last group would come back to a rank before it has left the last one.
  if (m >= p && m % n != 0 && m % n < p) {
    return error("micro_batches = ", m, " leave ", m % n, " for the last group of group_size = ", n,
                 ", allowed: 0 or at least ranks (", p, ")");
  }
  return absl::OkStatus();
}

std::int32_t InterleavedGroupSize(const Parameters& parameters) {
  return parameters.group_size > 0 ? parameters.group_size : std::min(parameters.ranks, parameters.micro_batches);
}

std::int32_t InterleavedWarmup(const Parameters& parameters, std::int32_t rank) {
  const std::int64_t all = std::int64_t{parameters.micro_batches} * parameters.chunks;
  const std::int64_t fill = std::int64_t{2} * (parameters.ranks - 1 - rank) +
                            std::int64_t{parameters.chunks - 1} * InterleavedGroupSize(parameters);
  return static_cast<std::int32_t>(std::min(all, fill));
}

const Family kInterleaved = {
    kName,
    "1F1B with several stages per rank: a smaller bubble for more messages and activations.",
    "Narayanan et al., SC 2021 (arXiv 2104.04473), section 2.2; Megatron-LM's group size "
    "microbatch_group_size_per_vp_stage",
    "at least 2 ranks; ranks <= group size <= micro-batches, whose remainder is 0 or at least ranks; with fewer "
    "micro-batches than ranks, all are one group",
    "idle (p-1)(F+B)/v, F and B of the rank's share, for m >= p; peak ((v-1)N + 2p-1)/v",
    &Check,
    &GenerateOrder,
};

}  // namespace orrery::schedules
