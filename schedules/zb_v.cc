// ZB-V in its fixed order: two stages per rank in the shape of a V, B split in I and W. The last rank, where the V
// turns, starts its backward passes first; every W fills the slot in which its rank would wait.
#include <algorithm>
#include <array>
#include <cstddef>
#include <initializer_list>
#include <utility>

#include "schedules/families.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kName = "zb-v";

absl::Status Check(const Parameters& parameters) { return CheckTwoStagesPerRank(kName, parameters); }

// Appends actions of one rank. Those of a kind and chunk take the micro-batches in turn; those from `kept` on are left
// out.
class RankOrder {
 public:
  explicit RankOrder(std::int32_t kept) : kept_(kept) {}

  void Repeat(std::int32_t times, std::initializer_list<std::pair<ActionKind, std::int32_t>> actions) {
    for (const auto& [kind, chunk] : actions) Next(kind, chunk) += times;
    const auto begin = [&](const auto& action) { return Next(action.first, action.second) - times; };
    std::int32_t least = kept_;
    for (const auto& action : actions) least = std::min(least, begin(action));
    for (std::int32_t i = 0; i < std::min(times, kept_ - least); ++i) {
      for (const auto& action : actions) {
        const std::int32_t k = begin(action) + i;
        if (k < kept_) order_.push_back({action.first, action.second, k});
      }
    }
  }
  std::vector<Action> Take() { return std::move(order_); }

 private:
  std::int32_t& Next(ActionKind kind, std::int32_t chunk) {
    return next_[static_cast<std::size_t>(kind)][static_cast<std::size_t>(chunk)];
  }

  std::int32_t kept_;
  std::array<std::array<std::int32_t, 2>, 4> next_ = {};
  std::vector<Action> order_;
};

std::vector<Action> OrderOf(std::int32_t rank, std::int32_t ranks, std::int32_t micro_batches) {
  constexpr auto kF = ActionKind::kForward;
  constexpr auto kI = ActionKind::kInputGradient;
  constexpr auto kW = ActionKind::kWeightGradient;
  const std::int32_t n = std::max(micro_batches, 2 * ranks - 1);
  const std::int32_t to_turn = ranks - rank;
  RankOrder order(micro_batches);
  order.Repeat(2 * to_turn - 1, {{kF, 0}});
  order.Repeat(rank, {{kF, 1}, {kF, 0}});
  order.Repeat(to_turn, {{kF, 1}, {kI, 1}, {kW, 1}});
  order.Repeat(n - 2 * ranks + rank + 1, {{kF, 0}, {kI, 0}, {kW, 0}, {kF, 1}, {kI, 1}, {kW, 1}});
  order.Repeat(to_turn - 1, {{kI, 0}, {kW, 0}, {kF, 1}, {kI, 1}, {kW, 1}});
  order.Repeat(rank, {{kI, 0}, {kI, 1}});
  order.Repeat(to_turn, {{kI, 0}, {kW, 0}});
  order.Repeat(rank, {{kW, 1}});
  order.Repeat(rank, {{kW, 0}});
  return order.Take();
}

absl::StatusOr<Schedule> GenerateOrder(const Parameters& parameters) {
  Schedule schedule{Placement::Wave(parameters.ranks, 2), parameters.micro_batches, {}};
  for (std::int32_t rank = 0; rank < parameters.ranks; ++rank) {
    schedule.order.push_back(OrderOf(rank, parameters.ranks, parameters.micro_batches));
  }
  return schedule;
}

}  // namespace

const Family kZbV = {
    kName,
    "Two stages per rank in a V, weight gradients in the gaps: no bubble within a rank at equal costs, memory of 1F1B.",
    "Qi et al., Zero Bubble Pipeline Parallelism, ICLR 2024 (arXiv 2401.10241), section 6; the fixed order of "
    "PyTorch's ScheduleZBVZeroBubble",
    "two stages per rank; any number of micro-batches, with fewer than 2p-1 the order for 2p-1 without the others",
    "idle (p-1)max(I, 2(I-W)) and span bubble 2(p-1)(I-W) with the costs of one stage, for W <= F <= I and m >= 2p-1; "
    "peak p",
    &Check,
    &GenerateOrder,
    2,
};

}  // namespace orrery::schedules
