// The oracle of changing rates: everything that is under way advances from instant to instant.
//
// Shares no code with the engines and none of their ideas: no queue, no event that can be stale. At every instant it
// begins and ends what can until nothing more does, works out all rates from nothing, looks for the nearest instant at
// which anything may happen, and advances all that is left by so much.
#ifndef ORRERY_TESTS_SIM_ENGINE_STEPWISE_H_
#define ORRERY_TESTS_SIM_ENGINE_STEPWISE_H_

#include "sim/engine/world.h"
#include "tests/sim/engine/longest_path.h"

namespace orrery::engine::testing {

// Iterations 0 .. 2n+1 of a world that passes CheckWorld and does not deadlock, with what its loads do; the result as
// FindLongestPath(world, n) has it, with `segment_ends` and `part_ends`, and all iterations in `ops`.
LongestPath AdvanceStepwise(const World& world, int iterations);

}  // namespace orrery::engine::testing

#endif  // ORRERY_TESTS_SIM_ENGINE_STEPWISE_H_
