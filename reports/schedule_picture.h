// Pictures of a pipeline schedule: when every rank runs what, where it waits, and what it holds.
#ifndef ORRERY_REPORTS_SCHEDULE_PICTURE_H_
#define ORRERY_REPORTS_SCHEDULE_PICTURE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "schedules/schedule.h"
#include "sim/pipeline/evaluate.h"

namespace orrery::reports {

struct SchedulePictureOptions {
  std::string name;  // of the schedule
  // Steps of the costs that make one unit of time, and its name ("ms"; may be empty). For labels only.
  std::int64_t unit = 1;
  std::string unit_name = {};
  // The same for memory.
  std::int64_t memory_unit = 1;
  std::string memory_unit_name = {};
  // Of the SVG in pixels, 400 to 20,000.
  std::int32_t pixels = 1200;
  // Of the text in characters, 40 to 10,000.
  std::int32_t columns = 100;
};

// Share of the makespan in which a rank runs nothing: mean over ranks.
double WallBubble(const pipeline::Evaluation& evaluation);
// Share of its span (first start to last end) in which the rank with the longest span runs nothing: the bubble rate of
// the zero-bubble literature. Of several such ranks, the one that idles most.
double SpanBubble(const pipeline::Evaluation& evaluation);

// A row of boxes per rank, coloured by kind and shaded by chunk, with the micro-batch where it fits; a fused block is
// one box whose upper half is the F and whose lower half is the B; below, the memory of every rank over time. Passes
// that cost nothing are not drawn.
//
// `evaluation` is of `schedule` at `costs` and has spans. INVALID_ARGUMENT for a width out of range; RESOURCE_EXHAUSTED
// above 200,000 boxes.
absl::StatusOr<std::string> ScheduleSvg(const schedules::Schedule& schedule, const pipeline::Costs& costs,
                                        const pipeline::Evaluation& evaluation, const SchedulePictureOptions& options);

// A line per rank. Where it fits in the width, time goes in cells of the greatest common divisor of all times, and a
// pass shows its kind and micro-batch: " F0 F1 B0===", dots for idle time. Else a column is one such cell or a share of
// the makespan, and shows the kind of what runs in its middle. Two chunks: lower case is chunk 1; more: the notation of
// schedules::Describe. Statuses as above.
absl::StatusOr<std::string> ScheduleText(const schedules::Schedule& schedule, const pipeline::Costs& costs,
                                         const pipeline::Evaluation& evaluation, const SchedulePictureOptions& options);

}  // namespace orrery::reports

#endif  // ORRERY_REPORTS_SCHEDULE_PICTURE_H_
