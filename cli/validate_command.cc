#include <charconv>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/format.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/output.h"
#include "cli/terminal_progress.h"
#include "validation/runs.h"

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

absl::StatusOr<validation::Report> MakeReport(const ValidateArguments& arguments) {
  if (arguments.kind != "runs") {
    return absl::InvalidArgumentError(
        absl::StrCat("validate ", arguments.kind, ": no such kind of record; allowed: runs"));
  }
  validation::RunsOptions options{
      .load = LoadOptionsOf(arguments.spec_path, {}), .where = {}, .group_column = arguments.by};
  for (const std::string& text : arguments.where) {
    absl::StatusOr<validation::Condition> condition = validation::ParseCondition(text);
    if (!condition.ok()) return condition.status();
    options.where.push_back(*std::move(condition));
  }
  const absl::StatusOr<std::string> text = ReadFile(arguments.file, kLargestTable);
  if (!text.ok()) return text.status();
  const absl::StatusOr<CsvTable> table = CsvTable::Parse(*text, arguments.file);
  if (!table.ok()) return table.status();
  TerminalProgress progress;
  return validation::ValidateRuns(*table, options, progress);
}

}  // namespace

int Validate(const ValidateArguments& arguments) {
  // Before the work: a threshold that cannot be read must not cost the run, let alone pass.
  for (const auto& [option, given] :
       {std::pair{"--max-median", &arguments.max_median}, {"--max-p90", &arguments.max_p90}}) {
    const absl::StatusOr<bool> readable = Exceeds(option, *given, 0);
    if (!readable.ok()) return Fail(readable.status());
  }
  const absl::StatusOr<validation::Report> report = MakeReport(arguments);
  if (!report.ok()) return Fail(report.status());
  const std::string text = arguments.json  ? validation::ReportJson(*report)
                           : arguments.csv ? validation::ReportCsv(*report)
                                           : validation::ReportText(*report);
  const absl::Status written = Write(text, arguments.output);
  if (!written.ok()) return Fail(written);
  const validation::Summary summary = report->All();
  const bool median_exceeded = *Exceeds("--max-median", arguments.max_median, summary.median_abs_error);
  const bool p90_exceeded = *Exceeds("--max-p90", arguments.max_p90, summary.p90_abs_error);
  const bool nothing_predicted = summary.ok == 0;
  return median_exceeded || p90_exceeded || nothing_predicted ? kAnswerIsNo : kDone;
}

}  // namespace orrery::cli
