#include "sim/pipeline/optimizer/state.h"

#include <algorithm>
#include <limits>

namespace orrery::pipeline::optimizer {

State::State(const Model& model)
    : model_(&model),
      counts_(kKinds * model.stages),
      clock_(model.ranks),
      held_(model.ranks),
      forward_arrival_(model.stages * model.micro_batches),
      gradient_arrival_(model.stages * model.micro_batches) {}

void State::Load(const std::uint16_t* counts, const std::int64_t* times) {
  const Model& model = *model_;
  std::copy_n(counts, counts_.size(), counts_.begin());
  std::copy_n(times, model.ranks, clock_.begin());
  times += model.ranks;
  done_ = 0;
  std::fill(held_.begin(), held_.end(), 0);
  for (std::size_t s = 0; s < model.stages; ++s) {
    const std::size_t rank = model.stage[s].rank;
    for (const Kind kind : {kF, kI, kW}) {
      done_ += Done(s, kind);
      held_[rank] += MemoryChange(kind) * static_cast<std::int64_t>(Done(s, kind));
    }
    const std::size_t row = s * model.micro_batches;
    if (s > 0 && model.stage[s - 1].rank != rank) {
      for (std::size_t k = Done(s, kF); k < Done(s - 1, kF); ++k) forward_arrival_[row + k] = *times++;
    }
    if (s + 1 < model.stages && model.stage[s + 1].rank != rank) {
      for (std::size_t k = Done(s, kI); k < Done(s + 1, kI); ++k) gradient_arrival_[row + k] = *times++;
    }
  }
}

void State::Pack(PackedState& packed) const {
  const Model& model = *model_;
  packed.counts.assign(counts_.begin(), counts_.end());
  packed.times.assign(clock_.begin(), clock_.end());
  for (std::size_t s = 0; s < model.stages; ++s) {
    const StageModel& stage = model.stage[s];
    const std::size_t row = s * model.micro_batches;
    if (s > 0 && model.stage[s - 1].rank != stage.rank) {
      std::int64_t earliest = clock_[stage.rank];
      for (std::size_t k = Done(s, kF); k < Done(s - 1, kF); ++k) {
        earliest = std::max(earliest, forward_arrival_[row + k]);
        packed.times.push_back(earliest);
        earliest += stage.cost[kF];
      }
    }
    if (s + 1 < model.stages && model.stage[s + 1].rank != stage.rank) {
      std::int64_t earliest = clock_[stage.rank];
      for (std::size_t k = Done(s, kI); k < Done(s + 1, kI); ++k) {
        earliest = std::max(earliest, gradient_arrival_[row + k]);
        packed.times.push_back(earliest);
        earliest += stage.cost[kI];
      }
    }
  }
}

std::int64_t State::Value() const {
  std::int64_t value = std::numeric_limits<std::int64_t>::min();
  for (std::size_t rank = 0; rank < model_->ranks; ++rank) {
    value = std::max(value, clock_[rank] - model_->origin[rank]);
  }
  return value;
}

std::int64_t State::MemoryChange(Kind kind) const {
  switch (kind) {
    case kF:
      return model_->memory.forward;
    case kI:
      return model_->memory.weight - model_->memory.forward;
    case kW:
      return -model_->memory.weight;
  }
  return 0;
}

bool State::HasInput(std::size_t stage, Kind kind) const {
  const std::size_t k = Done(stage, kind);
  if (k == model_->micro_batches) return false;
  switch (kind) {
    case kF:
      return stage == 0 || Done(stage - 1, kF) > k;
    case kI:
      return Done(stage, kF) > k && (stage + 1 == model_->stages || Done(stage + 1, kI) > k);
    case kW:
      return Done(stage, kI) > k;
  }
  return false;
}

bool State::MayAwait(std::size_t stage, Kind kind) const {
  const std::size_t k = Done(stage, kind);
  if (k == model_->micro_batches || HasInput(stage, kind)) return false;
  const std::size_t rank = model_->stage[stage].rank;
  if (kind == kI) return Done(stage, kF) > k && model_->stage[stage + 1].rank != rank;
  if (model_->stage[stage - 1].rank == rank) return false;
  for (const std::size_t s : model_->stages_of[rank]) {
    if (s < stage && Done(s, kF) <= k) return false;  // comes before it on this rank
  }
  return held_[rank] + model_->memory.forward <= model_->memory_limit;
}

std::int64_t State::Arrival(std::size_t stage, Kind kind) const {
  const std::size_t index = stage * model_->micro_batches + Done(stage, kind);
  const std::size_t rank = model_->stage[stage].rank;
  if (kind == kF && stage > 0 && model_->stage[stage - 1].rank != rank) return forward_arrival_[index];
  if (kind == kI && stage + 1 < model_->stages && model_->stage[stage + 1].rank != rank) {
    return gradient_arrival_[index];
  }
  return 0;
}

bool State::CanComplete(std::size_t stage) const {
  const std::size_t rank = model_->stage[stage].rank;
  if (model_->stages_of[rank].size() == 1) return true;
  // All micro-batches that have passed the last stage can drain. The next one then needs room on every stage of the
  // rank, beside those that are on it already.
  const std::size_t passed = Done(model_->stages - 1, kF) + (stage + 1 == model_->stages ? 1 : 0);
  std::size_t chunks = 0;
  for (const std::size_t s : model_->stages_of[rank]) {
    const std::size_t forward = Done(s, kF) + (s == stage ? 1 : 0);
    chunks += forward > passed ? forward - passed : 1;
  }
  return static_cast<std::int64_t>(chunks) * model_->memory.forward <= model_->memory_limit;
}

void State::CandidatesOf(std::size_t rank, std::vector<Candidate>& candidates) const {
  candidates.clear();
  for (const std::size_t s : model_->stages_of[rank]) {
    for (const Kind kind : {kF, kI, kW}) {
      if (!HasInput(s, kind)) continue;
      if (kind == kF && (held_[rank] + model_->memory.forward > model_->memory_limit || !CanComplete(s))) continue;
      const std::int64_t start = std::max(clock_[rank], Arrival(s, kind));
      candidates.push_back({{static_cast<std::uint16_t>(s), kind}, start, start + model_->stage[s].cost[kind]});
    }
  }
}

void State::Apply(const Candidate& candidate) {
  const std::size_t s = candidate.step.stage;
  const Kind kind = candidate.step.kind;
  const std::size_t rank = model_->stage[s].rank;
  const std::size_t k = counts_[kKinds * s + kind]++;
  ++done_;
  clock_[rank] = candidate.end;
  held_[rank] += MemoryChange(kind);
  if (kind == kF && s + 1 < model_->stages) {
    forward_arrival_[(s + 1) * model_->micro_batches + k] = candidate.end + model_->stage[s + 1].forward_latency;
  } else if (kind == kI && s > 0) {
    gradient_arrival_[(s - 1) * model_->micro_batches + k] = candidate.end + model_->stage[s - 1].gradient_latency;
  }
}

void State::Revert(const Candidate& candidate, std::int64_t clock) {
  const std::size_t s = candidate.step.stage;
  const std::size_t rank = model_->stage[s].rank;
  --counts_[kKinds * s + candidate.step.kind];
  --done_;
  clock_[rank] = clock;
  held_[rank] -= MemoryChange(candidate.step.kind);
}

}  // namespace orrery::pipeline::optimizer
