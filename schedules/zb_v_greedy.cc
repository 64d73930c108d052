// Greedy ZB-V: chunks in a V, an order built in rounds of one I and one F per rank from planned costs.
//
// Warm-up: F's of the first chunk while the pipeline fills down the ranks, then of both in turn until every rank holds
// as many activations as the one before. Then in rounds: every rank takes one I, of the first chunk where its input has
// been placed, else of the second, and one F, of the second chunk where its input has been placed, else of the first.
// W's go before them where memory demands it, where they end before the input arrives, and where waiting would make
// this rank the one that has waited longest; the rest come last. A further pass may let every rank wait as long as it
// did in the pass before, while that shortens the longest wait.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "schedules/families.h"
#include "schedules/planner.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kName = "zb-v-greedy";
constexpr ActionKind kF = ActionKind::kForward;
constexpr ActionKind kI = ActionKind::kInputGradient;

// A W that delays an F, or an I of the second chunk, rather than let the rank wait.
struct Choices {
  bool before_forward = true;
  bool before_gradient = true;
};

class Greedy {
 public:
  // `allowed`: how long every rank waited in the pass before; empty: this is the first.
  Greedy(Plan& plan, const Choices& choices, const std::vector<std::int64_t>& allowed)
      : plan_(plan), choices_(choices), last_(plan.ranks() - 1), slack_(static_cast<std::size_t>(last_) + 1) {
    if (allowed.empty()) return;
    const std::int64_t most = *std::max_element(allowed.begin(), allowed.end());
    for (std::size_t rank = 0; rank < slack_.size(); ++rank) slack_[rank] = most - allowed[rank];
  }

  // False where these rules come to an end within the limit.
  bool Run() {
    if (!Fill() || !Level()) return false;
    for (std::int32_t round = 0; round < 2 * plan_.micro_batches(); ++round) {
      if (!InputGradients() || !Forwards()) return false;
    }
    for (std::int32_t rank = 0; rank <= last_; ++rank) {
      for (const std::int32_t chunk : {0, 1}) {
        if (!plan_.Done(rank, kF, chunk) || !plan_.Done(rank, kI, chunk)) return false;
      }
    }
    plan_.PutAllWeights();
    return true;
  }

 private:
  bool IsPlaced(std::int32_t rank, ActionKind kind, std::int32_t chunk) const {
    return plan_.Arrival(rank, kind, chunk) != kNever;
  }

  bool Put(std::int32_t rank, ActionKind kind, std::int32_t chunk) {
    if (!IsPlaced(rank, kind, chunk)) return false;
    if (kind == kF && !plan_.FitsForward(rank)) return false;
    plan_.Put(rank, kind, chunk);
    return true;
  }

  // The first F of every rank; then back up the V the first F of the second chunk, and before it as many of the first
  // chunk, on this rank and those before, as time and memory allow.
  bool Fill() {
    for (std::int32_t rank = 0; rank <= last_; ++rank) {
      if (!Put(rank, kF, 0)) return false;
    }
    for (std::int32_t rank = last_; rank >= 0; --rank) {
      const std::int64_t due = plan_.Arrival(rank, kF, 1);
      while (rank < last_ && !plan_.Done(rank, kF, 0) && plan_.Clock(rank) + plan_.Cost(rank, kF, 0) <= due &&
             plan_.FitsForward(rank, 2 + 2 * rank)) {
        for (std::int32_t before = 0; before <= rank; ++before) {
          if (!plan_.Done(before, kF, 0) && !Put(before, kF, 0)) return false;
        }
      }
      if (!Put(rank, kF, 1)) return false;
    }
    return true;
  }

  std::int32_t Taken(std::int32_t rank) const { return plan_.Count(rank, kF, 0) + plan_.Count(rank, kF, 1); }

  // Whether the rank has run fewer F than the one before, or is not ahead of it with the second chunk.
  bool IsBehind(std::int32_t rank) const {
    const std::int32_t before = plan_.Count(rank - 1, kF, 1);
    return Taken(rank) < Taken(rank - 1) || (plan_.Count(rank, kF, 1) <= before && before < plan_.micro_batches());
  }

  bool Level() {
    std::int32_t chunk = 0;
    for (std::int32_t rank = 1; rank <= last_; ++rank) {
      for (std::int32_t idle_turns = 0; IsBehind(rank); chunk = 1 - chunk) {
        bool placed = false;
        for (std::int32_t later = last_; later >= rank; --later) {
          if (plan_.Done(later, kF, chunk)) continue;
          if (!Put(later, kF, chunk)) return false;
          placed = true;
        }
        idle_turns = placed ? 0 : idle_turns + 1;
        if (idle_turns == 2) return false;
      }
    }
    return true;
  }

  // W's before the next F or I of a chunk; `last_resort`: one that delays it rather than wait longer than others.
  void FillGap(std::int32_t rank, ActionKind kind, std::int32_t chunk, bool last_resort) {
    const std::int64_t arrival = plan_.Arrival(rank, kind, chunk);
    while (plan_.HasWeight(rank) && arrival >= plan_.Clock(rank) + plan_.WeightCost(rank)) plan_.PutWeight(rank);
    const std::int64_t most = std::max(plan_.MostIdle(), slack_[static_cast<std::size_t>(rank)]);
    const bool waits = arrival - plan_.Clock(rank) > most - plan_.Idle(rank);
    if (last_resort && waits && plan_.HasWeight(rank)) plan_.PutWeight(rank);
  }

  // The chunk whose I comes next.
  std::int32_t GradientChunk(std::int32_t rank) const {
    if (plan_.Count(rank, kI, 0) >= plan_.Count(rank, kI, 1)) return 1;
    return IsPlaced(rank, kI, 0) || plan_.Done(rank, kI, 1) ? 0 : 1;
  }

  bool InputGradients() {
    std::vector<std::int32_t> chunks;
    for (std::int32_t rank = 0; rank <= last_; ++rank) chunks.push_back(GradientChunk(rank));
    const auto put = [&](std::int32_t rank, std::int32_t chunk) {
      if (chunks[static_cast<std::size_t>(rank)] != chunk) return true;
      FillGap(rank, kI, chunk, chunk == 0 || choices_.before_gradient);
      return Put(rank, kI, chunk);
    };
    for (std::int32_t rank = last_; rank >= 0; --rank) {
      if (!put(rank, 0)) return false;
    }
    for (std::int32_t rank = 0; rank <= last_; ++rank) {
      if (!put(rank, 1)) return false;
    }
    return true;
  }

  // The chunk whose F comes next; nothing where its input has not been placed.
  std::optional<std::int32_t> ForwardChunk(std::int32_t rank) const {
    if (plan_.Done(rank, kF, 1)) return std::nullopt;
    if (plan_.Count(rank, kF, 1) >= plan_.Count(rank, kF, 0)) return 0;
    if (IsPlaced(rank, kF, 1)) return 1;
    return IsPlaced(rank, kF, 0) ? std::optional<std::int32_t>(0) : std::nullopt;
  }

  bool Forwards() {
    for (std::int32_t rank = 0; rank <= last_; ++rank) {
      const std::optional<std::int32_t> chunk = ForwardChunk(rank);
      if (!chunk) continue;
      if (!IsPlaced(rank, kF, *chunk)) return false;
      while (!plan_.FitsForward(rank)) {
        if (!plan_.HasWeight(rank)) return false;
        plan_.PutWeight(rank);
      }
      FillGap(rank, kF, *chunk, choices_.before_forward);
      if (!Put(rank, kF, *chunk)) return false;
    }
    return true;
  }

  Plan& plan_;
  const Choices choices_;
  const std::int32_t last_;
  // Longer than the others that a rank may wait, by rank.
  std::vector<std::int64_t> slack_;
};

absl::Status Check(const Parameters& parameters) {
  ABSL_RETURN_IF_ERROR(CheckTwoStagesPerRank(kName, parameters));
  return CheckPlanning(kName, parameters, 2 * parameters.ranks);
}

// Passes that the search may place, about 100 ms.
constexpr std::int64_t kMostPasses = 1'500'000;

class Search {
 public:
  explicit Search(const Parameters& parameters)
      : parameters_(parameters), placement_(Placement::Wave(parameters.ranks, 2)) {}

  // At the limit and all smaller ones, so that more memory never means a longer span: limits between the tight one and
  // the one planned for give the same plan. Nothing where the rules come to no end at any of them.
  std::optional<Plan> Run(std::int64_t limit) {
    // No rank ever holds more than both chunks of all micro-batches.
    const std::int64_t chunk = parameters_.planning.memory.forward;
    if (limit >= 2 * chunk * parameters_.micro_batches) limit = std::max(limit, 2 * chunk * parameters_.ranks);
    std::optional<Plan> best;
    for (const bool before_gradient : {true, false}) {
      for (const bool before_forward : {true, false}) {
        std::int64_t next = limit;
        do {
          std::optional<Plan> plan = PlanAt(next, {before_forward, before_gradient});
          if (plan && (!best || plan->LongestSpan() < best->LongestSpan())) best = std::move(plan);
          next = tight_limit_ - 1;
        } while (next >= 2 * parameters_.planning.memory.forward && placed_ < kMostPasses &&
                 !(best && IsShortest(*best)));
      }
    }
    return best;
  }

 private:
  // All passes of the greedy scheduler; the best.
  std::optional<Plan> PlanAt(std::int64_t limit, const Choices& choices) {
    std::optional<Plan> best;
    std::vector<std::int64_t> allowed;
    tight_limit_ = 0;
    while (true) {
      Plan plan(placement_, parameters_, limit, kNever);
      const bool complete = Greedy(plan, choices, allowed).Run();
      placed_ += plan.Placed();
      tight_limit_ = std::max(tight_limit_, plan.TightLimit());
      if (!complete || (best && plan.MostIdle() >= best->MostIdle())) return best;
      best = std::move(plan);
      allowed.clear();
      for (std::int32_t rank = 0; rank < parameters_.ranks; ++rank) allowed.push_back(best->Idle(rank));
    }
  }

  // No rank with more work than the others waits.
  static bool IsShortest(const Plan& plan) { return plan.MostIdle() == 0; }

  const Parameters& parameters_;
  const Placement placement_;
  std::int64_t tight_limit_ = 0;
  std::int64_t placed_ = 0;
};

// The median cost of each kind for all stages, as the published runtime plans.
Parameters WithMedianCosts(Parameters parameters) {
  std::vector<PassCosts>& stages = parameters.planning.stages;
  PassCosts median;
  for (std::int64_t PassCosts::*const kind :
       {&PassCosts::forward, &PassCosts::input_gradient, &PassCosts::weight_gradient}) {
    std::vector<std::int64_t> costs;
    for (const PassCosts& stage : stages) costs.push_back(stage.*kind);
    const auto middle = costs.begin() + static_cast<std::ptrdiff_t>(costs.size() / 2);
    std::nth_element(costs.begin(), middle, costs.end());
    median.*kind = *middle;
  }
  stages = {median};
  return parameters;
}

absl::StatusOr<Schedule> GenerateOrder(const Parameters& parameters) {
  const std::int64_t chunk = parameters.planning.memory.forward;
  const std::int64_t full = 2 * std::int64_t{parameters.ranks} * chunk;
  const std::int64_t limit = MemoryLimit(parameters, full);
  Search given(parameters);
  if (const std::optional<Plan> plan = given.Run(limit)) return plan->ToSchedule();
  // Uneven stages may leave an F without a place, whatever the limit.
  const Parameters even = WithMedianCosts(parameters);
  Search search(even);
  if (const std::optional<Plan> plan = search.Run(limit)) return plan->ToSchedule();
  // In whole chunks. What works at a limit works at every larger one.
  std::int64_t low = limit / std::max<std::int64_t>(chunk, 1) + 1;
  std::int64_t high = 2 * std::int64_t{std::min(parameters.ranks, parameters.micro_batches)};
  while (low < high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (search.Run(middle * chunk)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  const std::int64_t smallest = high * chunk;
  return TooLittleMemory(kName, parameters, smallest,
                         "the greedy order fills up with about 2p chunks; v-auto works with fewer");
}

}  // namespace

const Family kZbVGreedy = {
    kName,
    "ZB-V planned for given costs: chunks in a V, the span bubble as small as a greedy order makes it within p "
    "activations.",
    "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024 (arXiv 2401.10241), section 6; "
    "sail-sg/zero-bubble-pipeline-parallelism, zbv.py",
    "two chunks per rank; any number of micro-batches; memory limit at least min(p, m) micro-batches (default: p)",
    "at F = I = W, no latency and m >= 2p: span bubble 0, idle p-1 chunk passes; peak 2p chunks",
    &Check,
    &GenerateOrder,
    2,
    true,
};

}  // namespace orrery::schedules
