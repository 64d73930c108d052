// ZB-H2: ZB-H1 with twice the warm-up and weight gradients held back twice as long.
#include "schedules/families.h"
#include "schedules/loop_orders.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kName = "zb-h2";

absl::Status Check(const Parameters& parameters) { return CheckOneStagePerRank(kName, parameters); }

absl::StatusOr<Schedule> GenerateOrder(const Parameters& parameters) {
  return SplitOneForwardOneBackward(parameters, 2);
}

}  // namespace

const Family kZbH2 = {
    kName,
    "Split backward passes with up to 2p - 1 micro-batches in flight: no bubble in the span where F, I and W are "
    "equal.",
    "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024 (arXiv 2401.10241), section 2",
    "one stage per rank; any number of micro-batches",
    "idle (p-1) max(F, F+I-2W), in the span (p-1)(F+I-2W) where that is positive, for m >= 2p-1 and W <= "
    "min(F, I); peak min(2p-1, m)",
    &Check,
    &GenerateOrder,
    1,
};

}  // namespace orrery::schedules
