// The worklist: evaluates the max-plus recurrence of an iteration in whatever order dependencies allow.
//
// A unit runs its streams until each is blocked: on an event or host op of its own (the static table Plan::waiters says
// whom an event may wake), on a message (the stream leaves its mark in the slot where the arrival will be written), or
// on a group (it joins the list of the group's use). Whoever supplies what is missing makes the stream runnable again
// and puts the unit on the list. Nobody is looked at twice in vain, and nothing is allocated while running.
#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "base/check.h"
#include "sim/engine/engine.h"
#include "sim/engine/timeline_hash.h"
#include "sim/engine/worklist_plan.h"

namespace orrery::engine {
namespace {

// Values of an event, host start or slot whose time is not known yet; times are never negative. kUnknown - 1 - s marks
// a slot that stream s waits for.
constexpr Time kUnknown(-1);

constexpr bool IsKnown(Time time) { return time >= Time(); }
constexpr Time WaitedForBy(std::int32_t stream) { return Time(-2 - stream); }
constexpr bool IsWaitedFor(Time slot) { return slot < kUnknown; }
constexpr std::int32_t WaitingStream(Time slot) { return static_cast<std::int32_t>(-2 - slot.count()); }

constexpr std::int32_t kNobody = -1;

// The units of a pipeline take turns, each walking through its own operations and slots: too many walks at a time for
// the hardware to foresee, and each too long for the cache. Every step therefore fetches what comes up: a line of slots
// ahead, and the operation after the next, since the next one is tried at once. Never faults, whatever the address.
constexpr std::ptrdiff_t kSlotsPerLine = 64 / sizeof(Time);
constexpr std::ptrdiff_t kPartsAhead = std::size_t{2} * 64 / sizeof(PlannedPart);
void Prefetch(const void* next) { __builtin_prefetch(next); }

struct UnitState {
  const Plan* plan = nullptr;
  const Program* program = nullptr;
  std::int32_t program_index = 0;
  std::uint32_t runnable = 0;  // streams, and kHostBit
  std::size_t first_event = 0;
  std::size_t first_slot = 0;
  std::size_t first_host_op = 0;
  std::size_t first_stream = 0;
  std::size_t first_link = 0;
  std::int32_t next_host_op = 0;
  bool listed = false;
};

struct StreamState {
  std::int32_t next = 0;  // in Plan::ops
  std::int32_t end = 0;
  // Ready time of the next operation once it is posted to peers or group; kUnknown before.
  Time posted = kUnknown;
  // Next in the list of streams that wait for the same use of a group.
  std::int32_t next_waiting = kNobody;
};

// Where a unit's messages go.
struct LinkTarget {
  std::size_t first_slot = 0;
  std::int32_t unit = 0;
};

struct GroupUse {
  Time latest;                     // ready, so far
  std::int32_t missing = 0;        // members that have not come yet
  std::int32_t waiting = kNobody;  // a stream (index into streams_), first of a list
};

// Units to run, each at most once. Last in, first out keeps a pipeline's few units in the cache until it is done.
class RunList {
 public:
  RunList(std::size_t capacity, bool first_in_first_out) : units_(capacity + 1), fifo_(first_in_first_out) {}

  bool empty() const { return head_ == tail_; }
  void Push(std::int32_t unit) {
    units_[tail_] = unit;
    tail_ = Next(tail_);
  }
  std::int32_t Pop() {
    if (fifo_) {
      const std::int32_t unit = units_[head_];
      head_ = Next(head_);
      return unit;
    }
    tail_ = tail_ == 0 ? units_.size() - 1 : tail_ - 1;
    return units_[tail_];
  }

 private:
  std::size_t Next(std::size_t at) const { return at + 1 == units_.size() ? 0 : at + 1; }

  std::vector<std::int32_t> units_;
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
  bool fifo_;
};

class Worklist : public Engine {
 public:
  explicit Worklist(const EngineInputs& inputs)
      : world_(inputs.world),
        indices_(inputs.indices),
        accountant_(inputs.accountant),
        state_(inputs.state),
        reverse_(inputs.options.reverse_ties),
        list_(inputs.world.units.size(), inputs.options.reverse_ties) {
    MakePlans(inputs.options.fault);
    LayOutUnits();
    LayOutLinks();
    LayOutGroups();
  }

  absl::Status RunIteration(std::int32_t iteration, std::optional<Time> /*until*/) override {
    Reset(iteration);
    while (!list_.empty()) RunUnit(list_.Pop());
    for (const StreamState& stream : streams_) {
      if (stream.next != stream.end) return Deadlock();
    }
    for (std::size_t u = 0; u < units_.size(); ++u) {
      if (units_[u].next_host_op != static_cast<std::int32_t>(units_[u].program->host_ops.size())) return Deadlock();
    }
    for (const UnitState& unit : units_) state_.tasks += static_cast<std::int64_t>(unit.program->ops.size());
    return absl::OkStatus();
  }

 private:
  // --- Set-up.

  void MakePlans(Time fault) {
    plans_.reserve(world_.programs.size() + 1);
    for (std::size_t p = 0; p < world_.programs.size(); ++p) {
      plans_.emplace_back(world_.programs[p], indices_[p]);
      PlannedOp* const compute = &plans_.back().ops[static_cast<std::size_t>(plans_.back().first_op[kComputeStream])];
      for (std::int32_t position : accountant_.MarkedPositions(static_cast<std::int32_t>(p))) {
        compute[position].is_marked = true;
      }
    }
    if (fault == Time()) return;
    // The first unit gets a plan of its own with the fault in it.
    const auto program = static_cast<std::size_t>(world_.units.front().program);
    const std::int32_t faulty = FaultyOp(indices_[program]);
    Plan plan = plans_[program];
    for (PlannedOp& op : plan.ops) {
      if (op.op != faulty) continue;
      op.duration += fault;
      if (op.kind == OpKind::kLocal) op.issued_end += fault;
    }
    plans_.push_back(std::move(plan));
    has_fault_ = true;
  }

  void LayOutUnits() {
    std::size_t events = 0;
    std::size_t slots = 0;
    std::size_t host_ops = 0;
    units_.resize(world_.units.size());
    for (std::size_t u = 0; u < units_.size(); ++u) {
      UnitState& unit = units_[u];
      const auto program = static_cast<std::size_t>(world_.units[u].program);
      unit.program_index = world_.units[u].program;
      unit.program = &world_.programs[program];
      unit.plan = has_fault_ && u == 0 ? &plans_.back() : &plans_[program];
      unit.first_event = events;
      unit.first_slot = slots;
      unit.first_host_op = host_ops;
      unit.first_stream = state_.clocks.first_stream[u];
      events += unit.plan->waiters.size();
      slots += static_cast<std::size_t>(unit.plan->num_slots);
      host_ops += unit.program->host_ops.size();
    }
    events_.resize(events);
    slots_.resize(slots);
    host_starts_.resize(host_ops);
    streams_.resize(state_.clocks.stream.size());
    unit_of_stream_.resize(streams_.size());
    for (std::size_t u = 0; u < units_.size(); ++u) {
      for (std::size_t s = units_[u].first_stream; s < state_.clocks.first_stream[u + 1]; ++s) {
        unit_of_stream_[s] = static_cast<std::int32_t>(u);
      }
    }
  }

  void LayOutLinks() {
    for (std::size_t u = 0; u < units_.size(); ++u) {
      units_[u].first_link = links_.size();
      const auto& messages = indices_[static_cast<std::size_t>(world_.units[u].program)].messages;
      for (std::size_t link = 0; link < messages.size(); ++link) {
        LinkTarget target;
        if (!messages[link].empty()) {
          const Peer& peer = world_.units[u].peers[link / 2];
          const UnitState& other = units_[static_cast<std::size_t>(peer.unit)];
          const auto back = static_cast<std::size_t>(LinkOf(peer.channel, link % 2 == 0));
          target.unit = peer.unit;
          target.first_slot = other.first_slot + static_cast<std::size_t>(other.plan->first_slot[back]);
        }
        links_.push_back(target);
      }
    }
  }

  void LayOutGroups() {
    std::vector<std::size_t> uses(world_.groups.size(), 0);
    members_.assign(world_.groups.size(), 0);
    for (const Unit& unit : world_.units) {
      const ProgramIndex& index = indices_[static_cast<std::size_t>(unit.program)];
      for (std::size_t slot = 0; slot < unit.groups.size(); ++slot) {
        if (index.uses[slot].empty()) continue;
        const auto group = static_cast<std::size_t>(unit.groups[slot]);
        uses[group] = index.uses[slot].size();
        ++members_[group];  // by slot, not by unit: a folded unit may stand for members in different slots
      }
    }
    std::size_t total = 0;
    for (std::size_t count : uses) {
      first_use_.push_back(total);
      total += count;
    }
    first_use_.push_back(total);
    uses_.resize(total);
  }

  void Reset(std::int32_t iteration) {
    iteration_ = iteration;
    state_.update_end = Time();
    std::fill(events_.begin(), events_.end(), kUnknown);
    std::fill(slots_.begin(), slots_.end(), kUnknown);
    std::fill(host_starts_.begin(), host_starts_.end(), kUnknown);
    std::fill(state_.waited_for.begin(), state_.waited_for.end(), 0u);
    for (std::size_t g = 0; g < world_.groups.size(); ++g) {
      for (std::size_t use = first_use_[g]; use < first_use_[g + 1]; ++use) uses_[use] = {Time(), members_[g], kNobody};
    }
    for (std::size_t i = 0; i < units_.size(); ++i) {
      const std::size_t u = reverse_ ? i : units_.size() - 1 - i;
      UnitState& unit = units_[u];
      const std::size_t streams = unit.plan->first_op.size() - 1;
      for (std::size_t s = 0; s < streams; ++s) {
        StreamState& stream = streams_[unit.first_stream + s];
        stream = {unit.plan->first_op[s], unit.plan->first_op[s + 1], kUnknown, kNobody};
      }
      unit.next_host_op = 0;
      unit.runnable = ((1u << streams) - 1) | kHostBit;
      unit.listed = true;
      list_.Push(static_cast<std::int32_t>(u));
    }
  }

  // --- Running.

  void RunUnit(std::int32_t u) {
    UnitState& unit = units_[static_cast<std::size_t>(u)];
    if ((unit.runnable & kHostBit) != 0) RunHost(u, unit);
    while (unit.runnable != 0) {
      const int bit = reverse_ ? 31 - __builtin_clz(unit.runnable) : __builtin_ctz(unit.runnable);
      unit.runnable &= ~(1u << bit);
      if (1u << bit == kHostBit) {
        RunHost(u, unit);
      } else {
        RunStream(u, unit, bit);
      }
    }
    unit.listed = false;
  }

  void Wake(std::int32_t u, std::int32_t stream) {
    UnitState& unit = units_[static_cast<std::size_t>(u)];
    unit.runnable |= 1u << stream;
    if (unit.listed) return;
    unit.listed = true;
    list_.Push(u);
  }

  void RunHost(std::int32_t u, UnitState& unit) {
    unit.runnable &= ~kHostBit;
    const std::vector<HostOp>& host_ops = unit.program->host_ops;
    Time& clock = state_.clocks.host[static_cast<std::size_t>(u)];
    const std::int32_t before = unit.next_host_op;
    while (unit.next_host_op < static_cast<std::int32_t>(host_ops.size())) {
      const HostOp& op = host_ops[static_cast<std::size_t>(unit.next_host_op)];
      Time start = clock;
      if (op.waits != kNoEvent) {
        const Time end = events_[unit.first_event + static_cast<std::size_t>(op.waits)];
        if (!IsKnown(end)) break;
        if (end > start) {
          start = end;
          state_.waited_for[static_cast<std::size_t>(u)] |= unit.plan->event_stream[static_cast<std::size_t>(op.waits)];
        }
      }
      accountant_.ReportHost(u, unit.next_host_op, clock, start);
      host_starts_[unit.first_host_op + static_cast<std::size_t>(unit.next_host_op)] = start;
      clock = start + op.duration;
      ++unit.next_host_op;
    }
    if (unit.next_host_op != before) unit.runnable |= (1u << (unit.plan->first_op.size() - 1)) - 1;
  }

  void RunStream(std::int32_t u, UnitState& unit, std::int32_t s) {
    const std::size_t stream_index = unit.first_stream + static_cast<std::size_t>(s);
    StreamState& stream = streams_[stream_index];
    if (stream.next == stream.end) return;
    const Plan& plan = *unit.plan;
    Time* const events = events_.data() + unit.first_event;
    const Time* const host_starts = host_starts_.data() + unit.first_host_op;
    const ReportFilter filter = accountant_.FilterOf(u, s);
    Time previous_end = state_.clocks.stream[stream_index];
    std::uint64_t hash = 0;
    std::uint32_t waited_for = 0;

    for (; stream.next != stream.end; ++stream.next) {
      const PlannedOp& op = plan.ops[static_cast<std::size_t>(stream.next)];
      Prefetch(&op + 2);
      const Time host_start = host_starts[op.host_op];
      if (!IsKnown(host_start)) break;
      Time ready = previous_end;
      if (host_start + op.issue > ready) {
        ready = host_start + op.issue;
        waited_for |= kHostBit;
      }
      if (op.waits_for_events && !MeetEvents(plan, op, events, ready, waited_for)) break;

      Time start;
      Time end;
      if (op.kind == OpKind::kLocal) {
        start = ready;
        if (!MeetMessages(unit, plan, op, s, start)) break;
        end = start + op.duration;
        if (host_start + op.issued_end > end) {
          end = host_start + op.issued_end;
          waited_for |= kHostBit;
        }
        Send(unit, plan, op, end);
      } else if (op.kind == OpKind::kCollective) {
        if (!MeetGroup(u, op, stream_index, ready, start)) break;
        end = start + op.duration;
        start += op.issued_end;
      } else {
        if (!MeetPeers(unit, plan, op, stream, s, ready, start, end)) break;
        end += op.duration;
      }
      stream.posted = kUnknown;

      hash += TimelineHash(iteration_, s, op.op, start, end);
      if (op.records != kNoEvent) {
        events[op.records] = end;
        unit.runnable |= plan.waiters[static_cast<std::size_t>(op.records)] & ~(1u << s);
      }
      if (op.is_update) state_.update_end = std::max(state_.update_end, end);
      if (previous_end < filter.nothing_from &&
          (previous_end < filter.gapless_from || start != previous_end || end - start != op.duration || op.is_marked ||
           op.kind != OpKind::kLocal)) {
        Report(u, unit, op, {u, op.op, previous_end, host_start, ready, start, end, events, {}});
      }
      previous_end = end;
    }
    state_.clocks.stream[stream_index] = previous_end;
    state_.hashes[static_cast<std::size_t>(u)] += hash;
    state_.waited_for[static_cast<std::size_t>(u)] |= waited_for;
  }

  // Each of these advances a time to when something awaited is there, or returns false if that is not known yet.

  static bool MeetEvents(const Plan& plan, const PlannedOp& op, const Time* events, Time& ready,
                         std::uint32_t& waited_for) {
    for (std::int32_t event : op.waits) {
      if (event == kNoEvent) break;
      if (!IsKnown(events[event])) return false;
      if (events[event] > ready) {
        ready = events[event];
        waited_for |= plan.event_stream[static_cast<std::size_t>(event)];
      }
    }
    return true;
  }

  bool MeetMessages(const UnitState& unit, const Plan& plan, const PlannedOp& op, std::int32_t s, Time& start) {
    for (std::int32_t i = op.first_part; i < op.first_part + op.num_awaited; ++i) {
      const PlannedPart& part = plan.parts[static_cast<std::size_t>(i)];
      Prefetch(&part + kPartsAhead);
      Time& arrival = slots_[unit.first_slot + static_cast<std::size_t>(part.slot)];
      Prefetch(&arrival + kSlotsPerLine);
      if (!IsKnown(arrival)) {
        arrival = WaitedForBy(s);
        return false;
      }
      start = std::max(start, arrival);
    }
    return true;
  }

  bool MeetGroup(std::int32_t u, const PlannedOp& op, std::size_t stream_index, Time ready, Time& start) {
    const auto slot = static_cast<std::size_t>(op.first_part);
    const auto group = static_cast<std::size_t>(world_.units[static_cast<std::size_t>(u)].groups[slot]);
    GroupUse& use = uses_[first_use_[group] + static_cast<std::size_t>(op.num_awaited)];
    StreamState& stream = streams_[stream_index];
    if (!IsKnown(stream.posted)) {
      stream.posted = ready;
      use.latest = std::max(use.latest, ready);
      if (--use.missing == 0) {
        for (std::int32_t waiting = use.waiting; waiting != kNobody;) {
          const auto other = static_cast<std::size_t>(waiting);
          waiting = streams_[other].next_waiting;
          const std::int32_t unit = unit_of_stream_[other];
          Wake(unit, static_cast<std::int32_t>(other - units_[static_cast<std::size_t>(unit)].first_stream));
        }
      } else {
        stream.next_waiting = use.waiting;
        use.waiting = static_cast<std::int32_t>(stream_index);
      }
    }
    start = use.latest;
    return use.missing == 0;
  }

  // Starts are posted once, in the slots of the peers; then every peer's is awaited.
  bool MeetPeers(const UnitState& unit, const Plan& plan, const PlannedOp& op, StreamState& stream, std::int32_t s,
                 Time ready, Time& start, Time& end) {
    if (!IsKnown(stream.posted)) {
      stream.posted = ready;
      for (std::int32_t i = op.first_part; i < op.first_part + op.num_awaited; ++i) {
        const PlannedPart& part = plan.parts[static_cast<std::size_t>(i)];
        Deliver(links_[unit.first_link + static_cast<std::size_t>(part.link)], part.sequence, ready);
      }
    }
    start = op.num_awaited == 0 ? ready : Time(std::numeric_limits<std::int64_t>::max());
    end = ready;
    for (std::int32_t i = op.first_part; i < op.first_part + op.num_awaited; ++i) {
      const PlannedPart& part = plan.parts[static_cast<std::size_t>(i)];
      Time& peer = slots_[unit.first_slot + static_cast<std::size_t>(part.slot)];
      if (!IsKnown(peer)) {
        peer = WaitedForBy(s);
        return false;
      }
      const Time begin = std::max(ready, peer);
      start = std::min(start, begin);
      end = std::max(end, begin + part.duration);
    }
    return true;
  }

  void Send(const UnitState& unit, const Plan& plan, const PlannedOp& op, Time end) {
    const std::int32_t first = op.first_part + op.num_awaited;
    for (std::int32_t i = first; i < first + op.num_sends; ++i) {
      const PlannedPart& part = plan.parts[static_cast<std::size_t>(i)];
      Prefetch(&part + kPartsAhead);
      Deliver(links_[unit.first_link + static_cast<std::size_t>(part.link)], part.sequence, end + part.duration);
    }
  }

  void Deliver(const LinkTarget& target, std::int32_t sequence, Time time) {
    Time& slot = slots_[target.first_slot + static_cast<std::size_t>(sequence)];
    Prefetch(&slot + kSlotsPerLine);
    const Time before = slot;
    slot = time;
    if (IsWaitedFor(before)) Wake(target.unit, WaitingStream(before));
  }

  // --- What the accountant and the user want to know.

  void Report(std::int32_t u, const UnitState& unit, const PlannedOp& op, Evaluated evaluated) {
    transfers_.clear();
    if (op.kind != OpKind::kCollective) {
      for (std::int32_t i = op.first_part; i < op.first_part + op.num_awaited; ++i) {
        const PlannedPart& part = unit.plan->parts[static_cast<std::size_t>(i)];
        const Time slot = slots_[unit.first_slot + static_cast<std::size_t>(part.slot)];
        if (op.kind == OpKind::kLocal) {
          transfers_.push_back({slot - part.duration, slot});
        } else {
          const Time begin = std::max(evaluated.ready, slot);
          transfers_.push_back({begin, begin + part.duration});
        }
      }
    }
    evaluated.unit = u;
    evaluated.transfers = transfers_;
    accountant_.Report(evaluated);
  }

  absl::Status Deadlock() const {
    const auto finished = [this](std::int32_t u, std::int32_t s) {
      const UnitState& unit = units_[static_cast<std::size_t>(u)];
      return streams_[unit.first_stream + static_cast<std::size_t>(s)].next -
             unit.plan->first_op[static_cast<std::size_t>(s)];
    };
    const auto host_ops_begun = [this](std::int32_t u) { return units_[static_cast<std::size_t>(u)].next_host_op; };
    return ExplainDeadlock(world_, indices_, {finished, host_ops_begun});
  }

  const World& world_;
  const std::vector<ProgramIndex>& indices_;
  Accountant& accountant_;
  EngineState& state_;
  const bool reverse_;
  bool has_fault_ = false;
  std::int32_t iteration_ = 0;

  std::vector<Plan> plans_;  // [program], and the faulty one
  std::vector<UnitState> units_;
  std::vector<StreamState> streams_;  // as Clocks::stream
  std::vector<std::int32_t> unit_of_stream_;
  std::vector<Time> events_;            // [unit.first_event + event]: its end
  std::vector<Time> host_starts_;       // [unit.first_host_op + host op]
  std::vector<Time> slots_;             // [unit.first_slot + slot]: arrival of a message, or the peer's ready
  std::vector<LinkTarget> links_;       // [unit.first_link + link]
  std::vector<std::size_t> first_use_;  // [group], and one past the last
  std::vector<GroupUse> uses_;          // [first_use_[group] + use]
  std::vector<std::int32_t> members_;   // [group]
  RunList list_;
  std::vector<Transfer> transfers_;
};

}  // namespace

std::unique_ptr<Engine> MakeWorklist(const EngineInputs& inputs) { return std::make_unique<Worklist>(inputs); }

}  // namespace orrery::engine
