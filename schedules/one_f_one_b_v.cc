// 1F1B-V: full backward passes on a V placement, at two thirds of the activations of 1F1B. The order repeats one
// building block per micro-batch: in slots of one forward pass, a backward pass taking two,
//   F0 of rank r at r, F1 at 2p - 1 - r, and the j-th backward pass (B1 of rank j, then B0 of rank 2p - 1 - j) at
//   2p + d + 2 j + 3 floor((j + e) / 3), d = 3 if 3 | p else 0, e = (1 - p) mod 3,
// so that it takes three slots per hop on average, and repeated every 6 slots no two passes meet. Then every pass in
// turn, by slot and rank, moves to the earliest free slot after its inputs; a forward pass no further than to where its
// rank would hold more activations than the repeated block ever holds on any rank.
#include <algorithm>
#include <array>
#include <cstddef>

#include "schedules/families.h"

namespace orrery::schedules {
namespace {

constexpr std::string_view kName = "1f1b-v";

absl::Status Check(const Parameters& parameters) { return CheckTwoStagesPerRank(kName, parameters); }

constexpr std::int32_t kPeriod = 6;
// In the order in which a micro-batch goes through them.
enum Pass : std::uint8_t { kF0, kF1, kB1, kB0, kPasses };
constexpr std::array<Action, kPasses> kActions = {
    Action{ActionKind::kForward, 0}, {ActionKind::kForward, 1}, {ActionKind::kBackward, 1}, {ActionKind::kBackward, 0}};

constexpr std::int32_t Slots(Pass pass) { return pass == kB1 || pass == kB0 ? 2 : 1; }
// Passes enter at rank 0 and go up to rank p - 1, or the other way.
constexpr bool GoesUp(Pass pass) { return pass == kF0 || pass == kB1; }

std::int32_t BlockSlot(Pass pass, std::int32_t rank, std::int32_t ranks) {
  if (pass == kF0) return rank;
  if (pass == kF1) return 2 * ranks - 1 - rank;
  const std::int32_t hop = pass == kB1 ? rank : 2 * ranks - 1 - rank;
  const std::int32_t first_gap = (2 * ranks + 1) % 3;  // (1 - p) mod 3
  return 2 * ranks + (ranks % 3 == 0 ? 3 : 0) + 2 * hop + 3 * ((hop + first_gap) / 3);
}

class Grid {
 public:
  Grid(std::int32_t ranks, std::int32_t micro_batches)
      : ranks_(ranks),
        micro_batches_(micro_batches),
        slots_(BlockSlot(kB0, 0, ranks) + 2 + kPeriod * (micro_batches - 1)),
        rows_(At(ranks)) {
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      rows_[At(rank)].held.assign(At(slots_), kIdle);
      rows_[At(rank)].live.assign(At(slots_), 0);
      for (std::int32_t i = 0; i < kPasses; ++i) Repeat(rank, static_cast<Pass>(i));
      limit_ = std::max(limit_, SumLive(rows_[At(rank)]));
    }
  }

  void Tighten() {
    for (std::int32_t slot = 0; slot < slots_; ++slot) {
      for (std::int32_t rank = 0; rank < ranks_; ++rank) {
        const std::int32_t held = rows_[At(rank)].held[At(slot)];
        if (held >= 0) Move(rank, static_cast<Pass>(held / micro_batches_), held % micro_batches_, slot);
      }
    }
  }

  std::vector<Action> OrderOf(std::int32_t rank) const {
    std::vector<Action> order;
    order.reserve(At(kPasses * micro_batches_));
    for (const std::int32_t held : rows_[At(rank)].held) {
      if (held < 0) continue;
      order.push_back(kActions[At(held / micro_batches_)]);
      order.back().micro_batch = held % micro_batches_;
    }
    return order;
  }

 private:
  static constexpr std::int32_t kIdle = -1;
  static constexpr std::int32_t kContinued = -2;  // second slot of a backward pass

  struct Row {
    std::vector<std::int32_t> held;                      // by slot: pass x m + micro-batch, or one of the above
    std::vector<std::int32_t> live;                      // activations after the slot
    std::array<std::vector<std::int32_t>, kPasses> end;  // slot after each pass
  };

  static std::size_t At(std::int32_t i) { return static_cast<std::size_t>(i); }

  void Put(Row& row, Pass pass, std::int32_t k, std::int32_t slot) {
    row.held[At(slot)] = pass * micro_batches_ + k;
    if (Slots(pass) == 2) row.held[At(slot + 1)] = kContinued;
    row.end[pass][At(k)] = slot + Slots(pass);
  }

  void Repeat(std::int32_t rank, Pass pass) {
    Row& row = rows_[At(rank)];
    row.end[pass].resize(At(micro_batches_));
    for (std::int32_t k = 0; k < micro_batches_; ++k) {
      Put(row, pass, k, BlockSlot(pass, rank, ranks_) + kPeriod * k);
      row.live[At(row.end[pass][At(k)] - 1)] = Slots(pass) == 1 ? 1 : -1;
    }
  }

  // Changes to totals; the largest.
  static std::int32_t SumLive(Row& row) {
    std::int32_t live = 0;
    std::int32_t peak = 0;
    for (std::int32_t& at : row.live) {
      live += at;
      at = live;
      peak = std::max(peak, live);
    }
    return peak;
  }

  // First slot after the inputs and after the same pass of the micro-batch before.
  std::int32_t Ready(std::int32_t rank, Pass pass, std::int32_t k) const {
    const std::int32_t before = k > 0 ? rows_[At(rank)].end[pass][At(k - 1)] : 0;
    const std::int32_t source = GoesUp(pass) ? rank - 1 : rank + 1;
    if (source >= 0 && source < ranks_) return std::max(before, rows_[At(source)].end[pass][At(k)]);
    return pass == kF0 ? before : std::max(before, rows_[At(rank)].end[At(pass - 1)][At(k)]);
  }

  // First slot, not before `earliest`, from which on to `slot` another activation stays within the limit.
  std::int32_t FirstBelowLimit(const Row& row, std::int32_t earliest, std::int32_t slot) const {
    constexpr std::int32_t kBlock = 32;  // a maximum at a time, which the compiler vectorizes
    const auto peak = [&row](std::int32_t end) {
      std::int32_t most = 0;
      for (std::int32_t i = end - kBlock; i < end; ++i) most = std::max(most, row.live[At(i)]);
      return most;
    };
    while (slot - kBlock >= earliest && peak(slot) < limit_) slot -= kBlock;
    while (slot > earliest && row.live[At(slot - 1)] < limit_) --slot;
    return slot;
  }

  void Move(std::int32_t rank, Pass pass, std::int32_t k, std::int32_t from) {
    Row& row = rows_[At(rank)];
    const std::int32_t length = Slots(pass);
    const auto busy = [&row](std::int32_t slot) { return row.held[At(slot)] != kIdle; };
    std::int32_t to = Ready(rank, pass, k);
    if (length == 1) to = FirstBelowLimit(row, to, from);
    while (to < from && (busy(to) || busy(to + length - 1))) ++to;
    if (to >= from) return;
    for (std::int32_t i = 0; i < length; ++i) row.held[At(from + i)] = kIdle;
    Put(row, pass, k, to);
    for (std::int32_t slot = to + length - 1; slot < from + length - 1; ++slot)
      row.live[At(slot)] += length == 1 ? 1 : -1;
  }

  std::int32_t ranks_;
  std::int32_t micro_batches_;
  std::int32_t slots_;
  std::vector<Row> rows_;
  std::int32_t limit_ = 0;  // of live activations on any rank
};

absl::StatusOr<Schedule> GenerateOrder(const Parameters& parameters) {
  Grid grid(parameters.ranks, parameters.micro_batches);
  grid.Tighten();
  Schedule schedule{Placement::Wave(parameters.ranks, 2), parameters.micro_batches, {}};
  for (std::int32_t rank = 0; rank < parameters.ranks; ++rank) schedule.order.push_back(grid.OrderOf(rank));
  return schedule;
}

}  // namespace

const Family kOneForwardOneBackwardV = {
    kName,
    "1F1B on a V placement: two thirds of the activations of 1F1B, with full backward passes.",
    "Qi et al., Pipeline Parallelism with Controllable Memory, NeurIPS 2024 (arXiv 2405.15362); "
    "zero-bubble-pipeline-parallelism v1f1b",
    "two stages per rank; any number of micro-batches",
    "idle: by evaluation; peak floor(2p/3) + 1 for m >= 3p",
    &Check,
    &GenerateOrder,
    2,
};

}  // namespace orrery::schedules
