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

bool Exceeds(const char* name, const std::optional<double>& limit, double value) {
  if (!limit.has_value() || value <= *limit) return false;
  Warn(absl::StrCat(name, " ", FormatPercent(value), " exceeds ", FormatPercent(*limit)));
  return true;
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
  const absl::StatusOr<validation::Report> report = MakeReport(arguments);
  if (!report.ok()) return Fail(report.status());
  const std::string text = arguments.json  ? validation::ReportJson(*report)
                           : arguments.csv ? validation::ReportCsv(*report)
                                           : validation::ReportText(*report);
  const absl::Status written = Write(text, arguments.output);
  if (!written.ok()) return Fail(written);
  const validation::Summary summary = report->All();
  const bool median_exceeded = Exceeds("median |error|", arguments.max_median, summary.median_abs_error);
  const bool p90_exceeded = Exceeds("p90 |error|", arguments.max_p90, summary.p90_abs_error);
  const bool nothing_predicted = summary.ok == 0;
  return median_exceeded || p90_exceeded || nothing_predicted ? kAnswerIsNo : kDone;
}

}  // namespace orrery::cli
