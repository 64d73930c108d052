#include "sim/engine/worklist_plan.h"

#include <algorithm>

#include "sim/engine/engine.h"

namespace orrery::engine {
namespace {

// D and K of the comment above PlannedOp.
struct RunTimes {
  Time duration;
  Time issued_end;
};

RunTimes TimesOf(const Program& program, const SegmentRun& run) {
  RunTimes times;
  for (std::int32_t i = run.first + run.count - 1; i >= run.first; --i) {
    const Segment& segment = program.segments[static_cast<std::size_t>(i)];
    times.duration += segment.duration;
    times.issued_end = std::max(times.issued_end, segment.issue + times.duration);
  }
  return times;
}

}  // namespace

Plan::Plan(const Program& program, const ProgramIndex& index)
    : waiters(static_cast<std::size_t>(program.num_events)),
      event_stream(static_cast<std::size_t>(program.num_events)) {
  // Receives and both ends of rendezvous need a slot; a link that only sends eagerly needs none.
  for (std::size_t link = 0; link < index.messages.size(); ++link) {
    first_slot.push_back(num_slots);
    const bool is_send = link % 2 == 1;
    if (!is_send || index.meets[link]) num_slots += static_cast<std::int32_t>(index.messages[link].size());
  }
  std::vector<RunTimes> run_times;
  run_times.reserve(index.runs.size());
  for (const SegmentRun& run : index.runs) run_times.push_back(TimesOf(program, run));
  ops.reserve(program.ops.size());
  parts.reserve(program.parts.size());
  for (std::size_t stream = 0; stream < index.stream_ops.size(); ++stream) {
    first_op.push_back(static_cast<std::int32_t>(ops.size()));
    for (std::int32_t op_index : index.stream_ops[stream]) {
      const Op& op = program.ops[static_cast<std::size_t>(op_index)];
      PlannedOp& planned = ops.emplace_back();
      planned.op = op_index;
      planned.kind = op.kind;
      planned.host_op = op.host_op;
      planned.records = op.records;
      planned.issue = IssueOffset(program, op);
      planned.is_update = op_index == program.update_op;
      for (std::size_t w = 0; w < kMaxWaits && op.waits[w] != kNoEvent; ++w) {
        planned.waits[w] = op.waits[w];
        planned.waits_for_events = true;
        waiters[static_cast<std::size_t>(op.waits[w])] |= 1u << stream;
      }
      if (op.records != kNoEvent) event_stream[static_cast<std::size_t>(op.records)] = 1u << stream;
      planned.first_part = static_cast<std::int32_t>(parts.size());
      const auto add_parts = [&](bool sends) {
        std::int32_t count = 0;
        for (std::int32_t i = op.first_part; i < op.first_part + op.num_parts; ++i) {
          const Part& part = program.parts[static_cast<std::size_t>(i)];
          if (part.is_send != sends) continue;
          const std::int32_t link = LinkOf(part);
          parts.push_back(
              {part.duration, first_slot[static_cast<std::size_t>(link)] + part.sequence, link, part.sequence});
          ++count;
        }
        return count;
      };
      const RunTimes& times = run_times[static_cast<std::size_t>(index.run_of[static_cast<std::size_t>(op_index)])];
      switch (op.kind) {
        case OpKind::kLocal:
          planned.duration = times.duration;
          // Without segments, the issue.
          planned.issued_end = op.num_segments > 0 ? times.issued_end : op.issue;
          planned.num_awaited = add_parts(false);
          planned.num_sends = add_parts(true);
          break;
        case OpKind::kCollective:
          planned.duration = op.lead + op.duration;
          planned.issued_end = op.lead;
          planned.first_part = op.group;
          planned.num_awaited = op.use;
          break;
        case OpKind::kExchange:
          planned.num_awaited = add_parts(false);
          planned.num_awaited += add_parts(true);
          break;
      }
    }
  }
  first_op.push_back(static_cast<std::int32_t>(ops.size()));
  for (const HostOp& host_op : program.host_ops) {
    if (host_op.waits != kNoEvent) waiters[static_cast<std::size_t>(host_op.waits)] |= kHostBit;
  }
}

}  // namespace orrery::engine
