#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/csv.h"
#include "base/status_macros.h"
#include "schedules/family.h"
#include "sweep/points.h"

namespace orrery::sweep {
namespace {

constexpr char kVaryForm[] = "FIELD=VALUE,VALUE,..., such as tp=1,2,4";

absl::string_view View(std::string_view text) { return {text.data(), text.size()}; }

// At commas outside brackets and quotes.
std::vector<std::string> SplitValues(std::string_view text) {
  std::vector<std::string> values(1);
  int depth = 0;
  char quote = '\0';
  for (const char c : text) {
    if (quote != '\0') {
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '{' || c == '[' || c == '<') {
      ++depth;
    } else if (c == '}' || c == ']' || c == '>') {
      --depth;
    } else if (c == ',' && depth <= 0) {
      values.emplace_back();
      continue;
    }
    values.back() += c;
  }
  return values;
}

// a, b and how to come from one to the other.
struct Range {
  std::int64_t first = 0;
  std::int64_t last = 0;
  std::int64_t step = 1;
  bool multiplies = false;
};

// Whether the text begins as a range does, with two whole numbers.
bool LooksLikeRange(const std::vector<std::string>& parts) {
  std::int64_t ignored = 0;
  return (parts.size() == 2 || parts.size() == 3) && absl::SimpleAtoi(parts[0], &ignored) &&
         absl::SimpleAtoi(parts[1], &ignored);
}

absl::StatusOr<Range> ParseRange(std::string_view text, const std::vector<std::string>& parts) {
  Range range;
  bool good = absl::SimpleAtoi(parts[0], &range.first) && absl::SimpleAtoi(parts[1], &range.last);
  if (parts.size() == 3) {
    range.multiplies = parts[2].starts_with('*');
    good = good && absl::SimpleAtoi(parts[2].substr(range.multiplies ? 1 : 0), &range.step);
  }
  good = good && range.first <= range.last && range.step >= (range.multiplies ? 2 : 1);
  if (good && (!range.multiplies || range.first >= 1)) return range;
  return absl::InvalidArgumentError(
      absl::StrCat("found the range ", View(text),
                   "; allowed: a:b, a:b:step or a:b:*factor with a up to b, a step of at least 1, a factor of at least "
                   "2 and then a of at least 1"));
}

// Appends the numbers of a range, or the value itself.
absl::Status AppendValue(const std::string& value, std::vector<std::vector<std::string>>* values) {
  const std::vector<std::string> parts = absl::StrSplit(value, ':');
  if (!LooksLikeRange(parts)) {
    values->push_back({value});
    return absl::OkStatus();
  }
  ABSL_ASSIGN_OR_RETURN(const Range range, ParseRange(value, parts));
  std::int64_t next = range.first;
  while (next <= range.last) {
    if (static_cast<std::int64_t>(values->size()) == kMostPoints) {
      return absl::InvalidArgumentError(
          absl::StrCat("the range ", value, " has too many values; allowed: ", kMostPoints, " points"));
    }
    values->push_back({absl::StrCat(next)});
    const bool overflows = range.multiplies ? __builtin_mul_overflow(next, range.step, &next)
                                            : __builtin_add_overflow(next, range.step, &next);
    if (overflows) break;
  }
  return absl::OkStatus();
}

bool NamesSchedule(std::string_view field) { return field == "schedule" || field == "schedule.name"; }

absl::Status CheckOneLine(std::string_view value) {
  if (value.find_first_of("\r\n") == std::string_view::npos) return absl::OkStatus();
  return absl::InvalidArgumentError("found a value with a line break; allowed: values on one line");
}

absl::Status VaryError(std::string_view text, std::string_view message) {
  return absl::InvalidArgumentError(absl::StrCat("--vary ", View(text), ": ", View(message)));
}

}  // namespace

absl::StatusOr<Axis> ParseVary(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return VaryError(text, absl::StrCat("names no field; allowed: ", kVaryForm));
  }
  Axis axis;
  axis.fields = {std::string(text.substr(0, equals))};
  for (const std::string& value : SplitValues(text.substr(equals + 1))) {
    if (value.empty()) return VaryError(text, absl::StrCat("has an empty value; allowed: ", kVaryForm));
    if (const absl::Status status = CheckOneLine(value); !status.ok()) {
      return VaryError(axis.fields[0], std::string(status.message()));
    }
    if (value == "all" && NamesSchedule(axis.fields[0])) {
      for (const schedules::Family& family : schedules::Families()) axis.values.push_back({std::string(family.name)});
      continue;
    }
    const absl::Status appended = AppendValue(value, &axis.values);
    if (!appended.ok()) return VaryError(text, std::string(appended.message()));
  }
  std::set<std::string> seen;
  for (const std::vector<std::string>& value : axis.values) {
    if (!seen.insert(value[0]).second) {
      return VaryError(text, absl::StrCat("has the value ", value[0], " twice; allowed: once"));
    }
  }
  return axis;
}

absl::StatusOr<Axis> ParseList(std::string_view csv, std::string_view name) {
  ABSL_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::Parse(csv, name));
  Axis axis;
  axis.fields = table.columns();
  for (const CsvRow& row : table.rows()) {
    for (const std::string& cell : row.cells) {
      if (const absl::Status status = CheckOneLine(cell); !status.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat(View(name), ":", row.line, ": ", absl::string_view(status.message())));
      }
    }
    axis.values.push_back(row.cells);
  }
  if (axis.values.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(View(name), ": has no row below its header; allowed: one row per point"));
  }
  return axis;
}

}  // namespace orrery::sweep
