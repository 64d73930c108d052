#include "sim/training/program_writer.h"

#include <algorithm>
#include <cmath>

namespace orrery::training {

using engine::Op;
using engine::OpKind;
using engine::Part;
using engine::Segment;
using engine::TimeClass;

Time Scaled(Time time, double factor) {
  if (factor == 1) return time;
  return Time(std::llround(static_cast<double>(time.count()) * factor));
}

Communication Scaled(const Communication& communication, double factor) {
  return {.duration = Scaled(communication.duration, factor),
          .progress = Scaled(communication.progress, factor),
          .footprint = communication.footprint,
          .taken = communication.taken};
}

// With free issue one host op suffices.
void ProgramWriter::OpenHostOp(std::int32_t waits) {
  if (!program().host_ops.empty() && !issuing_takes_time() && waits == engine::kNoEvent) return;
  program().host_ops.push_back({.waits = waits, .duration = Time()});
}

void ProgramWriter::PauseHost(std::int32_t waits, Time duration) {
  program().host_ops.push_back({.waits = waits, .duration = duration});
  program().host_ops.push_back({.waits = engine::kNoEvent, .duration = Time()});
}

// Issues `kernels` kernels; returns when the first of them has been issued.
Time ProgramWriter::Issue(int kernels) {
  engine::HostOp& host = program().host_ops.back();
  const Time first = host.duration + (kernels > 0 ? issue_ : Time());
  host.duration += issue_ * kernels;
  return first;
}

std::int32_t ProgramWriter::Label(OpLabel label) {
  result_.labels.ops.push_back(label);
  return static_cast<std::int32_t>(result_.labels.ops.size()) - 1;
}

Op ProgramWriter::NewOp(OpKind kind, Stream stream, std::int32_t tag) {
  Op op;
  op.kind = kind;
  op.stream = stream;
  op.host_op = static_cast<std::int32_t>(program().host_ops.size()) - 1;
  op.tag = tag;
  return op;
}

Op ProgramWriter::Local(Stream stream, std::int32_t tag, TimeClass time_class, Time duration, int kernels) {
  Op op = NewOp(OpKind::kLocal, stream, tag);
  const KernelKind kind = time_class == TimeClass::kOptimizer ? kUpdateMemory : kNotSlowed;
  op.first_segment = AddSegment({.time_class = time_class, .duration = duration, .issue = Issue(kernels)}, kind);
  op.num_segments = 1;
  return op;
}

Op ProgramWriter::Collective(Stream stream, std::int32_t tag, std::int32_t group, const Communication& price,
                             TimeClass transfer, TimeClass missing) {
  Op op = NewOp(OpKind::kCollective, stream, tag);
  op.issue = Issue(1);
  op.group = group;
  if (uses_.size() <= static_cast<std::size_t>(group)) uses_.resize(static_cast<std::size_t>(group) + 1);
  std::vector<Use>& uses = uses_[static_cast<std::size_t>(group)];
  op.use = static_cast<std::int32_t>(uses.size());
  const bool beside_compute = loads_.has_value() && stream != kCompute;
  uses.push_back({price.progress, price.footprint, beside_compute ? loads_->IndexOf(price, v1::DP) : std::int16_t{-1}});
  op.duration = price.duration;
  op.transfer_class = transfer;
  op.missing_class = missing;
  return op;
}

Op ProgramWriter::Exchange(std::int32_t tag, const std::vector<Part>& batch) {
  Op op = NewOp(OpKind::kExchange, kCompute, tag);
  op.issue = Issue(1);
  op.pipeline = true;
  AddParts(batch, op);
  return op;
}

std::int32_t ProgramWriter::Add(const Op& op) {
  program().ops.push_back(op);
  return static_cast<std::int32_t>(program().ops.size()) - 1;
}

std::int32_t ProgramWriter::AddSegment(const Segment& segment, KernelKind kind) {
  program().segments.push_back(segment);
  if (loads_.has_value()) program().segment_kinds.push_back(kind);
  return static_cast<std::int32_t>(program().segments.size()) - 1;
}

// An operation's parts are consecutive: adds to those it has.
void ProgramWriter::AddParts(const std::vector<Part>& parts, Op& op) {
  if (op.num_parts == 0) op.first_part = static_cast<std::int32_t>(program().parts.size());
  program().parts.insert(program().parts.end(), parts.begin(), parts.end());
  op.num_parts += static_cast<std::int32_t>(parts.size());
}

void ProgramWriter::AddPass(const PricedPass& pass, Stretch stretch, std::int32_t tag, double factor,
                            const PassEnds& ends) {
  Op first = Mark(tag);
  first.pipeline = true;
  for (std::size_t i = 0; i < ends.waits.size(); ++i) first.waits[i] = ends.waits[i];
  AddParts(ends.receives, first);
  if (stretch.begin == stretch.end) {
    AddParts(ends.sends, first);
    first.records = ends.records;
    Add(first);
    return;
  }
  if (!members_meet_ && !operators_apart_) {
    AddParts(ends.sends, first);
    first.records = ends.records;
    AddGroup(pass, stretch, factor, first);
    return;
  }
  AddFirst(ends, first);
  Stretch group{stretch.begin, stretch.begin};
  const auto flush = [&] {
    if (group.end > group.begin) {
      Op op = Mark(tag);
      op.pipeline = true;
      AddGroup(pass, group, factor, op);
    }
    group.begin = group.end;
  };
  for (std::size_t i = stretch.begin; i < stretch.end; ++i) {
    const PricedOperator& priced = pass.operators[i];
    if (members_meet_ && priced.is_collective) {
      flush();
      const Communication price = {priced.duration, priced.progress, priced.footprint};
      Op op = Collective(kCompute, tag, kTensorGroup, price, TimeClass::kExposedTp, TimeClass::kWaitTp);
      op.lead = priced.lead;
      op.pipeline = true;
      Add(op);
      group = {i + 1, i + 1};
      continue;
    }
    group.end = i + 1;
    if (operators_apart_) flush();
  }
  flush();
  AddLast(ends, tag);
}

// The mark is there when the first kernel is issued, as the whole pass would be.
void ProgramWriter::AddFirst(const PassEnds& ends, Op first) {
  if (ends.waits.empty() && ends.receives.empty()) return;
  const Time issue = program().host_ops.back().duration + issue_;
  first.first_segment = AddSegment({.time_class = TimeClass::kCompute, .duration = Time(), .issue = issue});
  first.num_segments = 1;
  Add(first);
}

void ProgramWriter::AddLast(const PassEnds& ends, std::int32_t tag) {
  if (ends.sends.empty() && ends.records == engine::kNoEvent) return;
  Op last = Mark(tag);
  last.pipeline = true;
  AddParts(ends.sends, last);
  last.records = ends.records;
  Add(last);
}

// One local operation of consecutive operators.
void ProgramWriter::AddGroup(const PricedPass& pass, Stretch group, double factor, Op op) {
  int kernels_before = 0;
  if (issuing_takes_time()) {
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
std::int32_t ProgramWriter::PassSegments(const PricedPass& pass, Stretch group, double factor, int kernels_before) {
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
    AddSegment({.time_class = priced.time_class, .duration = duration, .issue = issue, .tag = tag}, priced.kind);
  }
  return entry->second;
}

LabelledProgram ProgramWriter::Take(const std::vector<Communication>& messages) {
  const auto moves = [](const auto& prices) {
    return std::any_of(prices.begin(), prices.end(), [](const auto& price) { return price.progress > Time(); });
  };
  if (std::any_of(uses_.begin(), uses_.end(), moves)) {
    for (const Op& op : program().ops) {
      const bool meets = op.kind == OpKind::kCollective;
      const Use use = meets ? uses_[static_cast<std::size_t>(op.group)][static_cast<std::size_t>(op.use)] : Use();
      program().op_progress.push_back(use.progress);
      result_.labels.footprints.push_back(use.footprint);
    }
  }
  if (moves(messages)) {
    for (const Part& part : program().parts) {
      program().part_progress.push_back(messages[static_cast<std::size_t>(part.channel)].progress);
    }
    result_.labels.messages = messages;
  }
  if (loads_.has_value()) TakeLoads(messages);
  return std::move(result_);
}

void ProgramWriter::TakeLoads(const std::vector<Communication>& messages) {
  std::vector<std::int16_t> of_channel;
  for (const Communication& message : messages) of_channel.push_back(loads_->IndexOf(message, v1::PP));
  if (loads_->loads().empty()) {
    program().segment_kinds.clear();
    return;
  }
  program().loads = loads_->loads();
  for (const Op& op : program().ops) {
    const bool meets = op.kind == OpKind::kCollective;
    program().op_loads.push_back(
        meets ? uses_[static_cast<std::size_t>(op.group)][static_cast<std::size_t>(op.use)].load : std::int16_t{-1});
  }
  for (const Part& part : program().parts) {
    program().part_loads.push_back(of_channel[static_cast<std::size_t>(part.channel)]);
  }
}

std::int32_t ProgramWriter::OperatorTag(std::string_view name) {
  std::vector<std::string_view>& names = result_.labels.operators;
  const auto found = std::find(names.begin(), names.end(), name);
  if (found != names.end()) return static_cast<std::int32_t>(found - names.begin());
  names.push_back(name);
  return static_cast<std::int32_t>(names.size()) - 1;
}

}  // namespace orrery::training
