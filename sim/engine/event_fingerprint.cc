// The part of the event queue that says in what state it is, so that a state that comes again is recognised.
//
// Everything that a later event may look at counts: what has begun and is not over, where streams and hosts stand, what
// iterations under way have recorded, and what is still to be reported of them. Events count through what they belong
// to, so that those that have become stale do not show; ids do not count, as they are given anew.
#include <algorithm>

#include "sim/engine/event_queue.h"

namespace orrery::engine {

std::optional<std::uint64_t> EventQueue::Fingerprint() {
  if (transfers_ == nullptr && !overlap_.is_on()) return std::nullopt;
  FinishInstant();
  const std::int32_t reported = iterations_.reported();
  const std::int32_t last = LastBegun();
  std::vector<bool> host_matters(layout_.units.size());
  StateHash hash(now_);
  hash.AddInstant(state_.update_end);
  hash.Add(last - reported);
  for (std::size_t u = 0; u < layout_.units.size(); ++u) {
    const auto id = static_cast<std::int32_t>(u);
    host_matters[u] = HostMatters(id, last);
    hash.Add(std::int32_t{host_matters[u]});
    if (host_matters[u]) {
      const Host& host = hosts_[u];
      hash.Add(host.iteration - reported);
      hash.Add(host.next);
      hash.Add(std::int32_t{host.free});
      hash.AddInstant(host.last_end);
    }
    AddStreams(layout_.units[u], hash);
    overlap_.AddUnit(id, hash);
    for (std::int32_t k = reported + 1; k <= last; ++k) AddIteration(At(k), id, host_matters[u], hash);
  }
  for (std::int32_t k = reported + 1; k <= last; ++k) {
    const IterationState& at = At(k);
    for (const std::int32_t missing : at.missing_members) hash.Add(missing);
    hash.AddInstant(at.update_end, Time());
    hash.Add(SumOfReports(at, host_matters));
  }
  hash.Add(SumOfMoving());
  return hash.value();
}

// Handles what is left of this instant: how much of it that is depends on the order of ties.
void EventQueue::FinishInstant() {
  const auto goes_on = [this] {
    if (!queue_.empty() && queue_.top().time == now_) return true;
    return !overlap_.is_settled() || (transfers_ != nullptr && transfers_->NextEnd() == now_);
  };
  while (goes_on() && Step()) {
  }
}

// The last iteration that a stream, or a host that waits for something, has begun.
std::int32_t EventQueue::LastBegun() const {
  std::int32_t last = iterations_.reported();
  for (const Stream& stream : streams_) last = std::max(last, stream.iteration);
  for (std::size_t u = 0; u < hosts_.size(); ++u) {
    if (layout_.units[u].index->host_waits) last = std::max(last, hosts_[u].iteration);
  }
  return std::min(last, last_iteration_);
}

// Whether it shows where the unit's host is: not where it goes its own way, ahead of all that it issues.
bool EventQueue::HostMatters(std::int32_t u, std::int32_t last) {
  const ProgramIndex& index = *UnitAt(u).index;
  // Segments of operations with a pace do not say that they have waited.
  if (index.host_waits || (index.segments_wait && overlap_.Paces(u))) return true;
  for (std::int32_t k = iterations_.reported(); k <= last; ++k) {
    if ((At(k).waited_for[static_cast<std::size_t>(u)] & kHostBit) != 0) return true;
  }
  return false;
}

// What other streams did before the compute stream's last end neither holds anything back nor is accounted for.
void EventQueue::AddStreams(const UnitLayout& unit, StateHash& hash) const {
  const Time accounted = streams_[unit.first_stream + kComputeStream].last_end;
  for (std::int32_t s = 0; s < unit.program->num_streams; ++s) {
    if (unit.OpsOf(s).empty()) continue;
    const Stream& stream = streams_[unit.first_stream + static_cast<std::size_t>(s)];
    hash.Add(stream.iteration - iterations_.reported());
    hash.Add(stream.next);
    hash.Add(static_cast<std::int32_t>(stream.status));
    hash.Add(stream.missing);
    hash.AddInstant(std::max(stream.last_end, accounted));
    hash.AddInstant(stream.ready, Time());
    hash.AddInstant(stream.start, kNotYet);
    hash.AddInstant(stream.end, kNotYet);
  }
}

void EventQueue::AddIteration(IterationState& at, std::int32_t u, bool host_matters, StateHash& hash) const {
  const UnitLayout& unit = UnitAt(u);
  const Program& program = *unit.program;
  for (std::int32_t event = 0; event < program.num_events; ++event) hash.AddInstant(at.EventEnd(unit, event), kNotYet);
  for (std::size_t slot = 0; slot < unit.slots->ends.size(); ++slot) {
    const Slot& message = at.SlotAt(unit, static_cast<std::int32_t>(slot));
    hash.AddInstant(message.posted, kNotYet);
    hash.AddInstant(message.begun, kNotYet);
    hash.AddInstant(message.done, kNotYet);
  }
  for (std::int32_t s = 0; s < program.num_streams; ++s) {
    hash.AddInstant(at.stream_ends[unit.first_stream + static_cast<std::size_t>(s)], kNotYet);
  }
  if (!host_matters) return;
  for (std::size_t op = 0; op < program.host_ops.size(); ++op) {
    hash.AddInstant(at.HostStart(unit, static_cast<std::int32_t>(op)), kNotYet);
  }
  hash.AddInstant(at.host_ends[static_cast<std::size_t>(u)], kNotYet);
}

std::uint64_t EventQueue::SumOfReports(const IterationState& at, const std::vector<bool>& host_matters) const {
  std::uint64_t sum = 0;
  for (const PendingReport& report : at.reports) {
    const Evaluated& evaluated = report.evaluated;
    const bool counts_host = host_matters[static_cast<std::size_t>(evaluated.unit)];
    if (report.of_host && !counts_host) continue;
    StateHash hash(now_);
    hash.Add(std::int32_t{report.of_host});
    hash.Add(evaluated.unit);
    hash.Add(evaluated.op);
    hash.AddInstant(evaluated.previous_end);
    hash.AddInstant(evaluated.start);
    if (!report.of_host) {
      if (counts_host) hash.AddInstant(evaluated.host_start);
      hash.AddInstant(evaluated.ready);
      hash.AddInstant(evaluated.end);
    }
    for (std::size_t i = 0; i < report.num_transfers; ++i) {
      hash.AddInstant(at.transfers[report.first_transfer + i].begin, kNotYet);
      hash.AddInstant(at.transfers[report.first_transfer + i].end, kNotYet);
    }
    for (std::size_t i = 0; i < report.num_segment_ends; ++i) {
      hash.AddInstant(at.segment_ends[report.first_segment_end + i]);
    }
    sum += hash.value();
  }
  return sum;
}

std::uint64_t EventQueue::SumOfMoving() {
  std::uint64_t sum = 0;
  for (std::size_t id = 0; id < moving_.size(); ++id) {
    if (!moving_[id].is_under_way) continue;
    StateHash hash(now_);
    AddMoving(moving_[id], hash);
    overlap_.AddTransfer(static_cast<std::int32_t>(id), hash);
    sum += hash.value();
  }
  for (const Event& event : queue_.all()) {
    const std::uint64_t key = event.key ^ flip_;
    if (KindOf(key) != EventKind::kLoads && KindOf(key) != EventKind::kShares) continue;
    StateHash hash(now_);
    hash.Add(static_cast<std::int32_t>(KindOf(key)));
    hash.AddInstant(event.time);
    AddMoving(moving_[static_cast<std::size_t>(ItemOf(key))], hash);
    sum += hash.value();
  }
  if (transfers_ == nullptr) return sum;
  for (const TransferProgress& progress : transfers_->Progress(now_)) {
    StateHash hash(now_);
    hash.Add(progress.hash);
    AddMoving(moving_[static_cast<std::size_t>(progress.id)], hash);
    sum += hash.value();
  }
  return sum;
}

void EventQueue::AddMoving(const Moving& moving, StateHash& hash) const {
  hash.Add(moving.iteration - iterations_.reported());
  for (const std::int32_t place : {moving.unit, moving.slot, moving.other_unit, moving.other_slot, moving.group,
                                   moving.use, moving.route, moving.sender, moving.sent_part}) {
    hash.Add(place);
  }
  hash.Add(moving.alone.count());
  hash.Add(moving.duration.count());
  hash.AddInstant(moving.end, kNotYet);
}

}  // namespace orrery::engine
