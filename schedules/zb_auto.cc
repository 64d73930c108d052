// Automatic zero bubble: the published scheduler at the limit and at every smaller one, with single decisions reversed
// where the schedule is small; the shortest span is kept.
#include <algorithm>
#include <utility>

#include "base/status_macros.h"
#include "schedules/families.h"
#include "schedules/order_search.h"
#include "schedules/planner.h"
#include "schedules/zb_heuristic.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kName = "zb-auto";

absl::Status Check(const Parameters& parameters) {
  ABSL_RETURN_IF_ERROR(CheckOneStagePerRank(kName, parameters));
  return CheckPlanning(kName, parameters, parameters.ranks);
}

// Passes that the search may place before it stops, about 100 ms.
constexpr std::int64_t kMostPasses = std::int64_t{4} << 20;
// Single decisions are reversed, and single passes moved, in schedules of at most so many ranks x micro-batches.
constexpr std::int64_t kMostReversible = 256;
constexpr std::int64_t kMostMovable = 48;

class Search {
 public:
  Search(const Parameters& parameters, std::int64_t limit)
      : parameters_(parameters),
        placement_(Placement::Loop(parameters.ranks, 1)),
        limit_(limit),
        best_(PlanZeroBubble(placement_, parameters, limit)),
        most_activations_(best_.PeakActivations()) {}

  // The published order is kept unless another one is shorter.
  Plan Run() {
    OfferPublished();
    const std::int64_t size = std::int64_t{parameters_.ranks} * parameters_.micro_batches;
    for (const ZbChoices& choices : AllZbChoices()) DescendLimits(choices);
    if (size <= kMostMovable) MoveAtAllLimits();
    bool met = size <= kMostReversible;
    for (std::int32_t reversed = 0; met; ++reversed) {
      met = false;
      for (ZbChoices choices : AllZbChoices()) {
        choices.reversed = reversed;
        met |= DescendLimits(choices);
      }
    }
    return std::move(best_);
  }

 private:
  // No order within `limit` has a shorter span: see RoundTripBound; and before the first I of a rank returns, it has
  // only the F's to run that it can hold.
  std::int64_t SpanBound(std::int64_t limit) const {
    const PlanningCosts& planning = parameters_.planning;
    const std::int64_t m = parameters_.micro_batches;
    const std::int64_t held = planning.memory.forward == 0 ? m : std::min(m, limit / planning.memory.forward);
    std::int64_t bound = RoundTripBound(placement_, parameters_, limit);
    std::int64_t round_trip = 0;
    for (std::int32_t rank = parameters_.ranks - 1; rank >= 0; --rank) {
      const PassCosts& costs = planning.Of(rank);
      const std::int64_t wait = round_trip - (held - 1) * costs.forward;
      bound = std::max(bound, m * (costs.forward + costs.backward()) + std::max<std::int64_t>(wait, 0));
      round_trip += costs.forward + costs.input_gradient + 2 * planning.latency;
    }
    return bound;
  }

  // The published orders at all smaller limits, too: with less memory they may hold more micro-batches.
  void OfferPublished() {
    for (std::int64_t limit = best_.TightLimit() - 1; IsWorthwhile(limit) && placed_ < kMostPasses / 4;) {
      Plan plan = PlanZeroBubble(placement_, parameters_, limit);
      placed_ += static_cast<std::int64_t>(AllZbChoices().size()) * plan.Placed();
      most_activations_ = std::max(most_activations_, plan.PeakActivations());
      limit = plan.TightLimit() - 1;
      Offer(std::move(plan));
    }
  }

  void Offer(Plan plan) {
    if (plan.LongestSpan() >= best_.LongestSpan() || plan.PeakActivations() > most_activations_) return;
    best_ = std::move(plan);
  }

  bool IsWorthwhile(std::int64_t limit) const {
    return limit >= parameters_.planning.memory.forward && SpanBound(limit) < best_.LongestSpan() &&
           placed_ < kMostPasses;
  }

  // These choices at the limit and all smaller ones: limits between a plan's tight one and its own give the same plan.
  // So more memory never means a longer span. Whether the reversed decision was met.
  bool DescendLimits(const ZbChoices& choices) {
    bool met = false;
    for (std::int64_t limit = limit_; IsWorthwhile(limit);) {
      ZbResult result = PlanZeroBubble(placement_, parameters_, limit, best_.LongestSpan(), choices);
      met |= result.decisions > choices.reversed;
      placed_ += result.plan.Placed();
      limit = result.plan.TightLimit() - 1;
      if (result.complete) Offer(std::move(result.plan));
    }
    return met;
  }

  void MoveAtAllLimits() {
    for (std::int64_t limit = limit_; IsWorthwhile(limit);) {
      ImprovedPlan improved = MovePasses(PlanZeroBubble(placement_, parameters_, limit), placement_, parameters_, limit,
                                         placed_, kMostPasses);
      limit = improved.tight_limit - 1;
      Offer(std::move(improved.plan));
    }
  }

  const Parameters& parameters_;
  const Placement placement_;
  const std::int64_t limit_;
  Plan best_;
  // Of the published orders: a shorter one must not hold more micro-batches either.
  std::int32_t most_activations_;
  std::int64_t placed_ = 0;
};

absl::StatusOr<Schedule> GenerateOrder(const Parameters& parameters) {
  const std::int64_t limit = MemoryLimit(parameters, kNever);
  const std::int64_t smallest = parameters.planning.memory.forward;
  if (limit < smallest) return TooLittleMemory(kName, parameters, smallest, "one micro-batch");
  return Search(parameters, limit).Run().ToSchedule();
}

}  // namespace

const Family kZbAuto = {
    kName,
    "Zero-bubble order planned for given costs per stage, latency and memory limit.",
    "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024 (arXiv 2401.10241), section 3.1; "
    "sail-sg/zero-bubble-pipeline-parallelism, zb.py",
    "one stage per rank; any number of micro-batches; memory limit at least one micro-batch (default: none)",
    "none; span bubble 0 where F = I = W, no latency, limit 2p M_B and m >= 2p",
    &Check,
    &GenerateOrder,
    1,
    true,
};

}  // namespace orrery::schedules
