// The answers of `orrery validate schedules` as text, JSON and CSV.
#include <map>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "base/csv.h"
#include "base/text_table.h"
#include "validation/schedules.h"

namespace orrery::validation {
namespace {

using Json = nlohmann::ordered_json;
using Align = TextTable::Align;

constexpr const char* kStatusNames[] = {"ok", "refused", "failed"};
constexpr const char* kOrderNames[] = {"same", "different", "better", "equal", "worse"};

const char* NameOf(Status status) { return kStatusNames[static_cast<int>(status)]; }
const char* NameOf(Order order) { return kOrderNames[static_cast<int>(order)]; }

bool IsPlanned(const MadeOrder& made) { return made.order >= Order::kBetter; }

std::string Blank(std::int64_t count) { return count == 0 ? "" : absl::StrCat(count); }

void AddSummaryRow(const std::string& name, const ScheduleCounts& counts, TextTable* table) {
  std::vector<std::string> cells = {name,
                                    absl::StrCat(counts.rows),
                                    absl::StrCat(counts.ok),
                                    Blank(counts.refused),
                                    Blank(counts.failed),
                                    Blank(counts.deadlocks),
                                    absl::StrCat(counts.figures),
                                    Blank(counts.different_figures)};
  for (const int count : counts.orders) cells.push_back(Blank(count));
  table->AddRow(std::move(cells));
}

Json CountsJson(const ScheduleCounts& counts) {
  Json json = {{"rows", counts.rows},
               {"ok", counts.ok},
               {"refused", counts.refused},
               {"failed", counts.failed},
               {"deadlocks", counts.deadlocks},
               {"figures", counts.figures},
               {"different_figures", counts.different_figures}};
  for (int i = 0; i < kOrders; ++i) json["orders"][kOrderNames[i]] = counts.orders[i];
  return json;
}

Json RowJson(const ScheduleRow& row) {
  Json json = {{"id", row.id},
               {"line", row.line},
               {"status", NameOf(row.status)},
               {"figures", row.figures},
               {"different_figures", row.different_figures},
               {"deadlocks", row.deadlocks}};
  json["made"] = Json::array();
  for (const MadeOrder& made : row.made) {
    json["made"].push_back({{"family", made.family}, {"order", NameOf(made.order)}});
    if (!IsPlanned(made)) continue;
    json["made"].back()["span"] = made.span;
    json["made"].back()["table_span"] = made.table_span;
  }
  if (!row.remark.empty()) json["reason"] = row.remark;
  return json;
}

std::string ShownRemark(const ScheduleRow& row) {
  if (row.status == Status::kFailed) return absl::StrCat("FAILED: ", row.remark);
  if (row.status == Status::kRefused) return absl::StrCat("refused: ", row.remark);
  return row.remark;
}

std::string ShownOrder(const MadeOrder& made) {
  if (!IsPlanned(made)) return NameOf(made.order);
  return absl::StrCat(NameOf(made.order), ": span ", made.span, ", the table's ", made.table_span);
}

void CountOrder(const MadeOrder& made, ScheduleCounts& counts) { ++counts.orders[static_cast<int>(made.order)]; }

}  // namespace

void ScheduleCounts::Add(const ScheduleRow& row) {
  ++rows;
  if (row.status == Status::kOk) ++ok;
  if (row.status == Status::kRefused) ++refused;
  if (row.status == Status::kFailed) ++failed;
  if (row.deadlocks) ++deadlocks;
  figures += row.figures;
  different_figures += row.different_figures;
  for (const MadeOrder& made : row.made) CountOrder(made, *this);
}

ScheduleCounts ScheduleReport::All() const {
  ScheduleCounts counts;
  for (const ScheduleRow& row : rows) counts.Add(row);
  return counts;
}

std::vector<std::pair<std::string, ScheduleCounts>> ScheduleReport::Groups() const {
  std::vector<std::pair<std::string, ScheduleCounts>> groups;
  std::map<std::string, std::size_t> index;
  for (const ScheduleRow& row : rows) {
    const auto [found, is_new] = index.emplace(row.group, groups.size());
    if (is_new) groups.emplace_back(row.group, ScheduleCounts());
    groups[found->second].second.Add(row);
  }
  return groups;
}

std::map<std::string, ScheduleCounts> ScheduleReport::Families() const {
  std::map<std::string, ScheduleCounts> families;
  for (const ScheduleRow& row : rows) {
    for (const MadeOrder& made : row.made) {
      ScheduleCounts& counts = families[made.family];
      ++counts.rows;
      CountOrder(made, counts);
    }
  }
  return families;
}

std::int64_t ScheduleReport::Mismatches() const {
  std::int64_t mismatches = 0;
  for (const ScheduleRow& row : rows) {
    std::int64_t named = row.different_figures;
    for (const MadeOrder& made : row.made) {
      if (made.order == Order::kDifferent || made.order == Order::kWorse) ++named;
    }
    mismatches += row.status == Status::kFailed && named == 0 ? 1 : named;
  }
  return mismatches;
}

std::string ScheduleReportText(const ScheduleReport& report) {
  TextTable rows({{"case", Align::kLeft},
                  {"figures", Align::kRight},
                  {"different", Align::kRight},
                  {"made by", Align::kLeft},
                  {"order", Align::kLeft},
                  {"remarks", Align::kLeft}});
  for (const ScheduleRow& row : report.rows) {
    std::vector<std::string> cells = {row.id, absl::StrCat(row.figures), Blank(row.different_figures)};
    std::string remark = ShownRemark(row);
    if (row.made.empty()) {
      cells.insert(cells.end(), {"", row.deadlocks ? "deadlocks" : "", remark});
      rows.AddRow(cells);
    }
    for (const MadeOrder& made : row.made) {
      cells.insert(cells.end(), {made.family, ShownOrder(made), remark});
      rows.AddRow(cells);
      cells = {row.id, "", ""};
      remark.clear();
    }
  }
  TextTable summary({{absl::StrCat("by ", report.group_column), Align::kLeft},
                     {"cases", Align::kRight},
                     {"ok", Align::kRight},
                     {"refused", Align::kRight},
                     {"failed", Align::kRight},
                     {"deadlock", Align::kRight},
                     {"figures", Align::kRight},
                     {"different", Align::kRight},
                     {"same order", Align::kRight},
                     {"different", Align::kRight},
                     {"better", Align::kRight},
                     {"equal", Align::kRight},
                     {"worse", Align::kRight}});
  for (const auto& [name, counts] : report.Groups()) AddSummaryRow(name, counts, &summary);
  summary.AddRule();
  AddSummaryRow("all", report.All(), &summary);
  TextTable families({{"made by", Align::kLeft},
                      {"orders", Align::kRight},
                      {"same", Align::kRight},
                      {"different", Align::kRight},
                      {"better", Align::kRight},
                      {"equal", Align::kRight},
                      {"worse", Align::kRight}});
  for (const auto& [name, counts] : report.Families()) {
    std::vector<std::string> cells = {name, absl::StrCat(counts.rows)};
    for (const int count : counts.orders) cells.push_back(Blank(count));
    families.AddRow(std::move(cells));
  }
  return absl::StrCat(rows.Render(), "\n", summary.Render(), "\n", families.Render(),
                      "\nmismatches: ", report.Mismatches(), "\n");
}

std::string ScheduleReportJson(const ScheduleReport& report) {
  Json json;
  json["rows"] = Json::array();
  for (const ScheduleRow& row : report.rows) json["rows"].push_back(RowJson(row));
  json["summary"] = CountsJson(report.All());
  json["summary"]["mismatches"] = report.Mismatches();
  json["groups"] = Json::array();
  for (const auto& [name, counts] : report.Groups()) {
    Json entry = {{report.group_column, name}};
    entry.update(CountsJson(counts));
    json["groups"].push_back(std::move(entry));
  }
  json["families"] = Json::array();
  for (const auto& [name, counts] : report.Families()) {
    json["families"].push_back({{"family", name}, {"rows", counts.rows}, {"orders", CountsJson(counts)["orders"]}});
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string ScheduleReportCsv(const ScheduleReport& report) {
  std::string text = absl::StrCat("id,", CsvField(report.group_column),
                                  ",status,figures,different_figures,deadlocks,family,order,span,table_span\n");
  for (const ScheduleRow& row : report.rows) {
    const std::string start = absl::StrCat(CsvField(row.id), ",", CsvField(row.group), ",", NameOf(row.status), ",",
                                           row.figures, ",", row.different_figures, ",", row.deadlocks ? 1 : 0, ",");
    if (row.made.empty()) absl::StrAppend(&text, start, ",,,\n");
    for (const MadeOrder& made : row.made) {
      absl::StrAppend(&text, start, made.family, ",", NameOf(made.order), ",");
      absl::StrAppend(&text, IsPlanned(made) ? absl::StrCat(made.span, ",", made.table_span) : ",", "\n");
    }
  }
  return text;
}

}  // namespace orrery::validation
