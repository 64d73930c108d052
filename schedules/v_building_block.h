// Internal to schedules/: orders with a V placement that repeat one building block per micro-batch.
//
// A *building block* says when one micro-batch runs its four passes F0, F1, I1, I0 (chunk 0 holds stage r, chunk 1
// stage 2p - 1 - r) on every rank, in slots of one pass. Repeated every 6 slots, as many as its passes and two W, it
// never needs a slot twice, and how long a micro-batch stays on a rank is the activation memory: a shorter block needs
// less. W's take the free slots, first in, first out. The order is then tightened:
//   1. every pass of the warm-up and of the cool-down moves to the earliest free slot that its inputs allow and that
//      does not lift the peak of any rank above that of the worst one; the W's move, too;
//   2. all passes run as early as their order allows ("squeeze");
//   3. the same again without W's, which take the free slots anew after each move; the cool-down only.
// The order depends on p and m alone. Durations and messages only stretch it.
//
// Source: Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024 (arXiv 2405.15362), sections 3 and 4
// and appendix A, as built by sail-sg/zero-bubble-pipeline-parallelism.
#ifndef ORRERY_SCHEDULES_V_BUILDING_BLOCK_H_
#define ORRERY_SCHEDULES_V_BUILDING_BLOCK_H_

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "schedules/family.h"
#include "schedules/schedule.h"

namespace orrery::schedules {

// Slots of F0, F1, I1, I0 of micro-batch 0, by rank. Repeated every 6 slots they must not meet.
using VBuildingBlock = std::vector<std::array<std::int32_t, 4>>;

// What its users demand: two stages per rank, and no more ranks than can be scheduled in seconds.
absl::Status CheckBuildingBlock(std::string_view family, const Parameters& parameters);

Schedule RepeatBuildingBlock(const VBuildingBlock& block, std::int32_t micro_batches);

}  // namespace orrery::schedules

#endif  // ORRERY_SCHEDULES_V_BUILDING_BLOCK_H_
