// ZB-1p and ZB-2p: the published automatic zero-bubble scheduler under the memory limit that gives them their names.
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedules/families.h"
#include "schedules/planner.h"
#include "schedules/zb_heuristic.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kReference =
    "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024 (arXiv 2401.10241), sections 3.1 and 4; "
    "sail-sg/zero-bubble-pipeline-parallelism, zb.py";

std::int64_t LimitOf(const Parameters& parameters, std::int64_t multiple) {
  return multiple * parameters.ranks * parameters.planning.memory.forward;
}

absl::Status CheckMultiple(std::string_view name, const Parameters& parameters, std::int64_t multiple) {
  ABSL_RETURN_IF_ERROR(CheckOneStagePerRank(name, parameters));
  ABSL_RETURN_IF_ERROR(CheckPlanning(name, parameters, parameters.ranks));
  const std::int64_t given = parameters.planning.memory_limit;
  const std::int64_t limit = LimitOf(parameters, multiple);
  if (given == 0 || given == limit) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(absl::string_view(name.data(), name.size()), ": has a memory limit of its own, allowed: none, or ",
                   multiple * parameters.ranks, " (", multiple, " x ranks) micro-batches; zb-auto takes any limit"));
}

template <std::int64_t kMultiple>
absl::StatusOr<Schedule> GenerateOrder(const Parameters& parameters) {
  const Placement placement = Placement::Loop(parameters.ranks, 1);
  return PlanZeroBubble(placement, parameters, LimitOf(parameters, kMultiple)).ToSchedule();
}

absl::Status Check1p(const Parameters& parameters) { return CheckMultiple("zb-1p", parameters, 1); }
absl::Status Check2p(const Parameters& parameters) { return CheckMultiple("zb-2p", parameters, 2); }

}  // namespace

const Family kZb1p = {
    "zb-1p",
    "Automatic zero-bubble order within the activation memory of 1F1B, p M_B.",
    kReference,
    "one stage per rank; any number of micro-batches",
    "peak p M_B or less; at F = I = W and m >= p span bubble (p-1)F, as ZB-H1",
    &Check1p,
    &GenerateOrder<1>,
    1,
    true,
};

const Family kZb2p = {
    "zb-2p",
    "Automatic zero-bubble order within twice the activation memory of 1F1B, 2p M_B.",
    kReference,
    "one stage per rank; any number of micro-batches",
    "peak 2p M_B or less; at F = I = W, no latency and m >= 2p span bubble 0, idle (p-1)F",
    &Check2p,
    &GenerateOrder<2>,
    1,
    true,
};

}  // namespace orrery::schedules
