// The schedule of a run: that of a family, or the table the user wrote.
#ifndef ORRERY_SIM_TRAINING_RUN_SCHEDULE_H_
#define ORRERY_SIM_TRAINING_RUN_SCHEDULE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "orrery/v1/run.pb.h"
#include "proto/loader.h"
#include "schedules/family.h"
#include "schedules/schedule.h"

namespace orrery::training {

// Name of the schedule that is a table of the user's.
inline constexpr char kTableSchedule[] = "table";

// For spec::LoadOptions::stages_per_rank.
std::int64_t StagesPerRank(const v1::Schedule& schedule);

// The schedule does not exist, is not legal for these degrees and micro-batches, or cannot be simulated in a training
// run. Says nothing of a run that is too broken to say.
std::vector<spec::FieldProblem> ScheduleProblems(const v1::Run& run);

// How messages of a run with this schedule meet.
v1::MessageMode MessageModeOf(const v1::Run& run, const schedules::Schedule& schedule);

// Whether the order depends on what passes cost and hold.
bool IsPlanned(const v1::Run& run);

// Whether the schedule takes `pipelines`.
bool TakesPipelines(const v1::Run& run);

// `planning` without its memory limit, which is the run's. ScheduleProblems found nothing. INVALID_ARGUMENT where no
// order keeps to the limit at these costs.
absl::StatusOr<schedules::Schedule> ScheduleOf(const v1::Run& run, const schedules::PlanningCosts& planning = {});

}  // namespace orrery::training

#endif  // ORRERY_SIM_TRAINING_RUN_SCHEDULE_H_
