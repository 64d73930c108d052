// Internal to schedules/: the time and memory that automatic families plan with while they build an order.
//
// start of a pass = max(end of the rank's last pass, arrival of its input), where an input from another rank arrives
// `latency` after the end of its producer. Passes of one kind and chunk run first-in-first-out, so that what a rank has
// done is a count per kind and chunk; W runs in the order of the I's. Integers throughout.
#ifndef ORRERY_SCHEDULES_PLANNER_H_
#define ORRERY_SCHEDULES_PLANNER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "schedules/family.h"

namespace orrery::schedules {

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// INVALID_ARGUMENT unless costs, memory and limit are those of `stages` stages, not negative, and their sums over a
// whole iteration fit in 64 bits; M_W may be at most M_B.
absl::Status CheckPlanning(std::string_view family, const Parameters& parameters, std::int32_t stages);

// The limit a family plans with: planning.memory_limit, or `otherwise` where that is 0.
std::int64_t MemoryLimit(const Parameters& parameters, std::int64_t otherwise);

// No order of one pipeline within the limit has a shorter longest span: the first pass of a micro-batch through a chunk
// holds its activation until its I, which comes from the last stage; how many fit at a time is limited.
std::int64_t RoundTripBound(const Placement& placement, const Parameters& parameters, std::int64_t memory_limit);

// RESOURCE_EXHAUSTED that names the smallest limit that works, in activations of one micro-batch on a rank.
absl::Status TooLittleMemory(std::string_view family, const Parameters& parameters, std::int64_t smallest,
                             std::string_view reason);

// An order in the making. Copyable; about 20 bytes per pass.
class Plan {
 public:
  // `parameters` have passed CheckPlanning. A plan whose longest span can no longer be below `span_bound` is Hopeless.
  Plan(const Placement& placement, const Parameters& parameters, std::int64_t memory_limit, std::int64_t span_bound);

  std::int32_t ranks() const { return ranks_; }
  std::int32_t micro_batches() const { return micro_batches_; }
  // Passes of this kind that the rank has run.
  std::int32_t Count(std::int32_t rank, ActionKind kind, std::int32_t chunk = 0) const {
    return counts_[Slot(rank, kind, chunk)];
  }
  bool Done(std::int32_t rank, ActionKind kind, std::int32_t chunk = 0) const {
    return Count(rank, kind, chunk) == micro_batches_;
  }
  std::int64_t Cost(std::int32_t rank, ActionKind kind, std::int32_t chunk = 0) const {
    return costs_[Slot(rank, kind, chunk)];
  }
  std::int64_t latency() const { return latency_; }
  // End of the rank's last pass.
  std::int64_t Clock(std::int32_t rank) const { return ranks_state_[At(rank)].clock; }
  // Time that the rank has waited since its first pass.
  std::int64_t Idle(std::int32_t rank) const { return ranks_state_[At(rank)].idle; }
  std::int64_t MostIdle() const { return most_idle_; }
  std::int64_t Memory(std::int32_t rank) const { return ranks_state_[At(rank)].memory; }

  // When the input of the next F or I of this chunk arrives; kNever while its producer has not been placed, or where
  // all have run.
  std::int64_t Arrival(std::int32_t rank, ActionKind kind, std::int32_t chunk = 0) const;
  // Whether the rank keeps to the limit with `more` memory. Every answer true is remembered: see TightLimit.
  bool Fits(std::int32_t rank, std::int64_t more) { return Allows(Memory(rank) + more); }
  bool FitsForward(std::int32_t rank, std::int32_t chunks = 1) { return Fits(rank, memory_.forward * chunks); }

  // Whether so much is within the limit; remembered likewise.
  bool Allows(std::int64_t memory);
  const PassMemory& memory() const { return memory_; }

  // Places the next F or I of a chunk, whose input has been placed; it starts no earlier than `earliest`.
  void Put(std::int32_t rank, ActionKind kind, std::int32_t chunk = 0, std::int64_t earliest = 0);
  // I's whose W has not run, the first in line, and its cost.
  bool HasWeight(std::int32_t rank) const;
  std::int64_t WeightCost(std::int32_t rank) const;
  void PutWeight(std::int32_t rank, std::int64_t earliest = 0);
  void PutAllWeights();

  // Complete: most activations that a rank holds, from F to W.
  std::int32_t PeakActivations() const;
  // The sum of all ranks' idle times.
  std::int64_t TotalIdle() const;
  // The passes of a rank so far, in order; W's without their chunk, which follows from the I's.
  std::vector<std::pair<ActionKind, std::int32_t>> Passes(std::int32_t rank) const;
  // Passes placed so far, of all ranks.
  std::int64_t Placed() const;
  bool Hopeless() const { return hopeless_; }
  // Complete: time from first start to last end, of the rank with the longest.
  std::int64_t LongestSpan() const;
  // The smallest limit under which all that was asked so far had the same answers: at every limit from here to the
  // plan's own the same code builds the same order.
  std::int64_t TightLimit() const { return tight_limit_; }

  Schedule ToSchedule() const;

 private:
  struct RankState {
    std::int64_t clock = 0;
    std::int64_t idle = 0;
    std::int64_t memory = 0;
    std::int64_t work = 0;  // of the whole iteration
    std::int32_t weights = 0;
    bool started = false;
  };

  static std::size_t At(std::int32_t i) { return static_cast<std::size_t>(i); }
  std::size_t Slot(std::int32_t rank, ActionKind kind, std::int32_t chunk) const {
    return (At(rank) * 4 + static_cast<std::size_t>(kind)) * At(chunks_) + At(chunk);
  }
  std::int64_t& End(bool forward, std::int32_t stage, std::int32_t k) {
    return ends_[(At(stage) * 2 + (forward ? 1 : 0)) * At(micro_batches_) + At(k)];
  }
  std::int64_t End(bool forward, std::int32_t stage, std::int32_t k) const {
    return ends_[(At(stage) * 2 + (forward ? 1 : 0)) * At(micro_batches_) + At(k)];
  }
  void Run(std::int32_t rank, ActionKind kind, std::int32_t chunk, std::int64_t arrival, std::int64_t memory);

  const Placement* placement_;
  std::int32_t ranks_;
  std::int32_t chunks_;
  std::int32_t micro_batches_;
  std::int64_t latency_;
  PassMemory memory_;
  std::int64_t memory_limit_;
  std::int64_t span_bound_;
  std::int64_t most_idle_ = 0;
  std::int64_t tight_limit_ = 0;
  bool hopeless_ = false;
  std::vector<RankState> ranks_state_;
  std::vector<std::int32_t> counts_;  // [rank][kind][chunk]
  std::vector<std::int64_t> costs_;   // likewise
  std::vector<std::int64_t> ends_;    // [stage][direction][micro-batch]; below the count of its rank only
  // By rank: the passes in order, and the chunks of the I's.
  std::vector<std::vector<std::uint8_t>> passes_;
  std::vector<std::vector<std::uint8_t>> gradients_;
};

}  // namespace orrery::schedules

#endif  // ORRERY_SCHEDULES_PLANNER_H_
