#include "schedules/zb_heuristic.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace orrery::schedules {
namespace {

constexpr ActionKind kF = ActionKind::kForward;
constexpr ActionKind kI = ActionKind::kInputGradient;
constexpr ActionKind kW = ActionKind::kWeightGradient;

class Scheduler {
 public:
  Scheduler(Plan& plan, const ZbChoices& choices, const PassMemory& memory)
      : plan_(plan), choices_(choices), memory_(memory), last_(plan.ranks() - 1) {}

  bool Run() {
    for (std::int32_t rank = 0; rank <= last_; ++rank) plan_.Put(rank, kF);
    WarmUp();
    for (std::int32_t rank = last_; rank >= 0; --rank) plan_.Put(rank, kI);
    for (std::int32_t k = 1; k < plan_.micro_batches(); ++k) {
      Forwards();
      InputGradients();
      if (plan_.Hopeless()) return false;
    }
    plan_.PutAllWeights();
    return !plan_.Hopeless();
  }
  std::int32_t decisions() const { return decisions_; }

 private:
  // F's of the rank, after its first, before its first I, which arrives at `arrival`. `end`: of the last of them.
  std::int32_t WarmUpForwards(std::int32_t rank, std::int64_t arrival, std::int64_t& end) {
    const std::int64_t cost = plan_.Cost(rank, kF);
    std::int32_t count = 0;
    for (end = plan_.Clock(rank); 1 + count < plan_.micro_batches() && plan_.FitsForward(rank, count + 1); ++count) {
      if (choices_.keep_first_gap ? end + cost > arrival : end >= arrival) break;
      end += cost;
    }
    return count;
  }

  void WarmUp() {
    std::vector<std::int32_t> counts(static_cast<std::size_t>(last_) + 1);
    std::int64_t arrival = plan_.Clock(last_) + plan_.Cost(last_, kI) + plan_.latency();
    for (std::int32_t rank = last_ - 1; rank >= 0; --rank) {
      std::int64_t end = 0;
      counts[static_cast<std::size_t>(rank)] = WarmUpForwards(rank, arrival, end);
      arrival = std::max(end, arrival) + plan_.Cost(rank, kI) + plan_.latency();
    }
    for (std::size_t rank = 0; rank < counts.size(); ++rank) {
      if (rank > 0) {
        // One F behind the rank before, unless that has run all.
        const bool all = counts[rank - 1] + 1 == plan_.micro_batches();
        counts[rank] = std::min(counts[rank], all ? counts[rank - 1] : std::max(0, counts[rank - 1] - 1));
      }
      for (std::int32_t i = 0; i < counts[rank]; ++i) plan_.Put(static_cast<std::int32_t>(rank), kF);
    }
  }

  // A choice that another run may take the other way.
  bool Decide(bool usual) { return decisions_++ == choices_.reversed ? !usual : usual; }

  // Whether waiting for so long keeps the rank among those that have waited less than the longest.
  bool Affords(std::int32_t rank, std::int64_t wait) const { return wait <= plan_.MostIdle() - plan_.Idle(rank); }

  // W's that give the rank memory for one more F, how long they take.
  std::int64_t CostOfRoom(std::int32_t rank) {
    const std::int32_t pending = plan_.Count(rank, kI) - plan_.Count(rank, kW);
    std::int32_t weights = 0;
    while (weights < pending && !plan_.Fits(rank, memory_.forward - weights * memory_.weight)) ++weights;
    return weights * plan_.Cost(rank, kW);
  }

  bool LeavesOut(std::int32_t rank) {
    const std::int32_t next = rank + 1;
    if (!choices_.gradients_first || rank == last_ || plan_.Count(rank, kF) < plan_.Count(next, kF) + 2) return false;
    // The rank's next I arrives.
    const std::int64_t due = plan_.Clock(next) + plan_.Cost(next, kF) + plan_.Cost(next, kI) + plan_.latency();
    if (plan_.Clock(rank) >= due) return true;
    if (plan_.Clock(rank) + plan_.Cost(rank, kF) + CostOfRoom(rank) <= due) return false;
    return Decide(Affords(rank, due - plan_.Clock(rank)));
  }

  // W's before the rank's next F or I.
  void FillGap(std::int32_t rank, ActionKind kind) {
    while (kind == kF && !plan_.FitsForward(rank)) plan_.PutWeight(rank);
    const std::int64_t arrival = plan_.Arrival(rank, kind);
    while (plan_.HasWeight(rank) && plan_.Clock(rank) + plan_.WeightCost(rank) <= arrival) plan_.PutWeight(rank);
    if (!plan_.HasWeight(rank) || plan_.Clock(rank) >= arrival) return;
    if (Decide(choices_.fill_every_gap || !Affords(rank, arrival - plan_.Clock(rank)))) plan_.PutWeight(rank);
  }

  void Forwards() {
    // If a rank leaves its F out, so do those before it: it has enough of theirs.
    std::int32_t first = last_;
    std::vector<bool> runs(static_cast<std::size_t>(last_) + 1);
    for (std::int32_t rank = 0; rank <= last_; ++rank) {
      runs[static_cast<std::size_t>(rank)] = !plan_.Done(rank, kF) && !LeavesOut(rank);
    }
    while (first >= 0 && runs[static_cast<std::size_t>(first)]) --first;
    for (std::int32_t rank = first + 1; rank <= last_; ++rank) {
      FillGap(rank, kF);
      plan_.Put(rank, kF);
    }
  }

  void InputGradients() {
    for (std::int32_t rank = last_; rank >= 0; --rank) {
      FillGap(rank, kI);
      // Nobody waits for the I's of the first rank.
      while (rank == 0 && plan_.Done(rank, kF) && plan_.HasWeight(rank)) plan_.PutWeight(rank);
      plan_.Put(rank, kI);
    }
  }

  Plan& plan_;
  const ZbChoices choices_;
  const PassMemory memory_;
  const std::int32_t last_;
  std::int32_t decisions_ = 0;
};

}  // namespace

const std::array<ZbChoices, 8>& AllZbChoices() {
  static constexpr std::array<ZbChoices, 8> kChoices = {{{true, true, true},
                                                         {true, true, false},
                                                         {true, false, true},
                                                         {true, false, false},
                                                         {false, true, true},
                                                         {false, true, false},
                                                         {false, false, true},
                                                         {false, false, false}}};
  return kChoices;
}

ZbResult PlanZeroBubble(const Placement& placement, const Parameters& parameters, std::int64_t memory_limit,
                        std::int64_t span_bound, const ZbChoices& choices) {
  ZbResult result{Plan(placement, parameters, memory_limit, span_bound)};
  Scheduler scheduler(result.plan, choices, parameters.planning.memory);
  // The first F of every rank.
  result.plan.FitsForward(0);
  result.complete = scheduler.Run();
  result.decisions = scheduler.decisions();
  return result;
}

Plan PlanZeroBubble(const Placement& placement, const Parameters& parameters, std::int64_t memory_limit) {
  std::optional<Plan> best;
  for (const ZbChoices& choices : AllZbChoices()) {
    ZbResult result = PlanZeroBubble(placement, parameters, memory_limit, best ? best->LongestSpan() : kNever, choices);
    if (result.complete) best = std::move(result.plan);
  }
  return *std::move(best);
}

}  // namespace orrery::schedules
