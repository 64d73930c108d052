#include "validation/expected_error.h"

#include <filesystem>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/format.h"
#include "base/status_macros.h"
#include "google/protobuf/text_format.h"

namespace orrery::validation {
namespace {

constexpr int kFewestRows = 5;
constexpr char kFile[] = "record/expected_errors.txtpb";

}  // namespace

v1::ExpectedErrors ExpectedErrorsOf(const Report& report) {
  std::map<std::pair<std::string, std::string>, std::vector<const Row*>> families;
  for (const Row& row : report.rows) {
    if (row.status != Status::kOk) continue;
    for (const std::string& software : {row.software, std::string()}) {
      for (const std::string& accelerator : {row.accelerator, std::string()}) {
        families[{software, accelerator}].push_back(&row);
      }
    }
  }
  v1::ExpectedErrors errors;
  for (const auto& [names, rows] : families) {
    if (rows.size() < kFewestRows) continue;
    const Summary summary = Summarise(rows);
    v1::ExpectedError& entry = *errors.add_entry();
    entry.set_software(names.first);
    entry.set_accelerator(names.second);
    entry.set_rows(summary.ok);
    entry.set_p50(summary.median_abs_error);
    entry.set_p90(summary.p90_abs_error);
  }
  return errors;
}

std::string ExpectedErrorsText(const v1::ExpectedErrors& errors) {
  std::string text =
      "# proto-file: orrery/v1/record.proto\n# proto-message: orrery.v1.ExpectedErrors\n"
      "# Written by orrery validate runs TABLE --expected-errors FILE.\n";
  for (const v1::ExpectedError& entry : errors.entry()) {
    absl::StrAppend(&text, "entry {");
    if (!entry.software().empty()) absl::StrAppend(&text, " software: \"", entry.software(), "\"");
    if (!entry.accelerator().empty()) absl::StrAppend(&text, " accelerator: \"", entry.accelerator(), "\"");
    absl::StrAppend(&text, " rows: ", entry.rows(), " p50: ", FormatFixed(entry.p50(), 4),
                    " p90: ", FormatFixed(entry.p90(), 4), " }\n");
  }
  return text;
}

absl::StatusOr<v1::ExpectedErrors> LoadExpectedErrors(const std::vector<std::string>& spec_path) {
  v1::ExpectedErrors errors;
  for (const std::string& folder : spec_path) {
    const std::filesystem::path file = std::filesystem::path(folder) / kFile;
    std::error_code ignored;
    if (!std::filesystem::exists(file, ignored)) continue;
    constexpr std::int64_t kLargest = 1 << 20;  // bytes
    ABSL_ASSIGN_OR_RETURN(const std::string text, ReadFile(file.string(), kLargest));
    if (!google::protobuf::TextFormat::ParseFromString(text, &errors)) {
      return absl::InvalidArgumentError(absl::StrCat(
          file.string(), ": not an orrery.v1.ExpectedErrors; allowed: what validate runs --expected-errors writes"));
    }
    return errors;
  }
  return errors;
}

std::optional<v1::ExpectedError> ExpectedErrorOf(const v1::ExpectedErrors& errors, std::string_view software,
                                                 std::string_view accelerator) {
  const std::pair<std::string_view, std::string_view> wanted[] = {
      {software, accelerator}, {software, ""}, {"", accelerator}, {"", ""}};
  for (const auto& [level, gpu] : wanted) {
    for (const v1::ExpectedError& entry : errors.entry()) {
      if (entry.software() == level && entry.accelerator() == gpu) return entry;
    }
  }
  return std::nullopt;
}

std::string FamilyName(const v1::ExpectedError& family) {
  const std::string level = family.software().empty() ? "any software level" : family.software();
  return family.accelerator().empty() ? level : absl::StrCat(level, " on ", family.accelerator());
}

}  // namespace orrery::validation
