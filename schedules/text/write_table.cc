#include <cstddef>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "schedules/text/table.h"

namespace orrery::schedules {

std::vector<std::vector<std::string>> Cells(const Schedule& schedule) {
  std::vector<std::vector<std::string>> table(schedule.order.size());
  for (std::size_t r = 0; r < table.size(); ++r) {
    const auto rank = static_cast<std::int32_t>(r);
    const std::vector<Action>& order = schedule.order[r];
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (!schedule.slots.empty()) table[r].resize(static_cast<std::size_t>(schedule.slots[r][i]));
      std::string cell = Describe(schedule, rank, order[i]);
      if (order[i].fused) {
        cell = absl::StrCat("(", cell, ";", Describe(schedule, rank, order[i + 1]), ")OVERLAP_F_B");
        ++i;
      }
      table[r].push_back(std::move(cell));
    }
  }
  return table;
}

std::string WriteTable(const Schedule& schedule) {
  std::string text;
  for (const std::vector<std::string>& row : Cells(schedule)) {
    for (std::size_t i = 0; i < row.size(); ++i) absl::StrAppend(&text, i == 0 ? "" : ",", row[i]);
    text += '\n';
  }
  return text;
}

std::string ScheduleJson(const Schedule& schedule) {
  using Json = nlohmann::ordered_json;
  Json json = {{"ranks", schedule.ranks()},
               {"stages", schedule.stages()},
               {"micro_batches", schedule.micro_batches},
               {"slices", schedule.slices}};
  json["placement"] = Json::array();
  for (std::int32_t rank = 0; rank < schedule.ranks(); ++rank) {
    Json chunks = Json::array();
    for (std::int32_t chunk = 0; chunk < schedule.placement.ChunksOf(rank); ++chunk) {
      chunks.push_back(
          {{"stage", schedule.StageOf(rank, chunk)}, {"pipeline", schedule.placement.PipelineOf(rank, chunk)}});
    }
    json["placement"].push_back(std::move(chunks));
  }
  if (!schedule.pipeline_of.empty()) json["pipeline_of"] = schedule.pipeline_of;
  json["order"] = Json::array();
  for (std::vector<std::string>& row : Cells(schedule)) {
    std::erase(row, "");
    json["order"].push_back(row);
  }
  if (!schedule.slots.empty()) json["slots"] = schedule.slots;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace orrery::schedules
