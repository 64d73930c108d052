// V-Half: the building block whose micro-batches stay half as long on a rank as under 1F1B.
#include "schedules/families.h"
#include "schedules/v_building_block.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kName = "v-half";

absl::Status Check(const Parameters& parameters) { return CheckBuildingBlock(kName, parameters); }

absl::StatusOr<Schedule> GenerateOrder(const Parameters& parameters) {
  const std::int32_t p = parameters.ranks;
  // Keeps the repeated blocks apart.
  const std::int32_t delay = p % 2 == 0 ? 3 : 0;
  VBuildingBlock block;
  for (std::int32_t rank = 0; rank < p; ++rank) {
    block.push_back({2 * rank, 3 * p - 2 - rank, 3 * p + delay + 2 * rank - 1, 6 * p + delay - 2 - rank});
  }
  return RepeatBuildingBlock(block, parameters.micro_batches);
}

}  // namespace

const Family kVHalf = {
    kName,
    "Two stages per rank in a V with half the activation memory of 1F1B and less than half of its bubble.",
    "Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024 (arXiv 2405.15362)",
    "two stages per rank; at most 512 ranks; any number of micro-batches",
    "idle for F = I = W = 1 per stage, p >= 3, m >= 2p: 3p-4 for odd p, 3p-7 for even p; peak floor((p+2)/2)",
    &Check,
    &GenerateOrder,
    2,
};

}  // namespace orrery::schedules
