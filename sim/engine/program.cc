#include "sim/engine/program.h"

#include <algorithm>
#include <utility>

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

// Walks a program in list order. What has come so far is in the index: that is what the next operation is checked
// against.
class Indexer {
 public:
  explicit Indexer(const Program& program) : program_(program) {}

  absl::StatusOr<ProgramIndex> Index() {
    ABSL_RETURN_IF_ERROR(CheckSizes());
    MakeRoom();
    for (const Segment& segment : program_.segments) {
      if (segment.duration < Time() || segment.issue < Time() || !IsClass(segment.time_class)) {
        return absl::InternalError("program: a segment has a negative time or an unknown class");
      }
      index_.segments_wait |= segment.issue > Time();
    }
    std::int32_t host_op = 0;
    const auto ops = static_cast<std::int32_t>(program_.ops.size());
    for (std::int32_t at = 0; at < ops; ++at) {
      const Op& op = program_.ops[static_cast<std::size_t>(at)];
      const char* wrong =
          op.host_op < host_op ? "is issued by an earlier host op than the operation before it" : Add(op, at);
      if (wrong != nullptr) return absl::InternalError(absl::StrCat("program: operation ", at, " ", wrong));
      host_op = op.host_op;
    }
    for (std::size_t link = 0; link < next_sequence_.size(); ++link) {
      if (static_cast<std::size_t>(next_sequence_[link]) != index_.messages[link].size()) {
        return absl::InternalError("program: a part belongs to no operation");
      }
    }
    ABSL_RETURN_IF_ERROR(CheckWaits());
    ABSL_RETURN_IF_ERROR(CheckProgress());
    ABSL_RETURN_IF_ERROR(CheckLoads());
    return std::move(index_);
  }

 private:
  static constexpr std::int32_t kNone = -1;

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

  // Parts that name a link out of range are left to AddParts.
  void MakeRoom() {
    std::vector<std::size_t> messages(2 * static_cast<std::size_t>(program_.num_channels));
    for (const Part& part : program_.parts) {
      if (InRange(part.channel, program_.num_channels)) ++messages[static_cast<std::size_t>(LinkOf(part))];
    }
    index_.messages.reserve(messages.size());
    for (const std::size_t count : messages) index_.messages.emplace_back(count, MessageEnd{kNone, kNone});
    index_.meets.resize(messages.size());
    next_sequence_.resize(messages.size());
    index_.uses.resize(static_cast<std::size_t>(program_.num_groups));
    index_.stream_ops.resize(static_cast<std::size_t>(program_.num_streams));
    index_.position.resize(program_.ops.size());
    index_.recorder.resize(static_cast<std::size_t>(program_.num_events), kNone);
    index_.runs.emplace_back();
    index_.run_of.resize(program_.ops.size());
    latest_run_.resize(program_.segments.size());
  }

  // Each of these says what is wrong with the operation, or nullptr.

  const char* Add(const Op& op, std::int32_t at) {
    if (op.stream >= program_.num_streams) return "is on a stream that does not exist";
    if (!IsClass(op.transfer_class) || !IsClass(op.missing_class)) return "has an unknown class";
    if (!InRange(op.host_op, static_cast<std::int32_t>(program_.host_ops.size()))) return "has no host op";
    if (op.issue < Time() || op.lead < Time() || op.duration < Time()) return "has a negative time";
    if (!RangeFits(op.first_segment, op.num_segments, program_.segments.size())) return "has segments out of range";
    if (!RangeFits(op.first_part, op.num_parts, program_.parts.size())) return "has parts out of range";
    if (op.kind != OpKind::kLocal && op.num_segments != 0) return "has segments but is not local";
    if (op.records != kNoEvent) {
      if (!InRange(op.records, program_.num_events)) return "records an event that does not exist";
      std::int32_t& recorder = index_.recorder[static_cast<std::size_t>(op.records)];
      if (recorder != kNone) return "records an event that another one records";
      recorder = at;
    }
    std::vector<std::int32_t>& stream = index_.stream_ops[op.stream];
    index_.position[static_cast<std::size_t>(at)] = static_cast<std::int32_t>(stream.size());
    stream.push_back(at);
    index_.run_of[static_cast<std::size_t>(at)] = RunOf(op);
    if (op.kind != OpKind::kLocal || op.num_parts > 0) index_.outward |= 1u << op.stream;
    return op.kind == OpKind::kCollective ? AddUse(op, at) : AddParts(op, at);
  }

  const char* AddUse(const Op& op, std::int32_t at) {
    if (op.num_parts != 0) return "is collective and has parts";
    if (!InRange(op.group, program_.num_groups)) return "is over a group that does not exist";
    std::vector<std::int32_t>& uses = index_.uses[static_cast<std::size_t>(op.group)];
    if (op.use != static_cast<std::int32_t>(uses.size())) return "uses its group out of order";
    uses.push_back(at);
    return nullptr;
  }

  // Every message once and without gaps. Whoever sends or meets a peer does so in order; what has been sent eagerly may
  // be taken up in another.
  const char* AddParts(const Op& op, std::int32_t at) {
    const std::int32_t end_part = op.first_part + op.num_parts;
    for (std::int32_t i = op.first_part; i < end_part; ++i) {
      const Part& part = program_.parts[static_cast<std::size_t>(i)];
      if (!InRange(part.channel, program_.num_channels)) return "has a part over a channel that does not exist";
      if (part.duration < Time()) return "has a part of negative duration";
      const auto link = static_cast<std::size_t>(LinkOf(part));
      const bool any_order = op.kind == OpKind::kLocal && !part.is_send;
      const std::int32_t in_order = next_sequence_[link]++;
      if (!any_order && part.sequence != in_order) return "has a part out of sequence";
      std::vector<MessageEnd>& ends = index_.messages[link];
      if (!InRange(part.sequence, static_cast<std::int32_t>(ends.size()))) return "has a part out of sequence";
      MessageEnd& end = ends[static_cast<std::size_t>(part.sequence)];
      if (end.op != kNone) return "has a part of a message that another one has";
      end = {at, i};
      if (op.kind == OpKind::kExchange) index_.meets[link] = true;
    }
    return nullptr;
  }

  // Runs that begin at one segment and differ in length take turns at being known.
  std::int32_t RunOf(const Op& op) {
    if (op.num_segments == 0) return 0;
    std::int32_t& latest = latest_run_[static_cast<std::size_t>(op.first_segment)];
    if (index_.runs[static_cast<std::size_t>(latest)].count != op.num_segments) {
      latest = static_cast<std::int32_t>(index_.runs.size());
      index_.runs.push_back({op.first_segment, op.num_segments});
    }
    return latest;
  }

  // Of what shares links.
  absl::Status CheckProgress() const {
    const auto fits = [](const std::vector<Time>& progress, const auto& whole) {
      if (progress.empty()) return true;
      if (progress.size() != whole.size()) return false;
      for (std::size_t i = 0; i < whole.size(); ++i) {
        if (progress[i] < Time() || progress[i] > whole[i].duration) return false;
      }
      return true;
    };
    if (!fits(program_.op_progress, program_.ops) || !fits(program_.part_progress, program_.parts)) {
      return absl::InternalError("program: progress that does not fit its durations");
    }
    return absl::OkStatus();
  }

  absl::Status CheckLoads() const {
    const auto fits = [&](const std::vector<std::int16_t>& loads, std::size_t size) {
      const auto known = [&](std::int16_t load) {
        return load == -1 || InRange(load, static_cast<std::int32_t>(program_.loads.size()));
      };
      return loads.empty() || (loads.size() == size && std::all_of(loads.begin(), loads.end(), known));
    };
    const std::vector<std::uint8_t>& kinds = program_.segment_kinds;
    const bool kinds_exist = std::all_of(kinds.begin(), kinds.end(), [](int kind) { return kind < kKernelKinds; });
    if (!fits(program_.op_loads, program_.ops.size()) || !fits(program_.part_loads, program_.parts.size()) ||
        (!kinds.empty() && kinds.size() != program_.segments.size()) || !kinds_exist) {
      return absl::InternalError("program: loads or kinds of kernels that do not exist");
    }
    const auto is_share = [](std::int64_t share) { return share >= 0 && share <= kWholeRate; };
    for (const Load& load : program_.loads) {
      for (const Load::Shares* shares : {&load.takes, &load.at_least, &load.slows}) {
        if (shares->front() != 0 || !std::all_of(shares->begin(), shares->end(), is_share)) {
          return absl::InternalError("program: a load with a share out of range");
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckEvent(std::int32_t event) const {
    if (!InRange(event, program_.num_events))
      return absl::InternalError("program: a wait for an event that does not exist");
    if (index_.recorder[static_cast<std::size_t>(event)] == kNone)
      return absl::InternalError("program: a wait for an event that nothing records");
    return absl::OkStatus();
  }

  absl::Status CheckWaits() {
    for (const Op& op : program_.ops) {
      for (std::int32_t event : op.waits) {
        if (event == kNoEvent) break;
        ABSL_RETURN_IF_ERROR(CheckEvent(event));
      }
    }
    for (const HostOp& host_op : program_.host_ops) {
      if (host_op.duration < Time()) return absl::InternalError("program: a host op of negative duration");
      if (host_op.waits == kNoEvent) continue;
      ABSL_RETURN_IF_ERROR(CheckEvent(host_op.waits));
      index_.host_waits = true;
    }
    return absl::OkStatus();
  }

  const Program& program_;
  ProgramIndex index_;
  std::vector<std::int32_t> next_sequence_;  // [link]
  std::vector<std::int32_t> latest_run_;     // [segment]: the last run that began there, or 0
};

}  // namespace

absl::StatusOr<ProgramIndex> IndexProgram(const Program& program) { return Indexer(program).Index(); }

absl::Status CheckProgram(const Program& program) { return IndexProgram(program).status(); }

std::int32_t FaultyOp(const ProgramIndex& index) {
  const std::vector<std::int32_t>& ops = index.stream_ops[kComputeStream];
  return ops[ops.size() / 2];
}

}  // namespace orrery::engine
