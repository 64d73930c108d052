// The event queue: discrete-event simulation of one iteration, independent of the worklist.
//
// Time advances from event to event. What runs is an activity: it is given a finish event when it starts. With constant
// durations that instant never changes; activities whose rates change will have to move it. An event only marks what is
// done and lets the streams of its unit see whether their next operation may begin; nothing chooses between operations,
// so that the order of events of one instant cannot show. It is total all the same: (time, kind, unit, stream, op).
//
// Iterations are replayed one after the other, each from the clocks that the last one left behind.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <queue>
#include <vector>

#include "absl/status/status.h"
#include "base/check.h"
#include "sim/engine/engine.h"
#include "sim/engine/timeline_hash.h"

namespace orrery::engine {
namespace {

constexpr Time kNotYet(-1);

enum class EventKind : std::uint8_t {
  kHostFree,    // the host has issued everything of an operation
  kStreamFree,  // the stream has finished the previous iteration
  kIssued,      // the host has issued the stream's next operation
  kArrival,     // an eager message has arrived, or a transfer of an exchange ended; `item` is the slot
  kFinish,      // the stream's operation ends
};

struct Event {
  Time time;
  std::uint64_t key = 0;
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

struct Later {
  bool operator()(const Event& a, const Event& b) const { return a.time != b.time ? a.time > b.time : a.key > b.key; }
};

enum class StreamStatus : std::uint8_t {
  kBusyBefore,  // still in the previous iteration
  kBlocked,     // its next operation is not ready
  kIssuing,     // all but the issue is there, and the issue has an event
  kAwaiting,    // ready; messages, transfers or members are missing
  kRunning,     // has a finish event
};

struct Stream {
  std::int32_t next = 0;  // position
  StreamStatus status = StreamStatus::kBusyBefore;
  std::int32_t missing = 0;
  Time ready;
  Time start = kNotYet;
};

struct Slot {
  Time posted = kNotYet;  // this side of a rendezvous is ready
  Time done = kNotYet;    // arrived, or transferred
};

// Where the messages of a program stand.
struct SlotTable {
  std::vector<std::int32_t> first;  // [link]
  std::vector<MessageEnd> ends;     // [slot]
};

struct UnitState {
  const Program* program = nullptr;
  const ProgramIndex* index = nullptr;
  const SlotTable* slots = nullptr;
  std::size_t first_stream = 0;
  std::size_t first_event = 0;
  std::size_t first_slot = 0;
  std::size_t first_host_op = 0;
  std::int32_t next_host_op = 0;
  bool host_free = false;
};

struct Member {
  std::int32_t unit = 0;
  std::int32_t slot = 0;
};

class EventQueue : public Engine {
 public:
  explicit EventQueue(const EngineInputs& inputs)
      : world_(inputs.world),
        indices_(inputs.indices),
        accountant_(inputs.accountant),
        state_(inputs.state),
        fault_(inputs.options.fault),
        flip_(inputs.options.reverse_ties ? ~std::uint64_t{0} : 0) {
    LayOut();
    if (fault_ != Time()) faulty_op_ = FaultyOp(*units_.front().index);
  }

  absl::Status RunIteration(std::int32_t iteration) override {
    Reset(iteration);
    while (!queue_.empty()) {
      const Event event = queue_.top();
      queue_.pop();
      ORRERY_CHECK(event.time >= now_);
      now_ = event.time;
      ++state_.events;
      Handle(event.key ^ flip_);
    }
    return CheckFinished();
  }

 private:
  // --- Set-up.

  void LayOut() {
    for (const ProgramIndex& index : indices_) {
      SlotTable table;
      for (const auto& ends : index.messages) {
        table.first.push_back(static_cast<std::int32_t>(table.ends.size()));
        table.ends.insert(table.ends.end(), ends.begin(), ends.end());
      }
      slot_tables_.push_back(std::move(table));
    }
    std::size_t events = 0;
    std::size_t slots = 0;
    std::size_t host_ops = 0;
    members_.resize(world_.groups.size());
    ORRERY_CHECK(world_.units.size() < std::size_t{1} << kUnitBits);
    for (std::size_t u = 0; u < world_.units.size(); ++u) {
      const auto p = static_cast<std::size_t>(world_.units[u].program);
      UnitState unit;
      unit.program = &world_.programs[p];
      unit.index = &indices_[p];
      unit.slots = &slot_tables_[p];
      unit.first_stream = state_.clocks.first_stream[u];
      unit.first_event = events;
      unit.first_slot = slots;
      unit.first_host_op = host_ops;
      events += static_cast<std::size_t>(unit.program->num_events);
      slots += unit.slots->ends.size();
      host_ops += unit.program->host_ops.size();
      ORRERY_CHECK(unit.program->ops.size() < std::size_t{1} << kItemBits &&
                   unit.slots->ends.size() < std::size_t{1} << kItemBits);
      for (std::size_t slot = 0; slot < unit.index->uses.size(); ++slot) {
        if (unit.index->uses[slot].empty()) continue;
        members_[static_cast<std::size_t>(world_.units[u].groups[slot])].push_back(
            {static_cast<std::int32_t>(u), static_cast<std::int32_t>(slot)});
      }
      units_.push_back(unit);
    }
    event_ends_.resize(events);
    slots_.resize(slots);
    host_starts_.resize(host_ops);
    streams_.resize(state_.clocks.stream.size());
    std::size_t uses = 0;
    for (std::size_t g = 0; g < members_.size(); ++g) {
      first_use_.push_back(uses);
      if (members_[g].empty()) continue;
      const Member& member = members_[g].front();
      uses += UnitAt(member.unit).index->uses[static_cast<std::size_t>(member.slot)].size();
    }
    missing_members_.resize(uses);
  }

  void Reset(std::int32_t iteration) {
    iteration_ = iteration;
    now_ = Time();
    state_.update_end = Time();
    std::fill(event_ends_.begin(), event_ends_.end(), kNotYet);
    std::fill(host_starts_.begin(), host_starts_.end(), kNotYet);
    std::fill(slots_.begin(), slots_.end(), Slot());
    std::fill(streams_.begin(), streams_.end(), Stream());
    std::fill(state_.waited_for.begin(), state_.waited_for.end(), 0u);
    for (std::size_t g = 0; g < members_.size(); ++g) {
      const std::size_t end = g + 1 < members_.size() ? first_use_[g + 1] : missing_members_.size();
      for (std::size_t use = first_use_[g]; use < end; ++use) {
        missing_members_[use] = static_cast<std::int32_t>(members_[g].size());
      }
    }
    for (std::size_t u = 0; u < units_.size(); ++u) {
      const auto id = static_cast<std::int32_t>(u);
      units_[u].next_host_op = 0;
      units_[u].host_free = false;
      Schedule(state_.clocks.host[u], EventKind::kHostFree, id, 0, 0);
      for (std::int32_t s = 0; s < units_[u].program->num_streams; ++s) {
        if (OpsOf(units_[u], s).empty()) continue;
        Schedule(state_.clocks.stream[units_[u].first_stream + static_cast<std::size_t>(s)], EventKind::kStreamFree, id,
                 s, 0);
      }
    }
  }

  absl::Status CheckFinished() const {
    for (const UnitState& unit : units_) {
      for (std::int32_t s = 0; s < unit.program->num_streams; ++s) {
        const Stream& stream = streams_[unit.first_stream + static_cast<std::size_t>(s)];
        if (stream.next != static_cast<std::int32_t>(OpsOf(unit, s).size())) return Deadlock();
      }
      if (unit.next_host_op != static_cast<std::int32_t>(unit.program->host_ops.size())) return Deadlock();
    }
    return absl::OkStatus();
  }

  // --- Access.

  UnitState& UnitAt(std::int32_t u) { return units_[static_cast<std::size_t>(u)]; }
  static const std::vector<std::int32_t>& OpsOf(const UnitState& unit, std::int32_t s) {
    return unit.index->stream_ops[static_cast<std::size_t>(s)];
  }
  Stream& StreamAt(const UnitState& unit, std::int32_t s) {
    return streams_[unit.first_stream + static_cast<std::size_t>(s)];
  }
  Time& ClockOf(const UnitState& unit, std::int32_t s) {
    return state_.clocks.stream[unit.first_stream + static_cast<std::size_t>(s)];
  }
  static const Op& OpAt(const UnitState& unit, std::int32_t op) {
    return unit.program->ops[static_cast<std::size_t>(op)];
  }
  static const Part& PartAt(const UnitState& unit, std::int32_t part) {
    return unit.program->parts[static_cast<std::size_t>(part)];
  }
  Slot& SlotAt(const UnitState& unit, std::int32_t slot) {
    return slots_[unit.first_slot + static_cast<std::size_t>(slot)];
  }
  static std::int32_t SlotOf(const UnitState& unit, std::int32_t link, std::int32_t sequence) {
    return unit.slots->first[static_cast<std::size_t>(link)] + sequence;
  }
  Time& EventEnd(const UnitState& unit, std::int32_t event) {
    return event_ends_[unit.first_event + static_cast<std::size_t>(event)];
  }
  Time& HostStart(const UnitState& unit, std::int32_t host_op) {
    return host_starts_[unit.first_host_op + static_cast<std::size_t>(host_op)];
  }

  void Schedule(Time time, EventKind kind, std::int32_t unit, std::int32_t stream, std::int32_t item) {
    queue_.push({time, Key(kind, unit, stream, item) ^ flip_});
  }

  // --- Events.

  void Handle(std::uint64_t key) {
    const std::int32_t u = Field(key, kItemBits + kStreamBits, kUnitBits);
    const std::int32_t s = Field(key, kItemBits, kStreamBits);
    UnitState& unit = UnitAt(u);
    switch (KindOf(key)) {
      case EventKind::kHostFree:
        unit.host_free = true;
        AdvanceHost(u, unit);
        break;
      case EventKind::kStreamFree:
      case EventKind::kIssued:
        StreamAt(unit, s).status = StreamStatus::kBlocked;
        AdvanceStream(u, unit, s);
        break;
      case EventKind::kArrival:
        Complete(u, unit, s, Field(key, 0, kItemBits));
        break;
      case EventKind::kFinish:
        Finish(u, unit, s);
        break;
    }
  }

  void AdvanceHost(std::int32_t u, UnitState& unit) {
    const auto& host_ops = unit.program->host_ops;
    Time& clock = state_.clocks.host[static_cast<std::size_t>(u)];
    bool began = false;
    while (unit.host_free && unit.next_host_op < static_cast<std::int32_t>(host_ops.size())) {
      const HostOp& op = host_ops[static_cast<std::size_t>(unit.next_host_op)];
      if (op.waits != kNoEvent && EventEnd(unit, op.waits) == kNotYet) break;
      if (now_ > clock) state_.waited_for[static_cast<std::size_t>(u)] |= StreamBit(unit, op.waits);
      accountant_.ReportHost(u, unit.next_host_op, clock, now_);
      HostStart(unit, unit.next_host_op) = now_;
      clock = now_ + op.duration;
      ++unit.next_host_op;
      began = true;
      if (op.duration > Time()) {
        unit.host_free = false;
        Schedule(clock, EventKind::kHostFree, u, 0, 0);
      }
    }
    if (!began) return;
    for (std::int32_t s = 0; s < unit.program->num_streams; ++s) AdvanceStream(u, unit, s);
  }

  static std::uint32_t StreamBit(const UnitState& unit, std::int32_t event) {
    return 1u << OpAt(unit, unit.index->recorder[static_cast<std::size_t>(event)]).stream;
  }

  // Whether the stream's next operation may begin now; if so, begins it.
  void AdvanceStream(std::int32_t u, UnitState& unit, std::int32_t s) {
    Stream& stream = StreamAt(unit, s);
    if (stream.status != StreamStatus::kBlocked) return;
    const auto& ops = OpsOf(unit, s);
    if (stream.next == static_cast<std::int32_t>(ops.size())) return;
    const std::int32_t op_index = ops[static_cast<std::size_t>(stream.next)];
    const Op& op = OpAt(unit, op_index);
    const Time host_start = HostStart(unit, op.host_op);
    if (host_start == kNotYet) return;
    for (std::int32_t event : op.waits) {
      if (event == kNoEvent) break;
      if (EventEnd(unit, event) == kNotYet) return;
    }
    const Time issued = host_start + IssueOffset(*unit.program, op);
    if (issued > now_) {
      stream.status = StreamStatus::kIssuing;
      Schedule(issued, EventKind::kIssued, u, s, op_index);
      return;
    }
    stream.ready = now_;
    NoteWhatItWaitedFor(u, unit, op, ClockOf(unit, s), issued);
    stream.status = StreamStatus::kAwaiting;
    switch (op.kind) {
      case OpKind::kLocal:
        stream.missing = CountMissingMessages(unit, op);
        if (stream.missing == 0) StartLocal(u, unit, s, op_index);
        break;
      case OpKind::kCollective:
        JoinGroup(u, op);
        break;
      case OpKind::kExchange:
        PostParts(u, unit, s, op_index);
        break;
    }
  }

  void NoteWhatItWaitedFor(std::int32_t u, const UnitState& unit, const Op& op, Time at, Time issued) {
    std::uint32_t& waited_for = state_.waited_for[static_cast<std::size_t>(u)];
    if (issued > at) {
      at = issued;
      waited_for |= kHostBit;
    }
    for (std::int32_t event : op.waits) {
      if (event == kNoEvent) break;
      if (EventEnd(unit, event) <= at) continue;
      at = EventEnd(unit, event);
      waited_for |= StreamBit(unit, event);
    }
  }

  // --- kLocal.

  std::int32_t CountMissingMessages(const UnitState& unit, const Op& op) {
    std::int32_t missing = 0;
    for (std::int32_t i = op.first_part; i < op.first_part + op.num_parts; ++i) {
      const Part& part = PartAt(unit, i);
      if (!part.is_send && SlotAt(unit, SlotOf(unit, LinkOf(part), part.sequence)).done == kNotYet) ++missing;
    }
    return missing;
  }

  void StartLocal(std::int32_t u, const UnitState& unit, std::int32_t s, std::int32_t op_index) {
    const Op& op = OpAt(unit, op_index);
    const Time host_start = HostStart(unit, op.host_op);
    Time at = now_;
    for (std::int32_t i = op.first_segment; i < op.first_segment + op.num_segments; ++i) {
      const Segment& segment = unit.program->segments[static_cast<std::size_t>(i)];
      if (host_start + segment.issue > at) {
        at = host_start + segment.issue;
        state_.waited_for[static_cast<std::size_t>(u)] |= kHostBit;
      }
      at += segment.duration;
    }
    StreamAt(unit, s).start = now_;
    ScheduleFinish(u, unit, s, op_index, at);
  }

  void ScheduleFinish(std::int32_t u, const UnitState& unit, std::int32_t s, std::int32_t op_index, Time end) {
    if (u == 0 && op_index == faulty_op_) end += fault_;
    StreamAt(unit, s).status = StreamStatus::kRunning;
    Schedule(end, EventKind::kFinish, u, s, op_index);
  }

  // --- kCollective.

  void JoinGroup(std::int32_t u, const Op& op) {
    const auto group =
        static_cast<std::size_t>(world_.units[static_cast<std::size_t>(u)].groups[static_cast<std::size_t>(op.group)]);
    if (--missing_members_[first_use_[group] + static_cast<std::size_t>(op.use)] > 0) return;
    for (const Member& member : members_[group]) {
      const UnitState& unit = UnitAt(member.unit);
      const std::int32_t op_index =
          unit.index->uses[static_cast<std::size_t>(member.slot)][static_cast<std::size_t>(op.use)];
      const std::int32_t s = OpAt(unit, op_index).stream;
      StreamAt(unit, s).start = now_ + op.lead;
      ScheduleFinish(member.unit, unit, s, op_index, now_ + op.lead + op.duration);
    }
  }

  // --- kExchange.

  void PostParts(std::int32_t u, const UnitState& unit, std::int32_t s, std::int32_t op_index) {
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
      SlotAt(unit, mine).posted = now_;
      const Peer& peer = world_.units[static_cast<std::size_t>(u)].peers[static_cast<std::size_t>(part.channel)];
      const UnitState& other = UnitAt(peer.unit);
      const std::int32_t theirs = SlotOf(other, LinkOf(peer.channel, !part.is_send), part.sequence);
      if (SlotAt(other, theirs).posted == kNotYet) continue;
      BeginTransfer(u, unit, mine, part.duration);
      BeginTransfer(peer.unit, other, theirs, part.duration);
    }
  }

  void BeginTransfer(std::int32_t u, const UnitState& unit, std::int32_t slot, Time duration) {
    const std::int32_t s = OpAt(unit, unit.slots->ends[static_cast<std::size_t>(slot)].op).stream;
    Stream& stream = StreamAt(unit, s);
    if (stream.start == kNotYet) stream.start = now_;
    Schedule(now_ + duration, EventKind::kArrival, u, s, slot);
  }

  // --- Completions.

  void Complete(std::int32_t u, const UnitState& unit, std::int32_t s, std::int32_t slot) {
    SlotAt(unit, slot).done = now_;
    Stream& stream = StreamAt(unit, s);
    const std::int32_t op_index = unit.slots->ends[static_cast<std::size_t>(slot)].op;
    const bool is_awaited =
        stream.status == StreamStatus::kAwaiting && OpsOf(unit, s)[static_cast<std::size_t>(stream.next)] == op_index;
    if (!is_awaited || --stream.missing > 0) return;
    if (OpAt(unit, op_index).kind == OpKind::kLocal) {
      StartLocal(u, unit, s, op_index);
    } else {
      ScheduleFinish(u, unit, s, op_index, now_);
    }
  }

  void Finish(std::int32_t u, UnitState& unit, std::int32_t s) {
    Stream& stream = StreamAt(unit, s);
    const std::int32_t op_index = OpsOf(unit, s)[static_cast<std::size_t>(stream.next)];
    const Op& op = OpAt(unit, op_index);
    Report(u, unit, s, op_index);
    ++state_.tasks;
    state_.hashes[static_cast<std::size_t>(u)] += TimelineHash(iteration_, s, op_index, stream.start, now_);
    if (op_index == unit.program->update_op) state_.update_end = std::max(state_.update_end, now_);
    if (op.kind == OpKind::kLocal) SendMessages(u, unit, op);
    ClockOf(unit, s) = now_;
    stream = {stream.next + 1, StreamStatus::kBlocked, 0, Time(), kNotYet};
    if (op.records == kNoEvent) {
      AdvanceStream(u, unit, s);
      return;
    }
    EventEnd(unit, op.records) = now_;
    for (std::int32_t other = 0; other < unit.program->num_streams; ++other) AdvanceStream(u, unit, other);
    AdvanceHost(u, unit);
  }

  void SendMessages(std::int32_t u, const UnitState& unit, const Op& op) {
    for (std::int32_t i = op.first_part; i < op.first_part + op.num_parts; ++i) {
      const Part& part = PartAt(unit, i);
      if (!part.is_send) continue;
      const Peer& peer = world_.units[static_cast<std::size_t>(u)].peers[static_cast<std::size_t>(part.channel)];
      const UnitState& other = UnitAt(peer.unit);
      const std::int32_t slot = SlotOf(other, LinkOf(peer.channel, false), part.sequence);
      const std::int32_t receiver = OpAt(other, other.slots->ends[static_cast<std::size_t>(slot)].op).stream;
      Schedule(now_ + part.duration, EventKind::kArrival, peer.unit, receiver, slot);
    }
  }

  void Report(std::int32_t u, const UnitState& unit, std::int32_t s, std::int32_t op_index) {
    if (ClockOf(unit, s) >= accountant_.FilterOf(u, s).nothing_from) return;
    const Op& op = OpAt(unit, op_index);
    const Stream& stream = StreamAt(unit, s);
    transfers_.clear();
    for (std::int32_t i = op.first_part; i < op.first_part + op.num_parts; ++i) {
      const Part& part = PartAt(unit, i);
      if (op.kind == OpKind::kLocal && part.is_send) continue;
      const Time done = SlotAt(unit, SlotOf(unit, LinkOf(part), part.sequence)).done;
      transfers_.push_back({done - part.duration, done});
    }
    accountant_.Report({u, op_index, ClockOf(unit, s), HostStart(unit, op.host_op), stream.ready, stream.start, now_,
                        event_ends_.data() + unit.first_event, transfers_});
  }

  absl::Status Deadlock() const {
    const auto finished = [this](std::int32_t u, std::int32_t s) {
      return streams_[units_[static_cast<std::size_t>(u)].first_stream + static_cast<std::size_t>(s)].next;
    };
    const auto host_ops_begun = [this](std::int32_t u) { return units_[static_cast<std::size_t>(u)].next_host_op; };
    return ExplainDeadlock(world_, indices_, {finished, host_ops_begun});
  }

  const World& world_;
  const std::vector<ProgramIndex>& indices_;
  Accountant& accountant_;
  EngineState& state_;
  const Time fault_;
  std::int32_t faulty_op_ = -1;  // of the first unit
  // All ones to reverse the order of ties.
  const std::uint64_t flip_;
  std::int32_t iteration_ = 0;
  Time now_;

  std::priority_queue<Event, std::vector<Event>, Later> queue_;
  std::vector<SlotTable> slot_tables_;  // [program]
  std::vector<UnitState> units_;
  std::vector<Stream> streams_;                // as Clocks::stream
  std::vector<Time> event_ends_;               // [unit.first_event + event]
  std::vector<Time> host_starts_;              // [unit.first_host_op + host op]
  std::vector<Slot> slots_;                    // [unit.first_slot + slot]
  std::vector<std::vector<Member>> members_;   // [group]
  std::vector<std::size_t> first_use_;         // [group]
  std::vector<std::int32_t> missing_members_;  // [first_use_[group] + use]
  std::vector<Transfer> transfers_;
};

}  // namespace

std::unique_ptr<Engine> MakeEventQueue(const EngineInputs& inputs) { return std::make_unique<EventQueue>(inputs); }

}  // namespace orrery::engine
