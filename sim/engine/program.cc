#include "sim/engine/program.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "sim/engine/program_index.h"

namespace orrery::engine {
namespace {

bool InRange(std::int32_t index, std::int32_t size) { return index >= 0 && index < size; }

bool RangeFits(std::int32_t first, std::int32_t count, std::size_t size) {
  return first >= 0 && count >= 0 && static_cast<std::size_t>(first) + static_cast<std::size_t>(count) <= size;
}

bool IsClass(TimeClass time_class) { return static_cast<int>(time_class) < kTimeClasses; }

// Walks a program in list order and keeps what must run in sequence.
class ProgramChecker {
 public:
  explicit ProgramChecker(const Program& program) : program_(program) {}

  absl::Status Check() {
    ABSL_RETURN_IF_ERROR(CheckSizes());
    recorded_.assign(static_cast<std::size_t>(program_.num_events), false);
    CountMessages();
    next_use_.assign(static_cast<std::size_t>(program_.num_groups), 0);
    for (const Segment& segment : program_.segments) {
      if (segment.duration < Time() || segment.issue < Time() || !IsClass(segment.time_class)) {
        return absl::InternalError("program: a segment has a negative time or an unknown class");
      }
    }
    std::int32_t host_op = 0;
    for (at_ = 0; at_ < program_.ops.size(); ++at_) {
      const Op& op = program_.ops[at_];
      if (op.host_op < host_op) return Wrong("is issued by an earlier host op than the operation before it");
      host_op = op.host_op;
      ABSL_RETURN_IF_ERROR(CheckOp(op));
    }
    for (std::size_t link = 0; link < next_sequence_.size(); ++link) {
      if (next_sequence_[link] != first_message_[link + 1] - first_message_[link]) {
        return absl::InternalError("program: a part belongs to no operation");
      }
    }
    return CheckWaits();
  }

 private:
  absl::Status Wrong(const char* what) const {
    return absl::InternalError(absl::StrCat("program: operation ", at_, " ", what));
  }

  absl::Status CheckSizes() const {
    if (program_.num_streams < 1 || program_.num_streams > kMaxStreams) {
      return absl::InternalError(
          absl::StrCat("program: ", program_.num_streams, " streams, allowed are 1 to ", kMaxStreams));
    }
    if (program_.num_events < 0 || program_.num_channels < 0 || program_.num_groups < 0) {
      return absl::InternalError("program: a count is negative");
    }
    if (program_.host_ops.empty()) return absl::InternalError("program: no host op");
    const auto ops = static_cast<std::int32_t>(program_.ops.size());
    if (!InRange(program_.update_op, ops) ||
        program_.ops[static_cast<std::size_t>(program_.update_op)].stream != kComputeStream) {
      return absl::InternalError(
          absl::StrCat("program: update_op ", program_.update_op, " is no operation of the compute stream"));
    }
    return absl::OkStatus();
  }

  // Parts that name a link out of range are left to CheckParts.
  void CountMessages() {
    next_sequence_.assign(2 * static_cast<std::size_t>(program_.num_channels), 0);
    first_message_.assign(next_sequence_.size() + 1, 0);
    for (const Part& part : program_.parts) {
      if (InRange(part.channel, program_.num_channels)) ++first_message_[static_cast<std::size_t>(LinkOf(part)) + 1];
    }
    for (std::size_t link = 1; link < first_message_.size(); ++link) first_message_[link] += first_message_[link - 1];
    has_message_.assign(static_cast<std::size_t>(first_message_.back()), false);
  }

  absl::Status CheckOp(const Op& op) {
    if (op.stream >= program_.num_streams) return Wrong("is on a stream that does not exist");
    if (!IsClass(op.transfer_class) || !IsClass(op.missing_class)) return Wrong("has an unknown class");
    if (!InRange(op.host_op, static_cast<std::int32_t>(program_.host_ops.size()))) return Wrong("has no host op");
    if (op.issue < Time() || op.lead < Time() || op.duration < Time()) return Wrong("has a negative time");
    if (!RangeFits(op.first_segment, op.num_segments, program_.segments.size()))
      return Wrong("has segments out of range");
    if (!RangeFits(op.first_part, op.num_parts, program_.parts.size())) return Wrong("has parts out of range");
    if (op.kind != OpKind::kLocal && op.num_segments != 0) return Wrong("has segments but is not local");
    if (op.records != kNoEvent) {
      if (!InRange(op.records, program_.num_events)) return Wrong("records an event that does not exist");
      auto recorded = recorded_[static_cast<std::size_t>(op.records)];
      if (recorded) return Wrong("records an event that another one records");
      recorded = true;
    }
    if (op.kind == OpKind::kCollective) return CheckCollective(op);
    return CheckParts(op);
  }

  absl::Status CheckCollective(const Op& op) {
    if (op.num_parts != 0) return Wrong("is collective and has parts");
    if (!InRange(op.group, program_.num_groups)) return Wrong("is over a group that does not exist");
    if (op.use != next_use_[static_cast<std::size_t>(op.group)]++) return Wrong("uses its group out of order");
    return absl::OkStatus();
  }

  absl::Status CheckParts(const Op& op) {
    for (std::int32_t i = op.first_part; i < op.first_part + op.num_parts; ++i) {
      const Part& part = program_.parts[static_cast<std::size_t>(i)];
      if (!InRange(part.channel, program_.num_channels)) return Wrong("has a part over a channel that does not exist");
      if (part.duration < Time()) return Wrong("has a part of negative duration");
      ABSL_RETURN_IF_ERROR(CheckSequence(part, op.kind == OpKind::kLocal && !part.is_send));
    }
    return absl::OkStatus();
  }

  // Once each and without gaps. Whoever sends or meets a peer does so in order; what has been sent eagerly may be taken
  // up in another.
  absl::Status CheckSequence(const Part& part, bool any_order) {
    const auto link = static_cast<std::size_t>(LinkOf(part));
    const std::int32_t in_order = next_sequence_[link]++;
    if (!any_order && part.sequence != in_order) return Wrong("has a part out of sequence");
    if (!InRange(part.sequence, first_message_[link + 1] - first_message_[link])) {
      return Wrong("has a part out of sequence");
    }
    auto has_message = has_message_[static_cast<std::size_t>(first_message_[link] + part.sequence)];
    if (has_message) return Wrong("has a part of a message that another one has");
    has_message = true;
    return absl::OkStatus();
  }

  absl::Status CheckEvent(std::int32_t event) const {
    if (!InRange(event, program_.num_events))
      return absl::InternalError("program: a wait for an event that does not exist");
    if (!recorded_[static_cast<std::size_t>(event)])
      return absl::InternalError("program: a wait for an event that nothing records");
    return absl::OkStatus();
  }

  absl::Status CheckWaits() const {
    for (const Op& op : program_.ops) {
      for (std::int32_t event : op.waits) {
        if (event == kNoEvent) break;
        ABSL_RETURN_IF_ERROR(CheckEvent(event));
      }
    }
    for (const HostOp& host_op : program_.host_ops) {
      if (host_op.duration < Time()) return absl::InternalError("program: a host op of negative duration");
      if (host_op.waits != kNoEvent) ABSL_RETURN_IF_ERROR(CheckEvent(host_op.waits));
    }
    return absl::OkStatus();
  }

  const Program& program_;
  std::size_t at_ = 0;
  std::vector<bool> recorded_;
  std::vector<std::int32_t> next_sequence_;  // [link]
  std::vector<std::int32_t> first_message_;  // [link], and one past the last: in has_message_
  std::vector<bool> has_message_;            // by link, then sequence
  std::vector<std::int32_t> next_use_;       // [group]
};

}  // namespace

absl::Status CheckProgram(const Program& program) { return ProgramChecker(program).Check(); }

ProgramIndex::ProgramIndex(const Program& program)
    : messages(2 * static_cast<std::size_t>(program.num_channels)),
      uses(static_cast<std::size_t>(program.num_groups)),
      stream_ops(static_cast<std::size_t>(program.num_streams)),
      position(program.ops.size()),
      recorder(static_cast<std::size_t>(program.num_events), -1) {
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    const auto at = static_cast<std::int32_t>(i);
    position[i] = static_cast<std::int32_t>(stream_ops[op.stream].size());
    stream_ops[op.stream].push_back(at);
    if (op.records != kNoEvent) recorder[static_cast<std::size_t>(op.records)] = at;
    if (op.kind == OpKind::kCollective) {
      uses[static_cast<std::size_t>(op.group)].push_back(at);
      continue;
    }
    for (std::int32_t part = op.first_part; part < op.first_part + op.num_parts; ++part) {
      const Part& end = program.parts[static_cast<std::size_t>(part)];
      std::vector<MessageEnd>& ends = messages[static_cast<std::size_t>(LinkOf(end))];
      const auto sequence = static_cast<std::size_t>(end.sequence);
      if (sequence >= ends.size()) ends.resize(sequence + 1);
      ends[sequence] = {at, part};
    }
  }
}

Time IssueOffset(const Program& program, const Op& op) {
  return op.num_segments > 0 ? program.segments[static_cast<std::size_t>(op.first_segment)].issue : op.issue;
}

std::int32_t FaultyOp(const ProgramIndex& index) {
  const std::vector<std::int32_t>& ops = index.stream_ops[kComputeStream];
  return ops[ops.size() / 2];
}

}  // namespace orrery::engine
