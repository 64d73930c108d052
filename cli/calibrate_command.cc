#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/format.h"
#include "base/status_macros.h"
#include "base/text_table.h"
#include "calibration/import.h"
#include "calibration/profile_file.h"
#include "cli/calibrate_collectives.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/output.h"

namespace orrery::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kLargestTable = 256 << 20;  // bytes

// A table of measured kernels; nothing where no file is named.
absl::StatusOr<std::optional<CsvTable>> ReadTable(const std::string& file) {
  if (file.empty()) return std::optional<CsvTable>();
  ABSL_ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kLargestTable));
  ABSL_ASSIGN_OR_RETURN(CsvTable table, CsvTable::Parse(text, file));
  return std::optional<CsvTable>(std::move(table));
}

std::string Quoted(const std::string& word) {
  if (!word.empty() && word.find_first_of(" \t\"'\\$`*?()[]{};&|<>#!~") == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// The call that gives the same profile; tables by name alone, for they may lie anywhere.
std::string CommandOf(const CalibrateImportArguments& arguments) {
  std::string command = "orrery calibrate import";
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) absl::StrAppend(&command, " ", option, " ", Quoted(value));
  };
  add("--gemm-csv", std::filesystem::path(arguments.gemm_csv).filename().string());
  add("--attention-csv", std::filesystem::path(arguments.attention_csv).filename().string());
  add("--accelerator", arguments.accelerator);
  add("--base", arguments.base);
  for (const std::string& gpu : arguments.gpus) add("--gpu", gpu);
  for (const std::string& name : arguments.keep) add("--keep", name);
  for (const std::string& folder : arguments.spec_path) add("--spec-path", folder);
  add("-o", arguments.output);
  return command;
}

// Entries that the rows do not fit, as warnings.
bool FitsBadly(const calibration::ImportResult& result) {
  bool badly = false;
  const auto judge = [&](const std::string& what, const ErrorSummary& fitted) {
    if (fitted.rows == 0 || fitted.median <= calibration::kWorstMedian) return;
    Warn(absl::StrCat(what, ": median error of the fitted rows ", FormatPercent(fitted.median),
                      ": these are no times of this accelerator, or not in microseconds"));
    badly = true;
  };
  for (const calibration::GemmFit& fit : result.gemm) judge("GEMM", fit.fitted);
  for (const calibration::AttentionFit& fit : result.attention) judge(fit.name, fit.fitted);
  return badly;
}

// Whether the rows fit.
absl::StatusOr<bool> ImportInto(const CalibrateImportArguments& arguments) {
  if (IsOfCollectives(arguments)) return ImportCollectives(arguments);
  if (arguments.gemm_csv.empty() && arguments.attention_csv.empty()) {
    return absl::InvalidArgumentError(
        "nothing to import; allowed: --gemm-csv FILE, --attention-csv FILE, or both; --collectives-csv FILE; "
        "--nccl-tests LOG");
  }
  if (const std::vector<std::string> of_logs = LogOptions(arguments); !of_logs.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(absl::StrJoin(of_logs, ", "), ": does not apply to --gemm-csv and --attention-csv"));
  }
  if (arguments.accelerator.empty()) return absl::InvalidArgumentError("--accelerator is required");
  const spec::LoadOptions load = LoadOptionsOf(arguments.spec_path, {});
  calibration::ImportOptions options;
  options.gpu_prefixes = arguments.gpus;
  options.keep.insert(arguments.keep.begin(), arguments.keep.end());
  options.command = CommandOf(arguments);
  ABSL_RETURN_IF_ERROR(calibration::CheckPresetName("accelerators", arguments.accelerator, load));
  ABSL_RETURN_IF_ERROR(spec::LoadPreset(arguments.accelerator, load, &options.accelerator));
  ABSL_ASSIGN_OR_RETURN(options.base, calibration::LoadProfile(arguments.base, load));
  ABSL_ASSIGN_OR_RETURN(const std::optional<CsvTable> gemm, ReadTable(arguments.gemm_csv));
  ABSL_ASSIGN_OR_RETURN(const std::optional<CsvTable> attention, ReadTable(arguments.attention_csv));
  ABSL_ASSIGN_OR_RETURN(
      const calibration::ImportResult result,
      calibration::Import(options, gemm.has_value() ? &*gemm : nullptr, attention.has_value() ? &*attention : nullptr));
  if (!arguments.output.empty()) {
    ABSL_RETURN_IF_ERROR(Write(calibration::ImportedProfileText(options, result), arguments.output));
  }
  ABSL_RETURN_IF_ERROR(Write(arguments.json ? calibration::ImportJson(result) : calibration::ImportText(result), ""));
  return !FitsBadly(result);
}

int CountConstants(const std::vector<calibration::ListedConstant>& constants) {
  int count = 0;
  for (const calibration::ListedConstant& constant : constants) count += constant.is_constant ? 1 : 0;
  return count;
}

absl::Status Show(const CalibrateShowArguments& arguments) {
  ABSL_ASSIGN_OR_RETURN(const v1::Profile profile,
                        calibration::LoadProfile(arguments.profile, LoadOptionsOf(arguments.spec_path, {})));
  const std::vector<calibration::ListedConstant> constants = calibration::ListConstants(profile);
  if (arguments.json) {
    Json json = {{"profile", profile.name()}, {"count", CountConstants(constants)}};
    json["constants"] = Json::array();
    for (const calibration::ListedConstant& constant : constants) {
      json["constants"].push_back(
          {{"path", constant.path}, {"value", constant.value}, {"unit", constant.unit}, {"source", constant.source}});
    }
    return Write(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n", "");
  }
  using Align = TextTable::Align;
  TextTable table(
      {{"constant", Align::kLeft}, {"value", Align::kRight}, {"unit", Align::kLeft}, {"source", Align::kLeft}});
  for (const calibration::ListedConstant& constant : constants) {
    table.AddRow({constant.path, constant.value, constant.unit, constant.source});
  }
  return Write(
      absl::StrCat(table.Render(), "\n", profile.name(), ": ", CountConstants(constants), " constants with a source\n"),
      "");
}

absl::Status Diff(const CalibrateDiffArguments& arguments) {
  const spec::LoadOptions load = LoadOptionsOf(arguments.spec_path, {});
  ABSL_ASSIGN_OR_RETURN(const v1::Profile left, calibration::LoadProfile(arguments.left, load));
  ABSL_ASSIGN_OR_RETURN(const v1::Profile right, calibration::LoadProfile(arguments.right, load));
  struct Line {
    std::string path, left, right, unit;
  };
  std::vector<Line> lines;
  std::map<std::string, std::size_t> by_path;
  for (const calibration::ListedConstant& constant : calibration::ListConstants(left)) {
    by_path[constant.path] = lines.size();
    lines.push_back({constant.path, constant.value, "", constant.unit});
  }
  for (const calibration::ListedConstant& constant : calibration::ListConstants(right)) {
    const auto [found, is_new] = by_path.try_emplace(constant.path, lines.size());
    if (is_new) lines.push_back({constant.path, "", "", constant.unit});
    lines[found->second].right = constant.value;
  }
  std::erase_if(lines, [](const Line& line) { return line.left == line.right; });
  if (arguments.json) {
    Json json = {{"left", arguments.left}, {"right", arguments.right}};
    json["differences"] = Json::array();
    for (const Line& line : lines) {
      json["differences"].push_back(
          {{"path", line.path}, {"left", line.left}, {"right", line.right}, {"unit", line.unit}});
    }
    return Write(json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n", "");
  }
  using Align = TextTable::Align;
  TextTable table({{"constant", Align::kLeft},
                   {arguments.left, Align::kRight},
                   {arguments.right, Align::kRight},
                   {"unit", Align::kLeft}});
  for (const Line& line : lines) table.AddRow({line.path, line.left, line.right, line.unit});
  return Write(lines.empty() ? "no difference\n" : table.Render(), "");
}

int ExitOf(const absl::Status& status) { return status.ok() ? kDone : Fail(status); }

}  // namespace

int CalibrateImport(const CalibrateImportArguments& arguments) {
  const absl::StatusOr<bool> fits = ImportInto(arguments);
  if (!fits.ok()) return Fail(fits.status());
  return *fits ? kDone : kAnswerIsNo;
}

int CalibrateShow(const CalibrateShowArguments& arguments) { return ExitOf(Show(arguments)); }
int CalibrateDiff(const CalibrateDiffArguments& arguments) { return ExitOf(Diff(arguments)); }

}  // namespace orrery::cli
