// What the event queue knows of one iteration of a world, apart from where streams and hosts stand.
#ifndef ORRERY_SIM_ENGINE_ITERATION_STATE_H_
#define ORRERY_SIM_ENGINE_ITERATION_STATE_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/engine/accounting.h"
#include "sim/engine/program_index.h"
#include "sim/engine/world.h"

namespace orrery::engine {

inline constexpr Time kNotYet(-1);

// One end of a message.
struct Slot {
  Time posted = kNotYet;  // this side of a rendezvous is ready
  Time begun = kNotYet;   // the transfer began
  Time done = kNotYet;    // it ended
};

// Where the messages of a program stand.
struct SlotTable {
  std::vector<std::int32_t> first;  // [link]
  std::vector<MessageEnd> ends;     // [slot]
};

// A unit's part of every iteration.
struct UnitLayout {
  const Program* program = nullptr;
  const ProgramIndex* index = nullptr;
  const SlotTable* slots = nullptr;
  std::size_t first_stream = 0;
  std::size_t first_event = 0;
  std::size_t first_slot = 0;
  std::size_t first_host_op = 0;

  const Op& OpAt(std::int32_t op) const { return program->ops[static_cast<std::size_t>(op)]; }
  const Part& PartAt(std::int32_t part) const { return program->parts[static_cast<std::size_t>(part)]; }
  const std::vector<std::int32_t>& OpsOf(std::int32_t stream) const {
    return index->stream_ops[static_cast<std::size_t>(stream)];
  }
  std::int32_t SlotOf(std::int32_t link, std::int32_t sequence) const {
    return slots->first[static_cast<std::size_t>(link)] + sequence;
  }
  const MessageEnd& EndOf(std::int32_t slot) const { return slots->ends[static_cast<std::size_t>(slot)]; }
};

// A unit's slot of a group.
struct Member {
  std::int32_t unit = 0;
  std::int32_t slot = 0;
};

// Sizes and places, the same in every iteration.
struct WorldLayout {
  WorldLayout(const World& world, const std::vector<ProgramIndex>& indices, const Clocks& clocks);

  std::vector<SlotTable> slot_tables;  // [program]
  std::vector<UnitLayout> units;
  std::vector<std::vector<Member>> members;  // [group]
  std::vector<std::size_t> first_use;        // [group]
  std::vector<std::int32_t> members_of_use;  // [first_use[group] + use]
  std::size_t events = 0;
  std::size_t slots = 0;
  std::size_t host_ops = 0;
  std::size_t streams = 0;
  std::int64_t to_finish = 0;  // streams with operations, and hosts
};

// An operation, or a host op, to be reported when its iteration's turn comes.
struct PendingReport {
  Evaluated evaluated;  // of a host op: unit, its index as `op`, previous_end, start
  bool of_host = false;
  std::size_t first_transfer = 0;  // in IterationState::transfers
  std::size_t num_transfers = 0;
  std::size_t first_segment_end = 0;  // in IterationState::segment_ends
  std::size_t num_segment_ends = 0;
};

struct IterationState {
  explicit IterationState(const WorldLayout& layout) { Reset(layout); }

  // As if nothing had happened.
  void Reset(const WorldLayout& layout);

  Slot& SlotAt(const UnitLayout& unit, std::int32_t slot) {
    return slots[unit.first_slot + static_cast<std::size_t>(slot)];
  }
  Time& EventEnd(const UnitLayout& unit, std::int32_t event) {
    return event_ends[unit.first_event + static_cast<std::size_t>(event)];
  }
  Time& HostStart(const UnitLayout& unit, std::int32_t host_op) {
    return host_starts[unit.first_host_op + static_cast<std::size_t>(host_op)];
  }

  std::vector<Time> event_ends;               // [UnitLayout::first_event + event]
  std::vector<Time> host_starts;              // [UnitLayout::first_host_op + host op]
  std::vector<Slot> slots;                    // [UnitLayout::first_slot + slot]
  std::vector<std::int32_t> missing_members;  // [WorldLayout::first_use[group] + use]
  std::vector<Time> stream_ends;              // as Clocks::stream; kNotYet until its last operation has ended
  std::vector<Time> host_ends;                // [unit], likewise
  std::vector<std::uint32_t> waited_for;      // as EngineState
  std::vector<std::uint64_t> hashes;          // [unit], of this iteration
  std::int64_t to_finish = 0;                 // streams and hosts
  Time update_end;
  std::int64_t tasks = 0;
  std::vector<PendingReport> reports;
  std::vector<Transfer> transfers;
  std::vector<Time> segment_ends;
};

}  // namespace orrery::engine

#endif  // ORRERY_SIM_ENGINE_ITERATION_STATE_H_
