#include "schedules/v_timing.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <queue>
#include <utility>
#include <vector>

namespace orrery::schedules {
namespace {

constexpr ActionKind kF = ActionKind::kForward;
constexpr ActionKind kI = ActionKind::kInputGradient;
constexpr ActionKind kW = ActionKind::kWeightGradient;

struct PassKind {
  ActionKind kind = kF;
  std::int32_t chunk = 0;
};
constexpr std::array<PassKind, 4> kPasses = {{{kF, 0}, {kF, 1}, {kI, 1}, {kI, 0}}};

std::size_t IndexOf(const Action& action) {
  return static_cast<std::size_t>(action.kind == kF ? action.chunk : 3 - action.chunk);
}

class InOrder {
 public:
  InOrder(const Schedule& order, const OrderRules& rules, Plan& plan)
      : order_(order), rules_(rules), plan_(plan), ranks_(order.order.size()) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) ranks_[rank].hoisted.resize(order.order[rank].size());
  }

  bool Run() {
    bool complete = false;
    bool down = false;
    for (bool placed = true; placed && !plan_.Hopeless();) {
      placed = false;
      complete = true;
      // A micro-batch goes down the V and up again.
      down = !down;
      for (std::int32_t i = 0; i < plan_.ranks(); ++i) {
        const std::int32_t rank = down ? i : plan_.ranks() - 1 - i;
        while (Place(rank)) placed = true;
        complete &= State(rank).next == Order(rank).size();
      }
    }
    if (complete) plan_.PutAllWeights();
    return complete && !plan_.Hopeless();
  }

 private:
  struct RankState {
    std::size_t next = 0;
    std::vector<bool> hoisted;  // by action
  };
  // Actions that are looked at for one that may go first.
  static constexpr std::size_t kAhead = 16;

  const std::vector<Action>& Order(std::int32_t rank) const { return order_.order[static_cast<std::size_t>(rank)]; }
  RankState& State(std::int32_t rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  bool Place(std::int32_t rank) {
    RankState& state = State(rank);
    if (state.next == Order(rank).size()) return false;
    const Action& action = Order(rank)[state.next];
    if (action.kind == kW) {
      if (rules_.weights_as_given) plan_.PutWeight(rank);
    } else if (!state.hoisted[state.next]) {
      const std::int64_t arrival = plan_.Arrival(rank, action.kind, action.chunk);
      if (arrival == kNever) return false;
      if (rules_.hoist && Hoist(rank, arrival)) return true;
      if (!rules_.weights_as_given) FillGap(rank, arrival);
      if (action.kind == kF && !MakeRoom(rank)) return false;
      plan_.Put(rank, action.kind, action.chunk);
    }
    ++state.next;
    return true;
  }

  // One pass that comes later, if there is one that ends before `arrival`.
  bool Hoist(std::int32_t rank, std::int64_t arrival) {
    RankState& state = State(rank);
    const std::int64_t clock = plan_.Clock(rank);
    if (clock >= arrival) return false;
    // Activations, were every W run at once, and the most of them before the pass that is looked at.
    std::int32_t held = 0;
    for (const std::int32_t chunk : {0, 1}) held += plan_.Count(rank, kF, chunk) - plan_.Count(rank, kI, chunk);
    std::int32_t most = held;
    const std::size_t end = std::min(state.next + kAhead, Order(rank).size());
    for (std::size_t i = state.next; i < end; ++i) {
      const Action& action = Order(rank)[i];
      if (action.kind == kW || state.hoisted[i]) continue;
      if (i > state.next && MayHoist(rank, action, arrival, most)) {
        plan_.Put(rank, action.kind, action.chunk);
        state.hoisted[i] = true;
        return true;
      }
      held += action.kind == kF ? 1 : -1;
      most = std::max(most, held);
    }
    return false;
  }

  bool MayHoist(std::int32_t rank, const Action& action, std::int64_t arrival, std::int32_t most) {
    const std::int64_t clock = plan_.Clock(rank);
    return plan_.Count(rank, action.kind, action.chunk) == action.micro_batch &&
           plan_.Arrival(rank, action.kind, action.chunk) <= clock &&
           clock + plan_.Cost(rank, action.kind, action.chunk) <= arrival &&
           (action.kind == kI || (plan_.FitsForward(rank) && plan_.Allows((most + 1) * plan_.memory().forward)));
  }

  bool MakeRoom(std::int32_t rank) {
    while (!plan_.FitsForward(rank)) {
      if (rules_.weights_as_given || !plan_.HasWeight(rank)) return false;
      plan_.PutWeight(rank);
    }
    return true;
  }

  void FillGap(std::int32_t rank, std::int64_t arrival) {
    while (plan_.HasWeight(rank) && plan_.Clock(rank) < arrival) {
      if (!rules_.fill_every_gap && plan_.Clock(rank) + plan_.WeightCost(rank) > arrival) return;
      plan_.PutWeight(rank);
    }
  }

  const Schedule& order_;
  const OrderRules rules_;
  Plan& plan_;
  std::vector<RankState> ranks_;
};

class Guided {
 public:
  Guided(const Schedule& guide, const GuidedRules& rules, Plan& plan)
      : rules_(rules), plan_(plan), positions_(guide.order.size()), pending_(guide.order.size(), kNever) {
    for (std::size_t rank = 0; rank < positions_.size(); ++rank) {
      for (std::size_t i = 0; i < guide.order[rank].size(); ++i) {
        const Action& action = guide.order[rank][i];
        if (action.kind != kW) positions_[rank][IndexOf(action)].push_back(i);
      }
      WakeAt(0, static_cast<std::int32_t>(rank));
    }
  }

  bool Run() {
    while (!wakes_.empty() && !plan_.Hopeless()) {
      const auto [time, rank] = wakes_.top();
      wakes_.pop();
      std::int64_t& pending = pending_[static_cast<std::size_t>(rank)];
      if (time != pending) continue;
      pending = kNever;
      Decide(time, rank);
    }
    return !plan_.Hopeless();
  }

 private:
  using Wake = std::pair<std::int64_t, std::int32_t>;  // time, rank

  // The pass that the rank should take at `time`, if there is one; when the input that it waits for arrives, and when
  // the next one after `time`.
  struct Options {
    std::optional<PassKind> pass;
    std::int64_t awaited = kNever;
    std::int64_t next_arrival = kNever;
  };

  // The earliest wake of a rank is enough: it looks at all that has arrived, and for what comes next.
  void WakeAt(std::int64_t time, std::int32_t rank) {
    std::int64_t& pending = pending_[static_cast<std::size_t>(rank)];
    const std::int64_t free = std::max(time, plan_.Clock(rank));
    if (free >= pending) return;
    pending = free;
    wakes_.emplace(free, rank);
  }

  Options Survey(std::int64_t time, std::int32_t rank) {
    Options options;
    std::size_t first = 0;
    std::size_t first_late = 0;
    std::int64_t late_arrival = kNever;
    for (std::size_t i = 0; i < kPasses.size(); ++i) {
      const auto [kind, chunk] = kPasses[i];
      const std::int64_t arrival = plan_.Arrival(rank, kind, chunk);
      if (arrival == kNever || !MayTake(rank, kPasses[i])) continue;
      const std::size_t position =
          positions_[static_cast<std::size_t>(rank)][i][static_cast<std::size_t>(plan_.Count(rank, kind, chunk))];
      if (arrival <= time) {
        if (!options.pass || position < first) {
          options.pass = kPasses[i];
          first = position;
        }
      } else {
        options.next_arrival = std::min(options.next_arrival, arrival);
        if (late_arrival == kNever || position < first_late) {
          late_arrival = arrival;
          first_late = position;
        }
      }
    }
    options.awaited = options.next_arrival;
    if (options.pass && !rules_.overtake && late_arrival != kNever && first_late < first &&
        time + plan_.Cost(rank, options.pass->kind, options.pass->chunk) > late_arrival) {
      options.pass.reset();
      options.awaited = late_arrival;
    }
    return options;
  }

  // Whether memory allows the pass, after W's if need be.
  bool MayTake(std::int32_t rank, const PassKind& pass) {
    if (pass.kind == kI) return true;
    if (pass.chunk == 1) return plan_.HasWeight(rank) || plan_.FitsForward(rank);
    const std::int32_t held = plan_.Count(rank, kF, 0) - plan_.Count(rank, kW, 0);
    if (!plan_.Allows((held + 2) * plan_.memory().forward)) return false;
    return plan_.HasWeight(rank) || plan_.FitsForward(rank);
  }

  void Decide(std::int64_t time, std::int32_t rank) {
    const Options options = Survey(time, rank);
    if (options.pass && (options.pass->kind == kI || plan_.FitsForward(rank))) {
      Take(rank, *options.pass, time);
    } else if (plan_.HasWeight(rank) &&
               (options.pass || rules_.fill_every_gap || options.awaited - time >= plan_.WeightCost(rank))) {
      plan_.PutWeight(rank, time);
      WakeAt(plan_.Clock(rank), rank);
    } else if (options.next_arrival != kNever) {
      WakeAt(options.next_arrival, rank);
    }
  }

  void Take(std::int32_t rank, const PassKind& pass, std::int64_t time) {
    plan_.Put(rank, pass.kind, pass.chunk, time);
    WakeAt(plan_.Clock(rank), rank);
    // Whoever waits for it: the neighbour that way, or the rank itself at a turn of the V.
    const bool down = (pass.kind == kF) == (pass.chunk == 0);
    const std::int32_t neighbour = down ? rank + 1 : rank - 1;
    if (neighbour >= 0 && neighbour < plan_.ranks()) WakeAt(plan_.Clock(rank) + plan_.latency(), neighbour);
  }

  const GuidedRules rules_;
  Plan& plan_;
  std::vector<std::array<std::vector<std::size_t>, 4>> positions_;  // by rank: of kPasses, by micro-batch
  std::priority_queue<Wake, std::vector<Wake>, std::greater<>> wakes_;
  std::vector<std::int64_t> pending_;  // by rank: its earliest wake
};

}  // namespace

bool PlaceInOrder(const Schedule& order, const OrderRules& rules, Plan& plan) {
  return InOrder(order, rules, plan).Run();
}

bool PlaceGuided(const Schedule& guide, const GuidedRules& rules, Plan& plan) {
  return Guided(guide, rules, plan).Run();
}

}  // namespace orrery::schedules
