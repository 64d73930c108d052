// Bounds on what a spec may ask for, so that nothing is read, counted or allocated without one.
#ifndef ORRERY_PROTO_LIMITS_H_
#define ORRERY_PROTO_LIMITS_H_

#include <cstdint>

#include "orrery/v1/run.pb.h"
#include "proto/origins.h"

namespace orrery::spec {
namespace limits {

// A spec is a page or two; a list of slow GPUs may be long.
inline constexpr std::int64_t kFileBytes = 64 << 20;
// Presets that start from each other.
inline constexpr int kPresetDepth = 16;
// Operations of one rank over all replayed iterations.
inline constexpr double kRankOperations = 50e6;
// Ranks that may be replayed one by one: their cursors and clocks then take gigabytes.
inline constexpr std::int64_t kUnfoldedRanks = 1 << 22;
// Bytes of one rank's activations, were all of an iteration kept: a tenth of what an int64 counts.
inline constexpr double kActivationBytes = 9e17;
// Simulated seconds: what an int64 counts in picoseconds is 9.2e6.
inline constexpr double kReplaySeconds = 9e6;
// Share of its capacity that a slow link keeps at least: a cable of 50 GB/s then carries 50 KB/s.
inline constexpr double kLeastLinkShare = 1e-6;

}  // namespace limits

// Reports a run whose sizes, each within its own range, multiply beyond these bounds. Every field must be within its
// range.
void CheckLimits(const v1::Run& run, const Origins& origins, Diagnostics* diagnostics);

}  // namespace orrery::spec

#endif  // ORRERY_PROTO_LIMITS_H_
