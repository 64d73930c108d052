#include "sim/training/program_builder.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "base/check.h"

namespace orrery::training {
namespace {

using engine::kNoEvent;
using engine::Op;
using engine::OpKind;
using engine::Part;
using engine::Segment;
using engine::TimeClass;
using schedules::Action;
using schedules::ActionKind;

Time Scaled(Time time, double factor) {
  if (factor == 1) return time;
  return Time(std::llround(static_cast<double>(time.count()) * factor));
}

bool IsBackward(ActionKind kind) { return kind == ActionKind::kBackward || kind == ActionKind::kWeightGradient; }

class Builder {
 public:
  Builder(const Plan& plan, const RolePrices& prices)
      : plan_(plan),
        software_(plan.run.software()),
        prices_(prices),
        issue_(plan.Without(v1::CAUSE_HOST) ? Time() : TimeFromSeconds(software_.issue_seconds())),
        operators_apart_(plan.run.simulation().granularity() == v1::OPERATOR),
        connected_(plan.pp > 1 && !plan.Without(v1::CAUSE_BUBBLE)) {}

  LabelledProgram Build() {
    program().num_streams = kStreams;
    program().num_channels = connected_ ? kChannels : 0;
    program().num_groups = kGroupSlots;
    OpenHostOp(kNoEvent);
    BeginIteration();
    GatherParameters();
    RunSchedule();
    FinishGradients();
    Update();
    return std::move(result_);
  }

 private:
  // Operators [begin, end) of a pass.
  struct Stretch {
    std::size_t begin = 0;
    std::size_t end = 0;
  };

  // What happens at the ends of a pass.
  struct PassEnds {
    std::vector<std::int32_t> waits;
    std::vector<Part> receives;
    std::vector<Part> sends;
    std::int32_t records = kNoEvent;
  };
  static void AddWait(PassEnds& ends, std::int32_t event) {
    if (event != kNoEvent) ends.waits.push_back(event);
  }

  engine::Program& program() { return result_.program; }
  const std::vector<Action>& order() const {
    return plan_.schedule.order[static_cast<std::size_t>(prices_.pipeline_rank)];
  }
  bool overlaps_reduction() const { return plan_.dp > 1 && software_.gradient_reduction() == v1::OVERLAPPED; }
  bool overlaps_gather() const { return gathers() && software_.parameter_gather() == v1::OVERLAPPED; }
  bool gathers() const { return plan_.dp > 1 && plan_.run.parallelism().zero_stage() > 0; }

  // --- Building blocks
  // -------------------------------------------------------------------------------------------------

  std::int32_t NewEvent() { return program().num_events++; }

  // Starts a host op if issuing costs time; operations that follow are issued by it. With free issue one host op
  // suffices.
  void OpenHostOp(std::int32_t waits) {
    if (!program().host_ops.empty() && issue_ == Time() && waits == kNoEvent) return;
    program().host_ops.push_back({.waits = waits, .duration = Time()});
  }
  // Issues `kernels` kernels; returns when the first of them has been issued.
  Time Issue(int kernels) {
    engine::HostOp& host = program().host_ops.back();
    const Time first = host.duration + (kernels > 0 ? issue_ : Time());
    host.duration += issue_ * kernels;
    return first;
  }

  std::int32_t Label(OpLabel label) {
    result_.labels.ops.push_back(label);
    return static_cast<std::int32_t>(result_.labels.ops.size()) - 1;
  }

  Op NewOp(OpKind kind, Stream stream, std::int32_t tag) {
    Op op;
    op.kind = kind;
    op.stream = stream;
    op.host_op = static_cast<std::int32_t>(program().host_ops.size()) - 1;
    op.tag = tag;
    return op;
  }

  std::int32_t Add(const Op& op) {
    program().ops.push_back(op);
    return static_cast<std::int32_t>(program().ops.size()) - 1;
  }

  std::int32_t AddSegment(const Segment& segment) {
    program().segments.push_back(segment);
    return static_cast<std::int32_t>(program().segments.size()) - 1;
  }

  // A local operation of one segment.
  Op LocalOp(Stream stream, std::int32_t tag, TimeClass time_class, Time duration, int kernels) {
    Op op = NewOp(OpKind::kLocal, stream, tag);
    op.first_segment = AddSegment({.time_class = time_class, .duration = duration, .issue = Issue(kernels)});
    op.num_segments = 1;
    return op;
  }

  // A local operation that takes no time: where events, messages and phases meet.
  Op Mark(std::int32_t tag) { return NewOp(OpKind::kLocal, kCompute, tag); }

  Op Collective(Stream stream, std::int32_t tag, GroupSlot group, Time duration, TimeClass transfer,
                TimeClass missing) {
    Op op = NewOp(OpKind::kCollective, stream, tag);
    op.issue = Issue(1);
    op.group = group;
    op.use = uses_[static_cast<std::size_t>(group)]++;
    op.duration = duration;
    op.transfer_class = transfer;
    op.missing_class = missing;
    return op;
  }

  Part NewPart(Channel channel, bool is_send) {
    const auto i = static_cast<std::size_t>(channel);
    return {.channel = channel, .is_send = is_send, .sequence = sequence_[i]++, .duration = prices_.message[i]};
  }
  Channel ChannelOf(const schedules::Message& message, bool is_send) const {
    if (message.forward) return is_send ? kForwardToNext : kForwardFromPrevious;
    return is_send ? kBackwardToPrevious : kBackwardFromNext;
  }

  // --- The iteration, in order
  // -----------------------------------------------------------------------------------------

  void BeginIteration() {
    Op begin = Mark(Label({.role = OpRole::kIterationBegin}));
    if (overlaps_gather()) begin.records = begin_event_ = NewEvent();
    Add(begin);
    const double data_seconds = plan_.Without(v1::CAUSE_HOST) ? 0 : plan_.run.training().data_seconds();
    const bool reads_input = prices_.pipeline_rank == 0 || prices_.pipeline_rank + 1 == plan_.pp;
    if (data_seconds > 0 && reads_input) {
      Op input = LocalOp(kInput, Label({.role = OpRole::kInput}), TimeClass::kData, TimeFromSeconds(data_seconds), 0);
      input.records = input_event_ = NewEvent();
      Add(input);
    }
  }

  // Parameters that other data-parallel ranks updated: ahead of the forward passes that need them, or before all.
  void GatherParameters() {
    gather_event_.assign(static_cast<std::size_t>(plan_.chunks), kNoEvent);
    if (!gathers()) return;
    const double factor = CommunicationFactor(v1::FORWARD);
    for (std::int32_t chunk = 0; chunk < plan_.chunks; ++chunk) {
      const auto i = static_cast<std::size_t>(chunk);
      const std::int32_t tag = Label({.role = OpRole::kParameterGather, .chunk = chunk});
      Op gather = Collective(overlaps_gather() ? kDataParallel : kCompute, tag, kDataGroup,
                             Scaled(prices_.parameter_gather[i], factor), TimeClass::kExposedDp, TimeClass::kWaitDp);
      if (overlaps_gather()) {
        gather.waits[0] = begin_event_;
        gather.records = gather_event_[i] = NewEvent();
      }
      Add(gather);
    }
  }

  void RunSchedule() {
    const auto rank = static_cast<std::size_t>(prices_.pipeline_rank);
    if (connected_ && software_.message_mode() == v1::EAGER) FindEagerMessages();
    for (std::size_t i = 0; i < order().size(); ++i) {
      if (connected_ && software_.message_mode() != v1::EAGER) Exchange(plan_.lowering.boundaries[rank][i]);
      RunPass(i);
    }
    if (connected_ && software_.message_mode() != v1::EAGER) Exchange(plan_.lowering.boundaries[rank].back());
  }

  // Which message each action consumes and produces.
  void FindEagerMessages() {
    consumed_.assign(order().size(), nullptr);
    produced_.assign(order().size(), nullptr);
    for (const schedules::Message& message : plan_.lowering.messages) {
      if (message.to_rank == prices_.pipeline_rank) consumed_[static_cast<std::size_t>(message.consumer)] = &message;
      if (message.from_rank == prices_.pipeline_rank) produced_[static_cast<std::size_t>(message.producer)] = &message;
    }
  }

  // The rendezvous messages of one boundary: one batch, or one after the other by peer, sends first.
  void Exchange(const schedules::Boundary& boundary) {
    std::vector<std::pair<std::int32_t, Part>> parts;  // by peer
    for (const std::int32_t index : boundary.sends) {
      const schedules::Message& message = plan_.lowering.messages[static_cast<std::size_t>(index)];
      parts.emplace_back(message.to_rank, NewPart(ChannelOf(message, true), true));
    }
    for (const std::int32_t index : boundary.receives) {
      const schedules::Message& message = plan_.lowering.messages[static_cast<std::size_t>(index)];
      parts.emplace_back(message.from_rank, NewPart(ChannelOf(message, false), false));
    }
    while (!parts.empty()) {
      const std::int32_t peer = parts.front().first;
      std::vector<Part> batch;
      std::erase_if(parts, [&](const auto& entry) {
        if (software_.message_mode() == v1::BLOCKING && entry.first != peer) return false;
        batch.push_back(entry.second);
        return true;
      });
      AddExchange(batch);
    }
  }

  void AddExchange(const std::vector<Part>& batch) {
    OpenHostOp(kNoEvent);
    Op op = NewOp(OpKind::kExchange, kCompute, Label({.role = OpRole::kExchange}));
    op.issue = Issue(1);
    op.pipeline = true;
    op.first_part = static_cast<std::int32_t>(program().parts.size());
    op.num_parts = static_cast<std::int32_t>(batch.size());
    program().parts.insert(program().parts.end(), batch.begin(), batch.end());
    if (software_.synchronise_after_exchange() && issue_ > Time()) {
      op.records = NewEvent();
      Add(op);
      OpenHostOp(op.records);
    } else {
      Add(op);
    }
  }

  void RunPass(std::size_t index) {
    const Action& action = order()[index];
    const auto chunk = static_cast<std::size_t>(action.chunk);
    const PricedPass& pass = prices_.chunks[chunk]->Of(action.kind);
    const std::int32_t tag =
        Label({.role = OpRole::kPass, .action = action.kind, .chunk = action.chunk, .micro_batch = action.micro_batch});
    const bool first_forward = action.kind == ActionKind::kForward && action.micro_batch == 0;
    const bool last_backward = IsBackward(action.kind) && ++backwards_done_[action.chunk] == plan_.micro_batches;

    OpenHostOp(kNoEvent);
    PassEnds ends;
    if (first_forward) AddWait(ends, gather_event_[chunk]);
    if (first_forward && NeedsInput(action)) AddWait(ends, input_event_);
    if (!consumed_.empty() && consumed_[index] != nullptr) {
      ends.receives.push_back(NewPart(ChannelOf(*consumed_[index], false), false));
    }
    if (!produced_.empty() && produced_[index] != nullptr) {
      ends.sends.push_back(NewPart(ChannelOf(*produced_[index], true), true));
    }
    const double factor = ComputeFactor(first_forward, last_backward);
    if (last_backward && overlaps_reduction()) {
      ReduceBesidePass(pass, tag, factor, ends, action.chunk);
    } else {
      EmitPass(pass, {0, pass.operators.size()}, tag, factor, ends);
    }
  }

  bool NeedsInput(const Action& action) const {
    const std::int32_t stage = plan_.schedule.StageOf(prices_.pipeline_rank, action.chunk);
    return plan_.IsFirstStage(stage) || plan_.IsLastStage(stage);
  }

  // The last backward pass of a chunk, cut where gradient buckets become complete; each bucket's reduction follows.
  void ReduceBesidePass(const PricedPass& pass, std::int32_t tag, double factor, const PassEnds& ends,
                        std::int32_t chunk);

  // Emits a stretch of a pass: whole, or cut at what meets other ranks.
  void EmitPass(const PricedPass& pass, Stretch stretch, std::int32_t tag, double factor, const PassEnds& ends);
  void EmitGroup(const PricedPass& pass, Stretch group, std::int32_t tag, double factor, Op op);
  std::int32_t PassSegments(const PricedPass& pass, Stretch group, double factor, int kernels_before);
  std::int32_t OperatorTag(std::string_view name);

  void FinishGradients();
  void Update();

  double CommunicationFactor(v1::PassKind kind) const;
  double ComputeFactor(bool first_forward, bool last_backward) const;
  const v1::OverlapRule* Rule(v1::PassKind kind) const;

  const Plan& plan_;
  const v1::Software& software_;
  const RolePrices& prices_;
  const Time issue_;
  const bool operators_apart_;
  const bool connected_;
  LabelledProgram result_;
  std::array<std::int32_t, kGroupSlots> uses_{};
  std::array<std::int32_t, kChannels> sequence_{};
  std::map<std::int32_t, std::int32_t> backwards_done_;
  std::int32_t begin_event_ = kNoEvent;
  std::int32_t input_event_ = kNoEvent;
  std::int32_t reduction_event_ = kNoEvent;
  std::int32_t barrier_event_ = kNoEvent;
  std::vector<std::int32_t> gather_event_;
  std::vector<const schedules::Message*> consumed_;
  std::vector<const schedules::Message*> produced_;
  std::map<std::tuple<const PricedPass*, std::size_t, std::size_t, double, int>, std::int32_t> segments_;
};

void Builder::ReduceBesidePass(const PricedPass& pass, std::int32_t tag, double factor, const PassEnds& ends,
                               std::int32_t chunk) {
  const auto c = static_cast<std::size_t>(chunk);
  const std::int32_t buckets = prices_.buckets[c];
  const std::int64_t layers = plan_.Stage(prices_.pipeline_rank, chunk).layers;
  Stretch stretch;
  for (std::int32_t bucket = 1; bucket <= buckets; ++bucket) {
    // Bucket b is complete once the backward pass has left layer `layers - b layers / buckets` (rounded up).
    const std::int64_t lowest = layers - (bucket * layers + buckets - 1) / buckets;
    stretch.end = stretch.begin;
    for (std::size_t i = stretch.begin; i < pass.operators.size(); ++i) {
      if (pass.operators[i].layer >= lowest) stretch.end = i + 1;
    }
    if (bucket == buckets) stretch.end = pass.operators.size();
    PassEnds piece;
    if (bucket == 1) piece.waits = ends.waits, piece.receives = ends.receives;
    if (bucket == buckets) piece.sends = ends.sends;
    piece.records = NewEvent();
    EmitPass(pass, stretch, tag, factor, piece);
    const std::int32_t label = Label({.role = OpRole::kGradientReduction, .chunk = chunk});
    Op reduction = Collective(kDataParallel, label, kDataGroup,
                              Scaled(prices_.gradient_bucket[c], CommunicationFactor(v1::BACKWARD)),
                              TimeClass::kExposedDp, TimeClass::kWaitDp);
    reduction.waits[0] = piece.records;
    reduction.records = reduction_event_ = NewEvent();
    Add(reduction);
    stretch.begin = stretch.end;
  }
}

// In one operation where nothing inside meets another rank; else local stretches and collectives alternate. What waits,
// receives, sends and records is then a mark of no duration at either end.
void Builder::EmitPass(const PricedPass& pass, Stretch stretch, std::int32_t tag, double factor, const PassEnds& ends) {
  const bool meets = plan_.tp > 1 && (operators_apart_ || prices_.members_differ);
  const bool whole = !meets && !operators_apart_;
  Op first = Mark(tag);
  first.pipeline = true;
  for (std::size_t i = 0; i < ends.waits.size(); ++i) first.waits[i] = ends.waits[i];
  first.first_part = static_cast<std::int32_t>(program().parts.size());
  program().parts.insert(program().parts.end(), ends.receives.begin(), ends.receives.end());
  first.num_parts = static_cast<std::int32_t>(ends.receives.size());
  if (whole) {
    program().parts.insert(program().parts.end(), ends.sends.begin(), ends.sends.end());
    first.num_parts += static_cast<std::int32_t>(ends.sends.size());
    first.records = ends.records;
    EmitGroup(pass, stretch, tag, factor, first);
    return;
  }
  if (!ends.waits.empty() || !ends.receives.empty()) {
    // It is there when the first kernel is issued, as the whole pass would be.
    const Time issue = program().host_ops.back().duration + issue_;
    first.first_segment = AddSegment({.time_class = TimeClass::kCompute, .duration = Time(), .issue = issue});
    first.num_segments = 1;
    Add(first);
  }
  Stretch group{stretch.begin, stretch.begin};
  const auto flush = [&] {
    if (group.end == group.begin) return;
    Op op = NewOp(OpKind::kLocal, kCompute, tag);
    op.pipeline = true;
    EmitGroup(pass, group, tag, factor, op);
  };
  for (std::size_t i = stretch.begin; i < stretch.end; ++i) {
    const PricedOperator& priced = pass.operators[i];
    if (meets && priced.is_collective) {
      flush();
      group.begin = group.end = i + 1;
      Op op = Collective(kCompute, tag, kTensorGroup, priced.duration, TimeClass::kExposedTp, TimeClass::kWaitTp);
      op.lead = priced.lead;
      op.pipeline = true;
      Add(op);
      continue;
    }
    group.end = i + 1;
    if (operators_apart_) {
      flush();
      group.begin = group.end;
    }
  }
  flush();
  if (!ends.sends.empty() || ends.records != kNoEvent) {
    Op last = Mark(tag);
    last.pipeline = true;
    last.first_part = static_cast<std::int32_t>(program().parts.size());
    last.num_parts = static_cast<std::int32_t>(ends.sends.size());
    program().parts.insert(program().parts.end(), ends.sends.begin(), ends.sends.end());
    last.records = ends.records;
    Add(last);
  }
}

// One local operation of consecutive operators.
void Builder::EmitGroup(const PricedPass& pass, Stretch group, std::int32_t tag, double factor, Op op) {
  op.tag = tag;
  int kernels_before = 0;
  if (issue_ > Time()) {
    kernels_before = static_cast<int>(program().host_ops.back().duration.count() / issue_.count());
  }
  const auto before = static_cast<std::int32_t>(program().segments.size());
  op.first_segment = PassSegments(pass, group, factor, kernels_before);
  if (op.first_segment < before) {  // shared: issue without adding
    for (std::size_t i = group.begin; i < group.end; ++i) Issue(pass.operators[i].kernels);
  }
  op.num_segments = 0;
  for (std::size_t i = group.begin; i < group.end; ++i) {
    op.num_segments += pass.operators[i].is_collective && pass.operators[i].lead > Time() ? 2 : 1;
  }
  Add(op);
}

// First of the segments of a stretch, shared by all operations of the same stretch with as many kernels issued before
// it.
std::int32_t Builder::PassSegments(const PricedPass& pass, Stretch group, double factor, int kernels_before) {
  const auto [entry, added] =
      segments_.try_emplace({&pass, group.begin, group.end, factor, kernels_before}, program().segments.size());
  if (!added) return entry->second;
  for (std::size_t i = group.begin; i < group.end; ++i) {
    const PricedOperator& priced = pass.operators[i];
    const Time issue = Issue(priced.kernels);
    const std::int32_t tag = OperatorTag(priced.name);
    if (priced.is_collective && priced.lead > Time()) {
      AddSegment({.time_class = TimeClass::kWaitTp, .duration = priced.lead, .issue = issue, .tag = tag});
    }
    const Time duration = priced.is_collective ? priced.duration : Scaled(priced.duration, factor);
    AddSegment({.time_class = priced.time_class, .duration = duration, .issue = issue, .tag = tag});
  }
  return entry->second;
}

std::int32_t Builder::OperatorTag(std::string_view name) {
  std::vector<std::string_view>& names = result_.labels.operators;
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<std::int32_t>(found - names.begin());
  names.push_back(name);
  return static_cast<std::int32_t>(names.size()) - 1;
}

// Gradients are complete on all ranks, and all ranks agree on their norm.
void Builder::FinishGradients() {
  OpenHostOp(kNoEvent);
  if (overlaps_reduction()) {
    Op wait = Mark(Label({.role = OpRole::kGradientWait}));
    wait.waits[0] = reduction_event_;
    Add(wait);
  } else if (plan_.dp > 1) {
    for (std::int32_t chunk = plan_.chunks - 1; chunk >= 0; --chunk) {
      const auto c = static_cast<std::size_t>(chunk);
      for (std::int32_t bucket = 0; bucket < prices_.buckets[c]; ++bucket) {
        Add(Collective(kCompute, Label({.role = OpRole::kGradientReduction, .chunk = chunk}), kDataGroup,
                       prices_.gradient_bucket[c], TimeClass::kExposedDp, TimeClass::kWaitDp));
      }
    }
  }
  if (prices_.embedding_reduction) {
    Add(Collective(kCompute, Label({.role = OpRole::kEmbeddingReduction}), kEmbeddingGroup,
                   prices_.embedding_reduction_time, TimeClass::kExposedPp, TimeClass::kBubble));
  }
  if (software_.norm_barrier() && plan_.world > 1) {
    const TimeClass missing = plan_.pp > 1   ? TimeClass::kBubble
                              : plan_.dp > 1 ? TimeClass::kWaitDp
                                             : TimeClass::kWaitTp;
    Op barrier = Collective(kCompute, Label({.role = OpRole::kNormBarrier}), kWorldGroup, prices_.norm_barrier,
                            TimeClass::kExposedDp, missing);
    if (issue_ > Time()) barrier.records = barrier_event_ = NewEvent();
    Add(barrier);
  }
  if (prices_.slowest_wait > Time()) {
    Add(LocalOp(kCompute, Label({.role = OpRole::kSlowestWait}), TimeClass::kWaitDp, prices_.slowest_wait, 0));
  }
}

// The host reads the norm before it issues the update, so the barrier holds it back as well.
void Builder::Update() {
  if (barrier_event_ != kNoEvent) OpenHostOp(barrier_event_);
  program().update_op = Add(LocalOp(kCompute, Label({.role = OpRole::kOptimizer}), TimeClass::kOptimizer,
                                    prices_.optimizer, prices_.optimizer_kernels));
}

const v1::OverlapRule* Builder::Rule(v1::PassKind kind) const {
  if (plan_.Without(v1::CAUSE_EXPOSED_DP)) return nullptr;
  if (kind == v1::FORWARD ? !overlaps_gather() : !overlaps_reduction()) return nullptr;
  for (const v1::OverlapRule& rule : software_.overlap_rules()) {
    if (rule.axis() == v1::DP && rule.pass() == kind) return &rule;
  }
  return nullptr;
}

double Builder::CommunicationFactor(v1::PassKind kind) const {
  const v1::OverlapRule* rule = Rule(kind);
  return rule == nullptr ? 1 : rule->communication_factor();
}

double Builder::ComputeFactor(bool first_forward, bool last_backward) const {
  const v1::OverlapRule* rule = first_forward ? Rule(v1::FORWARD) : last_backward ? Rule(v1::BACKWARD) : nullptr;
  return rule == nullptr ? 1 : rule->compute_factor();
}

}  // namespace

LabelledProgram BuildProgram(const Plan& plan, const RolePrices& prices) { return Builder(plan, prices).Build(); }

}  // namespace orrery::training
