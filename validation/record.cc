#include "validation/record.h"

#include <charconv>
#include <map>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace orrery::validation {
namespace {

template <typename T>
absl::StatusOr<std::optional<T>> Parse(std::string_view column, std::string_view cell, std::string_view what) {
  if (cell.empty()) return std::optional<T>();
  T value{};
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(column), ": \"", std::string(cell), "\"; allowed: ", std::string(what), ", or blank"));
  }
  return std::optional<T>(value);
}

}  // namespace

std::string_view Record::Text(std::string_view column) const {
  const std::optional<std::size_t> index = table_.FindColumn(column);
  return index.has_value() ? std::string_view(row_.cells[*index]) : std::string_view();
}

absl::StatusOr<std::optional<std::int64_t>> Record::Integer(std::string_view column) const {
  return Parse<std::int64_t>(column, Text(column), "an integer");
}

absl::StatusOr<std::optional<double>> Record::Number(std::string_view column) const {
  return Parse<double>(column, Text(column), "a number");
}

absl::Status Missing(std::string_view feature) { return absl::UnimplementedError(std::string(feature)); }

absl::StatusOr<std::int64_t> Record::Positive(std::string_view column) const {
  ABSL_ASSIGN_OR_RETURN(const std::optional<std::int64_t> value, Integer(column));
  if (!value.has_value()) return Missing(absl::StrCat("a value for ", std::string(column)));
  if (*value < 1) {
    return absl::InvalidArgumentError(absl::StrCat(std::string(column), ": ", *value, "; allowed: 1 and more"));
  }
  return *value;
}

absl::StatusOr<std::int64_t> Record::PositiveOr(std::string_view column, std::int64_t otherwise) const {
  if (Blank(column)) return otherwise;
  return Positive(column);
}

absl::StatusOr<Condition> ParseCondition(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("--where ", std::string(text), ": not a condition; allowed: COLUMN=PREFIX"));
  }
  return Condition{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

absl::StatusOr<std::vector<const CsvRow*>> SelectRows(const CsvTable& table, const std::vector<Condition>& conditions) {
  std::map<std::size_t, std::vector<std::string>> prefixes;
  for (const Condition& condition : conditions) {
    ABSL_ASSIGN_OR_RETURN(const std::size_t column, table.Column(condition.column));
    prefixes[column].push_back(condition.prefix);
  }
  std::vector<const CsvRow*> rows;
  for (const CsvRow& row : table.rows()) {
    bool keep = true;
    for (const auto& [column, allowed] : prefixes) {
      bool any = false;
      for (const std::string& prefix : allowed) any = any || row.cells[column].starts_with(prefix);
      keep = keep && any;
    }
    if (keep) rows.push_back(&row);
  }
  return rows;
}

absl::Status NoRows(const CsvTable& table) {
  return absl::NotFoundError(
      absl::StrCat(table.name(), table.rows().empty() ? ": no rows below the header" : ": no row meets every --where"));
}

}  // namespace orrery::validation
