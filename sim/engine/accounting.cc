#include "sim/engine/accounting.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "sim/engine/state_hash.h"

namespace orrery::engine {
namespace {

// Whether time of the class is part of what a pipeline rank is busy with: see UnitResult::pipeline_busy.
bool IsBusy(TimeClass time_class) {
  switch (time_class) {
    case TimeClass::kBubble:
    case TimeClass::kExposedPp:
    case TimeClass::kWaitTp:
    case TimeClass::kWaitCp:
    case TimeClass::kWaitEp:
    case TimeClass::kWaitDp:
    case TimeClass::kHost:
      return false;
    default:
      return true;
  }
}

// Calls `sink(Piece)` for every segment of a kLocal operation and every stretch in which the next one is not issued
// yet.
template <typename Sink>
void WalkSegments(const Program& program, const Evaluated& evaluated, Sink&& sink) {
  const Op& op = program.ops[static_cast<std::size_t>(evaluated.op)];
  Time at = evaluated.start;
  for (std::int32_t i = op.first_segment; i < op.first_segment + op.num_segments; ++i) {
    const Segment& segment = program.segments[static_cast<std::size_t>(i)];
    const Time issued = evaluated.host_start + segment.issue;
    if (issued > at) {
      sink(Piece{TimeClass::kHost, at, issued});
      at = issued;
    }
    const Time end = evaluated.segment_ends.empty()
                         ? at + segment.duration
                         : evaluated.segment_ends[static_cast<std::size_t>(i - op.first_segment)];
    sink(Piece{segment.time_class, at, end});
    at = end;
  }
  if (evaluated.end > at) sink(Piece{TimeClass::kHost, at, evaluated.end});
}

Time& Of(TimeByClass& classes, TimeClass time_class) { return classes[static_cast<std::size_t>(time_class)]; }

}  // namespace

Clocks::Clocks(const World& world) : host(world.units.size()) {
  first_stream.reserve(world.units.size() + 1);
  std::size_t streams = 0;
  for (const Unit& unit : world.units) {
    first_stream.push_back(streams);
    streams += static_cast<std::size_t>(world.programs[static_cast<std::size_t>(unit.program)].num_streams);
  }
  first_stream.push_back(streams);
  stream.assign(streams, Time());
}

Accountant::Accountant(const World& world, const std::vector<ProgramIndex>& indices, const Clocks& clocks,
                       const ReplayOptions& options)
    : world_(world),
      indices_(indices),
      clocks_(clocks),
      units_(world.units.size()),
      histories_(world.units.size()),
      traced_(world.units.size(), false) {
  programs_.reserve(world.programs.size());
  for (std::size_t i = 0; i < world.programs.size(); ++i) programs_.push_back(Prepare(world.programs[i], indices[i]));
  for (std::size_t u = 0; u < world.units.size(); ++u) {
    const ProgramAccount& program = AccountOf(static_cast<std::int32_t>(u));
    if (program.followed != 0) {
      histories_[u].streams.resize(static_cast<std::size_t>(ProgramOf(static_cast<std::int32_t>(u)).num_streams));
    }
  }
  for (std::int32_t unit : options.traced_units) traced_[static_cast<std::size_t>(unit)] = true;
}

const Program& Accountant::ProgramOf(std::int32_t unit) const {
  return world_.programs[static_cast<std::size_t>(world_.units[static_cast<std::size_t>(unit)].program)];
}
const ProgramIndex& Accountant::IndexOf(std::int32_t unit) const {
  return indices_[static_cast<std::size_t>(world_.units[static_cast<std::size_t>(unit)].program)];
}
const Accountant::ProgramAccount& Accountant::AccountOf(std::int32_t unit) const {
  return programs_[static_cast<std::size_t>(world_.units[static_cast<std::size_t>(unit)].program)];
}
const Accountant::RunSums& Accountant::SumsOf(std::int32_t unit, std::int32_t op) const {
  const std::int32_t run = IndexOf(unit).run_of[static_cast<std::size_t>(op)];
  return AccountOf(unit).run_sums[static_cast<std::size_t>(run)];
}

std::uint32_t Accountant::FollowedStreams(const Program& program, const ProgramIndex& index) {
  if (program.num_events == 0) return 0;
  std::uint32_t followed = 0;
  std::vector<std::int32_t> pending = {kComputeStream};
  const auto follow = [&](std::int32_t event) {
    const Op& recorder = program.ops[static_cast<std::size_t>(index.recorder[static_cast<std::size_t>(event)])];
    const std::uint32_t bit = 1u << recorder.stream;
    if (recorder.stream == kComputeStream || (followed & bit) != 0) return;
    followed |= bit;
    pending.push_back(recorder.stream);
  };
  for (const HostOp& host_op : program.host_ops) {
    if (host_op.waits != kNoEvent) follow(host_op.waits);
  }
  while (!pending.empty()) {
    const std::int32_t stream = pending.back();
    pending.pop_back();
    for (std::int32_t op : index.stream_ops[static_cast<std::size_t>(stream)]) {
      for (std::int32_t event : program.ops[static_cast<std::size_t>(op)].waits) {
        if (event == kNoEvent) break;
        follow(event);
      }
    }
  }
  return followed;
}

Accountant::ProgramAccount Accountant::Prepare(const Program& program, const ProgramIndex& index) {
  ProgramAccount account;
  account.followed = FollowedStreams(program, index);
  account.update_position = index.position[static_cast<std::size_t>(program.update_op)];
  SumUpRuns(program, index, account);

  const std::vector<std::int32_t>& ops = index.stream_ops[kComputeStream];
  const auto is_pipeline = [&](std::int32_t op) { return program.ops[static_cast<std::size_t>(op)].pipeline; };
  const auto first = std::find_if(ops.begin(), ops.end(), is_pipeline);
  if (first != ops.end()) {
    account.first_pipeline = static_cast<std::int32_t>(first - ops.begin());
    account.last_pipeline =
        static_cast<std::int32_t>(std::find_if(ops.rbegin(), ops.rend(), is_pipeline).base() - ops.begin()) - 1;
  }
  // How often the compute stream runs what.
  struct Uses {
    std::int64_t all = 0;
    std::int64_t to_update = 0;
    std::int64_t in_pipeline = 0;
  };
  std::vector<Uses> uses(index.runs.size());
  for (const std::int32_t op : ops) {
    const std::int32_t position = index.position[static_cast<std::size_t>(op)];
    Uses& of_run = uses[static_cast<std::size_t>(index.run_of[static_cast<std::size_t>(op)])];
    ++of_run.all;
    if (position <= account.update_position) ++of_run.to_update;
    if (position >= account.first_pipeline && position <= account.last_pipeline) ++of_run.in_pipeline;
  }
  for (std::size_t run = 0; run < uses.size(); ++run) {
    for (const ClassSum& sum : account.ByClass(account.run_sums[run])) {
      Of(account.compute_total, sum.time_class) += sum.sum * uses[run].all;
      Of(account.compute_to_update, sum.time_class) += sum.sum * uses[run].to_update;
      if (IsBusy(sum.time_class)) account.pipeline_busy += sum.sum * uses[run].in_pipeline;
    }
  }
  return account;
}

void Accountant::SumUpRuns(const Program& program, const ProgramIndex& index, ProgramAccount& account) {
  static_assert(kTimeClasses <= 32);
  TimeByClass by_class{};  // of one run; all zero between two
  std::uint32_t seen = 0;  // classes of its segments, one bit each
  account.run_sums.reserve(index.runs.size());
  for (const SegmentRun& run : index.runs) {
    RunSums& run_sums = account.run_sums.emplace_back();
    run_sums.first = static_cast<std::int32_t>(account.sums.size());
    for (std::int32_t s = run.first; s < run.first + run.count; ++s) {
      const Segment& segment = program.segments[static_cast<std::size_t>(s)];
      Of(by_class, segment.time_class) += segment.duration;
      seen |= 1u << static_cast<unsigned>(segment.time_class);
    }
    for (; seen != 0; seen &= seen - 1) {
      const auto time_class = static_cast<TimeClass>(std::countr_zero(seen));
      const Time sum = std::exchange(Of(by_class, time_class), Time());
      if (sum == Time()) continue;
      account.sums.push_back({time_class, sum});
      run_sums.total += sum;
    }
    run_sums.count = static_cast<std::int32_t>(account.sums.size()) - run_sums.first;
  }
}

void Accountant::BeginIteration(std::int32_t iteration, AccountMode mode, Time window_begin, Time window_end) {
  iteration_ = iteration;
  mode_ = mode;
  window_begin_ = window_begin;
  window_end_.reset();
  if (mode == AccountMode::kAfter) window_end_ = window_end;
  for (std::size_t u = 0; u < units_.size(); ++u) {
    const ProgramAccount& program = AccountOf(static_cast<std::int32_t>(u));
    const bool host_waits = IndexOf(static_cast<std::int32_t>(u)).host_waits;
    if (program.followed == 0 && !host_waits) continue;
    // Later queries begin where a stream or host that follows others stands now, or after.
    Time oldest = clocks_.stream[clocks_.first_stream[u]];
    for (std::size_t s = 0; s < histories_[u].streams.size(); ++s) {
      if ((program.followed >> s & 1u) != 0) oldest = std::min(oldest, clocks_.stream[clocks_.first_stream[u] + s]);
    }
    if (host_waits) oldest = std::min(oldest, clocks_.host[u]);
    for (History& history : histories_[u].streams) history.Forget(oldest);
    histories_[u].host.Forget(oldest);
  }
}

// The compute stream looks at others, directly or through each other, at instants behind its own last end alone.
std::uint64_t Accountant::HashHistories(Time now) const {
  StateHash hash(now);
  const auto add = [&hash](const History& history, Time from) {
    hash.AddInstant(from);
    history.VisitFrom(from, [&hash](const Piece& piece) {
      hash.Add(static_cast<std::int32_t>(piece.time_class));
      hash.AddInstant(piece.end);
    });
  };
  for (std::size_t u = 0; u < units_.size(); ++u) {
    const Time from = clocks_.stream[clocks_.first_stream[u]];
    for (const History& history : histories_[u].streams) add(history, from);
    add(histories_[u].host, from);
  }
  return hash.value();
}

ReportFilter Accountant::FilterOf(std::int32_t unit, std::int32_t stream) const {
  constexpr Time kAlways;
  constexpr Time kNever(std::numeric_limits<std::int64_t>::max());
  constexpr ReportFilter kNothing = {kAlways, kAlways};
  constexpr ReportFilter kEverything = {kNever, kNever};
  if (traced_[static_cast<std::size_t>(unit)]) return kEverything;
  const ProgramAccount& program = AccountOf(unit);
  if (stream != kComputeStream) return (program.followed >> stream & 1u) != 0 ? kEverything : kNothing;
  switch (mode_) {
    case AccountMode::kNone:
      return kNothing;
    case AccountMode::kFull:
      return {kAlways, kNever};
    case AccountMode::kBefore: {
      const auto last = static_cast<std::int32_t>(IndexOf(unit).stream_ops[kComputeStream].size()) - 1;
      return program.update_position < last ? kEverything : kNothing;
    }
    case AccountMode::kWindow:
      return {window_begin_, kNever};
    case AccountMode::kAfter:
      return {kNever, *window_end_};
  }
  return kEverything;
}

std::vector<std::int32_t> Accountant::MarkedPositions(std::int32_t program) const {
  const ProgramAccount& account = programs_[static_cast<std::size_t>(program)];
  const std::size_t ops = indices_[static_cast<std::size_t>(program)].stream_ops[kComputeStream].size();
  std::vector<std::int32_t> marked;
  if (account.first_pipeline >= 0) marked = {account.first_pipeline, account.last_pipeline};
  for (std::int32_t position = account.update_position + 1; position < static_cast<std::int32_t>(ops); ++position) {
    marked.push_back(position);
  }
  return marked;
}

void Accountant::Report(const Evaluated& evaluated) {
  const Op& op = ProgramOf(evaluated.unit).ops[static_cast<std::size_t>(evaluated.op)];
  const ProgramAccount& account = AccountOf(evaluated.unit);
  if (traced_[static_cast<std::size_t>(evaluated.unit)]) {
    spans_.push_back(
        {evaluated.unit, op.stream, evaluated.op, iteration_, evaluated.ready, evaluated.start, evaluated.end});
  }
  if (op.stream == kComputeStream) {
    const std::int32_t position = IndexOf(evaluated.unit).position[static_cast<std::size_t>(evaluated.op)];
    if (mode_ == AccountMode::kNone) return;
    if (mode_ == AccountMode::kBefore && position <= account.update_position) return;
    if (mode_ == AccountMode::kFull || mode_ == AccountMode::kWindow) {
      UnitAccount& unit = units_[static_cast<std::size_t>(evaluated.unit)];
      if (position == account.first_pipeline) unit.pipeline_first_start = evaluated.start;
      if (position == account.last_pipeline) unit.pipeline_last_end = evaluated.end;
    }
    if (mode_ == AccountMode::kWindow && position <= account.update_position) Expect(evaluated.unit, evaluated.op);
  } else if ((account.followed >> op.stream & 1u) == 0) {
    return;
  }
  EmitWaits(evaluated);
  switch (op.kind) {
    case OpKind::kLocal:
      EmitTransfers(evaluated, evaluated.ready, evaluated.start);
      EmitSegments(evaluated);
      break;
    case OpKind::kCollective:
      EmitGap(evaluated, {op.missing_class, evaluated.ready, evaluated.start});
      EmitGap(evaluated, {op.transfer_class, evaluated.start, evaluated.end});
      break;
    case OpKind::kExchange:
      EmitTransfers(evaluated, evaluated.ready, evaluated.end);
      break;
  }
}

// From the end of the previous operation until ready: the issue, then the events.
void Accountant::EmitWaits(const Evaluated& evaluated) {
  const Program& program = ProgramOf(evaluated.unit);
  const Op& op = program.ops[static_cast<std::size_t>(evaluated.op)];
  const auto sink = [&](const Piece& piece) { EmitGap(evaluated, piece); };
  Time at = evaluated.previous_end;
  const Time issued = evaluated.host_start + IssueOffset(program, op);
  if (issued > at) {
    FollowHost(evaluated, at, issued, sink);
    at = issued;
  }
  for (std::int32_t event : op.waits) {
    if (event == kNoEvent) break;
    const Time end = evaluated.event_ends[event];
    if (end <= at) continue;
    FollowEvent(evaluated.unit, event, at, end, sink);
    at = end;
  }
  ORRERY_CHECK(at == evaluated.ready);
}

// Instants of [begin, end) in some transfer are transfer; all others miss a message.
void Accountant::EmitTransfers(const Evaluated& evaluated, Time begin, Time end) {
  if (begin == end) return;
  const Op& op = ProgramOf(evaluated.unit).ops[static_cast<std::size_t>(evaluated.op)];
  sorted_transfers_.assign(evaluated.transfers.begin(), evaluated.transfers.end());
  std::sort(sorted_transfers_.begin(), sorted_transfers_.end(),
            [](const Transfer& a, const Transfer& b) { return std::tie(a.begin, a.end) < std::tie(b.begin, b.end); });
  Time at = begin;
  for (const Transfer& transfer : sorted_transfers_) {
    if (transfer.end <= at) continue;
    if (transfer.begin > at) {
      EmitGap(evaluated, {op.missing_class, at, transfer.begin});
      at = transfer.begin;
    }
    EmitGap(evaluated, {op.transfer_class, at, transfer.end});
    at = transfer.end;
  }
  if (at < end) EmitGap(evaluated, {op.missing_class, at, end});
}

void Accountant::EmitSegments(const Evaluated& evaluated) {
  if (evaluated.start == evaluated.end) return;
  const Program& program = ProgramOf(evaluated.unit);
  if (program.ops[static_cast<std::size_t>(evaluated.op)].stream == kComputeStream) {
    const std::int32_t position = IndexOf(evaluated.unit).position[static_cast<std::size_t>(evaluated.op)];
    if (CountWhole(evaluated, position)) return;
  }
  WalkSegments(program, evaluated, [&](const Piece& piece) { Emit(evaluated, piece); });
}

// In the window's iteration what is left out counts whole (Finish adds it); what is reported is taken out of that
// first.
void Accountant::Expect(std::int32_t unit, std::int32_t op) {
  TimeByClass& classes = units_[static_cast<std::size_t>(unit)].classes;
  for (const ClassSum& sum : AccountOf(unit).ByClass(SumsOf(unit, op))) Of(classes, sum.time_class) -= sum.sum;
}

// Counts an operation that is not cut by its sums. False if it is cut, or too early to say.
bool Accountant::CountWhole(const Evaluated& evaluated, std::int32_t position) {
  const ProgramAccount& account = AccountOf(evaluated.unit);
  TimeByClass& classes = units_[static_cast<std::size_t>(evaluated.unit)].classes;
  if (!evaluated.segment_ends.empty()) {
    CountStretched(evaluated, position);
    return false;
  }
  const RunSums& run_sums = SumsOf(evaluated.unit, evaluated.op);
  const Time idle = evaluated.end - evaluated.start - run_sums.total;
  if (mode_ == AccountMode::kFull) {  // compute_total holds the segments
    Of(classes, TimeClass::kHost) += idle;
    return true;
  }
  if (mode_ == AccountMode::kBefore || (mode_ == AccountMode::kWindow && position > account.update_position))
    return false;
  if (evaluated.start < window_begin_ || (window_end_ && evaluated.end > *window_end_)) return false;
  Of(classes, TimeClass::kHost) += idle;
  for (const ClassSum& sum : account.ByClass(run_sums)) Of(classes, sum.time_class) += sum.sum;
  return true;
}

// Segments that took longer than alone count by what they took; the pipeline's busy time knows what they take alone.
void Accountant::CountStretched(const Evaluated& evaluated, std::int32_t position) {
  if (mode_ == AccountMode::kFull) Expect(evaluated.unit, evaluated.op);
  if (mode_ != AccountMode::kFull && mode_ != AccountMode::kWindow) return;
  const ProgramAccount& account = AccountOf(evaluated.unit);
  if (position < account.first_pipeline || position > account.last_pipeline) return;
  Time busy;
  WalkSegments(ProgramOf(evaluated.unit), evaluated, [&](const Piece& piece) {
    if (IsBusy(piece.time_class)) busy += piece.end - piece.begin;
  });
  for (const ClassSum& sum : account.ByClass(SumsOf(evaluated.unit, evaluated.op))) {
    if (IsBusy(sum.time_class)) busy -= sum.sum;
  }
  units_[static_cast<std::size_t>(evaluated.unit)].pipeline_gap_busy += busy;
}

void Accountant::EmitGap(const Evaluated& evaluated, const Piece& piece) {
  if (piece.begin >= piece.end) return;
  Emit(evaluated, piece);
  const Op& op = ProgramOf(evaluated.unit).ops[static_cast<std::size_t>(evaluated.op)];
  if (op.stream != kComputeStream || (mode_ != AccountMode::kFull && mode_ != AccountMode::kWindow)) return;
  const ProgramAccount& account = AccountOf(evaluated.unit);
  const std::int32_t position = IndexOf(evaluated.unit).position[static_cast<std::size_t>(evaluated.op)];
  if (!IsBusy(piece.time_class) || position < account.first_pipeline || position > account.last_pipeline) return;
  // What the first operation waited for lies before the phase.
  const Time begin = position == account.first_pipeline ? std::max(piece.begin, evaluated.start) : piece.begin;
  if (begin < piece.end) units_[static_cast<std::size_t>(evaluated.unit)].pipeline_gap_busy += piece.end - begin;
}

void Accountant::Emit(const Evaluated& evaluated, const Piece& piece) {
  if (piece.begin >= piece.end) return;
  const std::uint8_t stream = ProgramOf(evaluated.unit).ops[static_cast<std::size_t>(evaluated.op)].stream;
  if (stream != kComputeStream) {
    histories_[static_cast<std::size_t>(evaluated.unit)].streams[stream].Append(piece);
    return;
  }
  Count(evaluated.unit, IndexOf(evaluated.unit).position[static_cast<std::size_t>(evaluated.op)], piece);
}

void Accountant::Count(std::int32_t unit, std::int32_t position, const Piece& piece) {
  UnitAccount& account = units_[static_cast<std::size_t>(unit)];
  Time begin = piece.begin;
  Time end = piece.end;
  if (mode_ != AccountMode::kFull) {
    // What follows the update may reach beyond a border that is not known yet.
    const bool after_update = position > AccountOf(unit).update_position;
    if (mode_ == AccountMode::kBefore || (mode_ == AccountMode::kWindow && after_update)) {
      account.deferred.push_back(piece);
      return;
    }
    begin = std::max(begin, window_begin_);
    if (window_end_) end = std::min(end, *window_end_);
  }
  if (begin < end) Of(account.classes, piece.time_class) += end - begin;
}

template <typename Sink>
void Accountant::FollowHost(const Evaluated& evaluated, Time begin, Time end, Sink&& sink) const {
  if (IndexOf(evaluated.unit).host_waits && begin < evaluated.host_start) {
    const Time until = std::min(end, evaluated.host_start);
    histories_[static_cast<std::size_t>(evaluated.unit)].host.Visit(begin, until, sink);
    begin = until;
  }
  sink(Piece{TimeClass::kHost, begin, end});
}

template <typename Sink>
void Accountant::FollowEvent(std::int32_t unit, std::int32_t event, Time begin, Time end, Sink&& sink) const {
  const std::int32_t recorder = IndexOf(unit).recorder[static_cast<std::size_t>(event)];
  const std::uint8_t stream = ProgramOf(unit).ops[static_cast<std::size_t>(recorder)].stream;
  if (stream == kComputeStream) {
    sink(Piece{TimeClass::kCompute, begin, end});  // in the past of every query
    return;
  }
  histories_[static_cast<std::size_t>(unit)].streams[stream].Visit(begin, end, sink);
}

void Accountant::ReportHost(std::int32_t unit, std::int32_t host_op, Time previous_end, Time start) {
  if (!IndexOf(unit).host_waits) return;
  History& history = histories_[static_cast<std::size_t>(unit)].host;
  const HostOp& op = ProgramOf(unit).host_ops[static_cast<std::size_t>(host_op)];
  if (start > previous_end) {
    FollowEvent(unit, op.waits, previous_end, start, [&](const Piece& piece) { history.Append(piece); });
  }
  history.Append({TimeClass::kHost, start, start + op.duration});
}

void Accountant::Finish(Time window_begin, Time window_end, std::vector<UnitResult>& results) const {
  for (std::size_t u = 0; u < units_.size(); ++u) {
    const UnitAccount& account = units_[u];
    const ProgramAccount& program = AccountOf(static_cast<std::int32_t>(u));
    UnitResult& result = results[u];
    result.classes = account.classes;
    if (mode_ == AccountMode::kFull) {
      for (std::size_t c = 0; c < kTimeClasses; ++c) result.classes[c] += program.compute_total[c];
    } else {
      for (std::size_t c = 0; c < kTimeClasses; ++c) result.classes[c] += program.compute_to_update[c];
      for (const Piece& piece : account.deferred) {
        const Time begin = std::max(piece.begin, window_begin);
        const Time end = std::min(piece.end, window_end);
        if (begin < end) Of(result.classes, piece.time_class) += end - begin;
      }
      const Time idle_from = std::max(window_begin, clocks_.stream[clocks_.first_stream[u]]);
      if (idle_from < window_end) Of(result.classes, TimeClass::kBubble) += window_end - idle_from;
    }
    if (program.first_pipeline < 0) continue;
    result.pipeline_first_start = account.pipeline_first_start;
    result.pipeline_last_end = account.pipeline_last_end;
    result.pipeline_busy = program.pipeline_busy + account.pipeline_gap_busy;
  }
}

std::vector<TracedSpan> Accountant::Trace(Time window_begin, Time window_end,
                                          const std::vector<std::uint32_t>& runs_ahead) const {
  // An instant belongs to the window if it is at or after its begin and before its end.
  const auto in_window = [&](const TracedSpan& span) {
    return span.ready < window_end && (span.end > window_begin || (span.ready == span.end && span.end == window_begin));
  };
  const Time period = window_end - window_begin;
  std::vector<TracedSpan> trace;
  for (const TracedSpan& span : spans_) {
    const bool shifts =
        mode_ == AccountMode::kFull && (runs_ahead[static_cast<std::size_t>(span.unit)] >> span.stream & 1u) == 0;
    if (!shifts) {
      if (in_window(span)) trace.push_back(span);
      continue;
    }
    if (span.iteration != iteration_) continue;
    // Ready before the window's end; later ones at once where no time passes.
    const std::int64_t most = period > Time() ? (window_end - span.ready - Time(1)).count() / period.count() : 1;
    for (auto by = static_cast<std::int32_t>(most); by >= -iteration_; --by) {
      const Time shift = period * by;
      const TracedSpan shifted = {span.unit,          span.stream,        span.op,         span.iteration + by,
                                  span.ready + shift, span.start + shift, span.end + shift};
      if (shifted.end < window_begin) break;
      if (in_window(shifted)) trace.push_back(shifted);
    }
  }
  std::sort(trace.begin(), trace.end(), [](const TracedSpan& a, const TracedSpan& b) {
    return std::tie(a.unit, a.stream, a.start, a.op, a.iteration) <
           std::tie(b.unit, b.stream, b.start, b.op, b.iteration);
  });
  return trace;
}

}  // namespace orrery::engine
