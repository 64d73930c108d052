// ZB-H1: 1F1B with weight gradients held back, so that input gradients leave sooner, at the memory of 1F1B.
#include "schedules/families.h"
#include "schedules/loop_orders.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kName = "zb-h1";

absl::Status Check(const Parameters& parameters) { return CheckOneStagePerRank(kName, parameters); }

absl::StatusOr<Schedule> GenerateOrder(const Parameters& parameters) {
  return SplitOneForwardOneBackward(parameters, 1);
}

}  // namespace

const Family kZbH1 = {
    kName,
    "1F1B with split backward passes at the memory of 1F1B: a third of its bubble where F, I and W are equal.",
    "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024 (arXiv 2401.10241), section 2",
    "one stage per rank; any number of micro-batches",
    "idle (p-1)(F+I-W) for m >= p and W <= min(F, I); peak min(p, m)",
    &Check,
    &GenerateOrder,
    1,
};

}  // namespace orrery::schedules
