// What moves between units: messages, rendezvous and collectives, alone or over shared links.
#include <algorithm>

#include "base/check.h"
#include "sim/engine/event_queue.h"

namespace orrery::engine {

std::int32_t EventQueue::RouteOf(std::int32_t group, std::uint16_t pattern) const {
  if (world_.group_routes.empty()) return -1;
  const std::vector<std::int32_t>& routes = world_.group_routes[static_cast<std::size_t>(group)];
  return pattern < routes.size() ? routes[pattern] : -1;
}

// Of the channel that `unit` sends on.
std::int32_t EventQueue::RouteOf(std::int32_t unit, std::int32_t channel) const {
  const std::vector<std::int32_t>& routes = WiringOf(unit).routes;
  return routes.empty() ? -1 : routes[static_cast<std::size_t>(channel)];
}

// Sets out now, or after its lead: an event when it arrives, or when its part that shares links begins.
void EventQueue::SetOut(const Moving& moving, std::int32_t stream, Time lead, Time duration) {
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

void EventQueue::ScheduleArrival(std::int32_t id, std::int32_t stream, Time end) {
  Moving& moving = moving_[static_cast<std::size_t>(id)];
  if (moving.end == end) return;
  moving.end = end;
  Schedule(end, EventKind::kArrival, moving.unit, stream, id);
}

// Calls `sink(unit, load)` for every rank of what moves.
template <typename Sink>
void EventQueue::ForEachLoad(const Moving& moving, Sink&& sink) const {
  if (moving.group >= 0) {
    for (const Member& member : layout_.members[static_cast<std::size_t>(moving.group)]) {
      sink(member.unit, LoadOfOp(*UnitAt(member.unit).program, OpOf(member, moving.use)));
    }
    return;
  }
  const auto of_slot = [&](std::int32_t u, std::int32_t slot) {
    const UnitLayout& unit = UnitAt(u);
    sink(u, LoadOfPart(*unit.program, unit.EndOf(slot).part));
  };
  of_slot(moving.unit, moving.slot);
  if (moving.other_unit >= 0) of_slot(moving.other_unit, moving.other_slot);
  if (moving.sender >= 0) sink(moving.sender, LoadOfPart(*UnitAt(moving.sender).program, moving.sent_part));
}

// Whether what moves slows, or is slowed.
bool EventQueue::HasLoads(const Moving& moving) const {
  if (!overlap_.is_on()) return false;
  bool has_loads = false;
  ForEachLoad(moving, [&](std::int32_t unit, std::int32_t load) { has_loads |= overlap_.HasEffectAt(unit, load); });
  return has_loads;
}

void EventQueue::BeginLoads(std::int32_t id) {
  const Moving& moving = moving_[static_cast<std::size_t>(id)];
  ends_.clear();
  ForEachLoad(moving, [&](std::int32_t unit, std::int32_t load) {
    if (overlap_.HasEffectAt(unit, load)) ends_.push_back({unit, load});
  });
  overlap_.BeginTransfer(id, ends_, moving.duration, now_);
}

void EventQueue::EndTransfers(Time end) {
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

void EventQueue::Arrive(std::int32_t id) {
  Moving& moving = moving_[static_cast<std::size_t>(id)];
  moving.end = kNotYet;
  moving.is_under_way = false;
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

void EventQueue::JoinGroup(IterationState& at, std::int32_t u, std::int32_t iteration, std::int32_t op_index) {
  const Op& op = UnitAt(u).OpAt(op_index);
  const std::int32_t group = WiringOf(u).groups[static_cast<std::size_t>(op.group)];
  const std::size_t use = layout_.first_use[static_cast<std::size_t>(group)] + static_cast<std::size_t>(op.use);
  if (--at.missing_members[use] > 0) return;
  for (const Member& member : layout_.members[static_cast<std::size_t>(group)]) {
    const UnitLayout& unit = UnitAt(member.unit);
    Stream& stream = StreamAt(unit, unit.OpAt(OpOf(member, op.use)).stream);
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
void EventQueue::ShareLinks(std::int32_t unit, std::int32_t op, std::int32_t route, Time progress,
                            Moving& moving) const {
  if (transfers_ == nullptr || route < 0) return;
  moving.alone = progress;
  moving.route = route;
  moving.from_unit = unit;
  moving.from_op = op;
}

void EventQueue::FinishMembers(std::int32_t group, std::int32_t use, Time end) {
  for (const Member& member : layout_.members[static_cast<std::size_t>(group)]) {
    const UnitLayout& unit = UnitAt(member.unit);
    const std::int32_t op_index = OpOf(member, use);
    ScheduleFinish(member.unit, unit, unit.OpAt(op_index).stream, op_index, end);
  }
}

void EventQueue::PostParts(IterationState& at, std::int32_t u, const UnitLayout& unit, std::int32_t s,
                           std::int32_t op_index) {
  const Op& op = unit.OpAt(op_index);
  Stream& stream = StreamAt(unit, s);
  stream.missing = op.num_parts;
  if (op.num_parts == 0) {
    stream.start = now_;
    ScheduleFinish(u, unit, s, op_index, now_);
    return;
  }
  for (std::int32_t i = op.first_part; i < op.first_part + op.num_parts; ++i) {
    const Part& part = unit.PartAt(i);
    const std::int32_t mine = unit.SlotOf(LinkOf(part), part.sequence);
    at.SlotAt(unit, mine).posted = now_;
    const Peer& peer = WiringOf(u).peers[static_cast<std::size_t>(part.channel)];
    const UnitLayout& other = UnitAt(peer.unit);
    const std::int32_t theirs = other.SlotOf(LinkOf(peer.channel, !part.is_send), part.sequence);
    if (at.SlotAt(other, theirs).posted == kNotYet) continue;
    BeginTransfer(at, unit, mine);
    BeginTransfer(at, other, theirs);
    Moving moving{
        .iteration = stream.iteration, .unit = u, .slot = mine, .other_unit = peer.unit, .other_slot = theirs};
    const MessageEnd& send = part.is_send ? unit.EndOf(mine) : other.EndOf(theirs);
    const std::int32_t sender = part.is_send ? u : peer.unit;
    ShareLinks(sender, send.op, RouteOf(sender, part.is_send ? part.channel : peer.channel),
               ProgressOfPart(*UnitAt(sender).program, send.part), moving);
    SetOut(moving, s, Time(), part.duration);
  }
}

void EventQueue::BeginTransfer(IterationState& at, const UnitLayout& unit, std::int32_t slot) {
  at.SlotAt(unit, slot).begun = now_;
  Stream& stream = StreamAt(unit, unit.OpAt(unit.EndOf(slot).op).stream);
  if (stream.start == kNotYet) stream.start = now_;
}

void EventQueue::SendMessages(std::int32_t iteration, std::int32_t u, const UnitLayout& unit, std::int32_t op_index) {
  const Op& op = unit.OpAt(op_index);
  for (std::int32_t i = op.first_part; i < op.first_part + op.num_parts; ++i) {
    const Part& part = unit.PartAt(i);
    if (!part.is_send) continue;
    const Peer& peer = WiringOf(u).peers[static_cast<std::size_t>(part.channel)];
    const UnitLayout& other = UnitAt(peer.unit);
    const std::int32_t slot = other.SlotOf(LinkOf(peer.channel, false), part.sequence);
    At(iteration).SlotAt(other, slot).begun = now_;
    const std::int32_t receiver = other.OpAt(other.EndOf(slot).op).stream;
    Moving moving{.iteration = iteration, .unit = peer.unit, .slot = slot, .sender = u, .sent_part = i};
    ShareLinks(u, op_index, RouteOf(u, part.channel), ProgressOfPart(*unit.program, i), moving);
    SetOut(moving, receiver, Time(), part.duration);
  }
}

void EventQueue::Complete(IterationState& at, std::int32_t iteration, std::int32_t u, std::int32_t slot) {
  const UnitLayout& unit = UnitAt(u);
  at.SlotAt(unit, slot).done = now_;
  const std::int32_t op_index = unit.EndOf(slot).op;
  const std::int32_t s = unit.OpAt(op_index).stream;
  Stream& stream = StreamAt(unit, s);
  const bool is_awaited = stream.status == StreamStatus::kAwaiting && stream.iteration == iteration &&
                          unit.OpsOf(s)[static_cast<std::size_t>(stream.next)] == op_index;
  if (!is_awaited || --stream.missing > 0) return;
  if (unit.OpAt(op_index).kind == OpKind::kLocal) {
    StartLocal(at, u, unit, s, op_index);
  } else {
    ScheduleFinish(u, unit, s, op_index, now_);
  }
}

}  // namespace orrery::engine
