#include "sim/engine/iteration_state.h"

namespace orrery::engine {

WorldLayout::WorldLayout(const World& world, const std::vector<ProgramIndex>& indices, const Clocks& clocks)
    : members(world.groups.size()), streams(clocks.stream.size()) {
  slot_tables.reserve(indices.size());
  for (const ProgramIndex& index : indices) {
    SlotTable table;
    for (const auto& ends : index.messages) {
      table.first.push_back(static_cast<std::int32_t>(table.ends.size()));
      table.ends.insert(table.ends.end(), ends.begin(), ends.end());
    }
    slot_tables.push_back(std::move(table));
  }
  units.reserve(world.units.size());
  for (std::size_t u = 0; u < world.units.size(); ++u) {
    const auto p = static_cast<std::size_t>(world.units[u].program);
    const UnitLayout unit = {.program = &world.programs[p],
                             .index = &indices[p],
                             .slots = &slot_tables[p],
                             .first_stream = clocks.first_stream[u],
                             .first_event = events,
                             .first_slot = slots,
                             .first_host_op = host_ops};
    events += static_cast<std::size_t>(unit.program->num_events);
    slots += unit.slots->ends.size();
    host_ops += unit.program->host_ops.size();
    for (const auto& ops : unit.index->stream_ops) to_finish += ops.empty() ? 0 : 1;
    if (!unit.program->host_ops.empty()) ++to_finish;
    for (std::size_t slot = 0; slot < unit.index->uses.size(); ++slot) {
      if (unit.index->uses[slot].empty()) continue;
      members[static_cast<std::size_t>(world.units[u].groups[slot])].push_back(
          {static_cast<std::int32_t>(u), static_cast<std::int32_t>(slot)});
    }
    units.push_back(unit);
  }
  for (const std::vector<Member>& group : members) {
    first_use.push_back(members_of_use.size());
    if (group.empty()) continue;
    const Member& member = group.front();
    const auto& uses = units[static_cast<std::size_t>(member.unit)].index->uses[static_cast<std::size_t>(member.slot)];
    members_of_use.resize(members_of_use.size() + uses.size(), static_cast<std::int32_t>(group.size()));
  }
}

void IterationState::Reset(const WorldLayout& layout) {
  event_ends.assign(layout.events, kNotYet);
  host_starts.assign(layout.host_ops, kNotYet);
  slots.assign(layout.slots, Slot());
  missing_members = layout.members_of_use;
  stream_ends.assign(layout.streams, kNotYet);
  host_ends.assign(layout.units.size(), kNotYet);
  waited_for.assign(layout.units.size(), 0);
  hashes.assign(layout.units.size(), 0);
  to_finish = layout.to_finish;
  update_end = Time();
  tasks = 0;
  reports.clear();
  transfers.clear();
  segment_ends.clear();
}

}  // namespace orrery::engine
