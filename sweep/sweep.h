// Many runs: a base and a list of points in, a stream of rows out.
//
// Every point is resolved and simulated on its own, so the rows do not depend on threads, on where a sweep was
// interrupted, or on what other points do. A point that is illegal is a row with the reason.
#ifndef ORRERY_SWEEP_SWEEP_H_
#define ORRERY_SWEEP_SWEEP_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "proto/loader.h"
#include "sweep/points.h"
#include "sweep/table.h"

namespace orrery::sweep {

struct Options {
  int threads = 1;
  // Points before it are done already.
  std::int64_t first = 0;
  // Asked before each point; once it says true no more are begun. Called from any thread. Null: never.
  std::function<bool()> stopped = nullptr;
  // Errors to expect of a run's iteration time, half and nine tenths of them below. Called from any thread. Null:
  // unknown.
  std::function<std::optional<std::pair<double, double>>(const v1::Run&)> expected_error = nullptr;
};

// One point. Thread-safe.
Row RowOf(const spec::BaseRun& base, const Points& points, std::int64_t index, const Options& options);

// Calls `sink` with the row of every point in order, one at a time, from any thread. The first error of `sink` ends the
// sweep and is returned. CANCELLED where it was stopped before the last point; points that were begun are finished
// first, and the rows passed on are those of all points up to one.
absl::Status RunPoints(const spec::BaseRun& base, const Points& points, const Options& options,
                       const std::function<absl::Status(const Row&)>& sink);

}  // namespace orrery::sweep

#endif  // ORRERY_SWEEP_SWEEP_H_
