// Internal to schedules/: what a rank runs under DualPipe and DualPipeV, which differ in where the two directions come
// from: two copies of the model that run against each other, or the two arms of a V.
#ifndef ORRERY_SCHEDULES_DUAL_PIPE_ORDER_H_
#define ORRERY_SCHEDULES_DUAL_PIPE_ORDER_H_

#include <array>
#include <cstdint>
#include <vector>

#include "schedules/schedule.h"

namespace orrery::schedules {

struct DualPipeRank {
  // Ranks that lie between this one and the nearer end of the pipeline, h, and ranks to the turn from there, H:
  // DualPipe turns in the middle (H = p / 2), DualPipeV at the last rank (H = p).
  std::int32_t from_end = 0;
  std::int32_t half = 1;
  // Per direction, at least 2H.
  std::int32_t micro_batches = 2;
  // Chunk and first micro-batch of direction 0, which enters at the nearer end, and of direction 1.
  std::array<std::int32_t, 2> chunk = {0, 1};
  std::array<std::int32_t, 2> first = {0, 0};
};

std::vector<Action> DualPipeOrder(const DualPipeRank& rank);

}  // namespace orrery::schedules

#endif  // ORRERY_SCHEDULES_DUAL_PIPE_ORDER_H_
