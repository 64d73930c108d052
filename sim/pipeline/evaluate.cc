#include "sim/pipeline/evaluate.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "schedules/steps.h"
#include "sim/engine/program.h"
#include "sim/engine/replay.h"
#include "sim/engine/world.h"

namespace orrery::pipeline {
namespace {

using engine::Op;
using engine::Part;
using engine::Program;
using engine::Segment;
using engine::World;
using schedules::Action;
using schedules::ActionKind;
using schedules::IsForward;
using schedules::PassCosts;
using schedules::Schedule;

std::size_t At(std::int32_t i) { return static_cast<std::size_t>(i); }

std::int64_t CostOf(ActionKind kind, const PassCosts& costs) {
  switch (kind) {
    case ActionKind::kForward:
      return costs.forward;
    case ActionKind::kBackward:
      return costs.backward();
    case ActionKind::kInputGradient:
      return costs.input_gradient;
    case ActionKind::kWeightGradient:
      return costs.weight_gradient;
  }
  return 0;
}

absl::Status CheckCosts(const Schedule& schedule, const Costs& costs) {
  const auto stages = static_cast<std::size_t>(schedule.stages());
  if (costs.stages.size() != 1 && costs.stages.size() != stages) {
    return absl::InvalidArgumentError(absl::StrCat("costs of ", costs.stages.size(), " stages for a schedule of ",
                                                   stages, "; allowed: one for all, or one for each"));
  }
  // Half of what 64 bits hold: I + W of a stage must fit as well.
  const auto wrong = [](std::int64_t cost) { return cost < 0 || cost > std::numeric_limits<std::int64_t>::max() / 2; };
  const auto error = [](const auto&... what) {
    return absl::InvalidArgumentError(absl::StrCat(what..., "; allowed: 0 to 2^62"));
  };
  for (std::size_t s = 0; s < costs.stages.size(); ++s) {
    for (const auto& [name, cost] : {std::pair{"F", costs.stages[s].forward},
                                     {"I", costs.stages[s].input_gradient},
                                     {"W", costs.stages[s].weight_gradient}}) {
      if (wrong(cost)) return error("cost of ", name, " on stage ", s, " is ", cost);
    }
  }
  if (wrong(costs.latency)) return error("latency of a message is ", costs.latency);
  if (costs.block && wrong(*costs.block)) return error("cost of a block is ", *costs.block);
  if (wrong(costs.memory.forward) || costs.memory.weight < 0 || costs.memory.weight > costs.memory.forward) {
    return absl::InvalidArgumentError(absl::StrCat("memory of a forward pass is ", costs.memory.forward,
                                                   ", what a weight gradient frees of it ", costs.memory.weight,
                                                   "; allowed: 0 to 2^62, and no more than the former"));
  }
  return absl::OkStatus();
}

// The world of a schedule: one unit and program per rank, with one operation per action or block and an update of no
// duration at the end. Channel 2 c of a rank leads to the stage before that of its chunk c, channel 2 c + 1 to the
// stage after; what stays on a rank is no message.
class WorldOfSchedule {
 public:
  WorldOfSchedule(const Schedule& schedule, const Costs& costs) : schedule_(schedule), costs_(costs) {
    sequences_.resize(2 * At(schedule.stages()) * At(schedule.micro_batches));
    for (std::int32_t rank = 0; rank < schedule.ranks(); ++rank) {
      AddRoutes(rank);
      NumberMessages(rank);
    }
    world_.programs.resize(At(schedule.ranks()));
    for (std::int32_t rank = 0; rank < schedule.ranks(); ++rank) {
      WriteProgram(rank);
      AddUnit(rank);
    }
  }

  const World& world() const { return world_; }
  std::int64_t messages() const { return messages_; }
  // Of all passes.
  Int128 work() const { return work_; }

 private:
  // What the passes of one chunk in one direction receive and send: over which channel, or kNone where it stays on the
  // rank or does not exist, and where the sequences of these messages stand, by micro-batch.
  static constexpr std::int32_t kNone = -1;
  struct Route {
    std::int32_t from_channel = kNone;
    std::int32_t to_channel = kNone;
    std::size_t received = 0;  // in sequences_
    std::size_t sent = 0;
  };

  bool IsStage(std::int32_t stage) const { return stage >= 0 && stage < schedule_.stages(); }

  void AddRoutes(std::int32_t rank) {
    first_route_.push_back(routes_.size());
    for (std::int32_t chunk = 0; chunk < schedule_.placement.ChunksOf(rank); ++chunk) {
      const std::int32_t stage = schedule_.StageOf(rank, chunk);
      const std::int32_t pipeline = schedule_.placement.PipelineOf(rank, chunk);
      const auto channel = [&](std::int32_t other) {
        if (!IsStage(other) || schedule_.placement.PlaceOf(other, pipeline).rank == rank) return kNone;
        return 2 * chunk + (other > stage ? 1 : 0);
      };
      for (const std::int32_t step : {-1, 1}) {  // backward, forward
        const auto sequences = [&](std::int32_t from_stage) {
          const std::size_t row = IsStage(from_stage) ? 2 * At(from_stage) + (step > 0 ? 1 : 0) : 0;
          return row * At(schedule_.micro_batches);
        };
        routes_.push_back({channel(stage - step), channel(stage + step), sequences(stage - step), sequences(stage)});
      }
    }
  }

  std::size_t RouteOf(std::int32_t rank, const Action& action) const {
    return first_route_[At(rank)] + 2 * At(action.chunk) + (IsForward(action.kind) ? 1 : 0);
  }

  // Messages of a channel are numbered in the order in which they are sent.
  void NumberMessages(std::int32_t rank) {
    std::vector<std::int32_t> next(routes_.size() - first_route_[At(rank)]);
    for (const Action& action : schedule_.order[At(rank)]) {
      if (action.kind == ActionKind::kWeightGradient) continue;
      const std::size_t route = RouteOf(rank, action);
      sequences_[routes_[route].sent + At(action.micro_batch)] = next[route - first_route_[At(rank)]]++;
    }
  }

  void WriteProgram(std::int32_t rank) {
    Program& program = world_.programs[At(rank)];
    const std::vector<Action>& order = schedule_.order[At(rank)];
    const std::int32_t chunks = schedule_.placement.ChunksOf(rank);
    program.num_channels = 2 * chunks;
    program.host_ops.emplace_back();
    program.ops.reserve(order.size() + 1);
    program.parts.reserve(2 * order.size());
    for (std::int32_t chunk = 0; chunk < chunks; ++chunk) {
      const PassCosts& costs = costs_.Of(schedule_.StageOf(rank, chunk));
      for (int kind = 0; kind < kKinds; ++kind) AddSegment(program, CostOf(static_cast<ActionKind>(kind), costs));
    }
    Op op;
    op.pipeline = true;
    op.num_segments = 1;
    for (std::size_t i = 0; i < order.size(); ++i) {
      op.first_part = static_cast<std::int32_t>(program.parts.size());
      op.first_segment = SegmentOf(order[i]);
      AddParts(program, rank, order[i]);
      if (order[i].fused) {
        op.first_segment = AddBlockSegment(program, order[i], order[i + 1]);
        AddParts(program, rank, order[++i]);
      }
      op.num_parts = static_cast<std::int32_t>(program.parts.size()) - op.first_part;
      work_ += program.segments[At(op.first_segment)].duration.count();
      program.ops.push_back(op);
    }
    program.update_op = static_cast<std::int32_t>(program.ops.size());
    program.ops.emplace_back();
  }

  static std::int32_t SegmentOf(const Action& action) { return action.chunk * kKinds + static_cast<int>(action.kind); }

  static void AddSegment(Program& program, std::int64_t cost) {
    Segment segment;
    segment.duration = Time(cost);
    program.segments.push_back(segment);
  }

  // The block's own cost, or that of both members, which are two of the rank's segments.
  std::int32_t AddBlockSegment(Program& program, const Action& first, const Action& second) const {
    const std::int64_t sum =
        (program.segments[At(SegmentOf(first))].duration + program.segments[At(SegmentOf(second))].duration).count();
    AddSegment(program, costs_.block.value_or(sum));
    return static_cast<std::int32_t>(program.segments.size()) - 1;
  }

  void AddParts(Program& program, std::int32_t rank, const Action& action) {
    if (action.kind == ActionKind::kWeightGradient) return;
    const Route& route = routes_[RouteOf(rank, action)];
    const std::size_t k = At(action.micro_batch);
    if (route.from_channel != kNone) {
      program.parts.push_back({route.from_channel, false, sequences_[route.received + k], Time(costs_.latency)});
    }
    if (route.to_channel != kNone) {
      program.parts.push_back({route.to_channel, true, sequences_[route.sent + k], Time(costs_.latency)});
      ++messages_;
    }
  }

  void AddUnit(std::int32_t rank) {
    engine::Unit unit;
    unit.program = rank;
    unit.first_rank = rank;
    for (std::int32_t chunk = 0; chunk < schedule_.placement.ChunksOf(rank); ++chunk) {
      const std::int32_t stage = schedule_.StageOf(rank, chunk);
      const std::int32_t pipeline = schedule_.placement.PipelineOf(rank, chunk);
      for (const std::int32_t other : {stage - 1, stage + 1}) {
        engine::Peer peer;
        if (IsStage(other)) {
          const schedules::Place place = schedule_.placement.PlaceOf(other, pipeline);
          peer = {place.rank, 2 * place.chunk + (other > stage ? 0 : 1)};
        }
        unit.peers.push_back(peer);
      }
    }
    world_.units.push_back(std::move(unit));
  }

  static constexpr int kKinds = 4;

  const Schedule& schedule_;
  const Costs& costs_;
  World world_;
  std::int64_t messages_ = 0;
  Int128 work_ = 0;
  std::vector<Route> routes_;             // by rank, chunk and direction, backward first
  std::vector<std::size_t> first_route_;  // [rank]
  // Of the message that a stage sends, by stage, direction (backward first) and micro-batch.
  std::vector<std::int32_t> sequences_;
};

// No instant lies after the sum of all durations and latencies.
absl::Status CheckSums(const WorldOfSchedule& built, const Costs& costs) {
  const Int128 sum = static_cast<Int128>(costs.latency) * built.messages() + built.work();
  Int128 memory = 0;
  for (const Program& program : built.world().programs) {
    memory += static_cast<Int128>(costs.memory.forward) * static_cast<std::int64_t>(program.ops.size());
  }
  // The engine looks two iterations ahead.
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 4;
  if (sum > kMost || memory > kMost) {
    return absl::InvalidArgumentError("the costs of all passes and messages add up to more than 2^61");
  }
  return absl::OkStatus();
}

// Most that a rank holds, walking its order. Of a block the forward pass comes first, whichever is listed first.
void CountPeaks(const std::vector<Action>& order, const schedules::PassMemory& memory, RankEvaluation& rank) {
  std::int64_t activations = 0;
  std::int64_t held = 0;
  const auto count = [&](ActionKind kind) {
    switch (kind) {
      case ActionKind::kForward:
        ++activations;
        held += memory.forward;
        break;
      case ActionKind::kBackward:
        --activations;
        held -= memory.forward;
        break;
      case ActionKind::kInputGradient:
        held -= memory.forward - memory.weight;
        break;
      case ActionKind::kWeightGradient:
        --activations;
        held -= memory.weight;
        break;
    }
    rank.peak_activations = std::max(rank.peak_activations, activations);
    rank.peak_memory = std::max(rank.peak_memory, held);
  };
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i].fused && IsForward(order[i + 1].kind)) {
      count(order[i + 1].kind);
      count(order[i].kind);
      ++i;
    } else {
      count(order[i].kind);
    }
  }
}

// From the trace of the first iteration. Operations of no duration at its very end are not in it.
std::vector<std::vector<Span>> SpansOf(const Schedule& schedule, const engine::Replay& replay) {
  const std::int64_t makespan = replay.window_end.count();
  std::vector<std::vector<Span>> spans;
  std::vector<std::vector<std::size_t>> first_action;  // [rank][op]
  for (const std::vector<Action>& order : schedule.order) {
    spans.emplace_back(order.size(), Span{makespan, makespan});
    std::vector<std::size_t>& first = first_action.emplace_back();
    for (std::size_t i = 0; i < order.size(); ++i) {
      first.push_back(i);
      if (order[i].fused) ++i;
    }
  }
  for (const engine::TracedSpan& traced : replay.trace) {
    const std::vector<std::size_t>& first = first_action[At(traced.unit)];
    if (At(traced.op) >= first.size()) continue;  // the update
    const std::size_t action = first[At(traced.op)];
    std::vector<Span>& of_rank = spans[At(traced.unit)];
    of_rank[action] = {traced.start.count(), traced.end.count()};
    if (schedule.order[At(traced.unit)][action].fused) of_rank[action + 1] = of_rank[action];
  }
  return spans;
}

}  // namespace

absl::StatusOr<Evaluation> Evaluate(const Schedule& schedule, const Costs& costs, const EvaluateOptions& options) {
  ABSL_RETURN_IF_ERROR(schedules::Validate(schedule));
  ABSL_RETURN_IF_ERROR(CheckCosts(schedule, costs));
  const WorldOfSchedule built(schedule, costs);
  ABSL_RETURN_IF_ERROR(CheckSums(built, costs));
  engine::ReplayOptions replay_options;
  replay_options.iterations = 0;
  replay_options.nothing_follows = true;
  replay_options.reverse_ties = options.reverse_ties;
  if (options.spans) {
    replay_options.traced_units.resize(At(schedule.ranks()));
    std::iota(replay_options.traced_units.begin(), replay_options.traced_units.end(), 0);
  }
  ABSL_ASSIGN_OR_RETURN(const engine::Replay replay, engine::Run(built.world(), replay_options));

  Evaluation evaluation;
  evaluation.makespan = replay.window_end.count();
  evaluation.messages = built.messages();
  for (std::int32_t r = 0; r < schedule.ranks(); ++r) {
    RankEvaluation& rank = evaluation.ranks.emplace_back();
    rank.first_start = replay.units[At(r)].pipeline_first_start.count();
    rank.last_end = replay.units[At(r)].pipeline_last_end.count();
    rank.busy = replay.units[At(r)].pipeline_busy.count();
    CountPeaks(schedule.order[At(r)], costs.memory, rank);
    evaluation.longest_span = std::max(evaluation.longest_span, rank.span());
  }
  if (options.spans) evaluation.spans = SpansOf(schedule, replay);
  return evaluation;
}

}  // namespace orrery::pipeline
