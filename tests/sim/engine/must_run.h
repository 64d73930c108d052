// A replay that a test expects to succeed.
#ifndef ORRERY_TESTS_SIM_ENGINE_MUST_RUN_H_
#define ORRERY_TESTS_SIM_ENGINE_MUST_RUN_H_

#include <gtest/gtest.h>

#include <utility>

#include "sim/engine/replay.h"
#include "sim/engine/world.h"

namespace orrery::engine::testing {

inline ReplayOptions BasicOptions(EngineKind engine, bool reverse_ties, int iterations) {
  ReplayOptions options;
  options.engine = engine;
  options.reverse_ties = reverse_ties;
  options.iterations = iterations;
  return options;
}

inline Replay MustRun(const World& world, const ReplayOptions& options) {
  absl::StatusOr<Replay> replay = Run(world, options);
  EXPECT_TRUE(replay.ok()) << replay.status();
  return replay.ok() ? *std::move(replay) : Replay();
}

}  // namespace orrery::engine::testing

#endif  // ORRERY_TESTS_SIM_ENGINE_MUST_RUN_H_
