// Cases of published schedules: a table of actions, the generator that wrote it and what it was given, and what makes
// the same order here. Columns are those of `orrery validate schedules` (schedules.h).
#ifndef ORRERY_VALIDATION_SCHEDULE_CASES_H_
#define ORRERY_VALIDATION_SCHEDULE_CASES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "schedules/family.h"
#include "schedules/schedule.h"
#include "validation/record.h"

namespace orrery::validation {

// The family that generators name so ("Interleaved1F1B"), or that is listed under this name; null where there is none.
const schedules::Family* FamilyOfSchedule(std::string_view schedule);

// The families that make the order of a case, or plan under its limit: that of its schedule, and beside zb-auto those
// that have the limit in their names. None where no family makes it.
absl::StatusOr<std::vector<const schedules::Family*>> FamiliesOfCase(const Record& record);

// The order of a case's table, without the batches and posts of messages that some generators write.
// FAILED_PRECONDITION where it deadlocks for want of a pass.
absl::StatusOr<schedules::Schedule> ReadCaseTable(std::string_view text, std::string_view name);

// What the family needs to make the order of the table: p, m and v from the record; group size, slices and pipelines
// from the table itself; costs and limit, where it plans, from the record.
absl::StatusOr<schedules::Parameters> ParametersOfCase(const Record& record, const schedules::Family& family,
                                                       const schedules::Schedule& table);

// Costs and memory limit that the generator was given: columns F, B (input gradient), W, comm and mem_limit, as in
// "12 (mem_f=2 mem_b=-1 mem_w=-1)", "None", "2*p*M_B, M_B=34h+5as=201216 M_W=32h=73728" or "4 chunk activations".
absl::StatusOr<schedules::PlanningCosts> PlanningOfCase(const Record& record);

}  // namespace orrery::validation

#endif  // ORRERY_VALIDATION_SCHEDULE_CASES_H_
