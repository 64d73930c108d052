// Internal to sim/pipeline/optimizer: a partial order, its clocks, and a lower bound on every way to complete it.
//
// State = passes done of every (stage, kind), the clock of every rank (end of its last pass), and the arrival times of
// inputs that are there but not used yet. Of two states with equal counts the one with no later clock and arrival can
// do all that the other can: dominance.
#ifndef ORRERY_SIM_PIPELINE_OPTIMIZER_STATE_H_
#define ORRERY_SIM_PIPELINE_OPTIMIZER_STATE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/pipeline/optimizer/model.h"

namespace orrery::pipeline::optimizer {

// A state in flat form. `counts`: by (stage, kind). `times`: clocks by rank; then by stage the pending arrivals of F;
// then those of I. States of equal counts have equally many times.
struct PackedState {
  std::vector<std::uint16_t> counts;
  std::vector<std::int64_t> times;
};

// A candidate for the next pass of a rank.
struct Candidate {
  Step step;
  std::int64_t start = 0;
  std::int64_t end = 0;
};

class State {
 public:
  explicit State(const Model& model);

  void Load(const std::uint16_t* counts, const std::int64_t* times);
  // Times are raised to the earliest instant at which they can matter: an input is not used before the clock of its
  // rank plus the passes of its kind that come before.
  void Pack(PackedState& packed) const;

  std::size_t Done(std::size_t stage, Kind kind) const { return counts_[kKinds * stage + kind]; }
  std::int64_t Clock(std::size_t rank) const { return clock_[rank]; }
  bool Complete() const { return done_ == model_->passes(); }
  // Objective of a complete order.
  std::int64_t Value() const;

  // The next passes of a rank: their inputs are there, the memory suffices, and the whole can still be completed.
  void CandidatesOf(std::size_t rank, std::vector<Candidate>& candidates) const;
  void Apply(const Candidate& candidate);
  // Exactly reverts the last Apply, given the clock of the rank before it.
  void Revert(const Candidate& candidate, std::int64_t clock);

  // The rank waits until then.
  void SetClock(std::size_t rank, std::int64_t clock) { clock_[rank] = clock; }
  // The next F or I of `stage` can be its rank's next pass, but its input has not been sent.
  bool MayAwait(std::size_t stage, Kind kind) const;

  // Memory that a rank holds.
  std::int64_t Held(std::size_t rank) const { return held_[rank]; }

 private:
  friend class Bound;

  bool HasInput(std::size_t stage, Kind kind) const;
  std::int64_t Arrival(std::size_t stage, Kind kind) const;
  // After one more F of `stage`: no rank is so full of other micro-batches that the oldest cannot pass.
  bool CanComplete(std::size_t stage) const;
  std::int64_t MemoryChange(Kind kind) const;

  const Model* model_;
  std::vector<std::uint16_t> counts_;
  std::vector<std::int64_t> clock_;
  std::vector<std::int64_t> held_;
  std::size_t done_ = 0;
  // [stage x micro-batches + k]: only from another rank; valid from the pass on that sends it.
  std::vector<std::int64_t> forward_arrival_;
  std::vector<std::int64_t> gradient_arrival_;
};

}  // namespace orrery::pipeline::optimizer

#endif  // ORRERY_SIM_PIPELINE_OPTIMIZER_STATE_H_
