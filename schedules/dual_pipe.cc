// DualPipe: two copies of the model run against each other, so that every rank always has a forward pass of one and a
// backward pass of the other to overlap in one block.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedules/dual_pipe_order.h"
#include "schedules/families.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kName = "dualpipe";

absl::Status Check(const Parameters& parameters) {
  ABSL_RETURN_IF_ERROR(CheckOneStagePerRank(kName, parameters));
  const std::int32_t p = parameters.ranks;
  const std::int32_t m = parameters.micro_batches;
  if (p % 2 != 0) {
    return absl::InvalidArgumentError(absl::StrCat("dualpipe: ranks = ", p, ", allowed: even numbers"));
  }
  if (m % 2 != 0 || m / 2 < p) {
    return absl::InvalidArgumentError(
        absl::StrCat("dualpipe: micro_batches = ", m, ", allowed: even numbers from 2 x ranks = ", 2 * p));
  }
  return absl::OkStatus();
}

absl::StatusOr<Schedule> GenerateOrder(const Parameters& parameters) {
  const std::int32_t p = parameters.ranks;
  const std::int32_t n = parameters.micro_batches / 2;
  Schedule schedule{Placement::Bidirectional(p), parameters.micro_batches, {}};
  schedule.pipeline_of.assign(static_cast<std::size_t>(n), 0);
  schedule.pipeline_of.resize(static_cast<std::size_t>(2 * n), 1);
  for (std::int32_t rank = 0; rank < p; ++rank) {
    DualPipeRank of_rank{std::min(rank, p - 1 - rank), p / 2, n, {0, 1}, {0, n}};
    // The copy that enters at the last rank is the nearer one for the upper half.
    if (rank >= p / 2) {
      std::swap(of_rank.chunk[0], of_rank.chunk[1]);
      std::swap(of_rank.first[0], of_rank.first[1]);
    }
    schedule.order.push_back(DualPipeOrder(of_rank));
  }
  return schedule;
}

}  // namespace

const Family kDualPipe = {
    kName,
    "Two copies of the model run against each other, a forward pass of one and a backward pass of the other as one "
    "block.",
    "DeepSeek-AI, DeepSeek-V3 Technical Report (arXiv 2412.19437), section 3.2.1; deepseek-ai/DualPipe",
    "one stage per rank and copy, two copies; ranks even; micro-batches even, at least 2p",
    "with the block's cost F&B: idle of the worst rank (p/2-1)(F&B + F - 2W), for W <= I <= F, and of all ranks where "
    "F&B = F+I+W; peak p + 1",
    &Check,
    &GenerateOrder,
    1,
};

}  // namespace orrery::schedules
