#include "sim/engine/event_queue.h"

#include <algorithm>
#include <memory>

#include "absl/status/status.h"
#include "base/check.h"
#include "sim/engine/timeline_hash.h"

namespace orrery::engine {
namespace {

std::uint32_t StreamBit(const UnitLayout& unit, std::int32_t event) {
  return 1u << unit.OpAt(unit.index->recorder[static_cast<std::size_t>(event)]).stream;
}

std::int32_t CountMissingMessages(IterationState& at, const UnitLayout& unit, const Op& op) {
  std::int32_t missing = 0;
  for (std::int32_t i = op.first_part; i < op.first_part + op.num_parts; ++i) {
    const Part& part = unit.PartAt(i);
    if (!part.is_send && at.SlotAt(unit, unit.SlotOf(LinkOf(part), part.sequence)).done == kNotYet) ++missing;
  }
  return missing;
}

}  // namespace

EventQueue::EventQueue(const EngineInputs& inputs)
    : world_(inputs.world),
      indices_(inputs.indices),
      state_(inputs.state),
      transfers_(inputs.options.transfers),
      last_iteration_(inputs.options.nothing_follows ? inputs.options.iterations : 2 * inputs.options.iterations + 1),
      fault_(inputs.options.fault),
      flip_(inputs.options.reverse_ties ? ~std::uint64_t{0} : 0),
      layout_(world_, indices_, state_.clocks),
      overlap_(world_, layout_),
      streams_(layout_.streams),
      hosts_(layout_.units.size()),
      iterations_(layout_, inputs.accountant),
      traced_(layout_.units.size()) {
  for (const std::int32_t unit : inputs.options.traced_units) traced_[static_cast<std::size_t>(unit)] = true;
  ORRERY_CHECK(layout_.units.size() < std::size_t{1} << kUnitBits);
  if (fault_ != Time()) faulty_op_ = FaultyOp(*layout_.units.front().index);
  for (std::size_t u = 0; u < layout_.units.size(); ++u) {
    const auto id = static_cast<std::int32_t>(u);
    const UnitLayout& unit = layout_.units[u];
    ORRERY_CHECK(unit.program->ops.size() < std::size_t{1} << kItemBits);
    if (!unit.program->host_ops.empty()) Schedule(Time(), EventKind::kHostFree, id, 0, 0);
    for (std::int32_t s = 0; s < unit.program->num_streams; ++s) {
      if (!unit.OpsOf(s).empty()) Schedule(Time(), EventKind::kStreamFree, id, s, 0);
    }
  }
}

absl::Status EventQueue::RunIteration(std::int32_t iteration, std::optional<Time> until) {
  iterations_.BeginReporting(iteration);
  if (until.has_value()) Watch(iteration, *until);
  while (At(iteration).to_finish > 0 && (!until.has_value() || unreached_ > 0)) {
    if (Step()) continue;
    if (!status_.ok()) return status_;
    if (sharing_ > 0) return absl::ResourceExhaustedError("transfers: some end later than the clock can say");
    return Deadlock(iteration);
  }
  const IterationState& done = At(iteration);
  for (std::size_t s = 0; s < layout_.streams; ++s) {
    if (done.stream_ends[s] != kNotYet) {
      state_.clocks.stream[s] = done.stream_ends[s];
    } else if (streams_[s].iteration == iteration) {  // has begun it, and goes no further
      state_.clocks.stream[s] = streams_[s].last_end;
    }
  }
  for (std::size_t u = 0; u < layout_.units.size(); ++u) {
    if (done.host_ends[u] != kNotYet) state_.clocks.host[u] = done.host_ends[u];
    state_.hashes[u] += done.hashes[u];
  }
  state_.waited_for = done.waited_for;
  state_.update_end = done.update_end;
  state_.tasks += done.tasks;
  return absl::OkStatus();
}

// The next event, or the transfers that end before it; false where there is neither, or something has failed.
bool EventQueue::Step() {
  if (!status_.ok()) return false;
  if (!overlap_.is_settled() && (queue_.empty() || queue_.top().time > now_)) {
    Settle();
    return true;
  }
  // Whatever ends now has ended before anything else of this instant: see Transfers.
  if (transfers_ != nullptr && (queue_.empty() || queue_.top().time > now_)) {
    const Time end = transfers_->NextEnd();
    if (end != kNever && (queue_.empty() || end <= queue_.top().time)) {
      EndTransfers(end);
      return true;
    }
  }
  if (queue_.empty()) return false;
  const Event event = queue_.top();
  queue_.Pop();
  FetchAhead();
  ORRERY_CHECK(event.time >= now_);
  now_ = event.time;
  ++state_.events;
  Handle(event.key ^ flip_);
  return true;
}

// What the next events will look at is asked of memory while this one is handled: there is too much of it to stay in
// the caches.
void EventQueue::FetchAhead() const {
  if (queue_.empty()) return;
  for (const Event& event : queue_.Soon()) {
    const std::uint64_t key = event.key ^ flip_;
    __builtin_prefetch(&UnitAt(UnitOf(key)));
    if (KindOf(key) >= EventKind::kShares && KindOf(key) <= EventKind::kArrival) {
      __builtin_prefetch(&moving_[static_cast<std::size_t>(ItemOf(key))]);
    }
  }
  const std::uint64_t key = queue_.top().key ^ flip_;
  const UnitLayout& unit = UnitAt(UnitOf(key));
  __builtin_prefetch(&streams_[unit.first_stream]);
  __builtin_prefetch(&streams_[unit.first_stream + static_cast<std::size_t>(StreamOf(key))]);
  const IterationState& at = iterations_.front();
  __builtin_prefetch(at.host_starts.data() + unit.first_host_op);
  __builtin_prefetch(at.event_ends.data() + unit.first_event);
}

void EventQueue::Handle(std::uint64_t key) {
  const std::int32_t u = UnitOf(key);
  const std::int32_t s = StreamOf(key);
  const std::int32_t item = ItemOf(key);
  const UnitLayout& unit = UnitAt(u);
  switch (KindOf(key)) {
    case EventKind::kHostFree:
      hosts_[static_cast<std::size_t>(u)].free = true;
      AdvanceHost(u, unit);
      break;
    case EventKind::kStreamFree:
    case EventKind::kIssued:
      StreamAt(unit, s).status = StreamStatus::kBlocked;
      AdvanceStream(u, unit, s);
      break;
    case EventKind::kLoads:
      BeginLoads(item);
      break;
    case EventKind::kShares: {
      const Moving& moving = moving_[static_cast<std::size_t>(item)];
      ++sharing_;
      status_.Update(transfers_->Begin(
          now_,
          {.id = item, .route = moving.route, .alone = moving.alone, .unit = moving.from_unit, .op = moving.from_op}));
      break;
    }
    case EventKind::kArrival:
      if (moving_[static_cast<std::size_t>(item)].end == now_) Arrive(item);
      break;
    case EventKind::kFinish: {
      const Stream& stream = StreamAt(unit, s);
      if (stream.status == StreamStatus::kRunning && stream.end == now_) Finish(u, unit, s);
      break;
    }
    case EventKind::kChanges:
      overlap_.Mark(u);
      break;
  }
}

// Nothing more begins or ends now: the ends that this has moved.
void EventQueue::Settle() {
  for (const Overlap::Change& change : overlap_.Settle(now_)) {
    switch (change.what) {
      case Overlap::What::kComputeEnds: {
        const UnitLayout& unit = UnitAt(change.subject);
        const Stream& stream = StreamAt(unit, kComputeStream);
        const std::int32_t op = unit.OpsOf(kComputeStream)[static_cast<std::size_t>(stream.next)];
        ScheduleFinish(change.subject, unit, kComputeStream, op, change.time);
        break;
      }
      case Overlap::What::kComputeChanges:
        Schedule(change.time, EventKind::kChanges, change.subject, kComputeStream, 0);
        break;
      case Overlap::What::kTransferEnds:
        ScheduleArrival(change.subject, kComputeStream, change.time);
        break;
    }
  }
}

void EventQueue::AdvanceHost(std::int32_t u, const UnitLayout& unit) {
  Host& host = hosts_[static_cast<std::size_t>(u)];
  const auto& host_ops = unit.program->host_ops;
  bool began = false;
  while (host.free && host.iteration <= last_iteration_) {
    IterationState& at = At(host.iteration);
    const HostOp& op = host_ops[static_cast<std::size_t>(host.next)];
    if (op.waits != kNoEvent && at.EventEnd(unit, op.waits) == kNotYet) break;
    if (now_ > host.last_end) at.waited_for[static_cast<std::size_t>(u)] |= StreamBit(unit, op.waits);
    iterations_.ReportHost(host.iteration, u, host.next, host.last_end, now_);
    at.HostStart(unit, host.next) = now_;
    host.last_end = now_ + op.duration;
    began = true;
    if (op.duration > Time()) {
      host.free = false;
      Schedule(host.last_end, EventKind::kHostFree, u, 0, 0);
    }
    if (++host.next < static_cast<std::int32_t>(host_ops.size())) continue;
    at.host_ends[static_cast<std::size_t>(u)] = host.last_end;
    --at.to_finish;
    host.next = 0;
    ++host.iteration;
  }
  if (!began) return;
  for (std::int32_t s = 0; s < unit.program->num_streams; ++s) AdvanceStream(u, unit, s);
}

// Whether the stream's next operation may begin now; if so, begins it.
void EventQueue::AdvanceStream(std::int32_t u, const UnitLayout& unit, std::int32_t s) {
  Stream& stream = StreamAt(unit, s);
  if (stream.status != StreamStatus::kBlocked) return;
  IterationState& at = At(stream.iteration);
  const std::int32_t op_index = unit.OpsOf(s)[static_cast<std::size_t>(stream.next)];
  const Op& op = unit.OpAt(op_index);
  const Time host_start = at.HostStart(unit, op.host_op);
  if (host_start == kNotYet) return;
  for (std::int32_t event : op.waits) {
    if (event == kNoEvent) break;
    if (at.EventEnd(unit, event) == kNotYet) return;
  }
  const Time issued = host_start + IssueOffset(*unit.program, op);
  if (issued > now_) {
    stream.status = StreamStatus::kIssuing;
    Schedule(issued, EventKind::kIssued, u, s, op_index);
    return;
  }
  stream.ready = now_;
  NoteWhatItWaitedFor(at, u, unit, op, stream.last_end, issued);
  stream.status = StreamStatus::kAwaiting;
  switch (op.kind) {
    case OpKind::kLocal:
      stream.missing = CountMissingMessages(at, unit, op);
      if (stream.missing == 0) StartLocal(at, u, unit, s, op_index);
      break;
    case OpKind::kCollective:
      JoinGroup(at, u, stream.iteration, op_index);
      break;
    case OpKind::kExchange:
      PostParts(at, u, unit, s, op_index);
      break;
  }
}

void EventQueue::NoteWhatItWaitedFor(IterationState& at, std::int32_t u, const UnitLayout& unit, const Op& op,
                                     Time since, Time issued) {
  std::uint32_t& waited_for = at.waited_for[static_cast<std::size_t>(u)];
  if (issued > since) {
    since = issued;
    waited_for |= kHostBit;
  }
  for (std::int32_t event : op.waits) {
    if (event == kNoEvent) break;
    if (at.EventEnd(unit, event) <= since) continue;
    since = at.EventEnd(unit, event);
    waited_for |= StreamBit(unit, event);
  }
}

void EventQueue::StartLocal(IterationState& at, std::int32_t u, const UnitLayout& unit, std::int32_t s,
                            std::int32_t op_index) {
  const Op& op = unit.OpAt(op_index);
  const Time host_start = at.HostStart(unit, op.host_op);
  if (s == kComputeStream && op.num_segments > 0 && overlap_.Paces(u)) {
    StartPaced(u, unit, op_index, host_start);
    return;
  }
  Time end = now_;
  for (std::int32_t i = op.first_segment; i < op.first_segment + op.num_segments; ++i) {
    const Segment& segment = unit.program->segments[static_cast<std::size_t>(i)];
    if (host_start + segment.issue > end) {
      end = host_start + segment.issue;
      at.waited_for[static_cast<std::size_t>(u)] |= kHostBit;
    }
    end += segment.duration;
  }
  StreamAt(unit, s).start = now_;
  ScheduleFinish(u, unit, s, op_index, end);
}

void EventQueue::StartPaced(std::int32_t u, const UnitLayout& unit, std::int32_t op_index, Time host_start) {
  Stream& stream = StreamAt(unit, kComputeStream);
  stream.start = now_;
  stream.status = StreamStatus::kRunning;
  const std::optional<Time> end = overlap_.BeginCompute(u, unit.OpAt(op_index), host_start, now_);
  if (end.has_value()) ScheduleFinish(u, unit, kComputeStream, op_index, *end);
}

void EventQueue::ScheduleFinish(std::int32_t u, const UnitLayout& unit, std::int32_t s, std::int32_t op_index,
                                Time end) {
  if (u == 0 && op_index == faulty_op_) end += fault_;
  Stream& stream = StreamAt(unit, s);
  stream.status = StreamStatus::kRunning;
  if (stream.end == end) return;
  stream.end = end;
  Schedule(end, EventKind::kFinish, u, s, op_index);
}

void EventQueue::Finish(std::int32_t u, const UnitLayout& unit, std::int32_t s) {
  Stream& stream = StreamAt(unit, s);
  const std::int32_t iteration = stream.iteration;
  IterationState& at = At(iteration);
  const std::int32_t op_index = unit.OpsOf(s)[static_cast<std::size_t>(stream.next)];
  const Op& op = unit.OpAt(op_index);
  const bool is_paced = s == kComputeStream && op.num_segments > 0 && overlap_.Paces(u);
  const Evaluated evaluated = {.unit = u,
                               .op = op_index,
                               .previous_end = stream.last_end,
                               .host_start = at.HostStart(unit, op.host_op),
                               .ready = stream.ready,
                               .start = stream.start,
                               .end = now_,
                               .transfers = {}};
  iterations_.Report(iteration, evaluated, is_paced ? overlap_.EndCompute(u) : std::span<const Time>());
  ++at.tasks;
  at.hashes[static_cast<std::size_t>(u)] += TimelineHash(iteration, s, op_index, stream.start, now_);
  if (op_index == unit.program->update_op) at.update_end = std::max(at.update_end, now_);
  if (op.kind == OpKind::kLocal) SendMessages(iteration, u, unit, op_index);
  MoveOn(at, unit, s);
  if (op.records == kNoEvent) {
    AdvanceStream(u, unit, s);
    return;
  }
  at.EventEnd(unit, op.records) = now_;
  for (std::int32_t other = 0; other < unit.program->num_streams; ++other) AdvanceStream(u, unit, other);
  AdvanceHost(u, unit);
}

// Counts the streams whose operations before `until` are not all known in this iteration.
void EventQueue::Watch(std::int32_t iteration, Time until) {
  watched_iteration_ = iteration;
  until_ = until;
  unreached_ = 0;
  for (std::size_t u = 0; u < layout_.units.size(); ++u) {
    const UnitLayout& unit = layout_.units[u];
    for (std::int32_t s = 0; s < unit.program->num_streams; ++s) {
      if (!IsWatched(unit, s) || unit.OpsOf(s).empty()) continue;
      const std::size_t stream = unit.first_stream + static_cast<std::size_t>(s);
      const Time end =
          streams_[stream].iteration > iteration ? At(iteration).stream_ends[stream] : streams_[stream].last_end;
      if (end < until) ++unreached_;
    }
  }
}

bool EventQueue::IsWatched(const UnitLayout& unit, std::int32_t s) const {
  return s == kComputeStream || traced_[static_cast<std::size_t>(&unit - layout_.units.data())];
}

// The stream's operation ends now.
void EventQueue::NoteReached(const UnitLayout& unit, std::int32_t s, const Stream& stream) {
  if (stream.iteration == watched_iteration_ && stream.last_end < until_ && now_ >= until_ && IsWatched(unit, s)) {
    --unreached_;
  }
}

// To the stream's next operation, in the next iteration where this one has no more.
void EventQueue::MoveOn(IterationState& at, const UnitLayout& unit, std::int32_t s) {
  Stream& stream = StreamAt(unit, s);
  NoteReached(unit, s, stream);
  stream = {.iteration = stream.iteration,
            .next = stream.next + 1,
            .status = StreamStatus::kBlocked,
            .missing = 0,
            .last_end = now_,
            .ready = Time(),
            .start = kNotYet,
            .end = kNotYet};
  if (stream.next < static_cast<std::int32_t>(unit.OpsOf(s).size())) return;
  at.stream_ends[unit.first_stream + static_cast<std::size_t>(s)] = now_;
  --at.to_finish;
  stream.next = 0;
  if (++stream.iteration > last_iteration_) stream.status = StreamStatus::kDone;
}

absl::Status EventQueue::Deadlock(std::int32_t iteration) const {
  const auto finished = [this, iteration](std::int32_t u, std::int32_t s) {
    const UnitLayout& unit = layout_.units[static_cast<std::size_t>(u)];
    const Stream& stream = streams_[unit.first_stream + static_cast<std::size_t>(s)];
    return stream.iteration > iteration ? static_cast<std::int32_t>(unit.OpsOf(s).size()) : stream.next;
  };
  const auto host_ops_begun = [this, iteration](std::int32_t u) {
    const Host& host = hosts_[static_cast<std::size_t>(u)];
    const auto all = static_cast<std::int32_t>(UnitAt(u).program->host_ops.size());
    return host.iteration > iteration ? all : host.next;
  };
  return ExplainDeadlock(world_, indices_, {finished, host_ops_begun});
}

std::unique_ptr<Engine> MakeEventQueue(const EngineInputs& inputs) { return std::make_unique<EventQueue>(inputs); }

}  // namespace orrery::engine
