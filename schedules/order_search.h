// Internal to schedules/: improves a complete plan by moving single passes.
#ifndef ORRERY_SCHEDULES_ORDER_SEARCH_H_
#define ORRERY_SCHEDULES_ORDER_SEARCH_H_

#include <cstdint>

#include "schedules/planner.h"

namespace orrery::schedules {

// Moves one pass of a rank to another place in its order for as long as that makes the longest span shorter, or leaves
// it and lowers the sum of the idle times; the first such move is taken. For small plans: a sweep places all passes
// once per move. `placed` grows by the passes that were placed, and the search ends when it reaches `most`.
struct ImprovedPlan {
  Plan plan;
  // See Plan::TightLimit, of all that was tried.
  std::int64_t tight_limit = 0;
};
ImprovedPlan MovePasses(Plan plan, const Placement& placement, const Parameters& parameters, std::int64_t memory_limit,
                        std::int64_t& placed, std::int64_t most);

}  // namespace orrery::schedules

#endif  // ORRERY_SCHEDULES_ORDER_SEARCH_H_
