#include "validation/report.h"

#include <algorithm>
#include <utility>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/csv.h"
#include "base/format.h"
#include "base/statistics.h"
#include "base/text_table.h"

namespace orrery::validation {
namespace {

using Json = nlohmann::ordered_json;

std::string_view StatusName(Status status) {
  switch (status) {
    case Status::kOk:
      return "ok";
    case Status::kRefused:
      return "refused";
    case Status::kFailed:
      return "failed";
  }
  return "";
}

Json SummaryJson(const Summary& summary) {
  Json json = {{"rows", summary.rows}, {"ok", summary.ok}, {"refused", summary.refused}, {"failed", summary.failed}};
  if (summary.ok > 0) {
    json["median_abs_error"] = summary.median_abs_error;
    json["p90_abs_error"] = summary.p90_abs_error;
    json["bias"] = summary.bias;
    if (summary.constants > 0) json["constants"] = summary.constants;
  }
  return json;
}

void AddSummaryRow(const std::string& name, const Summary& summary, TextTable* table) {
  std::vector<std::string> cells = {name, absl::StrCat(summary.rows), absl::StrCat(summary.ok),
                                    absl::StrCat(summary.refused), absl::StrCat(summary.failed)};
  if (summary.ok > 0) {
    cells.push_back(FormatPercent(summary.median_abs_error));
    cells.push_back(FormatPercent(summary.p90_abs_error));
    cells.push_back(FormatPercent(summary.bias));
    cells.push_back(summary.constants > 0 ? absl::StrCat(summary.constants) : "");
  }
  table->AddRow(std::move(cells));
}

TextTable SummaryTable(const std::string& heading) {
  using Align = TextTable::Align;
  return TextTable({{heading, Align::kLeft},
                    {"rows", Align::kRight},
                    {"ok", Align::kRight},
                    {"refused", Align::kRight},
                    {"failed", Align::kRight},
                    {"median |error|", Align::kRight},
                    {"p90 |error|", Align::kRight},
                    {"bias", Align::kRight},
                    {"constants", Align::kRight}});
}

// By one of the row's texts, in order of first appearance.
std::vector<std::pair<std::string, Summary>> SummariseBy(const std::vector<Row>& rows, std::string Row::*text) {
  std::vector<std::string> names;
  std::map<std::string, std::vector<const Row*>> members;
  for (const Row& row : rows) {
    std::vector<const Row*>& group = members[row.*text];
    if (group.empty()) names.push_back(row.*text);
    group.push_back(&row);
  }
  std::vector<std::pair<std::string, Summary>> groups;
  groups.reserve(names.size());
  for (const std::string& name : names) groups.emplace_back(name, Summarise(members[name]));
  return groups;
}

// Without the rows that have none.
std::vector<std::pair<std::string, Summary>> SummariseWhereNamed(const std::vector<Row>& rows, std::string Row::*text) {
  std::vector<std::pair<std::string, Summary>> groups = SummariseBy(rows, text);
  std::erase_if(groups, [](const auto& group) { return group.first.empty(); });
  return groups;
}

}  // namespace

Summary Summarise(const std::vector<const Row*>& rows) {
  Summary summary;
  std::vector<double> errors;
  for (const Row* row : rows) {
    ++summary.rows;
    if (row->status == Status::kRefused) ++summary.refused;
    if (row->status == Status::kFailed) ++summary.failed;
    if (row->status != Status::kOk) continue;
    ++summary.ok;
    errors.push_back(row->Error());
  }
  const ErrorSummary sizes = SummariseErrors(errors);
  summary.median_abs_error = sizes.median;
  summary.p90_abs_error = sizes.p90;
  summary.bias = sizes.bias;
  std::set<std::string> constants;
  for (const Row* row : rows) constants.insert(row->constants.begin(), row->constants.end());
  summary.constants = static_cast<int>(constants.size());
  return summary;
}

Summary Report::All() const {
  std::vector<const Row*> all;
  for (const Row& row : rows) all.push_back(&row);
  return Summarise(all);
}

Summary Report::WithAssumptions(bool with) const {
  std::vector<const Row*> chosen;
  for (const Row& row : rows) {
    if (row.assumptions.empty() != with) chosen.push_back(&row);
  }
  return Summarise(chosen);
}

std::vector<std::pair<std::string, Summary>> Report::Groups() const { return SummariseBy(rows, &Row::group); }

std::vector<std::pair<std::string, Summary>> Report::LeaveOneLevelOut() const {
  std::set<std::string> levels;
  for (const Row& row : rows) {
    if (!row.software.empty()) levels.insert(row.software);
  }
  std::vector<std::pair<std::string, Summary>> summaries;
  if (levels.size() < 2) return summaries;
  for (const std::string& level : levels) {
    std::vector<const Row*> others;
    for (const Row& row : rows) {
      if (!row.software.empty() && row.software != level) others.push_back(&row);
    }
    summaries.emplace_back(level, Summarise(others));
  }
  return summaries;
}

std::vector<std::pair<std::string, Summary>> Report::Parts() const { return SummariseWhereNamed(rows, &Row::part); }

std::vector<std::pair<std::string, Summary>> Report::Bands() const { return SummariseWhereNamed(rows, &Row::band); }

std::string ReportText(const Report& report) {
  using Align = TextTable::Align;
  TextTable rows({{"id", Align::kLeft},
                  {absl::StrCat("measured ", report.unit), Align::kRight},
                  {absl::StrCat("predicted ", report.unit), Align::kRight},
                  {"error", Align::kRight},
                  {"filled in or remarks", Align::kLeft}});
  std::map<std::string, int> refusals;
  for (const Row& row : report.rows) {
    if (row.status == Status::kRefused) {
      ++refusals[row.reason];
      continue;
    }
    std::vector<std::string> remarks = row.assumptions;
    remarks.insert(remarks.end(), row.flags.begin(), row.flags.end());
    if (row.status == Status::kFailed) remarks = {absl::StrCat("FAILED: ", row.reason)};
    // A row that could not be read has no figure.
    rows.AddRow({row.id, row.measured > 0 ? FormatFixed(row.measured, report.digits) : "",
                 row.status == Status::kOk ? FormatFixed(row.predicted, report.digits) : "",
                 row.status == Status::kOk ? FormatPercent(row.Error()) : "", absl::StrJoin(remarks, "; ")});
  }
  TextTable summary = SummaryTable(absl::StrCat("by ", report.group_column));
  for (const auto& [name, group] : report.Groups()) AddSummaryRow(name, group, &summary);
  summary.AddRule();
  const std::vector<std::pair<std::string, Summary>> parts = report.Parts();
  for (const auto& [name, part] : parts) AddSummaryRow(name, part, &summary);
  if (parts.empty()) {
    AddSummaryRow("nothing filled in", report.WithAssumptions(false), &summary);
    AddSummaryRow("something filled in", report.WithAssumptions(true), &summary);
  }
  for (const auto& [name, band] : report.Bands()) AddSummaryRow(absl::StrCat("all, ", name), band, &summary);
  AddSummaryRow("all", report.All(), &summary);
  std::string text = absl::StrCat(rows.Render(), "\n", summary.Render());
  if (const auto without = report.LeaveOneLevelOut(); !without.empty()) {
    TextTable others = SummaryTable("all predicted but of level");
    for (const auto& [level, rest] : without) AddSummaryRow(level, rest, &others);
    absl::StrAppend(&text, "\n", others.Render());
  }
  if (refusals.empty()) return text;
  TextTable refused({{"refused for want of", Align::kLeft}, {"rows", Align::kRight}});
  for (const auto& [reason, count] : refusals) refused.AddRow({reason, absl::StrCat(count)});
  return absl::StrCat(text, "\n", refused.Render());
}

std::string ReportJson(const Report& report) {
  Json json;
  json["rows"] = Json::array();
  for (const Row& row : report.rows) {
    Json entry = {{"id", row.id}, {"line", row.line}, {"status", std::string(StatusName(row.status))}};
    if (row.measured > 0) entry["measured"] = row.measured;  // a row that could not be read has none
    if (row.status == Status::kOk) {
      entry["predicted"] = row.predicted;
      entry["error"] = row.Error();
    } else {
      entry["reason"] = row.reason;
    }
    entry["assumptions"] = row.assumptions;
    entry["flags"] = row.flags;
    json["rows"].push_back(std::move(entry));
  }
  json["unit"] = report.unit;
  json["summary"] = SummaryJson(report.All());
  json["summary_nothing_filled_in"] = SummaryJson(report.WithAssumptions(false));
  json["summary_something_filled_in"] = SummaryJson(report.WithAssumptions(true));
  for (const auto& [name, part] : report.Parts()) {
    Json entry = {{"part", name}};
    entry.update(SummaryJson(part));
    json["parts"].push_back(std::move(entry));
  }
  for (const auto& [name, band] : report.Bands()) {
    Json entry = {{"band", name}};
    entry.update(SummaryJson(band));
    json["bands"].push_back(std::move(entry));
  }
  for (const auto& [level, rest] : report.LeaveOneLevelOut()) {
    Json entry = {{"without", level}};
    entry.update(SummaryJson(rest));
    json["leave_one_level_out"].push_back(std::move(entry));
  }
  json["groups"] = Json::array();
  for (const auto& [name, group] : report.Groups()) {
    Json entry = {{report.group_column, name}};
    entry.update(SummaryJson(group));
    json["groups"].push_back(std::move(entry));
  }
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string ReportCsv(const Report& report) {
  std::string text = absl::StrCat("id,", CsvField(report.group_column), ",measured_", report.unit, ",predicted_",
                                  report.unit, ",error\n");
  for (const Row& row : report.rows) {
    if (row.status != Status::kOk) continue;
    absl::StrAppend(&text, CsvField(row.id), ",", CsvField(row.group), ",", FormatDouble(row.measured), ",",
                    FormatFixed(row.predicted, 4), ",", FormatFixed(row.Error(), 4), "\n");
  }
  return text;
}

}  // namespace orrery::validation
