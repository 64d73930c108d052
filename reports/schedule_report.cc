#include "reports/schedule_report.h"

#include <algorithm>
#include <cstdint>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/decimal.h"
#include "base/format.h"
#include "base/text_table.h"
#include "reports/schedule_picture.h"
#include "schedules/text/table.h"

namespace orrery::reports {
namespace {

using Json = nlohmann::ordered_json;

// A whole number as such, and any other as the nearest double, which prints as the decimal that it stands for.
Json Number(std::int64_t value) {
  if (value % kDecimalOne == 0) return value / kDecimalOne;
  return static_cast<double>(value) / static_cast<double>(kDecimalOne);
}

// Of the unit, as an integer of 1e-9.
std::int64_t In(std::int64_t unit, std::int64_t memory) {
  return memory * kDecimalOne / std::max<std::int64_t>(unit, 1);
}

}  // namespace

std::int64_t MemoryOfMicroBatch(const schedules::Schedule& schedule, const pipeline::Costs& costs) {
  const std::int64_t pipelines = schedule.placement.pipelines();
  return (schedule.chunks() + pipelines - 1) / pipelines * schedule.slices * costs.memory.forward;
}

std::string ScheduleFigures(const schedules::Schedule& schedule, const pipeline::Costs& costs,
                            const pipeline::Evaluation& evaluation) {
  using Align = TextTable::Align;
  TextTable ranks({{"rank", Align::kRight},
                   {"busy", Align::kRight},
                   {"wall idle", Align::kRight},
                   {"span", Align::kRight},
                   {"span bubble", Align::kRight},
                   {"peak activations", Align::kRight},
                   {"peak M", Align::kRight}});
  const std::int64_t micro_batch = MemoryOfMicroBatch(schedule, costs);
  for (std::size_t r = 0; r < evaluation.ranks.size(); ++r) {
    const pipeline::RankEvaluation& rank = evaluation.ranks[r];
    ranks.AddRow({absl::StrCat(r), FormatDecimal(rank.busy), FormatDecimal(evaluation.makespan - rank.busy),
                  FormatDecimal(rank.span()), FormatDecimal(rank.span() - rank.busy),
                  absl::StrCat(rank.peak_activations), FormatDecimal(In(micro_batch, rank.peak_memory))});
  }
  const std::int64_t parts = micro_batch / std::max<std::int64_t>(costs.memory.forward, 1);
  return absl::StrCat(
      "ranks ", schedule.ranks(), ", stages ", schedule.stages(), ", micro-batches ", schedule.micro_batches, "\n",
      "makespan ", FormatDecimal(evaluation.makespan), ", wall bubble (makespan - busy, mean over ranks) ",
      FormatPercent(WallBubble(evaluation)), "\n", "longest span ", FormatDecimal(evaluation.longest_span),
      ", span bubble (last end - first start - busy, of that rank) ", FormatPercent(SpanBubble(evaluation)), "\n",
      "messages between ranks ", evaluation.messages, "\n", "M: activations of one micro-batch on a rank, ", parts,
      parts == 1 ? " forward pass" : " forward passes", "\n\n", ranks.Render());
}

std::string ScheduleReportJson(const std::string& name, const schedules::Schedule& schedule,
                               const pipeline::Costs& costs, const pipeline::Evaluation& evaluation) {
  Json json = {{"name", name},
               {"makespan", Number(evaluation.makespan)},
               {"longest_span", Number(evaluation.longest_span)},
               {"wall_bubble_fraction", WallBubble(evaluation)},
               {"span_bubble_fraction", SpanBubble(evaluation)},
               {"messages", evaluation.messages}};
  json["ranks"] = Json::array();
  const std::int64_t micro_batch = MemoryOfMicroBatch(schedule, costs);
  for (const pipeline::RankEvaluation& rank : evaluation.ranks) {
    json["ranks"].push_back({{"busy", Number(rank.busy)},
                             {"wall_idle", Number(evaluation.makespan - rank.busy)},
                             {"first_start", Number(rank.first_start)},
                             {"span", Number(rank.span())},
                             {"span_bubble", Number(rank.span() - rank.busy)},
                             {"peak_activations", rank.peak_activations},
                             {"peak_memory", Number(In(micro_batch, rank.peak_memory))}});
  }
  json["schedule"] = Json::parse(schedules::ScheduleJson(schedule));
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace orrery::reports
