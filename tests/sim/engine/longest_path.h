// The oracle of the engines: an explicit graph of all instants of several iterations, and longest paths through it.
//
// Shares no code with the engines: they follow clocks and cursors, this writes every "not before" of program.h down as
// an edge with a weight and takes longest paths from the beginning of time in topological order.
#ifndef ORRERY_TESTS_SIM_ENGINE_LONGEST_PATH_H_
#define ORRERY_TESTS_SIM_ENGINE_LONGEST_PATH_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "sim/engine/world.h"

namespace orrery::engine::testing {

// As engine::TracedSpan defines them.
struct OpTimes {
  Time ready;
  Time start;
  Time end;
};

struct LongestPath {
  int iterations = 0;                                       // n; times cover iterations 0 .. n+1
  std::vector<std::vector<std::vector<OpTimes>>> ops;       // [iteration][unit][op]
  std::vector<std::vector<std::vector<Time>>> host_starts;  // [iteration][unit][host op]
  std::vector<Time> iteration_ends;                         // [iteration]
  // As UnitResult and Replay define them: over iterations 0 .. n.
  std::vector<std::uint64_t> unit_hashes;
  std::uint64_t timeline_hash = 0;
  // Where rates change (stepwise.h); empty: all take what they take alone.
  std::vector<std::vector<std::vector<std::vector<Time>>>> segment_ends = {};  // [iteration][unit][op][segment]
  std::vector<std::vector<std::vector<Time>>> part_ends = {};                  // [iteration][unit][part]
};

// Fills in iteration_ends and hashes from `iterations` and `ops`.
void AddEndsAndHashes(const World& world, LongestPath* path);

// FAILED_PRECONDITION where the graph has a cycle, that is, where the world deadlocks. The world must pass CheckWorld.
absl::StatusOr<LongestPath> FindLongestPath(const World& world, int iterations);

}  // namespace orrery::engine::testing

#endif  // ORRERY_TESTS_SIM_ENGINE_LONGEST_PATH_H_
