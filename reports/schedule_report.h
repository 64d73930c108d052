// What a schedule costs: the figures of `orrery schedule`.
#ifndef ORRERY_REPORTS_SCHEDULE_REPORT_H_
#define ORRERY_REPORTS_SCHEDULE_REPORT_H_

#include <string>

#include "schedules/schedule.h"
#include "sim/pipeline/evaluate.h"

namespace orrery::reports {

// Times in 1e-9 of a unit, printed as exact decimals; memory such that a forward pass takes `costs.memory.forward`,
// printed as multiples of that (M_B).
std::string ScheduleFigures(const schedules::Schedule& schedule, const pipeline::Costs& costs,
                            const pipeline::Evaluation& evaluation);

// The figures, and under "schedule" what schedules::ScheduleJson writes. Keys: name, makespan, longest_span,
// wall_bubble_fraction, span_bubble_fraction, messages, ranks[] with busy, wall_idle, span, span_bubble,
// peak_activations, peak_memory.
std::string ScheduleReportJson(const std::string& name, const schedules::Schedule& schedule,
                               const pipeline::Costs& costs, const pipeline::Evaluation& evaluation);

}  // namespace orrery::reports

#endif  // ORRERY_REPORTS_SCHEDULE_REPORT_H_
