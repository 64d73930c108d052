// What automatic schedules plan a run with: the prices of its passes.
#ifndef ORRERY_SIM_TRAINING_PLANNING_COSTS_H_
#define ORRERY_SIM_TRAINING_PLANNING_COSTS_H_

#include "absl/status/statusor.h"
#include "schedules/family.h"
#include "sim/training/plan.h"

namespace orrery::training {

// Passes by stage and the slowest message between two pipeline ranks, in picoseconds, on GPUs of nominal speed; memory
// in bytes, of the stage that keeps most from its forward pass. The limit is left open. `plan` may have any schedule of
// the right placement.
absl::StatusOr<schedules::PlanningCosts> PlanningCostsOf(const Plan& plan);

}  // namespace orrery::training

#endif  // ORRERY_SIM_TRAINING_PLANNING_COSTS_H_
