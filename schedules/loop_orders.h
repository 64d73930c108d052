// Internal to schedules/: what families with alternating passes share.
#ifndef ORRERY_SCHEDULES_LOOP_ORDERS_H_
#define ORRERY_SCHEDULES_LOOP_ORDERS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "schedules/family.h"

namespace orrery::schedules {

// Forward passes of a rank in groups of `group` micro-batches (the last may be short), in every group chunk by chunk.
std::vector<Action> GroupedForwards(std::int32_t chunks, std::int32_t micro_batches, std::int32_t group);
// The same passes backward: in the same order, with the chunks in reverse.
std::vector<Action> Reversed(const std::vector<Action>& forwards, std::int32_t chunks, ActionKind kind);

// How a forward pass of the steady phase goes with the backward pass after it.
enum class Pairing : std::uint8_t { kNone, kJoined, kFused };
// `warmup` forward passes, then forward and backward passes in turn, then the other backward passes.
std::vector<Action> Alternate(const std::vector<Action>& forwards, const std::vector<Action>& backwards,
                              std::int32_t warmup, Pairing pairing);
// The same with split backward passes: `input_gradients` in turn with the forward passes, after each but the first
// `delay` of them the oldest weight gradient that is due, and the other weight gradients at the end.
std::vector<Action> AlternateSplit(const std::vector<Action>& forwards, const std::vector<Action>& input_gradients,
                                   std::int32_t warmup, std::int32_t delay);

// 1F1B with split backward passes, one stage per rank: `depth` times the forward passes of 1F1B ahead on every rank,
// and weight gradients held back by `depth` times the rank (ZB-H1: 1, ZB-H2: 2).
Schedule SplitOneForwardOneBackward(const Parameters& parameters, std::int32_t depth);

// Micro-batches in a row per chunk in PyTorch's interleaved schedules: m / max(1, m / p), divided as integers.
std::int32_t TorchGroupSize(const Parameters& parameters);
// CheckCommon, and that the groups are equal.
absl::Status CheckTorchGroups(std::string_view family, const Parameters& parameters);

}  // namespace orrery::schedules

#endif  // ORRERY_SCHEDULES_LOOP_ORDERS_H_
