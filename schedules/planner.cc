#include "schedules/planner.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "base/units.h"
#include "schedules/families.h"

namespace orrery::schedules {
namespace {

absl::string_view View(std::string_view text) { return absl::string_view(text.data(), text.size()); }

std::uint8_t Code(ActionKind kind, std::int32_t chunk) {
  return static_cast<std::uint8_t>(static_cast<std::uint32_t>(kind) * 64 + static_cast<std::uint32_t>(chunk));
}

// Memory in M, the activations of one micro-batch on all stages of a rank, rounded up to 1e-9 of it.
std::string InMicroBatches(std::int64_t memory, const Parameters& parameters) {
  const Int128 of_one =
      std::max<Int128>(static_cast<Int128>(parameters.planning.memory.forward) * parameters.chunks, 1);
  const Int128 steps = (static_cast<Int128>(memory) * kDecimalOne + of_one - 1) / of_one;
  return FormatDecimal(static_cast<std::int64_t>(std::min<Int128>(steps, kNever)));
}

ActionKind KindOf(std::uint8_t code) { return static_cast<ActionKind>(code / 64); }
std::int32_t ChunkOf(std::uint8_t code) { return code % 64; }

}  // namespace

absl::Status CheckPlanning(std::string_view family, const Parameters& parameters, std::int32_t stages) {
  const PlanningCosts& planning = parameters.planning;
  const auto error = [&](const auto&... text) {
    return absl::InvalidArgumentError(absl::StrCat(View(family), ": ", text...));
  };
  if (planning.stages.size() != 1 && planning.stages.size() != static_cast<std::size_t>(stages)) {
    return error("costs of ", planning.stages.size(), " stages, allowed: of one for all, or of ", stages);
  }
  // One pass per stage and kind, with its message; times micro_batches is the longest that an order can take.
  std::int64_t left = kMostTime / parameters.micro_batches;
  for (std::int32_t stage = 0; stage < stages; ++stage) {
    const PassCosts& costs = planning.Of(stage);
    for (const std::int64_t cost :
         {costs.forward, costs.input_gradient, costs.weight_gradient, planning.latency, planning.latency}) {
      if (cost < 0) return error("a pass or message that costs ", cost, ", allowed: at least 0");
      if (cost > left) return error("costs of all passes and messages add up to more than 2^61, allowed: up to that");
      left -= cost;
    }
  }
  const PassMemory& memory = planning.memory;
  const std::int64_t most = kMostTime / parameters.micro_batches / parameters.chunks;
  if (memory.forward < 0 || memory.forward > most) {
    return error("activations of a pass = ", memory.forward, ", allowed: 0 to ", most);
  }
  if (memory.weight < 0 || memory.weight > memory.forward) {
    return error("activations kept for W = ", memory.weight, ", allowed: 0 to those of the pass (", memory.forward,
                 ")");
  }
  if (planning.memory_limit < 0) {
    return error("memory limit = ", planning.memory_limit, ", allowed: at least 0 (0: the family's own)");
  }
  return absl::OkStatus();
}

std::int64_t MemoryLimit(const Parameters& parameters, std::int64_t otherwise) {
  return parameters.planning.memory_limit > 0 ? parameters.planning.memory_limit : otherwise;
}

std::int64_t RoundTripBound(const Placement& placement, const Parameters& parameters, std::int64_t memory_limit) {
  const PlanningCosts& planning = parameters.planning;
  const std::int64_t held = planning.memory.forward == 0 ? kNever : memory_limit / planning.memory.forward;
  std::vector<std::int64_t> round_trips(static_cast<std::size_t>(placement.ranks()));  // of all chunks of a rank
  std::int64_t round_trip = 0;
  for (std::int32_t stage = placement.stages() - 1; stage >= 0; --stage) {
    const PassCosts& costs = planning.Of(stage);
    const std::int32_t rank = placement.PlaceOf(stage).rank;
    const bool last = stage + 1 == placement.stages();
    if (!last && placement.PlaceOf(stage + 1).rank != rank) round_trip += 2 * planning.latency;
    round_trip += costs.forward + costs.input_gradient;
    round_trips[static_cast<std::size_t>(rank)] += round_trip;
  }
  const std::int64_t longest = *std::max_element(round_trips.begin(), round_trips.end());
  return held == 0 ? kNever : longest * parameters.micro_batches / held;
}

absl::Status TooLittleMemory(std::string_view family, const Parameters& parameters, std::int64_t smallest,
                             std::string_view reason) {
  return absl::ResourceExhaustedError(
      absl::StrCat(View(family), ": the smallest memory limit that works is ", InMicroBatches(smallest, parameters),
                   " (activations of one micro-batch on all stages of a rank): ", View(reason)));
}

Plan::Plan(const Placement& placement, const Parameters& parameters, std::int64_t memory_limit, std::int64_t span_bound)
    : placement_(&placement),
      ranks_(placement.ranks()),
      chunks_(placement.chunks()),
      micro_batches_(parameters.micro_batches),
      latency_(parameters.planning.latency),
      memory_(parameters.planning.memory),
      memory_limit_(memory_limit),
      span_bound_(span_bound),
      ranks_state_(At(ranks_)),
      counts_(At(ranks_) * 4 * At(chunks_)),
      costs_(At(ranks_) * 4 * At(chunks_)),
      ends_(At(placement.stages()) * 2 * At(micro_batches_)),
      passes_(At(ranks_)),
      gradients_(At(ranks_)) {
  for (std::int32_t rank = 0; rank < ranks_; ++rank) {
    passes_[At(rank)].reserve(At(micro_batches_) * 3 * At(chunks_));
    gradients_[At(rank)].reserve(At(micro_batches_) * At(chunks_));
    for (std::int32_t chunk = 0; chunk < chunks_; ++chunk) {
      const PassCosts& costs = parameters.planning.Of(placement.StageOf(rank, chunk));
      costs_[Slot(rank, ActionKind::kForward, chunk)] = costs.forward;
      costs_[Slot(rank, ActionKind::kInputGradient, chunk)] = costs.input_gradient;
      costs_[Slot(rank, ActionKind::kWeightGradient, chunk)] = costs.weight_gradient;
      ranks_state_[At(rank)].work += (costs.forward + costs.backward()) * micro_batches_;
    }
    if (ranks_state_[At(rank)].work >= span_bound_) hopeless_ = true;
  }
}

std::int64_t Plan::Arrival(std::int32_t rank, ActionKind kind, std::int32_t chunk) const {
  const std::int32_t k = Count(rank, kind, chunk);
  if (k == micro_batches_) return kNever;
  const std::int32_t stage = placement_->StageOf(rank, chunk);
  const bool forward = kind == ActionKind::kForward;
  // The rank's own F of the same micro-batch.
  if (!forward && Count(rank, ActionKind::kForward, chunk) <= k) return kNever;
  const std::int32_t from_stage = forward ? stage - 1 : stage + 1;
  if (from_stage < 0 || from_stage == placement_->stages()) return 0;
  const Place from = placement_->PlaceOf(from_stage);
  if (Count(from.rank, kind, from.chunk) <= k) return kNever;
  return End(forward, from_stage, k) + (from.rank == rank ? 0 : latency_);
}

bool Plan::Allows(std::int64_t memory) {
  if (memory > memory_limit_) return false;
  tight_limit_ = std::max(tight_limit_, memory);
  return true;
}

void Plan::Run(std::int32_t rank, ActionKind kind, std::int32_t chunk, std::int64_t arrival, std::int64_t memory) {
  RankState& state = ranks_state_[At(rank)];
  if (arrival > state.clock) {
    if (state.started) {
      state.idle += arrival - state.clock;
      most_idle_ = std::max(most_idle_, state.idle);
      if (state.idle + state.work >= span_bound_) hopeless_ = true;
    }
    state.clock = arrival;
  }
  state.started = true;
  state.clock += Cost(rank, kind, chunk);
  state.memory += memory;
  passes_[At(rank)].push_back(Code(kind, chunk));
  ++counts_[Slot(rank, kind, chunk)];
}

void Plan::Put(std::int32_t rank, ActionKind kind, std::int32_t chunk, std::int64_t earliest) {
  const bool forward = kind == ActionKind::kForward;
  const std::int32_t k = Count(rank, kind, chunk);
  Run(rank, kind, chunk, std::max(earliest, Arrival(rank, kind, chunk)),
      forward ? memory_.forward : memory_.weight - memory_.forward);
  End(forward, placement_->StageOf(rank, chunk), k) = Clock(rank);
  if (!forward) gradients_[At(rank)].push_back(static_cast<std::uint8_t>(chunk));
}

bool Plan::HasWeight(std::int32_t rank) const {
  return At(ranks_state_[At(rank)].weights) < gradients_[At(rank)].size();
}

std::int64_t Plan::WeightCost(std::int32_t rank) const {
  return Cost(rank, ActionKind::kWeightGradient, gradients_[At(rank)][At(ranks_state_[At(rank)].weights)]);
}

void Plan::PutWeight(std::int32_t rank, std::int64_t earliest) {
  std::int32_t& weights = ranks_state_[At(rank)].weights;
  Run(rank, ActionKind::kWeightGradient, gradients_[At(rank)][At(weights)], earliest, -memory_.weight);
  ++weights;
}

void Plan::PutAllWeights() {
  for (std::int32_t rank = 0; rank < ranks_; ++rank) {
    while (HasWeight(rank)) PutWeight(rank);
  }
}

std::int32_t Plan::PeakActivations() const {
  std::int32_t peak = 0;
  for (const std::vector<std::uint8_t>& passes : passes_) {
    std::int32_t live = 0;
    for (const std::uint8_t code : passes) {
      if (KindOf(code) == ActionKind::kForward) peak = std::max(peak, ++live);
      if (KindOf(code) == ActionKind::kWeightGradient) --live;
    }
  }
  return peak;
}

std::int64_t Plan::TotalIdle() const {
  std::int64_t idle = 0;
  for (const RankState& state : ranks_state_) idle += state.idle;
  return idle;
}

std::vector<std::pair<ActionKind, std::int32_t>> Plan::Passes(std::int32_t rank) const {
  std::vector<std::pair<ActionKind, std::int32_t>> passes;
  for (const std::uint8_t code : passes_[At(rank)]) passes.emplace_back(KindOf(code), ChunkOf(code));
  return passes;
}

std::int64_t Plan::Placed() const {
  std::size_t placed = 0;
  for (const std::vector<std::uint8_t>& passes : passes_) placed += passes.size();
  return static_cast<std::int64_t>(placed);
}

std::int64_t Plan::LongestSpan() const {
  std::int64_t longest = 0;
  for (const RankState& state : ranks_state_) longest = std::max(longest, state.work + state.idle);
  return longest;
}

Schedule Plan::ToSchedule() const {
  Schedule schedule{*placement_, micro_batches_, {}};
  for (const std::vector<std::uint8_t>& passes : passes_) {
    std::vector<Action> order;
    order.reserve(passes.size());
    std::vector<std::int32_t> next(256);
    for (const std::uint8_t code : passes) {
      order.push_back({KindOf(code), ChunkOf(code), next[code]++});
    }
    schedule.order.push_back(std::move(order));
  }
  return schedule;
}

}  // namespace orrery::schedules
