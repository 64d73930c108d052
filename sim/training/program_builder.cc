#include "sim/training/program_builder.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "sim/training/gradient_reducer.h"
#include "sim/training/program_writer.h"
#include "sim/training/sharded_units.h"

namespace orrery::training {
namespace {

using engine::kNoEvent;
using engine::Op;
using engine::Part;
using engine::TimeClass;
using schedules::Action;
using schedules::ActionKind;

constexpr std::int32_t kNoMessage = -1;

bool IsBackward(ActionKind kind) { return kind == ActionKind::kBackward || kind == ActionKind::kWeightGradient; }

bool OperatorsApart(const Plan& plan) { return plan.run.simulation().granularity() == v1::OPERATOR; }

class Builder {
 public:
  Builder(const Plan& plan, const RolePrices& prices)
      : plan_(plan),
        software_(plan.run.software()),
        prices_(prices),
        connected_(plan.pp > 1 && !plan.Without(v1::CAUSE_BUBBLE)),
        mode_(plan.message_mode()),
        writer_(plan.Without(v1::CAUSE_HOST) ? Time() : TimeFromSeconds(software_.issue_seconds()),
                OperatorsApart(plan), plan.tp > 1 && (OperatorsApart(plan) || prices.members_differ)),
        reducer_(plan, writer_) {
    if (plan.gathers_units()) units_.emplace(plan, prices, writer_, reducer_);
    if (plan.overlaps_dynamically()) writer_.SlowDown(OverlapLoads(RuleBeside(v1::FORWARD), RuleBeside(v1::BACKWARD)));
  }

  LabelledProgram Build() {
    writer_.program().num_streams = plan_.replicas() > 1 ? kStreams : kReplicas;
    writer_.program().num_channels = connected_ ? static_cast<std::int32_t>(channels().size()) : 0;
    writer_.program().num_groups = GroupSlots(plan_);
    writer_.OpenHostOp();
    BeginIteration();
    GatherParameters();
    RunSchedule();
    FinishGradients();
    Update();
    return writer_.Take(prices_.message);
  }

 private:
  const std::vector<Action>& order() const {
    return plan_.schedule.order[static_cast<std::size_t>(prices_.pipeline_rank)];
  }
  const std::vector<Channel>& channels() const {
    return plan_.links.channels[static_cast<std::size_t>(prices_.pipeline_rank)];
  }
  bool overlaps_reduction() const {
    return plan_.dp > 1 && (software_.gradient_reduction() == v1::OVERLAPPED || units_.has_value());
  }
  bool overlaps_gather() const { return gathers() && software_.parameter_gather() == v1::OVERLAPPED; }
  // Updated parameters, once an iteration.
  bool gathers() const {
    return plan_.shard_ranks > 1 && plan_.run.parallelism().zero_stage() > 0 && !units_.has_value();
  }
  bool reduces_every_micro_batch() const { return plan_.dp > 1 && software_.reduce_every_micro_batch(); }

  // The rank's end of a message of the lowering.
  Part PartOf(std::int32_t message, bool is_send) const {
    const MessageEnds& ends = plan_.links.ends[static_cast<std::size_t>(message)];
    const std::int32_t channel = is_send ? ends.send_channel : ends.receive_channel;
    return {.channel = channel,
            .is_send = is_send,
            .sequence = ends.sequence,
            .duration = prices_.message[static_cast<std::size_t>(channel)].duration};
  }

  void BeginIteration() {
    Op begin = writer_.Mark(writer_.Label({.role = OpRole::kIterationBegin}));
    const bool pauses = prices_.step_overhead > Time();
    if (overlaps_gather() || units_.has_value() || pauses) begin.records = begin_event_ = writer_.NewEvent();
    writer_.Add(begin);
    if (units_.has_value()) units_->Begin(begin_event_);
    if (pauses) writer_.PauseHost(begin_event_, prices_.step_overhead);
    const double data_seconds = plan_.Without(v1::CAUSE_HOST) ? 0 : plan_.run.training().data_seconds();
    bool reads_input = false;
    for (std::int32_t chunk = 0; chunk < chunks(); ++chunk) reads_input = reads_input || NeedsInput(chunk);
    if (data_seconds > 0 && reads_input) {
      Op input = writer_.Local(kInput, writer_.Label({.role = OpRole::kInput}), TimeClass::kData,
                               TimeFromSeconds(data_seconds), 0);
      input.records = input_event_ = writer_.NewEvent();
      writer_.Add(input);
    }
  }

  // Parameters that other data-parallel ranks updated: ahead of the forward passes that need them, or before all.
  void GatherParameters() {
    gather_events_.resize(static_cast<std::size_t>(chunks()));
    if (!gathers()) return;
    for (std::int32_t chunk = 0; chunk < chunks(); ++chunk) {
      const std::int32_t parts = overlaps_gather() ? prices_.buckets[static_cast<std::size_t>(chunk)] : 1;
      for (std::int32_t part = 0; part < parts; ++part) GatherPart(chunk);
    }
  }

  void GatherPart(std::int32_t chunk) {
    const auto c = static_cast<std::size_t>(chunk);
    const std::int32_t tag = writer_.Label({.role = OpRole::kParameterGather, .chunk = chunk});
    const Communication price = Scaled(prices_.parameter_gather[c], CommunicationFactor(v1::FORWARD));
    Op gather = writer_.Collective(overlaps_gather() ? kDataParallel : kCompute, tag, kDataGroup, price,
                                   TimeClass::kExposedDp, TimeClass::kWaitDp);
    if (overlaps_gather()) {
      gather.waits[0] = begin_event_;
      gather.records = writer_.NewEvent();
      gather_events_[c].push_back(gather.records);
    }
    writer_.Add(gather);
  }

  void RunSchedule() {
    const auto rank = static_cast<std::size_t>(prices_.pipeline_rank);
    if (connected_ && mode_ == v1::EAGER) FindEagerMessages();
    for (std::size_t i = 0; i < order().size(); ++i) {
      if (connected_ && mode_ != v1::EAGER) Exchange(plan_.lowering.boundaries[rank][i]);
      RunPass(i);
    }
    if (connected_ && mode_ != v1::EAGER) Exchange(plan_.lowering.boundaries[rank].back());
  }

  // Which message each action consumes and produces.
  void FindEagerMessages() {
    consumed_.assign(order().size(), kNoMessage);
    produced_.assign(order().size(), kNoMessage);
    for (std::size_t i = 0; i < plan_.lowering.messages.size(); ++i) {
      const schedules::Message& message = plan_.lowering.messages[i];
      const auto index = static_cast<std::int32_t>(i);
      if (message.to_rank == prices_.pipeline_rank) consumed_[static_cast<std::size_t>(message.consumer)] = index;
      if (message.from_rank == prices_.pipeline_rank) produced_[static_cast<std::size_t>(message.producer)] = index;
    }
  }

  // The rendezvous messages of one boundary: one batch, or one after the other by peer, sends first.
  void Exchange(const schedules::Boundary& boundary) {
    std::vector<std::pair<std::int32_t, Part>> parts;  // by peer
    for (const std::int32_t index : boundary.sends) {
      parts.emplace_back(plan_.lowering.messages[static_cast<std::size_t>(index)].to_rank, PartOf(index, true));
    }
    for (const std::int32_t index : boundary.receives) {
      parts.emplace_back(plan_.lowering.messages[static_cast<std::size_t>(index)].from_rank, PartOf(index, false));
    }
    while (!parts.empty()) {
      const std::int32_t peer = parts.front().first;
      std::vector<Part> batch;
      std::erase_if(parts, [&](const auto& entry) {
        if (mode_ == v1::BLOCKING && entry.first != peer) return false;
        batch.push_back(entry.second);
        return true;
      });
      AddExchange(batch);
    }
  }

  void AddExchange(const std::vector<Part>& batch) {
    writer_.OpenHostOp();
    Op op = writer_.Exchange(writer_.Label({.role = OpRole::kExchange}), batch);
    const bool host_waits = software_.synchronise_after_exchange() && writer_.issuing_takes_time();
    if (host_waits) op.records = writer_.NewEvent();
    writer_.Add(op);
    if (host_waits) writer_.OpenHostOp(op.records);
  }

  void RunPass(std::size_t index) {
    const Action& action = order()[index];
    const auto chunk = static_cast<std::size_t>(action.chunk);
    const PricedPass& pass = prices_.chunks[chunk]->Of(action.kind);
    const std::int32_t tag = writer_.Label(
        {.role = OpRole::kPass, .action = action.kind, .chunk = action.chunk, .micro_batch = action.micro_batch});
    const bool first_forward = action.kind == ActionKind::kForward && forwards_done_[action.chunk]++ == 0;
    const bool last_backward = IsBackward(action.kind) && ++backwards_done_[action.chunk] ==
                                                              plan_.MicroBatchesOf(prices_.pipeline_rank, action.chunk);

    writer_.OpenHostOp();
    PassEnds ends;
    if (first_forward && NeedsInput(action.chunk)) ends.AddWait(input_event_);
    if (!consumed_.empty()) AddEagerMessages(index, ends);
    const bool reduces = IsBackward(action.kind) && (last_backward || reduces_every_micro_batch());
    if (units_.has_value()) {
      const v1::PassKind kind = action.kind == ActionKind::kForward ? v1::FORWARD : v1::BACKWARD;
      const v1::OverlapRule* rule = Rule(kind);
      units_->RunPass(pass,
                      {.kind = action.kind,
                       .tag = tag,
                       .compute_factor = rule == nullptr ? 1 : rule->compute_factor(),
                       .communication_factor = rule == nullptr ? 1 : rule->communication_factor(),
                       .reduces = reduces},
                      ends);
      return;
    }
    const double factor = ComputeFactor(first_forward, reduces);
    if (first_forward && overlaps_gather()) {
      GatherBesidePass(pass, tag, factor, ends, action.chunk);
    } else if (reduces && overlaps_reduction()) {
      ReduceBesidePass(pass, tag, factor, ends, action.chunk);
    } else {
      writer_.AddPass(pass, {0, pass.operators.size()}, tag, factor, ends);
      if (reduces && reduces_every_micro_batch()) ReduceOnItsOwn(action.chunk);
    }
  }

  // Both passes of a block wait for the inputs of both, and the results of both leave after the second.
  void AddEagerMessages(std::size_t index, PassEnds& ends) {
    const auto receive = [&](std::size_t i) {
      if (consumed_[i] != kNoMessage) ends.receives.push_back(PartOf(consumed_[i], false));
    };
    const auto send = [&](std::size_t i) {
      if (produced_[i] != kNoMessage) ends.sends.push_back(PartOf(produced_[i], true));
    };
    const bool second_of_block = index > 0 && order()[index - 1].fused;
    if (!second_of_block) receive(index);
    if (order()[index].fused) receive(index + 1);
    if (second_of_block) send(index - 1);
    if (!order()[index].fused) send(index);
  }

  std::int32_t chunks() const { return plan_.ChunksOf(prices_.pipeline_rank); }

  bool NeedsInput(std::int32_t chunk) const {
    const std::int32_t stage = plan_.schedule.StageOf(prices_.pipeline_rank, chunk);
    return plan_.IsFirstStage(stage) || plan_.IsLastStage(stage);
  }

  // A chunk's gradients on the compute stream.
  void ReduceOnItsOwn(std::int32_t chunk) {
    const auto c = static_cast<std::size_t>(chunk);
    for (std::int32_t bucket = 0; bucket < prices_.buckets[c]; ++bucket) {
      reducer_.OnItsOwn(prices_.gradient_bucket[c], {.role = OpRole::kGradientReduction, .chunk = chunk});
    }
  }

  // Parts into which a chunk's parameters and gradients are cut, part 0 with the last layers: its layers begin here.
  std::int64_t FirstLayerOf(std::int32_t part, std::int32_t chunk) const {
    const std::int64_t parts = prices_.buckets[static_cast<std::size_t>(chunk)];
    const std::int64_t layers = plan_.Stage(prices_.pipeline_rank, chunk).layers;
    return layers - ((part + 1) * layers + parts - 1) / parts;
  }

  // The first forward pass of a chunk, cut where it comes to parameters of the next part.
  void GatherBesidePass(const PricedPass& pass, std::int32_t tag, double factor, const PassEnds& ends,
                        std::int32_t chunk);

  // A backward pass whose gradients are reduced, cut where buckets become complete; each bucket's reduction follows.
  void ReduceBesidePass(const PricedPass& pass, std::int32_t tag, double factor, const PassEnds& ends,
                        std::int32_t chunk);

  void FinishGradients();
  void ReduceCopies();
  void Update();

  double CommunicationFactor(v1::PassKind kind) const;
  double ComputeFactor(bool first_forward, bool reduces) const;
  // The rule for data-parallel communication beside passes of a kind; null: none. Rule: that of static overlap.
  const v1::OverlapRule* RuleBeside(v1::PassKind kind) const;
  const v1::OverlapRule* Rule(v1::PassKind kind) const {
    return plan_.overlaps_dynamically() ? nullptr : RuleBeside(kind);
  }

  const Plan& plan_;
  const v1::Software& software_;
  const RolePrices& prices_;
  const bool connected_;
  const v1::MessageMode mode_;
  ProgramWriter writer_;
  GradientReducer reducer_;
  std::optional<ShardedUnits> units_;                   // where passes gather their parameters
  std::map<std::int32_t, std::int32_t> forwards_done_;  // by chunk
  std::map<std::int32_t, std::int32_t> backwards_done_;
  std::int32_t begin_event_ = kNoEvent;
  std::int32_t input_event_ = kNoEvent;
  std::int32_t barrier_event_ = kNoEvent;
  std::vector<std::vector<std::int32_t>> gather_events_;  // by chunk and part
  std::vector<std::int32_t> consumed_;                    // message by action, or kNoMessage; eager messages only
  std::vector<std::int32_t> produced_;
};

// The first stretch has what stands before the layers as well, the last what stands behind them.
void Builder::GatherBesidePass(const PricedPass& pass, std::int32_t tag, double factor, const PassEnds& ends,
                               std::int32_t chunk) {
  const std::vector<std::int32_t>& events = gather_events_[static_cast<std::size_t>(chunk)];
  const auto parts = static_cast<std::int32_t>(events.size());
  Stretch stretch;
  for (std::int32_t done = 0; done < parts; ++done) {
    const std::int32_t left = parts - 1 - done;  // parts behind this one
    stretch.end = left == 0 ? pass.operators.size() : stretch.begin;
    for (std::size_t i = stretch.begin; left > 0 && i < pass.operators.size(); ++i) {
      const std::int32_t layer = pass.operators[i].layer;
      if (layer >= 0 && layer < FirstLayerOf(left - 1, chunk)) stretch.end = i + 1;
    }
    PassEnds piece;
    piece.AddWait(events[static_cast<std::size_t>(done)]);
    if (done == 0) {
      for (const std::int32_t event : ends.waits) piece.AddWait(event);
      piece.receives = ends.receives;
    }
    if (left == 0) piece.sends = ends.sends;
    writer_.AddPass(pass, stretch, tag, factor, piece);
    stretch.begin = stretch.end;
  }
}

void Builder::ReduceBesidePass(const PricedPass& pass, std::int32_t tag, double factor, const PassEnds& ends,
                               std::int32_t chunk) {
  const auto c = static_cast<std::size_t>(chunk);
  const std::int32_t buckets = prices_.buckets[c];
  Stretch stretch;
  for (std::int32_t bucket = 0; bucket < buckets; ++bucket) {
    const bool last = bucket + 1 == buckets;
    stretch.end = last ? pass.operators.size() : stretch.begin;
    for (std::size_t i = stretch.begin; !last && i < pass.operators.size(); ++i) {
      if (pass.operators[i].layer >= FirstLayerOf(bucket, chunk)) stretch.end = i + 1;
    }
    PassEnds piece;
    if (bucket == 0) piece.waits = ends.waits, piece.receives = ends.receives;
    if (last) piece.sends = ends.sends;
    piece.records = writer_.NewEvent();
    writer_.AddPass(pass, stretch, tag, factor, piece);
    reducer_.Beside(prices_.gradient_bucket[c], {.role = OpRole::kGradientReduction, .chunk = chunk}, piece.records,
                    CommunicationFactor(v1::BACKWARD));
    stretch.begin = stretch.end;
  }
}

// Gradients are complete on all ranks, and all ranks agree on their norm.
void Builder::FinishGradients() {
  writer_.OpenHostOp();
  if (overlaps_reduction()) {
    reducer_.Wait();
  } else if (plan_.dp > 1 && !reduces_every_micro_batch()) {
    for (std::int32_t chunk = chunks() - 1; chunk >= 0; --chunk) ReduceOnItsOwn(chunk);
  }
  ReduceCopies();
  if (prices_.embedding_reduction) {
    writer_.Add(writer_.Collective(kCompute, writer_.Label({.role = OpRole::kEmbeddingReduction}), kEmbeddingGroup,
                                   prices_.embedding_reduction_time, TimeClass::kExposedPp, TimeClass::kBubble));
  }
  if (plan_.norm_barrier()) {
    const TimeClass missing = plan_.pp > 1   ? TimeClass::kBubble
                              : plan_.dp > 1 ? TimeClass::kWaitDp
                                             : TimeClass::kWaitTp;
    Op barrier = writer_.Collective(kCompute, writer_.Label({.role = OpRole::kNormBarrier}), kWorldGroup,
                                    prices_.norm_barrier, TimeClass::kExposedDp, missing);
    if (writer_.issuing_takes_time()) barrier.records = barrier_event_ = writer_.NewEvent();
    writer_.Add(barrier);
  }
  if (prices_.slowest_wait > Time()) {
    // Other replicas, or, where there are none, other pipeline ranks, or other tensor-parallel ones.
    const TimeClass missing = plan_.dp > 1   ? TimeClass::kWaitDp
                              : plan_.pp > 1 ? TimeClass::kBubble
                                             : TimeClass::kWaitTp;
    writer_.Add(
        writer_.Local(kCompute, writer_.Label({.role = OpRole::kSlowestWait}), missing, prices_.slowest_wait, 0));
  }
}

// All ranks go through the stages in one order, so that no two wait for each other.
void Builder::ReduceCopies() {
  if (prices_.copies_reduction.empty()) return;
  std::vector<std::int32_t> by_stage(static_cast<std::size_t>(chunks()));
  std::iota(by_stage.begin(), by_stage.end(), 0);
  std::sort(by_stage.begin(), by_stage.end(), [&](std::int32_t a, std::int32_t b) {
    return plan_.schedule.StageOf(prices_.pipeline_rank, a) < plan_.schedule.StageOf(prices_.pipeline_rank, b);
  });
  for (const std::int32_t chunk : by_stage) {
    const std::int32_t tag = writer_.Label({.role = OpRole::kCopiesReduction, .chunk = chunk});
    writer_.Add(writer_.Collective(kCompute, tag, kCopiesGroup + chunk,
                                   prices_.copies_reduction[static_cast<std::size_t>(chunk)], TimeClass::kExposedDp,
                                   TimeClass::kWaitDp));
  }
}

// The host reads the norm before it issues the update, so the barrier holds it back as well.
void Builder::Update() {
  if (barrier_event_ != kNoEvent) writer_.OpenHostOp(barrier_event_);
  writer_.program().update_op =
      writer_.Add(writer_.Local(kCompute, writer_.Label({.role = OpRole::kOptimizer}), TimeClass::kOptimizer,
                                prices_.optimizer, prices_.optimizer_kernels));
}

const v1::OverlapRule* Builder::RuleBeside(v1::PassKind kind) const {
  if (plan_.Without(v1::CAUSE_EXPOSED_DP)) return nullptr;
  const bool gathers_beside = overlaps_gather() || (units_.has_value() && software_.gather_ahead() > 0);
  if (kind == v1::FORWARD ? !gathers_beside : !overlaps_reduction()) return nullptr;
  const bool all = units_.has_value() || (kind == v1::BACKWARD && reduces_every_micro_batch());
  const v1::MicroBatches where = all ? v1::ALL : kind == v1::FORWARD ? v1::FIRST : v1::LAST;
  for (const v1::OverlapRule& rule : software_.overlap_rules()) {
    if (rule.axis() == v1::DP && rule.pass() == kind && rule.micro_batches() == where) return &rule;
  }
  return nullptr;
}

double Builder::CommunicationFactor(v1::PassKind kind) const {
  const v1::OverlapRule* rule = Rule(kind);
  return rule == nullptr ? 1 : rule->communication_factor();
}

double Builder::ComputeFactor(bool first_forward, bool reduces) const {
  const v1::OverlapRule* rule = first_forward ? Rule(v1::FORWARD) : reduces ? Rule(v1::BACKWARD) : nullptr;
  return rule == nullptr ? 1 : rule->compute_factor();
}

}  // namespace

std::int32_t GroupSlots(const Plan& plan) { return kCopiesGroup + (plan.copies() > 1 ? plan.chunks : 0); }

LabelledProgram BuildProgram(const Plan& plan, const RolePrices& prices) { return Builder(plan, prices).Build(); }

}  // namespace orrery::training
