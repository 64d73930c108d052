#include "sim/engine/worklist_plan.h"

#include <algorithm>

#include "sim/engine/engine.h"

namespace orrery::engine {
namespace {

Time SumOfSegments(const Program& program, const Op& op) {
  Time sum;
  for (std::int32_t i = op.first_segment; i < op.first_segment + op.num_segments; ++i) {
    sum += program.segments[static_cast<std::size_t>(i)].duration;
  }
  return sum;
}

// K of the comment above PlannedOp; without segments, the issue.
Time IssuedEnd(const Program& program, const Op& op) {
  if (op.num_segments == 0) return op.issue;
  Time latest;
  Time after;
  for (std::int32_t i = op.first_segment + op.num_segments - 1; i >= op.first_segment; --i) {
    const Segment& segment = program.segments[static_cast<std::size_t>(i)];
    after += segment.duration;
    latest = std::max(latest, segment.issue + after);
  }
  return latest;
}

}  // namespace

Plan::Plan(const Program& program, const ProgramIndex& index)
    : waiters(static_cast<std::size_t>(program.num_events)),
      event_stream(static_cast<std::size_t>(program.num_events)) {
  // Receives and both ends of rendezvous need a slot; a link that only sends eagerly needs none.
  for (std::size_t link = 0; link < index.messages.size(); ++link) {
    first_slot.push_back(num_slots);
    const auto& ends = index.messages[link];
    const bool is_send = link % 2 == 1;
    const bool needed = !is_send || std::any_of(ends.begin(), ends.end(), [&](const MessageEnd& end) {
      return program.ops[static_cast<std::size_t>(end.op)].kind == OpKind::kExchange;
    });
    if (needed) num_slots += static_cast<std::int32_t>(ends.size());
  }
  ops.reserve(program.ops.size());
  parts.reserve(program.parts.size());
  for (std::size_t stream = 0; stream < index.stream_ops.size(); ++stream) {
    first_op.push_back(static_cast<std::int32_t>(ops.size()));
    for (std::int32_t op_index : index.stream_ops[stream]) {
      const Op& op = program.ops[static_cast<std::size_t>(op_index)];
      PlannedOp planned;
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
      switch (op.kind) {
        case OpKind::kLocal:
          planned.duration = SumOfSegments(program, op);
          planned.issued_end = IssuedEnd(program, op);
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
      ops.push_back(planned);
    }
  }
  first_op.push_back(static_cast<std::int32_t>(ops.size()));
  for (const HostOp& host_op : program.host_ops) {
    if (host_op.waits != kNoEvent) waiters[static_cast<std::size_t>(host_op.waits)] |= kHostBit;
  }
}

}  // namespace orrery::engine
