#include "reports/schedule_boxes.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/format.h"

namespace orrery::reports {
namespace {

using schedules::Action;
using schedules::ActionKind;

// More than a page can show, and some 15 MB of SVG.
constexpr std::size_t kMostBoxes = 200000;

double IdleShare(std::int64_t idle, std::int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(idle) / static_cast<double>(whole);
}

std::int64_t FreedBy(ActionKind kind, const schedules::PassMemory& memory) {
  switch (kind) {
    case ActionKind::kForward:
      return 0;
    case ActionKind::kBackward:
      return memory.forward;
    case ActionKind::kInputGradient:
      return memory.forward - memory.weight;
    case ActionKind::kWeightGradient:
      return memory.weight;
  }
  return 0;
}

std::string WithUnit(const std::string& value, const std::string& unit) {
  return unit.empty() ? value : absl::StrCat(value, " ", unit);
}

}  // namespace

double WallBubble(const pipeline::Evaluation& evaluation) {
  double idle = 0;
  for (const pipeline::RankEvaluation& rank : evaluation.ranks) {
    idle += IdleShare(evaluation.makespan - rank.busy, evaluation.makespan);
  }
  return evaluation.ranks.empty() ? 0 : idle / static_cast<double>(evaluation.ranks.size());
}

double SpanBubble(const pipeline::Evaluation& evaluation) {
  double bubble = 0;
  for (const pipeline::RankEvaluation& rank : evaluation.ranks) {
    if (rank.span() == evaluation.longest_span)
      bubble = std::max(bubble, IdleShare(rank.span() - rank.busy, rank.span()));
  }
  return bubble;
}

std::vector<ScheduleBox> BoxesOf(const schedules::Schedule& schedule, const pipeline::Evaluation& evaluation,
                                 std::int32_t rank) {
  const std::vector<Action>& order = schedule.order[static_cast<std::size_t>(rank)];
  ORRERY_CHECK(evaluation.spans.size() == schedule.order.size());
  const std::vector<pipeline::Span>& spans = evaluation.spans[static_cast<std::size_t>(rank)];
  ORRERY_CHECK(spans.size() == order.size());
  std::vector<ScheduleBox> boxes;
  for (std::size_t i = 0; i < order.size(); ++i) {
    ScheduleBox box = {.pass = &order[i], .span = spans[i]};
    if (order[i].fused && i + 1 < order.size()) {
      box.other = &order[++i];
      if (box.pass->kind != ActionKind::kForward) std::swap(box.pass, box.other);
    }
    boxes.push_back(box);
  }
  return boxes;
}

absl::Status CheckDrawable(const schedules::Schedule& schedule) {
  std::size_t boxes = 0;
  for (const std::vector<Action>& order : schedule.order) boxes += order.size();
  if (boxes <= kMostBoxes) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat("a picture of ", boxes, " passes, of which nobody could tell one from another; allowed: up to ",
                   kMostBoxes, " (fewer ranks or micro-batches show the same pattern)"));
}

std::vector<MemoryLevel> MemoryLevels(const std::vector<ScheduleBox>& boxes, const schedules::PassMemory& memory) {
  std::vector<MemoryLevel> levels = {MemoryLevel{}};
  const auto change = [&](std::int64_t time, std::int64_t by) {
    if (by == 0) return;
    const std::int64_t level = levels.back().level + by;
    if (levels.back().from == time) {
      levels.back().level = level;
    } else {
      levels.push_back({.from = time, .level = level});
    }
  };
  for (const ScheduleBox& box : boxes) {
    if (box.pass->kind == ActionKind::kForward) change(box.span.start, memory.forward);
    change(box.span.end,
           -FreedBy(box.pass->kind, memory) - (box.other == nullptr ? 0 : FreedBy(box.other->kind, memory)));
  }
  return levels;
}

std::string MicroBatchLabel(const schedules::Schedule& schedule, std::int32_t micro_batch) {
  if (schedule.slices == 1) return absl::StrCat(micro_batch);
  return absl::StrCat(micro_batch / schedule.slices, ".", micro_batch % schedule.slices);
}

std::string Quantity(std::int64_t value, std::int64_t unit, int digits) {
  std::string text = FormatFixed(static_cast<double>(value) / static_cast<double>(unit), digits);
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.back() == '.') text.pop_back();
  return text;
}

std::int64_t TickStep(std::int64_t end, std::int64_t unit, std::int64_t most) {
  std::int64_t power = unit;
  while (power % 10 == 0) power /= 10;
  // Divided instead of multiplied: no overflow.
  while (true) {
    for (const std::int64_t digit : {1, 2, 5}) {
      if (end / power / digit <= most) return digit * power;
    }
    power *= 10;
  }
}

std::string SizeText(const schedules::Schedule& schedule) {
  std::string text = absl::StrCat("p = ", schedule.ranks());
  const std::int32_t pipelines = schedule.placement.pipelines();
  if (pipelines > 1) absl::StrAppend(&text, ", ", pipelines, " pipelines");
  if (schedule.chunks() > pipelines) absl::StrAppend(&text, ", v = ", schedule.chunks() / pipelines);
  absl::StrAppend(&text, ", m = ", schedule.micro_batches / schedule.slices);
  if (schedule.slices > 1) absl::StrAppend(&text, " in ", schedule.slices, " slices");
  return text;
}

std::string MemoryUnitText(const pipeline::Costs& costs, const SchedulePictureOptions& options) {
  if (!options.memory_unit_name.empty()) return options.memory_unit_name;
  return costs.memory.forward == options.memory_unit ? "chunk activations" : "units of memory";
}

std::size_t FullestRank(const pipeline::Evaluation& evaluation) {
  const auto fullest = std::max_element(evaluation.ranks.begin(), evaluation.ranks.end(),
                                        [](const pipeline::RankEvaluation& a, const pipeline::RankEvaluation& b) {
                                          return a.peak_memory < b.peak_memory;
                                        });
  return static_cast<std::size_t>(fullest - evaluation.ranks.begin());
}

std::string OutcomeText(const pipeline::Evaluation& evaluation, const pipeline::Costs& costs,
                        const SchedulePictureOptions& options) {
  const std::size_t fullest = FullestRank(evaluation);
  return absl::StrCat("makespan ", WithUnit(Quantity(evaluation.makespan, options.unit, 3), options.unit_name),
                      ", bubble ", FormatPercent(WallBubble(evaluation)), " of it and ",
                      FormatPercent(SpanBubble(evaluation)), " of the longest span, peak ",
                      Quantity(evaluation.ranks[fullest].peak_memory, options.memory_unit, 3), " ",
                      MemoryUnitText(costs, options), " on rank ", fullest);
}

std::string CostsText(const schedules::Schedule& schedule, const pipeline::Costs& costs,
                      const SchedulePictureOptions& options) {
  const auto quantity = [&](std::int64_t value) { return Quantity(value, options.unit, 6); };
  std::vector<std::string> parts;
  const bool even = std::all_of(costs.stages.begin(), costs.stages.end(),
                                [&](const schedules::PassCosts& stage) { return stage == costs.stages.front(); });
  if (even) {
    const schedules::PassCosts& stage = costs.stages.front();
    parts.push_back(absl::StrCat("F = ", quantity(stage.forward), ", I = ", quantity(stage.input_gradient),
                                 ", W = ", quantity(stage.weight_gradient)));
  } else {
    parts.push_back(absl::StrCat("costs of each of ", schedule.stages(), " stages"));
  }
  if (costs.block) parts.push_back(absl::StrCat("fused block = ", quantity(*costs.block)));
  parts.push_back(absl::StrCat("latency = ", quantity(costs.latency)));
  std::string text;
  for (const std::string& part : parts) absl::StrAppend(&text, text.empty() ? "" : ", ", part);
  return options.unit_name.empty() ? text : absl::StrCat(text, " (", options.unit_name, ")");
}

}  // namespace orrery::reports
