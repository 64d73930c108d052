// What a schedule costs: the figures of `orrery schedule`.
#ifndef ORRERY_REPORTS_SCHEDULE_REPORT_H_
#define ORRERY_REPORTS_SCHEDULE_REPORT_H_

#include <cstdint>
#include <string>

#include "schedules/schedule.h"
#include "sim/pipeline/evaluate.h"

namespace orrery::reports {

// M in the unit of `costs.memory`: the activations of one micro-batch on all stages that a rank has of one pipeline
// (where the ranks differ, the one with most), in all slices.
std::int64_t MemoryOfMicroBatch(const schedules::Schedule& schedule, const pipeline::Costs& costs);

// Times in 1e-9 of a unit, printed as exact decimals; memory in M.
std::string ScheduleFigures(const schedules::Schedule& schedule, const pipeline::Costs& costs,
                            const pipeline::Evaluation& evaluation);

// The figures, and under "schedule" what schedules::ScheduleJson writes. Keys: name, makespan, longest_span,
// wall_bubble_fraction, span_bubble_fraction, messages, ranks[] with busy, wall_idle, span, span_bubble,
// peak_activations (passes), peak_memory (M).
std::string ScheduleReportJson(const std::string& name, const schedules::Schedule& schedule,
                               const pipeline::Costs& costs, const pipeline::Evaluation& evaluation);

}  // namespace orrery::reports

#endif  // ORRERY_REPORTS_SCHEDULE_REPORT_H_
