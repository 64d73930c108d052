// Internal to reports/: what the pictures of a schedule share.
#ifndef ORRERY_REPORTS_SCHEDULE_BOXES_H_
#define ORRERY_REPORTS_SCHEDULE_BOXES_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "reports/schedule_picture.h"

namespace orrery::reports {

// What is drawn at once: a pass, or the two of a fused block.
struct ScheduleBox {
  const schedules::Action* pass = nullptr;   // of a block: the F
  const schedules::Action* other = nullptr;  // of a block: the B
  pipeline::Span span;
};

// Boxes of a rank, in its order.
std::vector<ScheduleBox> BoxesOf(const schedules::Schedule& schedule, const pipeline::Evaluation& evaluation,
                                 std::int32_t rank);

// RESOURCE_EXHAUSTED where the schedule has too many boxes to look at.
absl::Status CheckDrawable(const schedules::Schedule& schedule);

struct MemoryLevel {
  std::int64_t from = 0;
  std::int64_t level = 0;
};
// What a rank holds from each moment on, in units of Costs::memory; frees before takes at equal times.
std::vector<MemoryLevel> MemoryLevels(const std::vector<ScheduleBox>& boxes, const schedules::PassMemory& memory);

// "3", or "3.1" where micro-batches are sliced: slice 1 of micro-batch 3.
std::string MicroBatchLabel(const schedules::Schedule& schedule, std::int32_t micro_batch);

// value / unit with up to `digits` digits after the point: "2.5", "12".
std::string Quantity(std::int64_t value, std::int64_t unit, int digits);

// Smallest distance of ticks, 1, 2 or 5 times a power of ten of `unit` (or of a step of it), that gives at most `most`
// of them up to `end`, besides 0.
std::int64_t TickStep(std::int64_t end, std::int64_t unit, std::int64_t most);

// "p = 4, v = 2, m = 8".
std::string SizeText(const schedules::Schedule& schedule);
// "makespan 33, bubble 27.3 % of it and 27.3 % of the longest span, peak 4 chunk activations on rank 0".
std::string OutcomeText(const pipeline::Evaluation& evaluation, const pipeline::Costs& costs,
                        const SchedulePictureOptions& options);
// "F = 1, I = 1, W = 1, latency = 0".
std::string CostsText(const schedules::Schedule& schedule, const pipeline::Costs& costs,
                      const SchedulePictureOptions& options);
// "chunk activations", or the unit's name.
std::string MemoryUnitText(const pipeline::Costs& costs, const SchedulePictureOptions& options);
// Rank with the highest peak, the first of equals.
std::size_t FullestRank(const pipeline::Evaluation& evaluation);

}  // namespace orrery::reports

#endif  // ORRERY_REPORTS_SCHEDULE_BOXES_H_
