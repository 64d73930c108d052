#include "sim/pipeline/optimizer/bound.h"

#include <algorithm>
#include <limits>

namespace orrery::pipeline::optimizer {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

std::int64_t Signed(std::size_t i) { return static_cast<std::int64_t>(i); }

}  // namespace

Bound::Bound(const Model& model)
    : model_(&model), depth_(model.stages), earliest_(kKinds * model.stages * model.micro_batches) {
  for (const std::vector<std::size_t>& stages : model.stages_of) {
    for (std::size_t chunk = 0; chunk < stages.size(); ++chunk) depth_[stages[chunk]] = chunk + 1;
  }
  FillRooms();
}

void Bound::FillRooms() {
  const schedules::PassMemory& memory = model_->memory;
  std::size_t deepest = 0;
  for (const std::size_t depth : depth_) deepest = std::max(deepest, depth);
  rooms_.resize(deepest);
  for (std::size_t chunks = 1; chunks <= deepest; ++chunks) {
    // Earlier chunks of the rank hold at least what this one does: each has as many F done, and no more I. Their W may
    // all be done, so that with several chunks the W of this one prove nothing.
    const std::int64_t limit = model_->memory_limit / Signed(chunks);
    std::vector<std::vector<Room>>& rooms = rooms_[chunks - 1];
    rooms.resize(model_->micro_batches);
    for (std::size_t k = 0; k < model_->micro_batches; ++k) {
      const std::int64_t excess = memory.forward * Signed(k + 1) - limit;
      if (excess <= 0) continue;
      for (std::size_t i = 0; i <= k; ++i) {
        const std::int64_t left = excess - Signed(i) * (memory.forward - memory.weight);
        const std::int64_t w = left <= 0 ? 0 : memory.weight == 0 ? kNever : (left + memory.weight - 1) / memory.weight;
        if (w > Signed(i)) continue;
        rooms[k].push_back({i, chunks == 1 ? static_cast<std::size_t>(w) : 0});
        if (w == 0 || chunks > 1) break;
      }
    }
  }
}

std::int64_t Bound::RoomAt(const State& state, std::size_t stage, std::size_t k) const {
  const std::vector<Room>& rooms = rooms_[depth_[stage] - 1][k];
  if (rooms.empty()) return 0;
  const StageModel& model = model_->stage[stage];
  const std::size_t forward = state.Done(stage, kF);
  const std::size_t input = state.Done(stage, kI);
  const std::size_t weight = state.Done(stage, kW);
  const std::int64_t clock = state.clock_[model.rank];
  std::int64_t best = kNever;
  for (const Room& room : rooms) {
    std::int64_t at = clock;
    std::int64_t work = Signed(k - forward) * model.cost[kF];
    if (room.input_gradients > input) {
      at = std::max(at, Earliest(stage, kI, room.input_gradients - 1) + model.cost[kI]);
      if (at >= best) break;  // more I, later
      work += Signed(room.input_gradients - input) * model.cost[kI];
    }
    if (room.weight_gradients > weight) {
      const std::size_t last = room.weight_gradients - 1;
      if (last >= input) at = std::max(at, Earliest(stage, kI, last) + model.cost[kI] + model.cost[kW]);
      work += Signed(room.weight_gradients - weight) * model.cost[kW];
    }
    best = std::min(best, std::max(at, clock + work));
  }
  return best;
}

void Bound::EarliestForward(const State& state, std::size_t stage, std::size_t k) {
  const StageModel& model = model_->stage[stage];
  std::int64_t at = k > state.Done(stage, kF) ? Earliest(stage, kF, k - 1) + model.cost[kF] : state.clock_[model.rank];
  if (stage > 0) {
    const StageModel& before = model_->stage[stage - 1];
    if (k >= state.Done(stage - 1, kF)) {
      at = std::max(at, Earliest(stage - 1, kF, k) + before.cost[kF] + model.forward_latency);
    } else if (before.rank != model.rank) {
      at = std::max(at, state.forward_arrival_[stage * model_->micro_batches + k]);
    }
  }
  At(stage, kF, k) = std::max(at, RoomAt(state, stage, k));
}

void Bound::EarliestInputGradient(const State& state, std::size_t stage, std::size_t k) {
  const StageModel& model = model_->stage[stage];
  std::int64_t at = k > state.Done(stage, kI) ? Earliest(stage, kI, k - 1) + model.cost[kI] : state.clock_[model.rank];
  if (k >= state.Done(stage, kF)) at = std::max(at, Earliest(stage, kF, k) + model.cost[kF]);
  if (stage + 1 < model_->stages) {
    const StageModel& after = model_->stage[stage + 1];
    if (k >= state.Done(stage + 1, kI)) {
      at = std::max(at, Earliest(stage + 1, kI, k) + after.cost[kI] + model.gradient_latency);
    } else if (after.rank != model.rank) {
      at = std::max(at, state.gradient_arrival_[stage * model_->micro_batches + k]);
    }
  }
  std::int64_t work = 0;
  for (const std::size_t s : model_->stages_of[model.rank]) {
    const StageModel& other = model_->stage[s];
    if (k + 1 > state.Done(s, kF)) work += Signed(k + 1 - state.Done(s, kF)) * other.cost[kF];
    const std::size_t gradients = s > stage ? k + 1 : s == stage ? k : 0;
    if (gradients > state.Done(s, kI)) work += Signed(gradients - state.Done(s, kI)) * other.cost[kI];
  }
  At(stage, kI, k) = std::max(at, state.clock_[model.rank] + work);
}

Bound::Value Bound::OfRank(const State& state, std::size_t rank) {
  const std::vector<std::size_t>& stages = model_->stages_of[rank];
  const std::size_t m = model_->micro_batches;
  struct Run {
    const std::int64_t* next;
    const std::int64_t* end;
    std::int64_t cost;
    bool weight;
  };
  constexpr std::size_t kMostRuns = kKinds * 16;
  std::array<Run, kMostRuns> runs;
  std::size_t size = 0;
  for (const std::size_t s : stages) {
    for (const Kind kind : {kF, kI, kW}) {
      const std::size_t done = state.Done(s, kind);
      if (done == m || size == kMostRuns) continue;
      std::int64_t* const row = &earliest_[(kKinds * s + kind) * m];
      if (kind == kW) {
        const std::size_t inputs = state.Done(s, kI);
        for (std::size_t k = done; k < inputs; ++k) row[k] = state.clock_[rank];
        for (std::size_t k = std::max(done, inputs); k < m; ++k) {
          row[k] = Earliest(s, kI, k) + model_->stage[s].cost[kI];
        }
      }
      runs[size++] = {row + done, row + m, model_->stage[s].cost[kind], kind == kW};
    }
  }
  std::int64_t all = state.clock_[rank];
  std::int64_t gradients = all;
  while (size > 0) {
    std::size_t first = 0;
    for (std::size_t i = 1; i < size; ++i) {
      if (*runs[i].next < *runs[first].next) first = i;
    }
    Run& run = runs[first];
    all = std::max(all, *run.next) + run.cost;
    if (!run.weight) gradients = std::max(gradients, *run.next) + run.cost;
    if (++run.next == run.end) run = runs[--size];
  }
  const std::size_t lowest = stages.front();
  std::int64_t value = all - model_->origin[rank];
  const std::int64_t sum = value;
  if (state.Done(lowest, kI) < m) {
    value = std::max(value, gradients + model_->stage[lowest].tail);
    for (const std::size_t s : stages) {
      if (state.Done(s, kI) < m) {
        value = std::max(value, Earliest(s, kI, m - 1) + model_->stage[s].cost[kI] + model_->stage[s].tail);
      }
    }
  }
  return {value, sum};
}

Bound::Value Bound::Of(const State& state) {
  const Model& model = *model_;
  std::size_t first = model.micro_batches;
  for (std::size_t s = 0; s < model.stages; ++s) first = std::min(first, state.Done(s, kI));
  for (std::size_t k = first; k < model.micro_batches; ++k) {
    for (std::size_t s = 0; s < model.stages; ++s) {
      if (k >= state.Done(s, kF)) EarliestForward(state, s, k);
    }
    for (std::size_t s = model.stages; s-- > 0;) {
      if (k >= state.Done(s, kI)) EarliestInputGradient(state, s, k);
    }
  }
  Value value{std::numeric_limits<std::int64_t>::min(), 0};
  for (std::size_t rank = 0; rank < model.ranks; ++rank) {
    const Value alone = OfRank(state, rank);
    value.bound = std::max(value.bound, alone.bound);
    value.sum += alone.sum;
  }
  return value;
}

}  // namespace orrery::pipeline::optimizer
