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
//
// Bodies: event_queue.cc (events, hosts, streams), event_transfers.cc (what moves between units), event_fingerprint.cc.
#ifndef ORRERY_SIM_ENGINE_EVENT_QUEUE_H_
#define ORRERY_SIM_ENGINE_EVENT_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "sim/engine/engine.h"
#include "sim/engine/event_heap.h"
#include "sim/engine/event_key.h"
#include "sim/engine/iteration_state.h"
#include "sim/engine/iterations_under_way.h"
#include "sim/engine/overlap.h"
#include "sim/engine/state_hash.h"
#include "sim/engine/transfers.h"

namespace orrery::engine {

class EventQueue : public Engine {
 public:
  explicit EventQueue(const EngineInputs& inputs);

  absl::Status RunIteration(std::int32_t iteration, std::optional<Time> until) override;
  std::optional<std::uint64_t> Fingerprint() override;

 private:
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
    bool is_under_way = true;
  };

  // --- Access.

  const UnitLayout& UnitAt(std::int32_t u) const { return layout_.units[static_cast<std::size_t>(u)]; }
  const Unit& WiringOf(std::int32_t u) const { return world_.units[static_cast<std::size_t>(u)]; }
  Stream& StreamAt(const UnitLayout& unit, std::int32_t s) {
    return streams_[unit.first_stream + static_cast<std::size_t>(s)];
  }
  IterationState& At(std::int32_t iteration) { return iterations_.At(iteration); }
  std::int32_t OpOf(const Member& member, std::int32_t use) const {
    return UnitAt(member.unit).index->uses[static_cast<std::size_t>(member.slot)][static_cast<std::size_t>(use)];
  }
  // The route of a group's pattern, and of the channel that `unit` sends on; -1 where there is none.
  std::int32_t RouteOf(std::int32_t group, std::uint16_t pattern) const;
  std::int32_t RouteOf(std::int32_t unit, std::int32_t channel) const;

  void Schedule(Time time, EventKind kind, std::int32_t unit, std::int32_t stream, std::int32_t item) {
    queue_.Push({time, EventKey(kind, unit, stream, item) ^ flip_});
  }

  // --- Events.

  // The next event, or the transfers that end before it; false where there is neither, or something has failed.
  bool Step();
  // What the next events will look at is asked of memory while this one is handled: there is too much of it to stay in
  // the caches.
  void FetchAhead() const;
  void Handle(std::uint64_t key);
  // Nothing more begins or ends now: the ends that this has moved.
  void Settle();

  // --- Hosts and streams.

  void AdvanceHost(std::int32_t u, const UnitLayout& unit);
  // Whether the stream's next operation may begin now; if so, begins it.
  void AdvanceStream(std::int32_t u, const UnitLayout& unit, std::int32_t s);
  static void NoteWhatItWaitedFor(IterationState& at, std::int32_t u, const UnitLayout& unit, const Op& op, Time since,
                                  Time issued);
  void StartLocal(IterationState& at, std::int32_t u, const UnitLayout& unit, std::int32_t s, std::int32_t op_index);
  void StartPaced(std::int32_t u, const UnitLayout& unit, std::int32_t op_index, Time host_start);
  void ScheduleFinish(std::int32_t u, const UnitLayout& unit, std::int32_t s, std::int32_t op_index, Time end);
  void Finish(std::int32_t u, const UnitLayout& unit, std::int32_t s);
  // To the stream's next operation, in the next iteration where this one has no more.
  void MoveOn(IterationState& at, const UnitLayout& unit, std::int32_t s);
  absl::Status Deadlock(std::int32_t iteration) const;

  // --- How far an iteration is evaluated.

  // Counts the streams whose operations before `until` are not all known in this iteration.
  void Watch(std::int32_t iteration, Time until);
  bool IsWatched(const UnitLayout& unit, std::int32_t s) const;
  // The stream's operation ends now.
  void NoteReached(const UnitLayout& unit, std::int32_t s, const Stream& stream);

  // --- What moves between units.

  // Sets out now, or after its lead: an event when it arrives, or when its part that shares links begins.
  void SetOut(const Moving& moving, std::int32_t stream, Time lead, Time duration);
  void ScheduleArrival(std::int32_t id, std::int32_t stream, Time end);
  // Calls `sink(unit, load)` for every rank of what moves.
  template <typename Sink>
  void ForEachLoad(const Moving& moving, Sink&& sink) const;
  // Whether what moves slows, or is slowed.
  bool HasLoads(const Moving& moving) const;
  void BeginLoads(std::int32_t id);
  void EndTransfers(Time end);
  void Arrive(std::int32_t id);
  void JoinGroup(IterationState& at, std::int32_t u, std::int32_t iteration, std::int32_t op_index);
  // Where something of `unit`'s operation shares links, that is filled in.
  void ShareLinks(std::int32_t unit, std::int32_t op, std::int32_t route, Time progress, Moving& moving) const;
  void FinishMembers(std::int32_t group, std::int32_t use, Time end);
  void PostParts(IterationState& at, std::int32_t u, const UnitLayout& unit, std::int32_t s, std::int32_t op_index);
  void BeginTransfer(IterationState& at, const UnitLayout& unit, std::int32_t slot);
  void SendMessages(std::int32_t iteration, std::int32_t u, const UnitLayout& unit, std::int32_t op_index);
  void Complete(IterationState& at, std::int32_t iteration, std::int32_t u, std::int32_t slot);

  // --- What decides what follows.

  void FinishInstant();
  std::int32_t LastBegun() const;
  bool HostMatters(std::int32_t u, std::int32_t last);
  void AddStreams(const UnitLayout& unit, StateHash& hash) const;
  void AddIteration(IterationState& at, std::int32_t u, bool host_matters, StateHash& hash) const;
  std::uint64_t SumOfReports(const IterationState& at, const std::vector<bool>& host_matters) const;
  std::uint64_t SumOfMoving();
  void AddMoving(const Moving& moving, StateHash& hash) const;

  const World& world_;
  const std::vector<ProgramIndex>& indices_;
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
  std::vector<Stream> streams_;  // as Clocks::stream
  std::vector<Host> hosts_;      // [unit]
  IterationsUnderWay iterations_;
  std::vector<Moving> moving_;  // [id]
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

}  // namespace orrery::engine

#endif  // ORRERY_SIM_ENGINE_EVENT_QUEUE_H_
