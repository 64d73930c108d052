#include "schedules/order_search.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

namespace orrery::schedules {
namespace {

using RankOrder = std::vector<std::pair<ActionKind, std::int32_t>>;

class Mover {
 public:
  Mover(Plan plan, const Placement& placement, const Parameters& parameters, std::int64_t memory_limit,
        std::int64_t& placed, std::int64_t most)
      : best_{std::move(plan)},
        placement_(placement),
        parameters_(parameters),
        memory_limit_(memory_limit),
        placed_(placed),
        most_(most) {
    for (std::int32_t rank = 0; rank < best_.plan.ranks(); ++rank) orders_.push_back(best_.plan.Passes(rank));
    best_.tight_limit = best_.plan.TightLimit();
  }

  ImprovedPlan Run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (RankOrder& order : orders_) moved |= Sweep(order);
    }
    return std::move(best_);
  }

 private:
  // One pass from each place to every other.
  bool Sweep(RankOrder& order) {
    bool moved = false;
    for (std::size_t from = 0; from < order.size(); ++from) {
      for (std::size_t to = 0; to < order.size() && placed_ < most_; ++to) {
        // Passing an equal one changes nothing.
        if (to == from || order[to] == order[from]) continue;
        Move(order, from, to);
        if (Try()) {
          moved = true;
        } else {
          Move(order, to, from);
        }
      }
    }
    return moved;
  }

  static void Move(RankOrder& order, std::size_t from, std::size_t to) {
    const auto at = [&](std::size_t i) { return order.begin() + static_cast<std::ptrdiff_t>(i); };
    if (from < to) {
      std::rotate(at(from), at(from + 1), at(to + 1));
    } else {
      std::rotate(at(to), at(from), at(from + 1));
    }
  }

  // Keeps the orders if they are better.
  bool Try() {
    const std::int64_t span = best_.plan.LongestSpan();
    // A span as long as the best one is still of interest.
    Plan plan(placement_, parameters_, memory_limit_, span + 1);
    const bool complete = Replay(plan);
    placed_ += plan.Placed();
    best_.tight_limit = std::max(best_.tight_limit, plan.TightLimit());
    if (!complete || plan.Hopeless()) return false;
    const std::int64_t got = plan.LongestSpan();
    if (got > span || (got == span && plan.TotalIdle() >= best_.plan.TotalIdle())) return false;
    best_.plan = std::move(plan);
    return true;
  }

  bool Replay(Plan& plan) const {
    std::vector<std::size_t> next(orders_.size());
    std::size_t left = 0;
    for (const RankOrder& order : orders_) left += order.size();
    for (bool placed = true; placed && left > 0;) {
      placed = false;
      for (std::size_t rank = 0; rank < orders_.size(); ++rank) {
        while (next[rank] < orders_[rank].size() && Place(plan, static_cast<std::int32_t>(rank), next[rank])) {
          ++next[rank];
          --left;
          placed = true;
        }
      }
    }
    return left == 0;
  }

  bool Place(Plan& plan, std::int32_t rank, std::size_t position) const {
    const auto [kind, chunk] = orders_[static_cast<std::size_t>(rank)][position];
    if (kind == ActionKind::kWeightGradient) {
      if (!plan.HasWeight(rank)) return false;
      plan.PutWeight(rank);
      return true;
    }
    if (plan.Arrival(rank, kind, chunk) == kNever) return false;
    if (kind == ActionKind::kForward && !plan.FitsForward(rank)) return false;
    plan.Put(rank, kind, chunk);
    return true;
  }

  ImprovedPlan best_;
  const Placement& placement_;
  const Parameters& parameters_;
  const std::int64_t memory_limit_;
  std::int64_t& placed_;
  const std::int64_t most_;
  std::vector<RankOrder> orders_;
};

}  // namespace

ImprovedPlan MovePasses(Plan plan, const Placement& placement, const Parameters& parameters, std::int64_t memory_limit,
                        std::int64_t& placed, std::int64_t most) {
  return Mover(std::move(plan), placement, parameters, memory_limit, placed, most).Run();
}

}  // namespace orrery::schedules
