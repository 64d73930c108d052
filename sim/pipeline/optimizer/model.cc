#include "sim/pipeline/optimizer/model.h"

#include <algorithm>
#include <utility>

namespace orrery::pipeline::optimizer {
namespace {

std::size_t At(std::int32_t i) { return static_cast<std::size_t>(i); }

// Start of every rank's first pass: F of its lowest stage and micro-batch 0.
std::vector<std::int64_t> FirstStarts(const Model& model) {
  std::vector<std::int64_t> starts(model.ranks);
  for (std::size_t rank = 0; rank < model.ranks; ++rank) {
    for (std::size_t s = 0; s < model.stages_of[rank].front(); ++s) {
      starts[rank] += model.stage[s].cost[kF] + model.stage[s + 1].forward_latency;
    }
  }
  return starts;
}

void FillTails(Model& model) {
  for (std::size_t s = 0; s < model.stages; ++s) {
    StageModel& stage = model.stage[s];
    stage.tail = stage.cost[kW] - model.origin[stage.rank];
    if (s == 0) continue;
    const StageModel& before = model.stage[s - 1];
    stage.tail = std::max(stage.tail, before.gradient_latency + before.cost[kI] + before.tail);
  }
}

}  // namespace

std::int64_t Model::WorkOf(std::size_t rank) const {
  std::int64_t work = 0;
  for (const std::size_t s : stages_of[rank]) {
    for (const std::int64_t cost : stage[s].cost) work += cost * static_cast<std::int64_t>(micro_batches);
  }
  return work;
}

Model BuildModel(const schedules::Placement& placement, std::int32_t micro_batches,
                 const std::vector<schedules::PassCosts>& costs, std::int64_t latency,
                 const schedules::PassMemory& memory, std::int64_t memory_limit, Objective objective) {
  Model model;
  model.ranks = At(placement.ranks());
  model.stages = At(placement.stages());
  model.micro_batches = At(micro_batches);
  model.stages_of.resize(model.ranks);
  model.stage.resize(model.stages);
  for (std::size_t s = 0; s < model.stages; ++s) {
    StageModel& stage = model.stage[s];
    stage.rank = At(placement.PlaceOf(static_cast<std::int32_t>(s)).rank);
    model.stages_of[stage.rank].push_back(s);
    const schedules::PassCosts& cost = costs.size() == 1 ? costs.front() : costs[s];
    stage.cost = {cost.forward, cost.input_gradient, cost.weight_gradient};
  }
  for (std::size_t s = 1; s < model.stages; ++s) {
    if (model.stage[s].rank == model.stage[s - 1].rank) continue;
    model.stage[s].forward_latency = latency;
    model.stage[s - 1].gradient_latency = latency;
  }
  model.memory = memory;
  const std::int64_t everything = memory.forward * placement.chunks() * micro_batches;
  model.memory_limit = memory_limit > 0 ? std::min(memory_limit, everything) : everything;
  model.origin.assign(model.ranks, 0);
  if (objective == Objective::kLongestSpan) model.origin = FirstStarts(model);
  FillTails(model);
  return model;
}

Sequences SequencesOf(const schedules::Schedule& schedule) {
  Sequences sequences(schedule.order.size());
  for (std::size_t rank = 0; rank < sequences.size(); ++rank) {
    for (const schedules::Action& action : schedule.order[rank]) {
      const auto stage = static_cast<std::uint16_t>(schedule.StageOf(static_cast<std::int32_t>(rank), action.chunk));
      switch (action.kind) {
        case schedules::ActionKind::kForward:
          sequences[rank].push_back({stage, kF});
          break;
        case schedules::ActionKind::kInputGradient:
          sequences[rank].push_back({stage, kI});
          break;
        case schedules::ActionKind::kWeightGradient:
          sequences[rank].push_back({stage, kW});
          break;
        case schedules::ActionKind::kBackward:
          sequences[rank].push_back({stage, kI});
          sequences[rank].push_back({stage, kW});
          break;
      }
    }
  }
  return sequences;
}

schedules::Schedule ScheduleOf(const Sequences& sequences, const schedules::Placement& placement,
                               std::int32_t micro_batches) {
  constexpr std::array<schedules::ActionKind, kKinds> kKindOf = {
      schedules::ActionKind::kForward, schedules::ActionKind::kInputGradient, schedules::ActionKind::kWeightGradient};
  schedules::Schedule schedule{.placement = placement, .micro_batches = micro_batches, .order = {}};
  std::vector<std::array<std::int32_t, kKinds>> done(At(placement.stages()));
  for (const std::vector<Step>& sequence : sequences) {
    std::vector<schedules::Action> order;
    for (const Step& step : sequence) {
      const std::int32_t chunk = placement.PlaceOf(step.stage).chunk;
      order.push_back({kKindOf[step.kind], chunk, done[step.stage][step.kind]++});
    }
    schedule.order.push_back(std::move(order));
  }
  return schedule;
}

}  // namespace orrery::pipeline::optimizer
