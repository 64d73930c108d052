// Pipeline schedules: what every pipeline rank runs, in order, and how messages between ranks meet.
//
// Terms (docs/schedules.md): p ranks, v chunks (stages) per rank, S stages, m micro-batches; F forward, B full backward
// = I (input gradient) + W (weight gradient).
//
// Dependencies: F of stage s needs F of stage s - 1; B and I of stage s need F of s, and B or I of s + 1; W needs I of
// the same stage; all of the same micro-batch. A rank runs its list strictly in order.
#ifndef ORRERY_SCHEDULES_SCHEDULE_H_
#define ORRERY_SCHEDULES_SCHEDULE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "schedules/placement.h"

namespace orrery::schedules {

enum class ActionKind : std::uint8_t { kForward, kBackward, kInputGradient, kWeightGradient };

struct Action {
  ActionKind kind = ActionKind::kForward;
  std::int32_t chunk = 0;  // of the rank
  std::int32_t micro_batch = 0;
  // One step with the next action of the rank: a runtime that exchanges messages between steps does so before and after
  // both, not between them (Megatron-LM's steady pairs of the interleaved schedule). Eager messages ignore it.
  bool joined = false;
  // One block with the next action, which is an F and a B in either order: it starts when the inputs of both are there,
  // and the results of both appear at its end (DualPipe's overlapped chunks). A block is a step.
  bool fused = false;

  friend bool operator==(const Action&, const Action&) = default;
};

// One letter: F, B, I, W.
char Letter(ActionKind kind);

struct Schedule {
  Placement placement;
  std::int32_t micro_batches = 1;
  // `order[r]`: what rank r executes, strictly in order.
  std::vector<std::vector<Action>> order;
  // Which pipeline each micro-batch runs through; empty: all through pipeline 0.
  std::vector<std::int32_t> pipeline_of = {};
  // Sequence slices per micro-batch, s: micro-batch i of the order is slice i mod s of the model's micro-batch i / s.
  std::int32_t slices = 1;
  // Schedules that are published as a table of time slots: the column of every action, [rank][action]; else empty. For
  // text and pictures only, timing ignores it.
  std::vector<std::vector<std::int32_t>> slots = {};

  std::int32_t ranks() const { return placement.ranks(); }
  std::int32_t chunks() const { return placement.chunks(); }
  std::int32_t stages() const { return placement.stages(); }
  std::int32_t StageOf(std::int32_t rank, std::int32_t chunk) const { return placement.StageOf(rank, chunk); }
  std::int32_t PipelineOf(std::int32_t micro_batch) const {
    return pipeline_of.empty() ? 0 : pipeline_of[static_cast<std::size_t>(micro_batch)];
  }
  Place PlaceOf(std::int32_t stage, std::int32_t micro_batch) const {
    return placement.PlaceOf(stage, PipelineOf(micro_batch));
  }
};

// Every stage runs every micro-batch once in each direction, dependencies allow the order on every rank, and the whole
// can be executed step by step (no cycle). INVALID_ARGUMENT names the first violation; FAILED_PRECONDITION where it
// deadlocks, naming the cycle: which rank waits for what.
absl::Status Validate(const Schedule& schedule);

// Whether some backward pass is split into I and W.
bool SplitsBackward(const Schedule& schedule);

// An action in PyTorch's notation: stage, letter, micro-batch, as in "3B12".
std::string Describe(const Schedule& schedule, std::int32_t rank, const Action& action);

}  // namespace orrery::schedules

#endif  // ORRERY_SCHEDULES_SCHEDULE_H_
