#include "cli/calibrate_collectives.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/csv.h"
#include "base/file.h"
#include "base/format.h"
#include "base/status_macros.h"
#include "calibration/collective_import.h"
#include "calibration/import.h"
#include "cli/environment.h"
#include "cli/output.h"

namespace orrery::cli {
namespace {

constexpr std::int64_t kLargestTable = 256 << 20;  // bytes

std::string CommandOf(const CalibrateImportArguments& arguments) {
  std::string command = "orrery calibrate import";
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) absl::StrAppend(&command, " ", option, " ", value);
  };
  add("--collectives-csv", std::filesystem::path(arguments.collectives_csv).filename().string());
  add("--nccl-tests", std::filesystem::path(arguments.nccl_tests).filename().string());
  add("--cluster", arguments.cluster);
  add("--collective", arguments.collective);
  add("--nccl-version", arguments.nccl_version);
  add("--base", arguments.base);
  add("-o", arguments.output);
  return command;
}

absl::StatusOr<calibration::CollectiveImport> Import(const CalibrateImportArguments& arguments) {
  const spec::LoadOptions load = LoadOptionsOf(arguments.spec_path, {});
  const std::string& file = arguments.nccl_tests.empty() ? arguments.collectives_csv : arguments.nccl_tests;
  ABSL_ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kLargestTable));
  if (arguments.nccl_tests.empty()) {
    ABSL_ASSIGN_OR_RETURN(const CsvTable table, CsvTable::Parse(text, file));
    return calibration::ImportCollectiveTable(table, arguments.base, load);
  }
  ABSL_ASSIGN_OR_RETURN(const calibration::NcclTestsLog log, calibration::ParseNcclTestsLog(text, file));
  return calibration::ImportNcclTests(log, file,
                                      {.cluster = arguments.cluster,
                                       .version = arguments.nccl_version,
                                       .operation = arguments.collective,
                                       .base = arguments.base},
                                      load);
}

}  // namespace

bool IsOfCollectives(const CalibrateImportArguments& arguments) {
  return !arguments.collectives_csv.empty() || !arguments.nccl_tests.empty();
}

namespace {

// Options that say nothing of what is imported.
absl::Status CheckOptions(const CalibrateImportArguments& arguments) {
  const bool both = !arguments.collectives_csv.empty() && !arguments.nccl_tests.empty();
  if (both || !arguments.gemm_csv.empty() || !arguments.attention_csv.empty()) {
    return absl::InvalidArgumentError(
        "--collectives-csv, --nccl-tests: one of them alone; kernels are fitted by a call of their own");
  }
  std::vector<std::string> wrong;
  if (!arguments.accelerator.empty()) wrong.push_back("--accelerator");
  if (!arguments.gpus.empty()) wrong.push_back("--gpu");
  if (!arguments.keep.empty()) wrong.push_back("--keep");
  if (arguments.nccl_tests.empty()) {
    const std::vector<std::string> of_logs = LogOptions(arguments);
    wrong.insert(wrong.end(), of_logs.begin(), of_logs.end());
  }
  if (!wrong.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(absl::StrJoin(wrong, ", "), ": does not apply to ",
                     arguments.nccl_tests.empty() ? "--collectives-csv" : "--nccl-tests"));
  }
  if (!arguments.nccl_tests.empty() && arguments.cluster.empty()) {
    return absl::InvalidArgumentError(
        "--nccl-tests: the log does not say what was measured; required: --cluster PRESET");
  }
  return CheckNotRead("--output", arguments.output, {arguments.collectives_csv, arguments.nccl_tests});
}

// Says of either part of the rows whether constants cannot bring it near what was measured.
bool FitsBadly(const calibration::CollectiveFit& fit) {
  bool badly = false;
  const auto judge = [&](const char* rows, const ErrorSummary& error) {
    if (error.rows == 0 || error.median <= calibration::kWorstMedian) return;
    Warn(absl::StrCat("collectives: median error of the ", rows, " rows ", FormatPercent(error.median),
                      "; allowed: up to ", FormatPercent(calibration::kWorstMedian),
                      ". Another cluster or collective was measured, or something else ran beside it"));
    badly = true;
  };
  judge("fitted", fit.fitted);
  judge("held-out", fit.held_out);
  return badly;
}

}  // namespace

std::vector<std::string> LogOptions(const CalibrateImportArguments& arguments) {
  std::vector<std::string> given;
  if (!arguments.cluster.empty()) given.push_back("--cluster");
  if (!arguments.collective.empty()) given.push_back("--collective");
  if (!arguments.nccl_version.empty()) given.push_back("--nccl-version");
  return given;
}

absl::StatusOr<bool> ImportCollectives(const CalibrateImportArguments& arguments) {
  ABSL_RETURN_IF_ERROR(CheckOptions(arguments));
  ABSL_ASSIGN_OR_RETURN(calibration::CollectiveImport import, Import(arguments));
  if (!arguments.output.empty()) {
    import.fit.times.set_name(std::filesystem::path(arguments.output).stem().string());
  }
  if (import.foreign_version) Warn(import.assumptions.front());
  if (import.damaged > 0) {
    Warn(absl::StrCat(arguments.nccl_tests, ": ", import.damaged, import.damaged == 1 ? " row is" : " rows are",
                      " damaged and left out; the first: ", import.problems.front()));
  }
  if (!arguments.output.empty()) {
    ABSL_RETURN_IF_ERROR(Write(calibration::ImportedTimesText(import, CommandOf(arguments)), arguments.output));
  }
  ABSL_RETURN_IF_ERROR(Write(
      arguments.json ? calibration::CollectiveImportJson(import) : calibration::CollectiveImportText(import), ""));
  return !FitsBadly(import.fit);
}

}  // namespace orrery::cli
