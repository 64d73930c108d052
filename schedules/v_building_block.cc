#include "schedules/v_building_block.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedules/families.h"

namespace orrery::schedules {
namespace {

// The work grows with the third power of the ranks: seconds here.
constexpr std::int32_t kMostRanks = 512;

// Slots between two micro-batches: four passes and two W.
constexpr std::int32_t kPeriod = 6;

// What a slot holds. Of every kind, micro-batches go in turn.
enum Pass : std::int8_t { kIdle = -1, kF0, kF1, kI1, kI0, kW1, kW0 };
constexpr std::size_t kKinds = 6;
constexpr std::size_t kChain = 4;  // F0, F1, I1, I0: each needs the one before on its rank

struct RankTimeline {
  std::vector<Pass> slots;
  std::array<std::vector<std::int32_t>, kKinds> at;  // slot of each pass, by kind

  explicit RankTimeline(std::int32_t micro_batches) {
    slots.reserve(static_cast<std::size_t>(kPeriod) * static_cast<std::size_t>(micro_batches));
    for (std::vector<std::int32_t>& of_kind : at) of_kind.reserve(static_cast<std::size_t>(micro_batches));
  }

  void Put(Pass pass, std::int32_t slot) {
    while (slots.size() <= static_cast<std::size_t>(slot)) slots.push_back(kIdle);
    slots[static_cast<std::size_t>(slot)] = pass;
    at[static_cast<std::size_t>(pass)].push_back(slot);
  }
};
using Timeline = std::vector<RankTimeline>;

Timeline EmptyTimeline(std::size_t ranks, std::int32_t micro_batches) {
  Timeline timeline;
  timeline.reserve(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) timeline.emplace_back(micro_batches);
  return timeline;
}

Timeline Repeat(const VBuildingBlock& block, std::int32_t micro_batches) {
  Timeline timeline = EmptyTimeline(block.size(), micro_batches);
  for (std::size_t rank = 0; rank < block.size(); ++rank) {
    for (std::size_t kind = 0; kind < kChain; ++kind) {
      for (std::int32_t k = 0; k < micro_batches; ++k) {
        timeline[rank].Put(static_cast<Pass>(kind), block[rank][kind] + kPeriod * k);
      }
    }
  }
  return timeline;
}

// Every W in the first slot that is free after its I: one queue for both chunks, whose W's are then all called W1, or
// one for each, chunk 1 first.
void FillWeights(RankTimeline& rank, bool by_chunk) {
  std::array<std::int32_t, 2> waiting = {};
  const auto put_next = [&](std::size_t slot) {
    const std::size_t queue = waiting[0] > 0 ? 0 : 1;
    if (waiting[queue] == 0) return;
    --waiting[queue];
    rank.Put(queue == 0 ? kW1 : kW0, static_cast<std::int32_t>(slot));
  };
  std::size_t slot = 0;
  for (; slot < rank.slots.size(); ++slot) {
    const Pass pass = rank.slots[slot];
    if (pass == kIdle) put_next(slot);
    if (pass == kI1 || pass == kI0) ++waiting[by_chunk && pass == kI0 ? 1 : 0];
  }
  while (waiting[0] + waiting[1] > 0) put_next(slot++);
}

void DropWeights(RankTimeline& rank) {
  for (const Pass weight : {kW1, kW0}) {
    std::vector<std::int32_t>& slots = rank.at[static_cast<std::size_t>(weight)];
    for (const std::int32_t slot : slots) rank.slots[static_cast<std::size_t>(slot)] = kIdle;
    slots.clear();
  }
}

// visit(rank, slot, pass, k) for the k-th pass of its kind, by slot and rank. It may move the pass to an earlier slot.
template <typename Visit>
void ForEachPass(const Timeline& timeline, const Visit& visit) {
  struct Walk {
    std::span<const Pass> slots;
    std::array<std::size_t, kKinds> next = {};
  };
  std::vector<Walk> walks;
  std::size_t slots = 0;
  for (const RankTimeline& rank : timeline) {
    walks.push_back({rank.slots});
    slots = std::max(slots, rank.slots.size());
  }
  for (std::size_t slot = 0; slot < slots; ++slot) {
    for (std::size_t rank = 0; rank < walks.size(); ++rank) {
      Walk& walk = walks[rank];
      if (slot >= walk.slots.size() || walk.slots[slot] == kIdle) continue;
      const Pass pass = walk.slots[slot];
      visit(rank, static_cast<std::int32_t>(slot), pass, walk.next[static_cast<std::size_t>(pass)]++);
    }
  }
}

// First slot after the inputs of a pass (of W: none) and after the pass of its kind before it.
std::int32_t Ready(const Timeline& timeline, std::size_t rank, Pass pass, std::size_t k) {
  const auto kind = static_cast<std::size_t>(pass);
  std::int32_t ready = k > 0 ? timeline[rank].at[kind][k - 1] + 1 : 0;
  const auto after = [&](std::size_t source, std::size_t source_kind) {
    ready = std::max(ready, timeline[source].at[source_kind][k] + 1);
  };
  if ((pass == kF0 || pass == kI1) && rank > 0) after(rank - 1, kind);
  if ((pass == kF1 || pass == kI0) && rank + 1 < timeline.size()) after(rank + 1, kind);
  if (kind > 0 && kind < kChain) after(rank, kind - 1);
  return ready;
}

// The same orders, every pass as early as it can.
Timeline Squeeze(const Timeline& timeline, std::int32_t micro_batches) {
  Timeline squeezed = EmptyTimeline(timeline.size(), micro_batches);
  ForEachPass(timeline, [&](std::size_t rank, std::int32_t, Pass pass, std::size_t k) {
    const std::int32_t ready = Ready(squeezed, rank, pass, k);
    RankTimeline& of_rank = squeezed[rank];
    of_rank.Put(pass, std::max(static_cast<std::int32_t>(of_rank.slots.size()), ready));
  });
  return squeezed;
}

bool IsF(Pass pass) { return pass == kF0 || pass == kF1; }
bool IsI(Pass pass) { return pass == kI1 || pass == kI0; }

// Live activations of a rank after every slot, where the W's are in the timeline.
class PlacedWeights {
 public:
  static constexpr bool kTightensWarmup = true;

  explicit PlacedWeights(const std::vector<Pass>& slots) : slots_(slots) {
    std::int32_t live = 0;
    live_.reserve(slots.size());
    for (const Pass pass : slots) live_.push_back(live += Change(pass));
  }
  std::int32_t Peak() const { return *std::max_element(live_.begin(), live_.end()); }

  // Whether the pass in slot `from` can go to the earlier, free slot `to` with at most `limit` live activations.
  bool Fits(std::size_t from, std::size_t to, std::int32_t limit) const {
    if (Change(slots_[from]) <= 0) return true;
    return std::all_of(At(to), At(from), [limit](std::int32_t live) { return live < limit; });
  }
  // The pass goes there, before `slots` knows. Fits() has said so.
  void Move(std::size_t from, std::size_t to) {
    const std::int32_t change = Change(slots_[from]);
    for (std::size_t slot = to; slot < from; ++slot) live_[slot] += change;
  }

 private:
  static std::int32_t Change(Pass pass) { return IsF(pass) ? 1 : pass == kW1 ? -1 : 0; }
  std::vector<std::int32_t>::const_iterator At(std::size_t slot) const {
    return live_.begin() + static_cast<std::ptrdiff_t>(slot);
  }

  const std::vector<Pass>& slots_;
  std::vector<std::int32_t> live_;
};

// The same where the W's are not in the timeline: they take every free slot after their I.
class ImpliedWeights {
 public:
  static constexpr bool kTightensWarmup = false;

  explicit ImpliedWeights(const std::vector<Pass>& slots) : slots_(slots) {
    State state;
    after_.reserve(slots.size());
    for (const Pass pass : slots) after_.push_back(state = Next(state, pass));
  }
  std::int32_t Peak() const {
    std::int32_t peak = 0;
    for (const State& state : after_) peak = std::max(peak, state.live);
    return peak;
  }

  bool Fits(std::size_t from, std::size_t to, std::int32_t limit) {
    State state = to > 0 ? after_[to - 1] : State();
    trial_.clear();
    // To where the move makes no difference any more.
    for (std::size_t slot = to; slot < slots_.size(); ++slot) {
      if (slot > from && state == after_[slot - 1]) break;
      state = Next(state, slot == to ? slots_[from] : slot == from ? kIdle : slots_[slot]);
      if (state.live > limit) return false;
      trial_.push_back(state);
    }
    return true;
  }
  void Move(std::size_t, std::size_t to) {
    std::copy(trial_.begin(), trial_.end(), after_.begin() + static_cast<std::ptrdiff_t>(to));
  }

 private:
  struct State {
    std::int32_t live = 0;
    std::int32_t waiting = 0;  // W's

    friend bool operator==(const State&, const State&) = default;
  };

  static State Next(State state, Pass pass) {
    if (IsF(pass)) ++state.live;
    if (IsI(pass)) ++state.waiting;
    if (pass == kIdle && state.waiting > 0) {
      --state.waiting;
      --state.live;
    }
    return state;
  }

  const std::vector<Pass>& slots_;
  std::vector<State> after_;  // every slot
  std::vector<State> trial_;  // from `to` of the last Fits() on
};

// Moves the passes of warm-up and cool-down to earlier slots; see the header. The warm-up ends with the first I0 of
// rank 0, the cool-down begins after its last F0.
template <typename Memory>
class Tightening {
 public:
  explicit Tightening(Timeline& timeline) : timeline_(timeline), inputs_(timeline.size()) {
    memory_.reserve(timeline.size());
    for (const RankTimeline& rank : timeline) {
      memory_.emplace_back(rank.slots);
      limit_ = std::max(limit_, memory_.back().Peak());
    }
  }

  void Run() {
    ForEachPass(timeline_, [this](std::size_t rank, std::int32_t slot, Pass pass, std::size_t k) {
      if (phase_ == Phase::kWarmup && pass == kI0 && rank == 0) phase_ = Phase::kSteady;
      const bool move = phase_ == Phase::kCooldown || (phase_ == Phase::kWarmup && Memory::kTightensWarmup);
      const bool last = pass == kF0 && k + 1 == timeline_[rank].at[static_cast<std::size_t>(kF0)].size();
      if (phase_ == Phase::kSteady && last) phase_ = Phase::kCooldown;
      const std::int32_t at = move ? Move(rank, slot, pass, k) : slot;
      if (IsI(pass)) AddInput(inputs_[rank], at);
    });
  }

 private:
  enum class Phase { kWarmup, kSteady, kCooldown };

  // Few are later than a new one.
  static void AddInput(std::vector<std::int32_t>& inputs, std::int32_t at) {
    const auto before = std::find_if(inputs.rbegin(), inputs.rend(), [at](std::int32_t slot) { return slot < at; });
    inputs.insert(before.base(), at);
  }

  // Where the pass is then.
  std::int32_t Move(std::size_t rank, std::int32_t slot, Pass pass, std::size_t k) {
    // The k-th W belongs to the k-th I, of either chunk.
    const std::int32_t ready =
        std::max(Ready(timeline_, rank, pass, k), pass == kW1 ? inputs_[rank][k] + 1 : std::int32_t{0});
    std::vector<Pass>& slots = timeline_[rank].slots;
    const auto from = static_cast<std::size_t>(slot);
    auto to = static_cast<std::size_t>(ready);
    while (to < from && (slots[to] != kIdle || !memory_[rank].Fits(from, to, limit_))) ++to;
    if (to == from) return slot;
    memory_[rank].Move(from, to);
    std::swap(slots[from], slots[to]);
    return timeline_[rank].at[static_cast<std::size_t>(pass)][k] = static_cast<std::int32_t>(to);
  }

  Timeline& timeline_;
  Phase phase_ = Phase::kWarmup;
  std::vector<std::vector<std::int32_t>> inputs_;  // slots of the I's so far, by rank
  std::vector<Memory> memory_;                     // by rank
  std::int32_t limit_ = 0;                         // of live activations, on any rank
};

// Runs all passes as early as their order allows, and takes the W's out.
void SqueezeWithoutWeights(Timeline& timeline, std::int32_t micro_batches) {
  timeline = Squeeze(timeline, micro_batches);
  for (RankTimeline& rank : timeline) DropWeights(rank);
}

std::vector<Action> OrderOf(const RankTimeline& rank) {
  constexpr std::array<ActionKind, kKinds> kKind = {ActionKind::kForward,        ActionKind::kForward,
                                                    ActionKind::kInputGradient,  ActionKind::kInputGradient,
                                                    ActionKind::kWeightGradient, ActionKind::kWeightGradient};
  constexpr std::array<std::int32_t, kKinds> kChunk = {0, 1, 1, 0, 1, 0};
  std::vector<Action> order;
  order.reserve(rank.slots.size());
  std::array<std::int32_t, kKinds> next = {};
  for (const Pass pass : rank.slots) {
    if (pass == kIdle) continue;
    const auto kind = static_cast<std::size_t>(pass);
    order.push_back({kKind[kind], kChunk[kind], next[kind]++});
  }
  return order;
}

}  // namespace

absl::Status CheckBuildingBlock(std::string_view family, const Parameters& parameters) {
  ABSL_RETURN_IF_ERROR(CheckTwoStagesPerRank(family, parameters));
  if (parameters.ranks <= kMostRanks) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(absl::string_view(family.data(), family.size()),
                                                 ": ranks = ", parameters.ranks, ", allowed: at most ", kMostRanks));
}

Schedule RepeatBuildingBlock(const VBuildingBlock& block, std::int32_t micro_batches) {
  Timeline timeline = Repeat(block, micro_batches);
  for (RankTimeline& rank : timeline) FillWeights(rank, /*by_chunk=*/false);
  Tightening<PlacedWeights>(timeline).Run();
  SqueezeWithoutWeights(timeline, micro_batches);
  Tightening<ImpliedWeights>(timeline).Run();
  for (RankTimeline& rank : timeline) FillWeights(rank, /*by_chunk=*/false);
  SqueezeWithoutWeights(timeline, micro_batches);
  Schedule schedule{Placement::Wave(static_cast<std::int32_t>(block.size()), 2), micro_batches, {}};
  for (RankTimeline& rank : timeline) {
    FillWeights(rank, /*by_chunk=*/true);
    schedule.order.push_back(OrderOf(rank));
  }
  return schedule;
}

}  // namespace orrery::schedules
