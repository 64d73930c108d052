// The event queue: discrete-event simulation, independent of the worklist.
//
// Time advances from event to event. What runs is given a finish event when it starts; a transfer that shares its links
// is handed to the network instead, once its fixed part is over, and ends when the network says so. Where communication
// and compute slow each other down (overlap.h), ends move: an event that is not of the end last said is passed over,
// and before time goes on, what has begun and ended is settled. An event only marks what is done and lets the streams
// of its unit see whether their next operation may begin; nothing chooses between operations, so that the order of
// events of one instant cannot show. It is total all the same: (time, kind, unit, stream, item).
//
// Units do not wait for an iteration's end: whoever is done with one goes on with the next, as links may be shared
// across it. What belongs to one iteration is kept apart (IterationState); reports of later ones wait for their turn.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/check.h"
#include "sim/engine/engine.h"
#include "sim/engine/event_heap.h"
#include "sim/engine/iteration_state.h"
#include "sim/engine/overlap.h"
#include "sim/engine/timeline_hash.h"
#include "sim/engine/transfers.h"

namespace orrery::engine {
namespace {

enum class EventKind : std::uint8_t {
  kHostFree,    // the host has issued everything of an operation
  kStreamFree,  // the stream may begin
  kIssued,      // the host has issued the stream's next operation
  kLoads,       // the lead of a transfer is over; `item` is its id
  kShares,      // the fixed part of a transfer is over; `item` is its id
  kArrival,     // a message has arrived; `item` is its id
  kFinish,      // the stream's operation ends
  kChanges,     // the unit's compute stream comes to another kind of kernel
};

// Packs (kind, unit, stream, item) so that one comparison orders them.
constexpr int kItemBits = 28;
constexpr int kStreamBits = 5;
constexpr int kUnitBits = 28;
static_assert(kItemBits + kStreamBits + kUnitBits + 3 == 64);

constexpr std::uint64_t Key(EventKind kind, std::int32_t unit, std::int32_t stream, std::int32_t item) {
  return ((static_cast<std::uint64_t>(kind) << kUnitBits | static_cast<std::uint64_t>(unit)) << kStreamBits |
          static_cast<std::uint64_t>(stream))
             << kItemBits |
         static_cast<std::uint64_t>(item);
}
constexpr EventKind KindOf(std::uint64_t key) {
  return static_cast<EventKind>(key >> (kItemBits + kStreamBits + kUnitBits));
}
constexpr std::int32_t Field(std::uint64_t key, int shift, int bits) {
  return static_cast<std::int32_t>(key >> shift & ((std::uint64_t{1} << bits) - 1));
}

enum class StreamStatus : std::uint8_t {
  kBusyBefore,  // may not begin yet
  kBlocked,     // its next operation is not ready
  kIssuing,     // all but the issue is there, and the issue has an event
  kAwaiting,    // ready; messages, transfers or members are missing
  kRunning,     // will have a finish event
  kDone,        // has finished the last iteration
};

struct Stream {
  std::int32_t iteration = 0;
  std::int32_t next = 0;  // position
  StreamStatus status = StreamStatus::kBusyBefore;
  std::int32_t missing = 0;
  Time last_end;  // of its operation before
  Time ready;
  Time start = kNotYet;
  Time end = kNotYet;  // as things stand
};

struct Host {
  std::int32_t iteration = 0;
  std::int32_t next = 0;  // host op
  bool free = false;
  Time last_end;
};

// What is under way between units: a message to a slot of `unit`; with a second end, a rendezvous; or a collective.
struct Moving {
  std::int32_t iteration = 0;
  std::int32_t unit = -1;
  std::int32_t slot = -1;
  std::int32_t other_unit = -1;
  std::int32_t other_slot = -1;
  std::int32_t group = -1;
  std::int32_t use = -1;
  // Where it shares links: its last part, and how long that would take alone.
  std::int32_t route = -1;
  Time alone = Time();
  // Who began it, for reports.
  std::int32_t from_unit = 0;
  std::int32_t from_op = 0;
  // Of a message that was sent eagerly: the sender, and its part.
  std::int32_t sender = -1;
  std::int32_t sent_part = -1;
  Time duration = Time();
  Time end = kNotYet;  // as things stand, where the network does not say
};

class EventQueue : public Engine {
 public:
  explicit EventQueue(const EngineInputs& inputs)
      : world_(inputs.world),
        indices_(inputs.indices),
        accountant_(inputs.accountant),
        state_(inputs.state),
        transfers_(inputs.options.transfers),
        last_iteration_(inputs.options.nothing_follows ? inputs.options.iterations : 2 * inputs.options.iterations + 1),
        fault_(inputs.options.fault),
        flip_(inputs.options.reverse_ties ? ~std::uint64_t{0} : 0),
        layout_(world_, indices_, state_.clocks),
        overlap_(world_, layout_),
        streams_(layout_.streams),
        hosts_(layout_.units.size()),
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
        if (!OpsOf(unit, s).empty()) Schedule(Time(), EventKind::kStreamFree, id, s, 0);
      }
    }
  }

  absl::Status RunIteration(std::int32_t iteration, std::optional<Time> until) override {
    BeginReporting(iteration);
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

 private:
  // --- Access.

  IterationState& At(std::int32_t iteration) {
    while (iteration >= reported_ + static_cast<std::int32_t>(iterations_.size())) {
      if (spare_.has_value()) {
        spare_->Reset(layout_);
        iterations_.push_back(*std::exchange(spare_, std::nullopt));
      } else {
        iterations_.emplace_back(layout_);
      }
    }
    return iterations_[static_cast<std::size_t>(iteration - reported_)];
  }
  const UnitLayout& UnitAt(std::int32_t u) const { return layout_.units[static_cast<std::size_t>(u)]; }
  static const std::vector<std::int32_t>& OpsOf(const UnitLayout& unit, std::int32_t s) {
    return unit.index->stream_ops[static_cast<std::size_t>(s)];
  }
  Stream& StreamAt(const UnitLayout& unit, std::int32_t s) {
    return streams_[unit.first_stream + static_cast<std::size_t>(s)];
  }
  static const Op& OpAt(const UnitLayout& unit, std::int32_t op) {
    return unit.program->ops[static_cast<std::size_t>(op)];
  }
  static const Part& PartAt(const UnitLayout& unit, std::int32_t part) {
    return unit.program->parts[static_cast<std::size_t>(part)];
  }
  static Slot& SlotAt(IterationState& at, const UnitLayout& unit, std::int32_t slot) {
    return at.slots[unit.first_slot + static_cast<std::size_t>(slot)];
  }
  static std::int32_t SlotOf(const UnitLayout& unit, std::int32_t link, std::int32_t sequence) {
    return unit.slots->first[static_cast<std::size_t>(link)] + sequence;
  }
  static Time& EventEnd(IterationState& at, const UnitLayout& unit, std::int32_t event) {
    return at.event_ends[unit.first_event + static_cast<std::size_t>(event)];
  }
  static Time& HostStart(IterationState& at, const UnitLayout& unit, std::int32_t host_op) {
    return at.host_starts[unit.first_host_op + static_cast<std::size_t>(host_op)];
  }
  const Unit& WiringOf(std::int32_t u) const { return world_.units[static_cast<std::size_t>(u)]; }

  void Schedule(Time time, EventKind kind, std::int32_t unit, std::int32_t stream, std::int32_t item) {
    queue_.Push({time, Key(kind, unit, stream, item) ^ flip_});
  }

  // --- Events.

  // The next event, or the transfers that end before it; false where there is neither, or something has failed.
  bool Step() {
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
  void FetchAhead() const {
    if (queue_.empty()) return;
    for (const Event& event : queue_.Soon()) {
      const std::uint64_t key = event.key ^ flip_;
      __builtin_prefetch(&UnitAt(Field(key, kItemBits + kStreamBits, kUnitBits)));
      if (KindOf(key) >= EventKind::kShares && KindOf(key) <= EventKind::kArrival) {
        __builtin_prefetch(&moving_[static_cast<std::size_t>(Field(key, 0, kItemBits))]);
      }
    }
    const std::uint64_t key = queue_.top().key ^ flip_;
    const UnitLayout& unit = UnitAt(Field(key, kItemBits + kStreamBits, kUnitBits));
    __builtin_prefetch(&streams_[unit.first_stream]);
    __builtin_prefetch(&streams_[unit.first_stream + static_cast<std::size_t>(Field(key, kItemBits, kStreamBits))]);
    const IterationState& at = iterations_.front();
    __builtin_prefetch(at.host_starts.data() + unit.first_host_op);
    __builtin_prefetch(at.event_ends.data() + unit.first_event);
  }

  void EndTransfers(Time end) {
    ORRERY_CHECK(end >= now_);
    now_ = end;
    ended_.clear();
    transfers_->End(now_, &ended_);
    ORRERY_CHECK(!ended_.empty());
    state_.events += static_cast<std::int64_t>(ended_.size());
    sharing_ -= static_cast<std::int64_t>(ended_.size());
    std::sort(ended_.begin(), ended_.end());
    if (flip_ != 0) std::reverse(ended_.begin(), ended_.end());
    for (const std::int64_t id : ended_) Arrive(static_cast<std::int32_t>(id));
  }

  void Handle(std::uint64_t key) {
    const std::int32_t u = Field(key, kItemBits + kStreamBits, kUnitBits);
    const std::int32_t s = Field(key, kItemBits, kStreamBits);
    const std::int32_t item = Field(key, 0, kItemBits);
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
        status_.Update(transfers_->Begin(now_, {.id = item,
                                                .route = moving.route,
                                                .alone = moving.alone,
                                                .unit = moving.from_unit,
                                                .op = moving.from_op}));
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
  void Settle() {
    for (const Overlap::Change& change : overlap_.Settle(now_)) {
      switch (change.what) {
        case Overlap::What::kComputeEnds: {
          const UnitLayout& unit = UnitAt(change.subject);
          const Stream& stream = StreamAt(unit, kComputeStream);
          const std::int32_t op = OpsOf(unit, kComputeStream)[static_cast<std::size_t>(stream.next)];
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

  void AdvanceHost(std::int32_t u, const UnitLayout& unit) {
    Host& host = hosts_[static_cast<std::size_t>(u)];
    const auto& host_ops = unit.program->host_ops;
    bool began = false;
    while (host.free && host.iteration <= last_iteration_) {
      IterationState& at = At(host.iteration);
      const HostOp& op = host_ops[static_cast<std::size_t>(host.next)];
      if (op.waits != kNoEvent && EventEnd(at, unit, op.waits) == kNotYet) break;
      if (now_ > host.last_end) at.waited_for[static_cast<std::size_t>(u)] |= StreamBit(unit, op.waits);
      ReportHost(at, host, u);
      HostStart(at, unit, host.next) = now_;
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

  static std::uint32_t StreamBit(const UnitLayout& unit, std::int32_t event) {
    return 1u << OpAt(unit, unit.index->recorder[static_cast<std::size_t>(event)]).stream;
  }

  // Whether the stream's next operation may begin now; if so, begins it.
  void AdvanceStream(std::int32_t u, const UnitLayout& unit, std::int32_t s) {
    Stream& stream = StreamAt(unit, s);
    if (stream.status != StreamStatus::kBlocked) return;
    IterationState& at = At(stream.iteration);
    const std::int32_t op_index = OpsOf(unit, s)[static_cast<std::size_t>(stream.next)];
    const Op& op = OpAt(unit, op_index);
    const Time host_start = HostStart(at, unit, op.host_op);
    if (host_start == kNotYet) return;
    for (std::int32_t event : op.waits) {
      if (event == kNoEvent) break;
      if (EventEnd(at, unit, event) == kNotYet) return;
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

  static void NoteWhatItWaitedFor(IterationState& at, std::int32_t u, const UnitLayout& unit, const Op& op, Time since,
                                  Time issued) {
    std::uint32_t& waited_for = at.waited_for[static_cast<std::size_t>(u)];
    if (issued > since) {
      since = issued;
      waited_for |= kHostBit;
    }
    for (std::int32_t event : op.waits) {
      if (event == kNoEvent) break;
      if (EventEnd(at, unit, event) <= since) continue;
      since = EventEnd(at, unit, event);
      waited_for |= StreamBit(unit, event);
    }
  }

  // --- kLocal.

  static std::int32_t CountMissingMessages(IterationState& at, const UnitLayout& unit, const Op& op) {
    std::int32_t missing = 0;
    for (std::int32_t i = op.first_part; i < op.first_part + op.num_parts; ++i) {
      const Part& part = PartAt(unit, i);
      if (!part.is_send && SlotAt(at, unit, SlotOf(unit, LinkOf(part), part.sequence)).done == kNotYet) ++missing;
    }
    return missing;
  }

  void StartLocal(IterationState& at, std::int32_t u, const UnitLayout& unit, std::int32_t s, std::int32_t op_index) {
    const Op& op = OpAt(unit, op_index);
    const Time host_start = HostStart(at, unit, op.host_op);
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

  void StartPaced(std::int32_t u, const UnitLayout& unit, std::int32_t op_index, Time host_start) {
    Stream& stream = StreamAt(unit, kComputeStream);
    stream.start = now_;
    stream.status = StreamStatus::kRunning;
    const std::optional<Time> end = overlap_.BeginCompute(u, OpAt(unit, op_index), host_start, now_);
    if (end.has_value()) ScheduleFinish(u, unit, kComputeStream, op_index, *end);
  }

  void ScheduleFinish(std::int32_t u, const UnitLayout& unit, std::int32_t s, std::int32_t op_index, Time end) {
    if (u == 0 && op_index == faulty_op_) end += fault_;
    Stream& stream = StreamAt(unit, s);
    stream.status = StreamStatus::kRunning;
    if (stream.end == end) return;
    stream.end = end;
    Schedule(end, EventKind::kFinish, u, s, op_index);
  }

  // --- What moves between units.

  // Sets out now, or after its lead: an event when it arrives, or when its part that shares links begins.
  void SetOut(const Moving& moving, std::int32_t stream, Time lead, Time duration) {
    std::int32_t id = 0;
    if (free_ids_.empty()) {
      id = static_cast<std::int32_t>(moving_.size());
      ORRERY_CHECK(id < 1 << kItemBits);
      moving_.push_back(moving);
    } else {
      id = free_ids_.back();
      free_ids_.pop_back();
      moving_[static_cast<std::size_t>(id)] = moving;
    }
    moving_[static_cast<std::size_t>(id)].duration = duration;
    // What takes no time might have arrived when its loads begin.
    if (duration > Time() && HasLoads(moving)) {
      if (lead == Time()) {
        BeginLoads(id);
      } else {
        Schedule(now_ + lead, EventKind::kLoads, moving.unit, stream, id);
      }
    }
    if (moving.alone > Time()) {
      transfers_->Expect(moving.route);
      Schedule(now_ + lead + duration - moving.alone, EventKind::kShares, moving.unit, stream, id);
      return;
    }
    ScheduleArrival(id, stream, now_ + lead + duration);
  }

  void ScheduleArrival(std::int32_t id, std::int32_t stream, Time end) {
    Moving& moving = moving_[static_cast<std::size_t>(id)];
    if (moving.end == end) return;
    moving.end = end;
    Schedule(end, EventKind::kArrival, moving.unit, stream, id);
  }

  // Calls `sink(unit, load)` for every rank of what moves.
  template <typename Sink>
  void ForEachLoad(const Moving& moving, Sink&& sink) const {
    if (moving.group >= 0) {
      for (const Member& member : layout_.members[static_cast<std::size_t>(moving.group)]) {
        sink(member.unit, LoadOfOp(*UnitAt(member.unit).program, OpOf(member, moving.use)));
      }
      return;
    }
    const auto of_slot = [&](std::int32_t u, std::int32_t slot) {
      const UnitLayout& unit = UnitAt(u);
      sink(u, LoadOfPart(*unit.program, EndOf(unit, slot).part));
    };
    of_slot(moving.unit, moving.slot);
    if (moving.other_unit >= 0) of_slot(moving.other_unit, moving.other_slot);
    if (moving.sender >= 0) sink(moving.sender, LoadOfPart(*UnitAt(moving.sender).program, moving.sent_part));
  }

  // Whether what moves slows, or is slowed.
  bool HasLoads(const Moving& moving) const {
    if (!overlap_.is_on()) return false;
    bool has_loads = false;
    ForEachLoad(moving, [&](std::int32_t unit, std::int32_t load) { has_loads |= overlap_.HasEffectAt(unit, load); });
    return has_loads;
  }

  void BeginLoads(std::int32_t id) {
    const Moving& moving = moving_[static_cast<std::size_t>(id)];
    ends_.clear();
    ForEachLoad(moving, [&](std::int32_t unit, std::int32_t load) {
      if (overlap_.HasEffectAt(unit, load)) ends_.push_back({unit, load});
    });
    overlap_.BeginTransfer(id, ends_, moving.duration, now_);
  }

  void Arrive(std::int32_t id) {
    Moving& moving = moving_[static_cast<std::size_t>(id)];
    moving.end = kNotYet;
    free_ids_.push_back(id);
    overlap_.EndTransfer(id);
    IterationState& at = At(moving.iteration);
    if (moving.group >= 0) {
      FinishMembers(moving.group, moving.use, now_);
      return;
    }
    Complete(at, moving.iteration, moving.unit, moving.slot);
    if (moving.other_unit >= 0) Complete(at, moving.iteration, moving.other_unit, moving.other_slot);
  }

  // --- kCollective.

  void JoinGroup(IterationState& at, std::int32_t u, std::int32_t iteration, std::int32_t op_index) {
    const Op& op = OpAt(UnitAt(u), op_index);
    const std::int32_t group = WiringOf(u).groups[static_cast<std::size_t>(op.group)];
    const std::size_t use = layout_.first_use[static_cast<std::size_t>(group)] + static_cast<std::size_t>(op.use);
    if (--at.missing_members[use] > 0) return;
    for (const Member& member : layout_.members[static_cast<std::size_t>(group)]) {
      const UnitLayout& unit = UnitAt(member.unit);
      Stream& stream = StreamAt(unit, OpAt(unit, OpOf(member, op.use)).stream);
      stream.start = now_ + op.lead;
      stream.status = StreamStatus::kRunning;
    }
    Moving moving{.iteration = iteration, .group = group, .use = op.use};
    ShareLinks(u, op_index, RouteOf(group, op.pattern), ProgressOfOp(*UnitAt(u).program, op_index), moving);
    if (moving.alone == Time() && !HasLoads(moving)) {
      FinishMembers(group, op.use, now_ + op.lead + op.duration);
      return;
    }
    moving.unit = u;
    SetOut(moving, op.stream, op.lead, op.duration);
  }

  // Where something of `unit`'s operation shares links, that is filled in.
  void ShareLinks(std::int32_t unit, std::int32_t op, std::int32_t route, Time progress, Moving& moving) const {
    if (transfers_ == nullptr || route < 0) return;
    moving.alone = progress;
    moving.route = route;
    moving.from_unit = unit;
    moving.from_op = op;
  }

  std::int32_t OpOf(const Member& member, std::int32_t use) const {
    return UnitAt(member.unit).index->uses[static_cast<std::size_t>(member.slot)][static_cast<std::size_t>(use)];
  }

  std::int32_t RouteOf(std::int32_t group, std::uint16_t pattern) const {
    if (world_.group_routes.empty()) return -1;
    const std::vector<std::int32_t>& routes = world_.group_routes[static_cast<std::size_t>(group)];
    return pattern < routes.size() ? routes[pattern] : -1;
  }

  void FinishMembers(std::int32_t group, std::int32_t use, Time end) {
    for (const Member& member : layout_.members[static_cast<std::size_t>(group)]) {
      const UnitLayout& unit = UnitAt(member.unit);
      const std::int32_t op_index = OpOf(member, use);
      ScheduleFinish(member.unit, unit, OpAt(unit, op_index).stream, op_index, end);
    }
  }

  // --- kExchange.

  void PostParts(IterationState& at, std::int32_t u, const UnitLayout& unit, std::int32_t s, std::int32_t op_index) {
    const Op& op = OpAt(unit, op_index);
    Stream& stream = StreamAt(unit, s);
    stream.missing = op.num_parts;
    if (op.num_parts == 0) {
      stream.start = now_;
      ScheduleFinish(u, unit, s, op_index, now_);
      return;
    }
    for (std::int32_t i = op.first_part; i < op.first_part + op.num_parts; ++i) {
      const Part& part = PartAt(unit, i);
      const std::int32_t mine = SlotOf(unit, LinkOf(part), part.sequence);
      SlotAt(at, unit, mine).posted = now_;
      const Peer& peer = WiringOf(u).peers[static_cast<std::size_t>(part.channel)];
      const UnitLayout& other = UnitAt(peer.unit);
      const std::int32_t theirs = SlotOf(other, LinkOf(peer.channel, !part.is_send), part.sequence);
      if (SlotAt(at, other, theirs).posted == kNotYet) continue;
      BeginTransfer(at, unit, mine);
      BeginTransfer(at, other, theirs);
      Moving moving{
          .iteration = stream.iteration, .unit = u, .slot = mine, .other_unit = peer.unit, .other_slot = theirs};
      const MessageEnd& send = part.is_send ? EndOf(unit, mine) : EndOf(other, theirs);
      const std::int32_t sender = part.is_send ? u : peer.unit;
      ShareLinks(sender, send.op, RouteOf(sender, part.is_send ? part.channel : peer.channel),
                 ProgressOfPart(*UnitAt(sender).program, send.part), moving);
      SetOut(moving, s, Time(), part.duration);
    }
  }

  static const MessageEnd& EndOf(const UnitLayout& unit, std::int32_t slot) {
    return unit.slots->ends[static_cast<std::size_t>(slot)];
  }

  // Of the channel that `unit` sends on.
  std::int32_t RouteOf(std::int32_t unit, std::int32_t channel) const {
    const std::vector<std::int32_t>& routes = WiringOf(unit).routes;
    return routes.empty() ? -1 : routes[static_cast<std::size_t>(channel)];
  }

  void BeginTransfer(IterationState& at, const UnitLayout& unit, std::int32_t slot) {
    SlotAt(at, unit, slot).begun = now_;
    Stream& stream = StreamAt(unit, OpAt(unit, EndOf(unit, slot).op).stream);
    if (stream.start == kNotYet) stream.start = now_;
  }

  // --- Completions.

  void Complete(IterationState& at, std::int32_t iteration, std::int32_t u, std::int32_t slot) {
    const UnitLayout& unit = UnitAt(u);
    SlotAt(at, unit, slot).done = now_;
    const std::int32_t op_index = EndOf(unit, slot).op;
    const std::int32_t s = OpAt(unit, op_index).stream;
    Stream& stream = StreamAt(unit, s);
    const bool is_awaited = stream.status == StreamStatus::kAwaiting && stream.iteration == iteration &&
                            OpsOf(unit, s)[static_cast<std::size_t>(stream.next)] == op_index;
    if (!is_awaited || --stream.missing > 0) return;
    if (OpAt(unit, op_index).kind == OpKind::kLocal) {
      StartLocal(at, u, unit, s, op_index);
    } else {
      ScheduleFinish(u, unit, s, op_index, now_);
    }
  }

  void Finish(std::int32_t u, const UnitLayout& unit, std::int32_t s) {
    Stream& stream = StreamAt(unit, s);
    const std::int32_t iteration = stream.iteration;
    IterationState& at = At(iteration);
    const std::int32_t op_index = OpsOf(unit, s)[static_cast<std::size_t>(stream.next)];
    const Op& op = OpAt(unit, op_index);
    const bool is_paced = s == kComputeStream && op.num_segments > 0 && overlap_.Paces(u);
    Report(at, u, unit, s, op_index, is_paced ? overlap_.EndCompute(u) : std::span<const Time>());
    ++at.tasks;
    at.hashes[static_cast<std::size_t>(u)] += TimelineHash(iteration, s, op_index, stream.start, now_);
    if (op_index == unit.program->update_op) at.update_end = std::max(at.update_end, now_);
    if (op.kind == OpKind::kLocal) SendMessages(iteration, u, unit, op_index);
    MoveOn(at, unit, s);
    if (op.records == kNoEvent) {
      AdvanceStream(u, unit, s);
      return;
    }
    EventEnd(at, unit, op.records) = now_;
    for (std::int32_t other = 0; other < unit.program->num_streams; ++other) AdvanceStream(u, unit, other);
    AdvanceHost(u, unit);
  }

  // --- How far an iteration is evaluated.

  // Counts the streams whose operations before `until` are not all known in this iteration.
  void Watch(std::int32_t iteration, Time until) {
    watched_iteration_ = iteration;
    until_ = until;
    unreached_ = 0;
    for (std::size_t u = 0; u < layout_.units.size(); ++u) {
      const UnitLayout& unit = layout_.units[u];
      for (std::int32_t s = 0; s < unit.program->num_streams; ++s) {
        if (!IsWatched(unit, s) || OpsOf(unit, s).empty()) continue;
        const std::size_t stream = unit.first_stream + static_cast<std::size_t>(s);
        const Time end =
            streams_[stream].iteration > iteration ? At(iteration).stream_ends[stream] : streams_[stream].last_end;
        if (end < until) ++unreached_;
      }
    }
  }

  bool IsWatched(const UnitLayout& unit, std::int32_t s) const {
    return s == kComputeStream || traced_[static_cast<std::size_t>(&unit - layout_.units.data())];
  }

  // The stream's operation ends now.
  void NoteReached(const UnitLayout& unit, std::int32_t s, const Stream& stream) {
    if (stream.iteration == watched_iteration_ && stream.last_end < until_ && now_ >= until_ && IsWatched(unit, s)) {
      --unreached_;
    }
  }

  // To the stream's next operation, in the next iteration where this one has no more.
  void MoveOn(IterationState& at, const UnitLayout& unit, std::int32_t s) {
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
    if (stream.next < static_cast<std::int32_t>(OpsOf(unit, s).size())) return;
    at.stream_ends[unit.first_stream + static_cast<std::size_t>(s)] = now_;
    --at.to_finish;
    stream.next = 0;
    if (++stream.iteration > last_iteration_) stream.status = StreamStatus::kDone;
  }

  void SendMessages(std::int32_t iteration, std::int32_t u, const UnitLayout& unit, std::int32_t op_index) {
    const Op& op = OpAt(unit, op_index);
    for (std::int32_t i = op.first_part; i < op.first_part + op.num_parts; ++i) {
      const Part& part = PartAt(unit, i);
      if (!part.is_send) continue;
      const Peer& peer = WiringOf(u).peers[static_cast<std::size_t>(part.channel)];
      const UnitLayout& other = UnitAt(peer.unit);
      const std::int32_t slot = SlotOf(other, LinkOf(peer.channel, false), part.sequence);
      SlotAt(At(iteration), other, slot).begun = now_;
      const std::int32_t receiver = OpAt(other, EndOf(other, slot).op).stream;
      Moving moving{.iteration = iteration, .unit = peer.unit, .slot = slot, .sender = u, .sent_part = i};
      ShareLinks(u, op_index, RouteOf(u, part.channel), ProgressOfPart(*unit.program, i), moving);
      SetOut(moving, receiver, Time(), part.duration);
    }
  }

  // --- Reports.

  // Everything before `iteration` has been reported. What is known of it already is reported first.
  void BeginReporting(std::int32_t iteration) {
    ORRERY_CHECK(iteration == reported_ || iteration == reported_ + 1);
    if (iteration > reported_) {
      spare_ = std::move(iterations_.front());
      iterations_.pop_front();
      reported_ = iteration;
    }
    IterationState& at = At(iteration);
    for (PendingReport& pending : at.reports) {
      Evaluated& evaluated = pending.evaluated;
      evaluated.transfers = std::span(at.transfers).subspan(pending.first_transfer, pending.num_transfers);
      evaluated.segment_ends = std::span(at.segment_ends).subspan(pending.first_segment_end, pending.num_segment_ends);
      Pass(at, pending.of_host, evaluated);
    }
    at.reports.clear();
  }

  void Pass(const IterationState& at, bool of_host, Evaluated& evaluated) {
    if (of_host) {
      accountant_.ReportHost(evaluated.unit, evaluated.op, evaluated.previous_end, evaluated.start);
      return;
    }
    const UnitLayout& unit = UnitAt(evaluated.unit);
    if (evaluated.previous_end >= accountant_.FilterOf(evaluated.unit, OpAt(unit, evaluated.op).stream).nothing_from) {
      return;
    }
    evaluated.event_ends = at.event_ends.data() + unit.first_event;
    accountant_.Report(evaluated);
  }

  void ReportHost(IterationState& at, const Host& host, std::int32_t u) {
    Evaluated evaluated;
    evaluated.unit = u;
    evaluated.op = host.next;
    evaluated.previous_end = host.last_end;
    evaluated.start = now_;
    if (host.iteration == reported_) {
      Pass(at, true, evaluated);
    } else {
      at.reports.push_back({.evaluated = evaluated, .of_host = true});
    }
  }

  void Report(IterationState& at, std::int32_t u, const UnitLayout& unit, std::int32_t s, std::int32_t op_index,
              std::span<const Time> segment_ends) {
    const Op& op = OpAt(unit, op_index);
    const Stream& stream = StreamAt(unit, s);
    const std::size_t first = at.transfers.size();
    for (std::int32_t i = op.first_part; i < op.first_part + op.num_parts; ++i) {
      const Part& part = PartAt(unit, i);
      if (op.kind == OpKind::kLocal && part.is_send) continue;
      const Slot& slot = SlotAt(at, unit, SlotOf(unit, LinkOf(part), part.sequence));
      at.transfers.push_back({slot.begun, slot.done});
    }
    const std::size_t count = at.transfers.size() - first;
    Evaluated evaluated{
        u,  op_index, stream.last_end, HostStart(at, unit, op.host_op), stream.ready, stream.start, now_, nullptr,
        {}, {}};
    if (stream.iteration != reported_) {
      at.reports.push_back({evaluated, false, first, count, at.segment_ends.size(), segment_ends.size()});
      at.segment_ends.insert(at.segment_ends.end(), segment_ends.begin(), segment_ends.end());
      return;
    }
    evaluated.transfers = std::span(at.transfers).subspan(first, count);
    evaluated.segment_ends = segment_ends;
    Pass(at, false, evaluated);
    at.transfers.resize(first);
  }

  absl::Status Deadlock(std::int32_t iteration) const {
    const auto finished = [this, iteration](std::int32_t u, std::int32_t s) {
      const UnitLayout& unit = layout_.units[static_cast<std::size_t>(u)];
      const Stream& stream = streams_[unit.first_stream + static_cast<std::size_t>(s)];
      return stream.iteration > iteration ? static_cast<std::int32_t>(OpsOf(unit, s).size()) : stream.next;
    };
    const auto host_ops_begun = [this, iteration](std::int32_t u) {
      const Host& host = hosts_[static_cast<std::size_t>(u)];
      const auto all = static_cast<std::int32_t>(UnitAt(u).program->host_ops.size());
      return host.iteration > iteration ? all : host.next;
    };
    return ExplainDeadlock(world_, indices_, {finished, host_ops_begun});
  }

  const World& world_;
  const std::vector<ProgramIndex>& indices_;
  Accountant& accountant_;
  EngineState& state_;
  Transfers* const transfers_;  // null: nothing shares links
  const std::int32_t last_iteration_;
  const Time fault_;
  std::int32_t faulty_op_ = -1;  // of the first unit
  // All ones to reverse the order of ties.
  const std::uint64_t flip_;
  const WorldLayout layout_;
  Overlap overlap_;
  Time now_;

  EventHeap queue_;
  std::vector<Stream> streams_;            // as Clocks::stream
  std::vector<Host> hosts_;                // [unit]
  std::int32_t reported_ = 0;              // the iteration that is reported as it happens
  std::deque<IterationState> iterations_;  // from reported_ on
  std::optional<IterationState> spare_;    // one that is over, for its memory
  std::vector<Moving> moving_;             // [id]
  std::vector<std::int32_t> free_ids_;
  std::vector<std::int64_t> ended_;
  std::vector<Overlap::End> ends_;
  std::int64_t sharing_ = 0;  // transfers in the network

  // Where an iteration need not be evaluated whole.
  std::vector<bool> traced_;  // [unit]
  std::int32_t watched_iteration_ = -1;
  Time until_;
  std::int64_t unreached_ = 0;  // watched streams
  absl::Status status_;
};

}  // namespace

std::unique_ptr<Engine> MakeEventQueue(const EngineInputs& inputs) { return std::make_unique<EventQueue>(inputs); }

}  // namespace orrery::engine
