// DualPipeV: DualPipe cut in half. The V of one model takes the place of the two copies: the arm that goes down the
// ranks is one direction, the arm that comes back the other.
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedules/dual_pipe_order.h"
#include "schedules/families.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kName = "dualpipe-v";

absl::Status Check(const Parameters& parameters) {
  ABSL_RETURN_IF_ERROR(CheckTwoStagesPerRank(kName, parameters));
  if (parameters.micro_batches / 2 >= parameters.ranks) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("dualpipe-v: micro_batches = ", parameters.micro_batches,
                                                 ", allowed: at least 2 x ranks = ", 2 * parameters.ranks));
}

absl::StatusOr<Schedule> GenerateOrder(const Parameters& parameters) {
  Schedule schedule{Placement::Wave(parameters.ranks, 2), parameters.micro_batches, {}};
  for (std::int32_t rank = 0; rank < parameters.ranks; ++rank) {
    schedule.order.push_back(DualPipeOrder({rank, parameters.ranks, parameters.micro_batches}));
  }
  return schedule;
}

}  // namespace

const Family kDualPipeV = {
    kName,
    "DualPipe on the two arms of a V: its overlapped blocks with one copy of the model.",
    "deepseek-ai/DualPipe (DualPipeV); Qi et al., DualPipe could be better without the Dual, 2025; PyTorch's "
    "ScheduleDualPipeV",
    "two stages per rank; at least 2p micro-batches",
    "with one stage's costs and the block's cost F&B: idle of the worst rank (p-1)(F&B + F - 2W), for W <= I <= F, and "
    "of all ranks where F&B = F+I+W; peak p + 1/2",
    &Check,
    &GenerateOrder,
    2,
};

}  // namespace orrery::schedules
