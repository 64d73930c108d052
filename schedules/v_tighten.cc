#include "schedules/v_tighten.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>
#include <vector>

namespace orrery::schedules {
namespace {

constexpr std::int32_t kPeriod = 6;
enum Pass : std::uint8_t { kF0, kF1, kI1, kI0, kW1, kW0, kIdle };
constexpr std::size_t kKinds = 6;

using Row = std::vector<Pass>;
using Counts = std::array<std::int32_t, kKinds>;

std::size_t At(std::int32_t i) { return static_cast<std::size_t>(i); }
bool IsF(Pass pass) { return pass == kF0 || pass == kF1; }
bool IsW(Pass pass) { return pass == kW1 || pass == kW0; }
std::int32_t Change(Pass pass) { return IsF(pass) ? 1 : IsW(pass) ? -1 : 0; }

class Slots {
 public:
  Slots(const VBuildingBlock& block, std::int32_t micro_batches)
      : ranks_(static_cast<std::int32_t>(block.size())), micro_batches_(micro_batches), rows_(block.size()) {
    for (std::size_t rank = 0; rank < block.size(); ++rank) Repeat(block[rank], rows_[rank]);
  }

  std::int32_t Peak() const {
    std::int32_t peak = 0;
    for (const Row& row : rows_) {
      std::int32_t live = 0;
      for (const Pass pass : row) peak = std::max(peak, live += Change(pass));
    }
    return peak;
  }

  // Every pass as early as the order of its rank allows. False where the order deadlocks.
  bool Squeeze() {
    std::vector<std::size_t> next(rows_.size());
    std::vector<Row> squeezed(rows_.size());
    Reset();
    for (bool placed = true; placed;) {
      placed = false;
      for (std::size_t rank = 0; rank < rows_.size(); ++rank) {
        for (; next[rank] < rows_[rank].size(); ++next[rank], placed = true) {
          const Pass pass = rows_[rank][next[rank]];
          if (pass == kIdle) continue;
          const std::int32_t ready = Ready(static_cast<std::int32_t>(rank), pass);
          if (ready < 0) break;
          squeezed[rank].resize(std::max(squeezed[rank].size(), At(ready)), kIdle);
          Record(static_cast<std::int32_t>(rank), pass, static_cast<std::int32_t>(squeezed[rank].size()));
          squeezed[rank].push_back(pass);
        }
      }
    }
    for (std::size_t rank = 0; rank < rows_.size(); ++rank) {
      if (next[rank] < rows_[rank].size()) return false;
    }
    rows_ = std::move(squeezed);
    return true;
  }

  void RebuildWarmup(std::int32_t peak) {
    for (std::int32_t rank = 0; rank < ranks_; ++rank) {
      Row& row = rows_[At(rank)];
      Counts left = {};
      std::size_t end = 0;
      for (; row[end] != kI0; ++end) {
        if (row[end] != kIdle) ++left[row[end]];
      }
      Row warmup;
      const auto take = [&](Pass pass, std::int32_t& most) {
        if (most == 0 || left[pass] == 0) return false;
        --most;
        --left[pass];
        warmup.push_back(pass);
        return true;
      };
      std::int32_t all = micro_batches_;
      std::int32_t second = std::min({rank + 1, peak / 2, micro_batches_});
      std::int32_t first = std::min(peak - second, micro_batches_);
      for (std::int32_t i = 0; i < 2 * (ranks_ - 1 - rank); ++i) take(kF0, first);
      for (std::int32_t i = 0; i <= rank; ++i) {
        take(kF0, first);
        take(kF1, second);
      }
      for (bool taken = true; taken;) {
        all = micro_batches_;
        taken = take(kI1, all);
        taken |= take(kW1, all);
        taken |= take(kW0, all);
        taken |= take(kF1, all) || take(kF0, all);
      }
      row.erase(row.begin(), row.begin() + static_cast<std::ptrdiff_t>(end));
      row.insert(row.begin(), warmup.begin(), warmup.end());
    }
  }

  // False where the last I's do not find their slots idle.
  bool RebuildCooldown(std::int32_t peak) {
    const std::int32_t last_i0 = std::min((peak + 1) / 2, micro_batches_);
    const std::int32_t last_i1 = std::min(peak - last_i0, micro_batches_);
    const Row& first = rows_.front();
    const auto start = static_cast<std::int32_t>(first.rend() - std::find(first.rbegin(), first.rend(), kF1)) - 1;
    for (std::int32_t rank = 0; rank < ranks_; ++rank) {
      Row& row = rows_[At(rank)];
      const std::int32_t i1 = Remove(row, kI1, std::min(rank + 1, last_i1));
      const std::int32_t i0 = Remove(row, kI0, last_i0);
      RemoveWeights(row, i1, i0, peak);
      const auto put = [&](Pass pass, std::int32_t slot) {
        if (slot < 0) return false;
        if (row.size() <= At(slot)) row.resize(At(slot) + 1, kIdle);
        if (row[At(slot)] != kIdle) return false;
        row[At(slot)] = pass;
        return true;
      };
      for (std::int32_t k = 0; k < i0; ++k) {
        if (!put(kI0, start - rank + 2 * ranks_ - 2 * k)) return false;
      }
      for (std::int32_t k = 0; k < i1; ++k) {
        if (!put(kI1, start + 1 + rank - 2 * k)) return false;
      }
      AddWeights(row);
    }
    return true;
  }

  // Idle slots take later passes of the rank.
  void Hoist(std::int32_t peak) {
    std::size_t length = 0;
    for (const Row& row : rows_) length = std::max(length, row.size());
    Reset();
    std::vector<std::int32_t> live(rows_.size());
    for (std::size_t slot = 0; slot < length; ++slot) {
      for (std::int32_t rank = 0; rank < ranks_; ++rank) {
        Row& row = rows_[At(rank)];
        if (slot >= row.size()) continue;
        if (row[slot] == kIdle) FillIdle(rank, slot, peak, live[At(rank)]);
        if (row[slot] == kIdle) continue;
        Record(rank, row[slot], static_cast<std::int32_t>(slot));
        live[At(rank)] += Change(row[slot]);
      }
    }
  }

  // Micro-batches from `micro_batches` on go.
  void Shorten(std::int32_t micro_batches) {
    micro_batches_ = micro_batches;
    for (Row& row : rows_) {
      Counts counts = {};
      for (Pass& pass : row) {
        if (pass != kIdle && counts[pass]++ >= micro_batches) pass = kIdle;
      }
    }
  }

  Schedule ToSchedule() const {
    Schedule schedule{Placement::Wave(ranks_, 2), micro_batches_, {}};
    for (const Row& row : rows_) {
      std::vector<Action> order;
      std::vector<Action> weights;
      std::size_t next = 0;
      Counts counts = {};
      for (const Pass pass : row) {
        if (pass == kIdle) continue;
        if (IsW(pass)) {
          order.push_back(weights[next++]);
          continue;
        }
        const std::int32_t chunk = pass == kF1 || pass == kI1 ? 1 : 0;
        const std::int32_t k = counts[pass]++;
        order.push_back({IsF(pass) ? ActionKind::kForward : ActionKind::kInputGradient, chunk, k});
        if (!IsF(pass)) weights.push_back({ActionKind::kWeightGradient, chunk, k});
      }
      schedule.order.push_back(std::move(order));
    }
    return schedule;
  }

  // Whether every W comes after an I.
  bool IsComplete() const {
    return std::all_of(rows_.begin(), rows_.end(), [this](const Row& row) {
      Counts counts = {};
      for (const Pass pass : row) {
        if (pass != kIdle) ++counts[pass];
        if (counts[kW1] + counts[kW0] > counts[kI1] + counts[kI0]) return false;
      }
      return counts[kW1] + counts[kW0] == 2 * micro_batches_;
    });
  }

 private:
  void Repeat(const std::array<std::int32_t, 4>& slots, Row& row) const {
    std::array<std::int32_t, kKinds> at = {slots[0], slots[1], slots[2], slots[3], 0, 0};
    for (const std::size_t weight : {std::size_t{kW1}, std::size_t{kW0}}) {
      at[weight] = at[weight - 2] + 1;
      const auto taken = [&](std::size_t kind) { return (at[kind] - at[weight]) % kPeriod == 0; };
      while (taken(kF0) || taken(kF1) || taken(kI1) || taken(kI0) || (weight == kW0 && taken(kW1))) ++at[weight];
    }
    row.resize(At(*std::max_element(at.begin(), at.end()) + kPeriod * micro_batches_), kIdle);
    for (std::size_t kind = 0; kind < kKinds; ++kind) {
      for (std::int32_t k = 0; k < micro_batches_; ++k) row[At(at[kind] + kPeriod * k)] = static_cast<Pass>(kind);
    }
  }

  // Slots of passes so far.
  void Reset() { at_.assign(rows_.size() * kKinds, {}); }
  std::vector<std::int32_t>& Of(std::int32_t rank, Pass pass) { return at_[At(rank) * kKinds + pass]; }
  void Record(std::int32_t rank, Pass pass, std::int32_t slot) { Of(rank, pass).push_back(slot); }

  // First slot after the inputs of the next pass of a kind, or -1 where they have not run.
  std::int32_t Ready(std::int32_t rank, Pass pass) {
    const std::size_t k = Of(rank, pass).size();
    std::int32_t ready = 0;
    const auto after = [&](std::int32_t source, Pass input, std::size_t index) {
      const std::vector<std::int32_t>& slots = Of(source, input);
      ready = ready < 0 || index >= slots.size() ? -1 : std::max(ready, slots[index] + 1);
    };
    if (IsW(pass)) {
      after(rank, pass == kW1 ? kI1 : kI0, k);
      return ready;
    }
    if ((pass == kF0 || pass == kI1) && rank > 0) after(rank - 1, pass, k);
    if ((pass == kF1 || pass == kI0) && rank + 1 < ranks_) after(rank + 1, pass, k);
    if (pass != kF0) after(rank, static_cast<Pass>(pass - 1), k);
    return ready;
  }

  void FillIdle(std::int32_t rank, std::size_t slot, std::int32_t peak, std::int32_t live) {
    Row& row = rows_[At(rank)];
    std::array<bool, kKinds> seen = {};
    std::int32_t most = live;
    for (std::size_t i = slot + 1; i < row.size(); ++i) {
      const Pass pass = row[i];
      if (pass == kIdle) continue;
      const std::int32_t before = most;
      live += Change(pass);
      most = std::max(most, live);
      if (std::exchange(seen[pass], true)) {
        if (std::all_of(seen.begin(), seen.end(), [](bool s) { return s; })) return;
        continue;
      }
      const std::int32_t ready = Ready(rank, pass);
      if (ready < 0 || At(ready) > slot || (IsF(pass) && before >= peak)) continue;
      row[slot] = pass;
      row[i] = kIdle;
      return;
    }
  }

  // Takes the last `most` of a kind out.
  static std::int32_t Remove(Row& row, Pass pass, std::int32_t most) {
    std::int32_t removed = 0;
    for (auto it = row.rbegin(); it != row.rend() && removed < most; ++it) {
      if (*it != pass) continue;
      *it = kIdle;
      ++removed;
    }
    return removed;
  }

  static void RemoveWeights(Row& row, std::int32_t i1, std::int32_t i0, std::int32_t peak) {
    Counts removed = {};
    for (auto it = row.rbegin(); it != row.rend(); ++it) {
      if (removed[kW1] >= i1 && removed[kW0] >= i0 && removed[kW1] + removed[kW0] >= peak) return;
      if (!IsW(*it)) continue;
      ++removed[*it];
      *it = kIdle;
    }
  }

  // W's in the idle slots after the last one, chunk 1 first.
  static void AddWeights(Row& row) {
    const auto last = static_cast<std::size_t>(row.rend() - std::find_if(row.rbegin(), row.rend(), IsW));
    std::array<std::int32_t, 2> pending = {};  // of chunk 1 and chunk 0
    for (std::size_t slot = 0; slot < row.size(); ++slot) {
      if (row[slot] == kI1 || row[slot] == kI0) ++pending[row[slot] == kI1 ? 0 : 1];
      if (IsW(row[slot])) --pending[row[slot] == kW1 ? 0 : 1];
      if (row[slot] != kIdle || slot < last) continue;
      for (const std::size_t chunk : {std::size_t{0}, std::size_t{1}}) {
        if (pending[chunk] <= 0) continue;
        row[slot] = chunk == 0 ? kW1 : kW0;
        --pending[chunk];
        break;
      }
    }
    for (std::int32_t k = 0; k < pending[0]; ++k) row.push_back(kW1);
    for (std::int32_t k = 0; k < pending[1]; ++k) row.push_back(kW0);
  }

  std::int32_t ranks_;
  std::int32_t micro_batches_;
  std::vector<Row> rows_;
  std::vector<std::vector<std::int32_t>> at_;  // by rank and kind
};

}  // namespace

std::optional<Schedule> RebuildEnds(const VBuildingBlock& block, std::int32_t micro_batches) {
  const auto ranks = static_cast<std::int32_t>(block.size());
  // Enough for both ends to be whole.
  Slots slots(block, std::max(micro_batches, 2 * ranks));
  const std::int32_t peak = slots.Peak();
  if (peak > 2 * ranks || !slots.Squeeze()) return std::nullopt;
  slots.RebuildWarmup(std::min(slots.Peak(), 2 * ranks));
  if (!slots.Squeeze() || slots.Peak() > peak) return std::nullopt;
  if (micro_batches < 2 * ranks) {
    slots.Shorten(micro_batches);
    if (!slots.Squeeze()) return std::nullopt;
  }
  if (!slots.RebuildCooldown(slots.Peak()) || !slots.Squeeze()) return std::nullopt;
  slots.Hoist(slots.Peak());
  if (!slots.IsComplete() || slots.Peak() > peak) return std::nullopt;
  return slots.ToSchedule();
}

}  // namespace orrery::schedules
