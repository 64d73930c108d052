// V-Min: the building block whose micro-batches leave a rank as early as the V allows.
#include "schedules/families.h"
#include "schedules/v_building_block.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kName = "v-min";

absl::Status Check(const Parameters& parameters) { return CheckBuildingBlock(kName, parameters); }

absl::StatusOr<Schedule> GenerateOrder(const Parameters& parameters) {
  const std::int32_t p = parameters.ranks;
  // Keeps the repeated blocks apart.
  const std::int32_t delay = p % 3 == 0 ? 2 : 0;
  VBuildingBlock block;
  for (std::int32_t rank = 0; rank < p; ++rank) {
    block.push_back({rank, 2 * p - 1 - rank, 2 * p + delay + rank, 4 * p + delay - 1 - rank});
  }
  return RepeatBuildingBlock(block, parameters.micro_batches);
}

}  // namespace

const Family kVMin = {
    kName,
    "Two stages per rank in a V with the least activation memory, a third of that of 1F1B.",
    "Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024 (arXiv 2405.15362)",
    "two stages per rank; at most 512 ranks; any number of micro-batches",
    "idle for F = I = W = 1 per stage, p >= 2, m >= 2p: 4p-5, or 4p-7 where 3 divides p; peak floor((p+4)/3)",
    &Check,
    &GenerateOrder,
    2,
};

}  // namespace orrery::schedules
