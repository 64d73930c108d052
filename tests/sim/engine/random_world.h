// Random worlds that cannot deadlock.
#ifndef ORRERY_TESTS_SIM_ENGINE_RANDOM_WORLD_H_
#define ORRERY_TESTS_SIM_ENGINE_RANDOM_WORLD_H_

#include <cstdint>

#include "sim/engine/world.h"

namespace orrery::engine::testing {

// All kinds of operations, events, host costs, groups and messages, with times of a few picoseconds, zero often among
// them. Operations are drawn in one global order and wait only for what was drawn before, so that the order itself is a
// legal execution. Units come in 1 to 3 copies that are wired across copies, so that folding finds classes; sometimes
// one unit is then made different.
World RandomWorld(std::uint64_t seed);

// Gives groups and messages routes over links of their own, and over links that several share; alike for what folding
// takes for alike, so that it still finds classes. `capacity_factor` widens every link.
void ShareLinks(std::uint64_t seed, std::int64_t capacity_factor, World* world);

// Gives programs loads, kinds of kernels, and communication that has them: at most so many twelfths of a
// rate are taken by one load, and from transfers where `slows_transfers`.
void AddLoads(std::uint64_t seed, std::int32_t most_twelfths, bool slows_transfers, World* world);

}  // namespace orrery::engine::testing

#endif  // ORRERY_TESTS_SIM_ENGINE_RANDOM_WORLD_H_
