// The oracle of the time classes: asks of every single picosecond what a unit's compute stream did or was blocked on.
#ifndef ORRERY_TESTS_SIM_ENGINE_CLASS_BY_INSTANT_H_
#define ORRERY_TESTS_SIM_ENGINE_CLASS_BY_INSTANT_H_

#include <cstdint>

#include "base/units.h"
#include "sim/engine/program.h"
#include "sim/engine/world.h"
#include "tests/sim/engine/longest_path.h"

namespace orrery::engine::testing {

// Classes of [begin, end) by the definitions of replay.h, one picosecond at a time: only for worlds of small times.
// Also the time between the pipeline phase's first start and last end of iteration `path.iterations` that counts as
// busy.
TimeByClass ClassesByInstant(const World& world, const LongestPath& path, std::int32_t unit, Time begin, Time end);
Time PipelineBusyByInstant(const World& world, const LongestPath& path, std::int32_t unit);

}  // namespace orrery::engine::testing

#endif  // ORRERY_TESTS_SIM_ENGINE_CLASS_BY_INSTANT_H_
