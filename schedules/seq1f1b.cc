// Seq1F1B: 1F1B over slices of sequences. A slice attends to those before it, so the slices of a micro-batch run
// forward in order and backward in reverse.
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedules/families.h"
#include "schedules/loop_orders.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kName = "seq1f1b";

absl::Status Check(const Parameters& parameters) {
  ABSL_RETURN_IF_ERROR(CheckOneStagePerRank(kName, parameters));
  const std::int64_t most = kMostPasses / (std::int64_t{2} * parameters.ranks * parameters.micro_batches);
  if (parameters.slices >= 1 && parameters.slices <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "seq1f1b: slices = ", parameters.slices, ", allowed: 1 to ", most, " with ranks = ", parameters.ranks,
      " and micro_batches = ", parameters.micro_batches, ", for at most ", kMostPasses, " passes in all"));
}

absl::StatusOr<Schedule> GenerateOrder(const Parameters& parameters) {
  const std::int32_t s = parameters.slices;
  const std::int32_t units = parameters.micro_batches * s;
  const std::vector<Action> forwards = GroupedForwards(1, units, units);
  std::vector<Action> backwards;
  for (std::int32_t k = 0; k < units; ++k) {
    backwards.push_back({ActionKind::kBackward, 0, k - k % s + s - 1 - k % s});
  }
  Schedule schedule{Placement::Loop(parameters.ranks, 1), units, {}};
  schedule.slices = s;
  for (std::int32_t rank = 0; rank < parameters.ranks; ++rank) {
    const std::int32_t hops = parameters.ranks - 1 - rank;
    schedule.order.push_back(Alternate(forwards, backwards, hops + s - 1, Pairing::kNone));
  }
  return schedule;
}

}  // namespace

const Family kSeq1f1b = {
    kName,
    "1F1B over slices of each sequence: bubble and activations shrink with the number of slices.",
    "Sun et al., Seq1F1B, NAACL 2025 (arXiv 2406.03488)",
    "one stage per rank; any number of slices per micro-batch",
    "idle (p-1)(F+B)/s for equal slices, always; peak (p-1+s)/s",
    &Check,
    &GenerateOrder,
    /*fixed_chunks=*/1,
    /*automatic=*/false,
    /*default_chunks=*/1,
    /*sliced=*/true,
};

}  // namespace orrery::schedules
