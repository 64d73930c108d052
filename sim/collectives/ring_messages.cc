#include "sim/collectives/ring_messages.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "sim/engine/replay.h"
#include "sim/engine/world.h"

namespace orrery::collectives {
namespace {

constexpr std::int32_t kToNext = 0;
constexpr std::int32_t kFromPrevious = 1;

// Smallest p that divides the number of hops and after which they repeat (Knuth, Morris and Pratt).
std::size_t PeriodOf(const std::vector<Time>& hops) {
  std::vector<std::size_t> border(hops.size() + 1);
  for (std::size_t i = 1, matched = 0; i < hops.size(); ++i) {
    while (matched > 0 && hops[i] != hops[matched]) matched = border[matched];
    if (hops[i] == hops[matched]) ++matched;
    border[i + 1] = matched;
  }
  const std::size_t period = hops.size() - border[hops.size()];
  return hops.size() % period == 0 ? period : hops.size();
}

// One step of a rank.
engine::Program StepOf(Time to_next, Time from_previous) {
  engine::Program program;
  engine::Op op;
  op.kind = engine::OpKind::kExchange;
  op.num_parts = 2;
  program.ops = {op};
  program.parts = {{.channel = kToNext, .is_send = true, .sequence = 0, .duration = to_next},
                   {.channel = kFromPrevious, .is_send = false, .sequence = 0, .duration = from_previous}};
  program.host_ops = {{}};
  program.num_channels = 2;
  program.update_op = 0;
  return program;
}

// `period` ranks in a ring, each of which stands for as many as it takes to make `ranks`.
engine::World RingWorld(const std::vector<Time>& hops, std::size_t period) {
  engine::World world;
  std::map<std::pair<Time, Time>, std::int32_t> programs;
  for (std::size_t r = 0; r < period; ++r) {
    const std::pair<Time, Time> key = {hops[r], hops[(r + period - 1) % period]};
    const auto [known, added] = programs.try_emplace(key, static_cast<std::int32_t>(world.programs.size()));
    if (added) world.programs.push_back(StepOf(key.first, key.second));
    const auto neighbour = [&](std::size_t other) { return static_cast<std::int32_t>(other % period); };
    world.units.push_back({.program = known->second,
                           .multiplicity = static_cast<std::int64_t>(hops.size() / period),
                           .first_rank = static_cast<std::int64_t>(r),
                           .peers = {{neighbour(r + 1), kFromPrevious}, {neighbour(r + period - 1), kToNext}},
                           .groups = {}});
  }
  return world;
}

}  // namespace

absl::StatusOr<RingRun> RunRing(const std::vector<Time>& hops, std::int64_t steps, const RingOptions& options) {
  if (hops.size() < 2)
    return absl::InvalidArgumentError(absl::StrCat("ring: found ", hops.size(), " ranks; allowed: 2 and more"));
  constexpr std::int64_t kMostSteps = std::numeric_limits<int>::max();
  if (steps < 1 || steps > kMostSteps) {
    return absl::InvalidArgumentError(absl::StrCat("ring: found ", steps, " steps; allowed: from 1 to ", kMostSteps));
  }
  const auto [fastest, slowest] = std::minmax_element(hops.begin(), hops.end());
  constexpr std::int64_t kLatest = std::numeric_limits<std::int64_t>::max() / 4;
  if (*fastest < Time() || slowest->count() > kLatest / steps) {
    return absl::InvalidArgumentError(absl::StrCat("ring: hops from ", fastest->count(), " to ", slowest->count(),
                                                   " ps; allowed: from 0 to ", kLatest / steps));
  }
  const std::size_t period = options.fold ? PeriodOf(hops) : hops.size();
  engine::ReplayOptions replay_options;
  replay_options.iterations = static_cast<int>(steps - 1);
  replay_options.nothing_follows = true;
  replay_options.stop_when_periodic = options.stop_when_periodic;
  ABSL_ASSIGN_OR_RETURN(const engine::Replay replay, engine::Run(RingWorld(hops, period), replay_options));
  const auto replayed = static_cast<std::int64_t>(replay.iteration_ends.size());
  // Steps that were not replayed are as long as the last one.
  const Time repeated = (replay.window_end - replay.window_begin) * (steps - replayed);
  return RingRun{.time = replay.window_end + repeated,
                 .messages = steps * static_cast<std::int64_t>(hops.size()),
                 .replayed = replayed * static_cast<std::int64_t>(period),
                 .ranks_simulated = static_cast<std::int64_t>(period)};
}

}  // namespace orrery::collectives
