#include <charconv>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/format.h"
#include "base/parallel.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/output.h"
#include "cli/terminal_progress.h"
#include "validation/attention.h"
#include "validation/collectives.h"
#include "validation/expected_error.h"
#include "validation/kernels.h"
#include "validation/memory.h"
#include "validation/runs.h"
#include "validation/schedules.h"

namespace orrery::cli {
namespace {

constexpr std::int64_t kLargestTable = 256 << 20;  // bytes

// Whether a figure is above the limit that the user gave, if any.
absl::StatusOr<bool> Exceeds(const char* option, const std::optional<std::string>& given, double value) {
  if (!given.has_value()) return false;
  double limit = 0;
  const auto [end, error] = std::from_chars(given->data(), given->data() + given->size(), limit);
  if (error != std::errc() || end != given->data() + given->size() || !(limit >= 0 && std::isfinite(limit))) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, ": \"", *given, "\"; allowed: a fraction of 0 and more, such as 0.08"));
  }
  if (value > limit) Warn(absl::StrCat(option, ": ", FormatPercent(value), " exceeds ", FormatPercent(limit)));
  return value > limit;
}

absl::StatusOr<std::vector<validation::Condition>> ConditionsOf(const ValidateArguments& arguments) {
  std::vector<validation::Condition> conditions;
  for (const std::string& text : arguments.where) {
    absl::StatusOr<validation::Condition> condition = validation::ParseCondition(text);
    if (!condition.ok()) return condition.status();
    conditions.push_back(*std::move(condition));
  }
  return conditions;
}

// What a kind of record needs to be predicted.
struct Request {
  spec::LoadOptions load;
  std::vector<validation::Condition> where;
  std::string by;  // empty: what is usual for the kind
  int threads = 1;
};

absl::StatusOr<validation::Report> RunsReport(const CsvTable& table, const Request& request, Progress& progress) {
  validation::RunsOptions options{.load = request.load, .where = request.where};
  if (!request.by.empty()) options.group_column = request.by;
  options.threads = request.threads;
  return validation::ValidateRuns(table, options, progress);
}

absl::StatusOr<validation::Report> KernelsReport(const CsvTable& table, const Request& request, Progress& progress) {
  return validation::ValidateKernels(table, {.load = request.load, .where = request.where, .group_column = request.by},
                                     progress);
}

absl::StatusOr<validation::Report> AttentionReport(const CsvTable& table, const Request& request, Progress& progress) {
  return validation::ValidateAttention(
      table, {.load = request.load, .where = request.where, .group_column = request.by}, progress);
}

absl::StatusOr<validation::Report> CollectivesReport(const CsvTable& table, const Request& request,
                                                     Progress& progress) {
  return validation::ValidateCollectives(
      table, {.load = request.load, .where = request.where, .group_column = request.by}, progress);
}

absl::StatusOr<validation::Report> MemoryReport(const CsvTable& table, const Request& request, Progress& progress) {
  return validation::ValidateMemory(
      table, {.load = request.load, .where = request.where, .group_column = request.by, .threads = request.threads},
      progress);
}

constexpr char kSchedules[] = "schedules";

// All other kinds.
struct Kind {
  const char* name;
  absl::StatusOr<validation::Report> (*report)(const CsvTable&, const Request&, Progress&);
};
constexpr Kind kKinds[] = {{"runs", RunsReport},
                           {"kernels", KernelsReport},
                           {"attention", AttentionReport},
                           {"collectives", CollectivesReport},
                           {"memory", MemoryReport}};

absl::StatusOr<const Kind*> FindKind(const std::string& name) {
  std::vector<std::string> names;
  for (const Kind& kind : kKinds) {
    if (name == kind.name) return &kind;
    names.emplace_back(kind.name);
  }
  names.emplace_back(kSchedules);
  return absl::InvalidArgumentError(absl::StrCat(
      "validate ", name, ": no such kind of record; allowed: ", absl::StrJoin(names, ", "), DidYouMean(name, names)));
}

// Thresholds that say nothing of the kind must not seem to pass.
absl::Status CheckThresholds(const ValidateArguments& arguments) {
  const bool schedules = arguments.kind == kSchedules;
  for (const auto& [option, given] :
       {std::pair{"--max-median", &arguments.max_median}, {"--max-p90", &arguments.max_p90}}) {
    if (schedules && given->has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(option, ": schedules are the same or not; allowed: --max-mismatches"));
    }
  }
  if (!schedules && arguments.max_mismatches.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat("--max-mismatches: of schedules only; allowed with ", arguments.kind,
                                                   ": --max-median, --max-p90"));
  }
  return absl::OkStatus();
}

// What is written must not be what is read, or written twice.
absl::Status CheckFiles(const ValidateArguments& arguments) {
  ABSL_RETURN_IF_ERROR(CheckNotRead("--output", arguments.output, {arguments.file}));
  ABSL_RETURN_IF_ERROR(CheckNotRead("--expected-errors", arguments.expected_errors, {arguments.file}));
  if (!arguments.output.empty() && arguments.output == arguments.expected_errors) {
    return absl::InvalidArgumentError(
        absl::StrCat("--expected-errors: ", arguments.output, " is --output as well; allowed: another file"));
  }
  return absl::OkStatus();
}

absl::StatusOr<CsvTable> ReadRecord(const ValidateArguments& arguments) {
  ABSL_ASSIGN_OR_RETURN(const std::string text, ReadFile(arguments.file, kLargestTable));
  return CsvTable::Parse(text, arguments.file);
}

int ThreadsOf(const ValidateArguments& arguments) {
  return arguments.threads > 0 ? arguments.threads : HardwareThreads();
}

absl::StatusOr<validation::Report> MakeReport(const ValidateArguments& arguments) {
  ABSL_ASSIGN_OR_RETURN(const Kind* const kind, FindKind(arguments.kind));
  if (!arguments.expected_errors.empty() && arguments.kind != "runs") {
    return absl::InvalidArgumentError(
        absl::StrCat("--expected-errors: errors of ", arguments.kind, " belong to no run; allowed: with kind runs"));
  }
  Request request{
      .load = LoadOptionsOf(arguments.spec_path, {}), .where = {}, .by = arguments.by, .threads = ThreadsOf(arguments)};
  ABSL_ASSIGN_OR_RETURN(request.where, ConditionsOf(arguments));
  ABSL_ASSIGN_OR_RETURN(const CsvTable table, ReadRecord(arguments));
  TerminalProgress progress;
  return kind->report(table, request, progress);
}

absl::StatusOr<validation::ScheduleReport> MakeScheduleReport(const ValidateArguments& arguments) {
  validation::SchedulesOptions options;
  options.threads = ThreadsOf(arguments);
  if (!arguments.by.empty()) options.group_column = arguments.by;
  ABSL_ASSIGN_OR_RETURN(options.where, ConditionsOf(arguments));
  ABSL_ASSIGN_OR_RETURN(const CsvTable table, ReadRecord(arguments));
  TerminalProgress progress;
  return validation::ValidateSchedules(table, options, progress);
}

int ValidateSchedules(const ValidateArguments& arguments) {
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
  if (const std::optional<std::string>& given = arguments.max_mismatches; given.has_value()) {
    const auto [end, error] = std::from_chars(given->data(), given->data() + given->size(), most);
    if (error != std::errc() || end != given->data() + given->size() || most < 0) {
      return Fail(absl::InvalidArgumentError(
          absl::StrCat("--max-mismatches: \"", *given, "\"; allowed: a whole number of 0 and more")));
    }
  }
  if (!arguments.expected_errors.empty()) {
    return Fail(absl::InvalidArgumentError("--expected-errors: schedules have no errors; allowed: with kind runs"));
  }
  const absl::StatusOr<validation::ScheduleReport> report = MakeScheduleReport(arguments);
  if (!report.ok()) return Fail(report.status());
  const std::string text = arguments.json  ? validation::ScheduleReportJson(*report)
                           : arguments.csv ? validation::ScheduleReportCsv(*report)
                                           : validation::ScheduleReportText(*report);
  if (const absl::Status written = Write(text, arguments.output); !written.ok()) return Fail(written);
  const std::int64_t mismatches = report->Mismatches();
  if (mismatches > most) Warn(absl::StrCat("--max-mismatches: ", mismatches, " exceed ", most));
  const bool nothing_compared = report->All().refused == report->All().rows;
  return mismatches > most || nothing_compared ? kAnswerIsNo : kDone;
}

}  // namespace

int Validate(const ValidateArguments& arguments) {
  // Before the work: a threshold that cannot be read must not cost the run, let alone pass.
  for (const auto& [option, given] :
       {std::pair{"--max-median", &arguments.max_median}, {"--max-p90", &arguments.max_p90}}) {
    const absl::StatusOr<bool> readable = Exceeds(option, *given, 0);
    if (!readable.ok()) return Fail(readable.status());
  }
  if (const absl::Status fitting = CheckThresholds(arguments); !fitting.ok()) return Fail(fitting);
  if (const absl::Status files = CheckFiles(arguments); !files.ok()) return Fail(files);
  if (arguments.kind == kSchedules) return ValidateSchedules(arguments);
  const absl::StatusOr<validation::Report> report = MakeReport(arguments);
  if (!report.ok()) return Fail(report.status());
  const std::string text = arguments.json  ? validation::ReportJson(*report)
                           : arguments.csv ? validation::ReportCsv(*report)
                                           : validation::ReportText(*report);
  const absl::Status written = Write(text, arguments.output);
  if (!written.ok()) return Fail(written);
  if (!arguments.expected_errors.empty()) {
    const absl::Status kept =
        WriteFile(arguments.expected_errors, validation::ExpectedErrorsText(validation::ExpectedErrorsOf(*report)));
    if (!kept.ok()) return Fail(kept);
  }
  const validation::Summary summary = report->All();
  const bool median_exceeded = *Exceeds("--max-median", arguments.max_median, summary.median_abs_error);
  const bool p90_exceeded = *Exceeds("--max-p90", arguments.max_p90, summary.p90_abs_error);
  const bool nothing_predicted = summary.ok == 0;
  return median_exceeded || p90_exceeded || nothing_predicted ? kAnswerIsNo : kDone;
}

}  // namespace orrery::cli
