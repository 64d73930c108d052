#include "sweep/table.h"

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/csv.h"
#include "base/format.h"
#include "base/status_macros.h"

namespace orrery::sweep {
namespace {

constexpr std::array kStatuses = {Status::kOk, Status::kRefused, Status::kDoesNotFit};

// Columns behind the varied fields, up to the id.
constexpr std::array<std::string_view, 14> kColumns = {"status",
                                                       "reason",
                                                       "iteration_time_s",
                                                       "mfu",
                                                       "tokens_per_s_per_gpu",
                                                       "bubble_fraction",
                                                       "span_bubble_fraction",
                                                       "exposed_communication_fraction",
                                                       "allocator_peak_bytes",
                                                       "device_peak_bytes",
                                                       "fits",
                                                       "expected_error_p50",
                                                       "expected_error_p90",
                                                       "sweep"};
constexpr std::size_t kTexts = 2;  // status and reason; numbers and a truth value follow

std::vector<std::string> CellsOf(const Row& row, const std::string& id) {
  std::vector<std::string> cells = row.fields;
  cells.emplace_back(NameOf(row.status));
  cells.push_back(row.reason);
  if (row.status == Status::kRefused) {
    cells.resize(row.fields.size() + kColumns.size() - 1);
  } else {
    const Figures& figures = row.figures;
    for (const double value :
         {figures.iteration_time_s, figures.mfu, figures.tokens_per_s_per_gpu, figures.bubble_fraction,
          figures.span_bubble_fraction, figures.exposed_communication_fraction}) {
      cells.push_back(FormatDouble(value));
    }
    cells.push_back(absl::StrCat(figures.allocator_peak_bytes));
    cells.push_back(absl::StrCat(figures.device_peak_bytes));
    cells.emplace_back(figures.fits ? "true" : "false");
    for (const double error : {figures.expected_error_p50, figures.expected_error_p90}) {
      cells.push_back(figures.has_expected_error ? FormatDouble(error) : "");
    }
  }
  cells.push_back(id);
  return cells;
}

bool ReadDouble(const std::string& cell, double* value) { return absl::SimpleAtod(cell, value); }

bool ReadFigures(const std::vector<std::string>& cells, Figures* figures) {
  double* const doubles[] = {&figures->iteration_time_s,     &figures->mfu,
                             &figures->tokens_per_s_per_gpu, &figures->bubble_fraction,
                             &figures->span_bubble_fraction, &figures->exposed_communication_fraction};
  std::size_t i = 0;
  for (double* const value : doubles) {
    if (!ReadDouble(cells[i++], value)) return false;
  }
  if (!absl::SimpleAtoi(cells[i++], &figures->allocator_peak_bytes)) return false;
  if (!absl::SimpleAtoi(cells[i++], &figures->device_peak_bytes)) return false;
  figures->fits = cells[i++] == "true";
  figures->has_expected_error = !cells[i].empty();
  return !figures->has_expected_error ||
         (ReadDouble(cells[i], &figures->expected_error_p50) && ReadDouble(cells[i + 1], &figures->expected_error_p90));
}

// Of the cells behind those of `fields`.
std::optional<Row> RowOf(std::vector<std::string> fields, const std::vector<std::string>& cells) {
  const auto behind = cells.begin() + static_cast<std::ptrdiff_t>(fields.size());
  Row row{.fields = std::move(fields), .status = Status::kOk, .reason = behind[1], .figures = {}};
  for (const Status status : kStatuses) {
    if (behind[0] != NameOf(status)) continue;
    row.status = status;
    if (status == Status::kRefused) return row;
    const bool read = ReadFigures({behind + kTexts, cells.end()}, &row.figures);
    // What runs either fits or is said not to.
    if (read && row.figures.fits == (status == Status::kOk) && row.reason.empty() == row.figures.fits) return row;
  }
  return std::nullopt;
}

// As it stands in a JSON object.
std::string JsonText(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// A cell of a varied field, which is a number or a truth value where it reads as one.
std::string JsonValue(const std::string& cell) {
  const nlohmann::json value = nlohmann::json::parse(cell, nullptr, /*allow_exceptions=*/false);
  return value.is_number() || value.is_boolean() ? cell : JsonText(cell);
}

std::string JsonLine(const std::vector<std::string>& columns, const std::vector<std::string>& cells,
                     std::size_t fields) {
  std::vector<std::string> members;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (cells[i].empty()) continue;
    const bool is_text = (i >= fields && i < fields + kTexts) || i + 1 == cells.size();
    members.push_back(absl::StrCat(JsonText(columns[i]), ":", is_text ? JsonText(cells[i]) : JsonValue(cells[i])));
  }
  return absl::StrCat("{", absl::StrJoin(members, ","), "}\n");
}

std::string CsvLine(const std::vector<std::string>& cells) {
  return absl::StrJoin(cells, ",", [](std::string* out, const std::string& cell) { *out += CsvField(cell); }) + "\n";
}

// The cells of a JSON line; numbers as they would be written again.
std::optional<std::vector<std::string>> CellsOfJson(std::string_view line, const std::vector<std::string>& columns) {
  const nlohmann::json object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return std::nullopt;
  std::vector<std::string> cells;
  for (const std::string& column : columns) {
    const auto member = object.find(column);
    if (member == object.end()) {
      cells.emplace_back();
    } else if (member->is_string()) {
      cells.push_back(member->get<std::string>());
    } else if (member->is_number_float()) {
      cells.push_back(FormatDouble(member->get<double>()));
    } else {
      cells.push_back(member->dump());
    }
  }
  return cells;
}

}  // namespace

std::string_view NameOf(Status status) {
  switch (status) {
    case Status::kOk:
      return "ok";
    case Status::kRefused:
      return "refused";
    case Status::kDoesNotFit:
      return "does_not_fit";
  }
  return "";
}

std::vector<std::string> Table::Columns() const {
  std::vector<std::string> columns = fields_;
  columns.insert(columns.end(), kColumns.begin(), kColumns.end());
  return columns;
}

std::string Table::Header() const { return format_ == Format::kCsv ? CsvLine(Columns()) : ""; }

std::string Table::Line(const Row& row) const {
  const std::vector<std::string> cells = CellsOf(row, id_);
  return format_ == Format::kCsv ? CsvLine(cells) : JsonLine(Columns(), cells, fields_.size());
}

absl::StatusOr<Row> Table::Parse(std::string_view line, std::vector<std::string> fields) const {
  const std::vector<std::string> columns = Columns();
  std::vector<std::string> cells;
  if (format_ == Format::kCsv) {
    ABSL_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::Parse(Header() + std::string(line), "row"));
    if (table.rows().size() == 1) cells = table.rows()[0].cells;
  } else if (std::optional<std::vector<std::string>> found = CellsOfJson(line, columns); found.has_value()) {
    cells = *std::move(found);
  }
  if (cells.size() == columns.size() && fields.size() == fields_.size()) {
    std::optional<Row> row = RowOf(std::move(fields), cells);
    if (row.has_value() && Line(*row) == std::string(line) + "\n") return *std::move(row);
  }
  return absl::InvalidArgumentError("is no row of this sweep, or not of its point");
}

}  // namespace orrery::sweep
