// Interleaved 1F1B: every rank holds v stages and works through the micro-batches in groups of N, all of its stages in
// turn for one group before the next group. The k-th forward pass of a rank is entry k of that table; the k-th backward
// pass is the same entry with the stages in reverse.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedules/families.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kName = "interleaved-1f1b";

absl::Status Check(const Parameters& parameters) {
  const auto [p, v, m, n] = parameters;
  ABSL_RETURN_IF_ERROR(CheckCommon(kName, parameters));
  const auto error = [](const auto&... text) {
    return absl::InvalidArgumentError(absl::StrCat("interleaved-1f1b: ", text...));
  };
  if (p == 1) return error("ranks = 1, allowed: at least 2");
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

Schedule GenerateOrder(const Parameters& parameters) {
  const auto [p, v, m, n] = parameters;
  std::vector<Action> table;
  for (std::int32_t group = 0; group < m; group += n) {
    for (std::int32_t chunk = 0; chunk < v; ++chunk) {
      for (std::int32_t k = group; k < std::min(group + n, m); ++k) table.push_back({ActionKind::kForward, chunk, k});
    }
  }
  Schedule schedule{p, v, m, {}};
  for (std::int32_t rank = 0; rank < p; ++rank) {
    const auto warmup = static_cast<std::size_t>(InterleavedWarmup(parameters, rank));
    std::vector<Action> order(table.begin(), table.begin() + static_cast<std::ptrdiff_t>(warmup));
    for (std::size_t k = 0; k < table.size(); ++k) {
      if (k + warmup < table.size()) {
        order.push_back(table[k + warmup]);
        order.back().joined = true;
      }
      order.push_back({ActionKind::kBackward, v - 1 - table[k].chunk, table[k].micro_batch});
    }
    schedule.order.push_back(std::move(order));
  }
  return schedule;
}

}  // namespace

std::int32_t InterleavedWarmup(const Parameters& parameters, std::int32_t rank) {
  const std::int64_t all = std::int64_t{parameters.micro_batches} * parameters.chunks;
  const std::int64_t fill =
      std::int64_t{2} * (parameters.ranks - 1 - rank) + std::int64_t{parameters.chunks - 1} * parameters.group_size;
  return static_cast<std::int32_t>(std::min(all, fill));
}

const Family kInterleaved = {
    kName,
    "1F1B with several stages per rank: a smaller bubble for more messages and activations.",
    "Narayanan et al., SC 2021 (arXiv 2104.04473), section 2.2; Megatron-LM's group size "
    "microbatch_group_size_per_vp_stage",
    "at least 2 ranks; ranks <= group size <= micro-batches, whose remainder is 0 or at least ranks; with fewer "
    "micro-batches than ranks, all are one group",
    &Check,
    &GenerateOrder,
};

}  // namespace orrery::schedules
