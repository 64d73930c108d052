#include "sim/pipeline/optimizer/local_search.h"

#include <algorithm>
#include <limits>
#include <random>
#include <utility>

namespace orrery::pipeline::optimizer {

Timer::Timer(const Model& model)
    : model_(&model),
      next_(model.ranks),
      clock_(model.ranks),
      done_(kKinds * model.stages),
      forward_end_(model.stages * model.micro_batches),
      gradient_end_(model.stages * model.micro_batches),
      forward_at_(model.stages * model.micro_batches),
      gradient_at_(model.stages * model.micro_batches),
      start_(model.ranks),
      waiting_(model.ranks) {
  for (std::size_t rank = 0; rank < model.ranks; ++rank) {
    start_[rank].resize(kKinds * model.stages_of[rank].size() * model.micro_batches);
  }
}

std::optional<std::int64_t> Timer::Start(const Step& step, std::int64_t clock) const {
  const std::size_t s = step.stage;
  const std::size_t k = done_[kKinds * s + step.kind];
  const StageModel& stage = model_->stage[s];
  switch (step.kind) {
    case kF:
      if (s == 0) return clock;
      if (done_[kKinds * (s - 1) + kF] <= k) return std::nullopt;
      return std::max(clock, forward_end_[Index(s - 1, k)] + stage.forward_latency);
    case kI:
      if (s + 1 == model_->stages) return clock;
      if (done_[kKinds * (s + 1) + kI] <= k) return std::nullopt;
      return std::max(clock, gradient_end_[Index(s + 1, k)] + stage.gradient_latency);
    case kW:
      return clock;
  }
  return std::nullopt;
}

std::optional<std::int64_t> Timer::Run(const Sequences& sequences) {
  std::fill(next_.begin(), next_.end(), 0);
  std::fill(clock_.begin(), clock_.end(), 0);
  std::fill(done_.begin(), done_.end(), 0);
  ready_.clear();
  for (std::size_t rank = model_->ranks; rank-- > 0;) ready_.push_back(rank);
  std::fill(waiting_.begin(), waiting_.end(), false);
  std::size_t left = model_->passes();
  while (!ready_.empty()) {
    const std::size_t rank = ready_.back();
    ready_.pop_back();
    waiting_[rank] = false;
    const std::vector<Step>& sequence = sequences[rank];
    for (std::size_t& at = next_[rank]; at < sequence.size(); ++at, --left) {
      const Step step = sequence[at];
      const std::optional<std::int64_t> start = Start(step, clock_[rank]);
      if (!start.has_value()) {
        waiting_[rank] = true;
        break;
      }
      start_[rank][at] = *start;
      clock_[rank] = *start + model_->stage[step.stage].cost[step.kind];
      const std::size_t k = done_[kKinds * step.stage + step.kind]++;
      if (step.kind == kW) continue;
      const std::size_t index = Index(step.stage, k);
      (step.kind == kF ? forward_end_ : gradient_end_)[index] = clock_[rank];
      (step.kind == kF ? forward_at_ : gradient_at_)[index] = at;
      const std::size_t to = step.kind == kF ? step.stage + 1U : step.stage - 1U;  // wraps below stage 0
      if (to >= model_->stages) continue;
      const std::size_t receiver = model_->stage[to].rank;
      if (waiting_[receiver]) {
        waiting_[receiver] = false;
        ready_.push_back(receiver);
      }
    }
  }
  if (left > 0) return std::nullopt;
  std::int64_t value = std::numeric_limits<std::int64_t>::min();
  for (std::size_t rank = 0; rank < model_->ranks; ++rank) {
    value = std::max(value, clock_[rank] - model_->origin[rank]);
  }
  return value;
}

void Timer::Critical(const Sequences& sequences, std::vector<Place>& places) const {
  places.clear();
  Place place;
  for (std::size_t rank = 1; rank < model_->ranks; ++rank) {
    if (clock_[rank] - model_->origin[rank] > clock_[place.rank] - model_->origin[place.rank]) place.rank = rank;
  }
  place.position = sequences[place.rank].size() - 1;
  while (true) {
    const Step step = sequences[place.rank][place.position];
    const std::int64_t start = start_[place.rank][place.position];
    if (place.position > 0) {
      const Step before = sequences[place.rank][place.position - 1];
      const std::int64_t end = start_[place.rank][place.position - 1] + model_->stage[before.stage].cost[before.kind];
      if (end == start) {
        places.push_back(place);
        --place.position;
        continue;
      }
    }
    if (start == 0 || step.kind == kW) return;
    // The micro-batch is the number of passes of the kind before this one.
    const std::vector<std::size_t>& at = step.kind == kF ? forward_at_ : gradient_at_;
    const auto row = at.begin() + static_cast<std::ptrdiff_t>(Index(step.stage, 0));
    const auto k = static_cast<std::size_t>(
        std::lower_bound(row, row + static_cast<std::ptrdiff_t>(model_->micro_batches), place.position) - row);
    const std::size_t from = step.kind == kF ? step.stage - 1U : step.stage + 1U;
    if (from >= model_->stages) return;
    place = {model_->stage[from].rank, at[Index(from, k)]};
  }
}

std::optional<std::int64_t> PeakMemory(const Model& model, const std::vector<Step>& sequence) {
  std::vector<std::array<std::size_t, kKinds>> done(model.stages);
  std::int64_t held = 0;
  std::int64_t peak = 0;
  for (const Step& step : sequence) {
    std::array<std::size_t, kKinds>& stage = done[step.stage];
    if (step.kind != kF && stage[step.kind] >= stage[step.kind - 1U]) return std::nullopt;
    ++stage[step.kind];
    held += step.kind == kF   ? model.memory.forward
            : step.kind == kI ? model.memory.weight - model.memory.forward
                              : -model.memory.weight;
    peak = std::max(peak, held);
  }
  return peak;
}

namespace {

// Positions that a pass is moved over.
constexpr std::size_t kFarthest = 12;
// Of the objective, at the start.
constexpr std::int64_t kFirstThreshold = 200;  // one part in
constexpr std::uint64_t kSeed = 0x6f7272657279;

class Walk {
 public:
  Walk(const Model& model, const Sequences& start) : model_(model), timer_(model), current_(start), random_(kSeed) {
    value_ = *timer_.Run(current_);
    timer_.Critical(current_, critical_);
    result_.sequences = start;
    result_.value = value_;
  }

  LocalSearchResult Run(std::int64_t target, std::int64_t work, const Pulse& pulse) {
    const auto passes = static_cast<std::int64_t>(model_.passes());
    const std::int64_t tries = work / passes;
    const std::int64_t first = value_ / kFirstThreshold;
    for (std::int64_t i = 0; i < tries && result_.value > target && !critical_.empty(); ++i) {
      if (pulse && pulse(result_.work)) {
        result_.stopped = true;
        break;
      }
      // first x (1 - i / tries), without a product that could overflow
      Try(static_cast<std::int64_t>(static_cast<double>(first) * static_cast<double>(tries - i) /
                                    static_cast<double>(tries)));
    }
    return std::move(result_);
  }

 private:
  std::size_t Below(std::size_t n) { return static_cast<std::size_t>(random_() % n); }

  void Try(std::int64_t threshold) {
    const Timer::Place place = critical_[Below(critical_.size())];
    std::vector<Step>& sequence = current_[place.rank];
    const auto at = sequence.begin() + static_cast<std::ptrdiff_t>(place.position);
    const bool front = Below(2) == 0;
    const std::size_t room = front ? place.position : sequence.size() - place.position;
    const auto far = static_cast<std::ptrdiff_t>(1 + Below(std::min(kFarthest, room)));
    undo_.assign(sequence.begin(), sequence.end());
    if (front) {
      std::rotate(at - far, at, at + 1);
    } else {
      std::rotate(at - 1, at, at + far);
    }
    if (!Accept(place.rank, threshold)) sequence.swap(undo_);
  }

  bool Accept(std::size_t rank, std::int64_t threshold) {
    if (current_[rank] == undo_) return false;
    result_.work += static_cast<std::int64_t>(current_[rank].size());
    const std::optional<std::int64_t> peak = PeakMemory(model_, current_[rank]);
    if (!peak.has_value() || *peak > model_.memory_limit) return false;
    result_.work += static_cast<std::int64_t>(model_.passes());
    const std::optional<std::int64_t> value = timer_.Run(current_);
    if (!value.has_value() || *value > value_ + threshold) return false;
    value_ = *value;
    timer_.Critical(current_, critical_);
    if (value_ < result_.value) {
      result_.value = value_;
      result_.sequences = current_;
    }
    return true;
  }

  const Model& model_;
  Timer timer_;
  Sequences current_;
  std::vector<Step> undo_;
  std::int64_t value_ = 0;
  std::vector<Timer::Place> critical_;
  std::mt19937_64 random_;
  LocalSearchResult result_;
};

}  // namespace

LocalSearchResult LocalSearch(const Model& model, const Sequences& start, std::int64_t target, std::int64_t work,
                              const Pulse& pulse) {
  return Walk(model, start).Run(target, work, pulse);
}

}  // namespace orrery::pipeline::optimizer
