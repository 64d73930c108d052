#include "sim/engine/iterations_under_way.h"

#include "base/check.h"

namespace orrery::engine {

void IterationsUnderWay::Add() {
  if (!spare_.has_value()) {
    iterations_.emplace_back(layout_);
    return;
  }
  spare_->Reset(layout_);
  iterations_.push_back(*std::exchange(spare_, std::nullopt));
}

void IterationsUnderWay::BeginReporting(std::int32_t iteration) {
  ORRERY_CHECK(iteration == reported_ || iteration == reported_ + 1);
  if (iteration > reported_) {
    spare_ = std::move(iterations_.front());
    iterations_.pop_front();
    reported_ = iteration;
  }
  IterationState& at = At(iteration);
  for (PendingReport& pending : at.reports) {
    Evaluated& evaluated = pending.evaluated;
    evaluated.transfers = std::span(at.transfers).subspan(pending.first_transfer, pending.num_transfers);
    evaluated.segment_ends = std::span(at.segment_ends).subspan(pending.first_segment_end, pending.num_segment_ends);
    Pass(at, pending.of_host, evaluated);
  }
  at.reports.clear();
}

void IterationsUnderWay::Pass(const IterationState& at, bool of_host, Evaluated& evaluated) {
  if (of_host) {
    accountant_.ReportHost(evaluated.unit, evaluated.op, evaluated.previous_end, evaluated.start);
    return;
  }
  const UnitLayout& unit = layout_.units[static_cast<std::size_t>(evaluated.unit)];
  const std::int32_t stream = unit.OpAt(evaluated.op).stream;
  if (evaluated.previous_end >= accountant_.FilterOf(evaluated.unit, stream).nothing_from) return;
  evaluated.event_ends = at.event_ends.data() + unit.first_event;
  accountant_.Report(evaluated);
}

void IterationsUnderWay::ReportHost(std::int32_t iteration, std::int32_t unit, std::int32_t op, Time previous_end,
                                    Time start) {
  Evaluated evaluated;
  evaluated.unit = unit;
  evaluated.op = op;
  evaluated.previous_end = previous_end;
  evaluated.start = start;
  IterationState& at = At(iteration);
  if (iteration == reported_) {
    Pass(at, true, evaluated);
  } else {
    at.reports.push_back({.evaluated = evaluated, .of_host = true});
  }
}

void IterationsUnderWay::Report(std::int32_t iteration, Evaluated evaluated, std::span<const Time> segment_ends) {
  IterationState& at = At(iteration);
  const UnitLayout& unit = layout_.units[static_cast<std::size_t>(evaluated.unit)];
  const Op& op = unit.OpAt(evaluated.op);
  const std::size_t first = at.transfers.size();
  for (std::int32_t i = op.first_part; i < op.first_part + op.num_parts; ++i) {
    const Part& part = unit.PartAt(i);
    if (op.kind == OpKind::kLocal && part.is_send) continue;
    const Slot& slot = at.SlotAt(unit, unit.SlotOf(LinkOf(part), part.sequence));
    at.transfers.push_back({slot.begun, slot.done});
  }
  const std::size_t count = at.transfers.size() - first;
  if (iteration != reported_) {
    at.reports.push_back({evaluated, false, first, count, at.segment_ends.size(), segment_ends.size()});
    at.segment_ends.insert(at.segment_ends.end(), segment_ends.begin(), segment_ends.end());
    return;
  }
  evaluated.transfers = std::span(at.transfers).subspan(first, count);
  evaluated.segment_ends = segment_ends;
  Pass(at, false, evaluated);
  at.transfers.resize(first);
}

}  // namespace orrery::engine
