// Every order of a small pipeline, timed. Shares nothing with the code under test.
#ifndef ORRERY_TESTS_SIM_PIPELINE_OPTIMIZER_BRUTE_FORCE_H_
#define ORRERY_TESTS_SIM_PIPELINE_OPTIMIZER_BRUTE_FORCE_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <vector>

#include "schedules/placement.h"
#include "sim/pipeline/evaluate.h"

namespace orrery::pipeline {

struct BrutePass {
  int stage = 0;
  int kind = 0;  // F, I, W
  int micro_batch = 0;
};

class BruteForce {
 public:
  // With `fifo`, passes of one kind on a stage run in order of micro-batch.
  BruteForce(const schedules::Placement& placement, int micro_batches, const Costs& costs, bool fifo)
      : placement_(placement), m_(micro_batches), costs_(costs), orders_(static_cast<std::size_t>(placement.ranks())) {
    for (int rank = 0; rank < placement.ranks(); ++rank) {
      std::vector<BrutePass> order;
      std::vector<bool> done(static_cast<std::size_t>(3 * placement.stages() * m_));
      List(rank, fifo, 0, 0, done, order);
    }
  }

  struct Best {
    std::int64_t makespan = std::numeric_limits<std::int64_t>::max();
    std::int64_t span = std::numeric_limits<std::int64_t>::max();
  };
  // Best of all orders by peak memory: of those that hold exactly that much.
  const std::map<std::int64_t, Best>& Run() {
    std::vector<const Order*> chosen(orders_.size());
    Choose(0, chosen);
    return best_;
  }

  // Of all orders that hold at most `limit`.
  Best Within(std::int64_t limit) const {
    Best best;
    for (const auto& [peak, of_peak] : best_) {
      if (peak > limit) continue;
      best.makespan = std::min(best.makespan, of_peak.makespan);
      best.span = std::min(best.span, of_peak.span);
    }
    return best;
  }

 private:
  struct Order {
    std::vector<BrutePass> passes;
    std::int64_t peak = 0;
  };

  std::size_t Index(int stage, int kind, int k) const { return static_cast<std::size_t>((stage * 3 + kind) * m_ + k); }

  // F comes after that of every lower stage of the rank, I after that of every higher one: all else deadlocks.
  bool MustWait(int rank, int stage, int kind, int k, const std::vector<bool>& done) const {
    for (int chunk = 0; chunk < placement_.ChunksOf(rank); ++chunk) {
      const int other = placement_.StageOf(rank, chunk);
      if (((kind == 0 && other < stage) || (kind == 1 && other > stage)) && !done[Index(other, kind, k)]) return true;
    }
    return false;
  }

  void List(int rank, bool fifo, std::int64_t held, std::int64_t peak, std::vector<bool>& done,
            std::vector<BrutePass>& order) {
    const int chunks = placement_.ChunksOf(rank);
    if (order.size() == static_cast<std::size_t>(3 * chunks * m_)) {
      orders_[static_cast<std::size_t>(rank)].push_back({order, peak});
      return;
    }
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const int stage = placement_.StageOf(rank, chunk);
      for (int kind = 0; kind < 3; ++kind) {
        for (int k = 0; k < m_; ++k) {
          if (done[Index(stage, kind, k)] || (kind > 0 && !done[Index(stage, kind - 1, k)])) continue;
          if (MustWait(rank, stage, kind, k, done)) continue;
          const std::int64_t change = kind == 0   ? costs_.memory.forward
                                      : kind == 1 ? costs_.memory.weight - costs_.memory.forward
                                                  : -costs_.memory.weight;
          done[Index(stage, kind, k)] = true;
          order.push_back({stage, kind, k});
          List(rank, fifo, held + change, std::max(peak, held + change), done, order);
          order.pop_back();
          done[Index(stage, kind, k)] = false;
          if (fifo) break;
        }
      }
    }
  }

  void Choose(std::size_t rank, std::vector<const Order*>& chosen) {
    if (rank == orders_.size()) {
      Time(chosen);
      return;
    }
    for (const Order& order : orders_[rank]) {
      chosen[rank] = &order;
      Choose(rank + 1, chosen);
    }
  }

  // Start of a pass, or -1 where an input is missing.
  std::int64_t Start(const BrutePass& pass, std::int64_t clock, int rank) const {
    if (pass.kind == 2) return clock;
    const int from = pass.kind == 0 ? pass.stage - 1 : pass.stage + 1;
    if (from < 0 || from >= placement_.stages()) return clock;
    const std::int64_t end = ends_[Index(from, pass.kind, pass.micro_batch)];
    if (end < 0) return -1;
    return std::max(clock, end + (placement_.PlaceOf(from).rank == rank ? 0 : costs_.latency));
  }

  void Time(const std::vector<const Order*>& chosen) {
    ends_.assign(static_cast<std::size_t>(3 * placement_.stages() * m_), -1);
    next_.assign(chosen.size(), 0);
    clock_.assign(chosen.size(), 0);
    first_.assign(chosen.size(), -1);
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t r = 0; r < chosen.size(); ++r) {
        while (next_[r] < chosen[r]->passes.size()) {
          const BrutePass& pass = chosen[r]->passes[next_[r]];
          const std::int64_t start = Start(pass, clock_[r], static_cast<int>(r));
          if (start < 0) break;
          const schedules::PassCosts& costs = costs_.Of(pass.stage);
          clock_[r] = start + (pass.kind == 0   ? costs.forward
                               : pass.kind == 1 ? costs.input_gradient
                                                : costs.weight_gradient);
          if (first_[r] < 0) first_[r] = start;
          ends_[Index(pass.stage, pass.kind, pass.micro_batch)] = clock_[r];
          ++next_[r];
          moved = true;
        }
      }
    }
    std::int64_t peak = 0;
    std::int64_t span = 0;
    for (std::size_t r = 0; r < chosen.size(); ++r) {
      if (next_[r] < chosen[r]->passes.size()) return;  // deadlock
      peak = std::max(peak, chosen[r]->peak);
      span = std::max(span, clock_[r] - first_[r]);
    }
    Best& best = best_[peak];
    best.makespan = std::min(best.makespan, *std::max_element(clock_.begin(), clock_.end()));
    best.span = std::min(best.span, span);
  }

  schedules::Placement placement_;
  int m_;
  Costs costs_;
  std::vector<std::vector<Order>> orders_;
  std::map<std::int64_t, Best> best_;
  std::vector<std::int64_t> ends_;
  std::vector<std::size_t> next_;
  std::vector<std::int64_t> clock_;
  std::vector<std::int64_t> first_;
};

}  // namespace orrery::pipeline

#endif  // ORRERY_TESTS_SIM_PIPELINE_OPTIMIZER_BRUTE_FORCE_H_
