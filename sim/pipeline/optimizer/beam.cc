#include "sim/pipeline/optimizer/beam.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "sim/pipeline/optimizer/bound.h"
#include "sim/pipeline/optimizer/state.h"

namespace orrery::pipeline::optimizer {
namespace {

constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

struct Entry {
  std::int64_t bound = 0;
  std::int64_t sum = 0;
  std::uint64_t hash = 0;
  std::size_t times = 0;  // offset
  std::uint32_t parent = 0;
  std::uint32_t next = kNone;  // of equal hash slot
  Step step;
  bool dominated = false;
};

std::uint64_t Hash(const std::vector<std::uint16_t>& counts) {
  std::uint64_t hash = 0x9e3779b97f4a7c15U;
  for (const std::uint16_t count : counts) {
    hash = (hash ^ count) * 0xff51afd7ed558ccdU;
    hash ^= hash >> 32U;
  }
  return hash;
}

// The states of one layer, none of which dominates another.
class Layer {
 public:
  Layer(std::size_t counts, std::size_t slots) : counts_size_(counts), slots_(slots, kNone) {}

  void Clear() {
    entries_.clear();
    counts_.clear();
    times_.clear();
    std::fill(slots_.begin(), slots_.end(), kNone);
  }

  void Add(const PackedState& state, Entry entry) {
    entry.hash = Hash(state.counts);
    std::uint32_t& slot = slots_[entry.hash % slots_.size()];
    for (std::uint32_t i = slot; i != kNone; i = entries_[i].next) {
      Entry& other = entries_[i];
      if (other.dominated || other.hash != entry.hash ||
          !std::equal(state.counts.begin(), state.counts.end(), Counts(i))) {
        continue;
      }
      const std::int64_t* const times = Times(i);
      bool no_later = true;
      bool no_earlier = true;
      for (std::size_t j = 0; j < state.times.size() && (no_later || no_earlier); ++j) {
        no_later = no_later && times[j] <= state.times[j];
        no_earlier = no_earlier && times[j] >= state.times[j];
      }
      if (no_later) return;
      if (no_earlier) other.dominated = true;
    }
    entry.times = times_.size();
    entry.next = slot;
    slot = static_cast<std::uint32_t>(entries_.size());
    entries_.push_back(entry);
    counts_.insert(counts_.end(), state.counts.begin(), state.counts.end());
    times_.insert(times_.end(), state.times.begin(), state.times.end());
  }

  const std::uint16_t* Counts(std::size_t i) const { return &counts_[i * counts_size_]; }
  const std::int64_t* Times(std::size_t i) const { return &times_[entries_[i].times]; }
  const Entry& At(std::size_t i) const { return entries_[i]; }
  std::size_t size() const { return entries_.size(); }

 private:
  std::size_t counts_size_;
  std::vector<Entry> entries_;
  std::vector<std::uint16_t> counts_;
  std::vector<std::int64_t> times_;
  std::vector<std::uint32_t> slots_;
};

class Search {
 public:
  Search(const Model& model, std::int64_t best, const BeamLimits& limits)
      : model_(model),
        limits_(limits),
        best_(best),
        state_(model),
        bound_(model),
        awaited_(model.stages > model.ranks ? model.ranks : 0),
        counts_size_(kKinds * model.stages + awaited_.size()),
        layer_(counts_size_, 4 * limits.width + 64),
        next_(counts_size_, 4 * limits.width + 64) {
    result_.lower_bound = std::numeric_limits<std::int64_t>::max();
  }

  BeamResult Run() {
    Root();
    for (std::size_t depth = 0; depth < model_.passes(); ++depth) {
      next_.Clear();
      left_ = static_cast<std::int64_t>(model_.passes() - depth);
      for (std::size_t i = 0; i < kept_.size(); ++i) {
        if (OutOfBudget()) return std::move(result_);
        Load(kept_[i]);
        Expand(static_cast<std::uint32_t>(i));
      }
      std::swap(layer_, next_);
      Select();
      if (kept_.empty()) return std::move(result_);
    }
    Finish();
    return std::move(result_);
  }

 private:
  struct Origin {
    std::uint32_t parent;
    Step step;
  };

  void Root() {
    state_.Pack(packed_);
    packed_.counts.resize(counts_size_);
    layer_.Add(packed_, Entry{});
    kept_ = {0};
  }

  bool OutOfBudget() {
    if (result_.work <= limits_.work && !(limits_.pulse && limits_.pulse(result_.work))) return false;
    result_.unfinished = true;
    result_.cut = true;
    // Everything that is left.
    result_.lower_bound = std::numeric_limits<std::int64_t>::min();
    return true;
  }

  void Load(std::uint32_t entry) {
    const std::uint16_t* const counts = layer_.Counts(entry);
    state_.Load(counts, layer_.Times(entry));
    std::copy_n(counts + kKinds * model_.stages, awaited_.size(), awaited_.begin());
  }

  void Expand(std::uint32_t parent) {
    Candidate first{.step = {}, .start = 0, .end = std::numeric_limits<std::int64_t>::max()};
    std::vector<Candidate> choices;  // of the rank of `first`
    for (std::size_t rank = 0; rank < model_.ranks; ++rank) {
      state_.CandidatesOf(rank, candidates_);
      if (!awaited_.empty() && awaited_[rank] != 0) {
        std::erase_if(candidates_, [&](const Candidate& candidate) { return Code(candidate.step) != awaited_[rank]; });
      }
      bool is_first = false;
      for (const Candidate& candidate : candidates_) {
        if (candidate.end >= first.end) continue;
        first = candidate;
        is_first = true;
      }
      if (is_first) choices = candidates_;
    }
    if (choices.empty()) return;
    const bool may_wait = first.step.kind == kF && MayTakeRoom(first.step.stage);
    for (const Candidate& candidate : choices) {
      if (candidate.start < first.end || candidate.step == first.step || may_wait) Child(parent, candidate);
    }
    if (may_wait && awaited_[model_.stage[first.step.stage].rank] == 0) ExpandWaiting(parent, first.step.stage);
  }

  static std::uint16_t Code(const Step& step) {
    return static_cast<std::uint16_t>(1 + kKinds * step.stage + step.kind);
  }

  // Running F of `stage` next may take the room of an F of another chunk that comes before it in the best order.
  bool MayTakeRoom(std::size_t stage) const {
    if (awaited_.empty()) return false;
    const std::size_t rank = model_.stage[stage].rank;
    std::size_t others = 0;
    for (const std::size_t s : model_.stages_of[rank]) {
      if (s > stage) others += state_.Done(stage, kF) - state_.Done(s, kF);
      if (s < stage) others += model_.micro_batches - state_.Done(s, kF);
    }
    if (others == 0) return false;
    return state_.Held(rank) + static_cast<std::int64_t>(1 + others) * model_.memory.forward > model_.memory_limit;
  }

  // Orders in which the rank of `stage` runs next a pass whose input has not been sent yet.
  void ExpandWaiting(std::uint32_t parent, std::size_t stage) {
    const std::size_t rank = model_.stage[stage].rank;
    const std::int64_t clock = state_.Clock(rank);
    for (const std::size_t s : model_.stages_of[rank]) {
      for (const Kind kind : {kF, kI}) {
        if (!state_.MayAwait(s, kind)) continue;
        bound_.Of(state_);
        awaited_[rank] = Code({static_cast<std::uint16_t>(s), kind});
        state_.SetClock(rank, std::max(clock, bound_.Earliest(s, kind, state_.Done(s, kind))));
        result_.work += left_;
        if (bound_.Of(state_).bound < best_) Expand(parent);
        state_.SetClock(rank, clock);
        awaited_[rank] = 0;
      }
    }
  }

  void Child(std::uint32_t parent, const Candidate& candidate) {
    const std::size_t rank = model_.stage[candidate.step.stage].rank;
    const std::int64_t clock = state_.Clock(rank);
    state_.Apply(candidate);
    result_.work += left_;
    ++result_.states;
    const Bound::Value value = bound_.Of(state_);
    if (value.bound < best_) {
      state_.Pack(packed_);
      packed_.counts.insert(packed_.counts.end(), awaited_.begin(), awaited_.end());
      if (!awaited_.empty()) packed_.counts[kKinds * model_.stages + rank] = 0;
      Entry entry;
      entry.bound = value.bound;
      entry.sum = value.sum;
      entry.parent = parent;
      entry.step = candidate.step;
      next_.Add(packed_, entry);
    }
    state_.Revert(candidate, clock);
  }

  // Keeps the best `width` of the layer.
  void Select() {
    kept_.clear();
    for (std::uint32_t i = 0; i < layer_.size(); ++i) {
      if (!layer_.At(i).dominated) kept_.push_back(i);
    }
    const auto better = [&](std::uint32_t a, std::uint32_t b) {
      const Entry& x = layer_.At(a);
      const Entry& y = layer_.At(b);
      if (x.bound != y.bound) return x.bound < y.bound;
      if (x.sum != y.sum) return x.sum < y.sum;
      return a < b;
    };
    std::sort(kept_.begin(), kept_.end(), better);
    if (kept_.size() > limits_.width) {
      result_.cut = true;
      result_.lower_bound = std::min(result_.lower_bound, layer_.At(kept_[limits_.width]).bound);
      kept_.resize(limits_.width);
    }
    std::vector<Origin>& origins = origins_.emplace_back();
    for (const std::uint32_t i : kept_) origins.push_back({layer_.At(i).parent, layer_.At(i).step});
  }

  void Finish() {
    // All passes are done: the bound is the objective.
    result_.value = layer_.At(kept_.front()).bound;
    Sequences sequences(model_.ranks);
    std::size_t at = 0;
    for (std::size_t layer = origins_.size(); layer-- > 0;) {
      const Origin& origin = origins_[layer][at];
      sequences[model_.stage[origin.step.stage].rank].push_back(origin.step);
      at = origin.parent;
    }
    for (std::vector<Step>& sequence : sequences) std::reverse(sequence.begin(), sequence.end());
    result_.sequences = std::move(sequences);
    result_.lower_bound = std::min(result_.lower_bound, result_.value);
  }

  const Model& model_;
  const BeamLimits& limits_;
  std::int64_t best_;
  State state_;
  Bound bound_;
  // [rank], with several chunks: the pass that must come next, as Code; 0: any.
  std::vector<std::uint16_t> awaited_;
  std::size_t counts_size_;
  Layer layer_;
  Layer next_;
  std::vector<std::uint32_t> kept_;  // of layer_, best first
  std::vector<std::vector<Origin>> origins_;
  std::vector<Candidate> candidates_;
  PackedState packed_;
  std::int64_t left_ = 0;
  BeamResult result_;
};

}  // namespace

BeamResult BeamSearch(const Model& model, std::int64_t best, const BeamLimits& limits) {
  return Search(model, best, limits).Run();
}

}  // namespace orrery::pipeline::optimizer
