// Internal to schedules/: a second way to tighten a repeated building block, as adaptive V does it.
#ifndef ORRERY_SCHEDULES_V_TIGHTEN_H_
#define ORRERY_SCHEDULES_V_TIGHTEN_H_

#include <cstdint>
#include <optional>

#include "schedules/schedule.h"
#include "schedules/v_building_block.h"

namespace orrery::schedules {

// Repeats the block and rebuilds both ends, in slots of one pass; P is the peak of the repeated block in chunk
// activations.
//   warm-up    what a rank runs before its first I0: F0 alone, then F0 and F1 in turn, until rank r holds
//              min(r + 1, P / 2) activations of chunk 1 and the rest of P of chunk 0; then I1, its W and one F in turn;
//   cool-down  the last I's two slots apart, right after the last F1 of the first rank, W's in the slots between;
//   both       every idle slot takes the next later pass of the rank whose inputs are there and that does not lift the
//              peak; W's belong to I's first in, first out.
// Nothing where the ends do not fit together, or for a block that needs more than all 2p chunks.
std::optional<Schedule> RebuildEnds(const VBuildingBlock& block, std::int32_t micro_batches);

}  // namespace orrery::schedules

#endif  // ORRERY_SCHEDULES_V_TIGHTEN_H_
