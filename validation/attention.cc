#include "validation/attention.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibration/attention_fit.h"
#include "calibration/measured.h"
#include "calibration/measured_attention.h"
#include "validation/constants.h"

namespace orrery::validation {
namespace {

constexpr char kDefaultGroup[] = "gpu, kernel, dtype";
constexpr double kMicro = 1e6;

// Names the row and the group that it falls to.
Row RowOf(const CsvTable& table, const CsvRow& csv, const std::string& group_column) {
  const auto cell = [&](std::string_view column) { return std::string(calibration::Cell(table, csv, column)); };
  Row row;
  row.line = csv.line;
  row.id = absl::StrCat(cell("gpu"), " ", cell("kernel"), " ", cell("dtype"), " ", cell("pass"),
                        cell("causal") == "1" ? " causal " : " full ", cell("batch"), " x ", cell("heads_q"), " x ",
                        cell("seqlen"), " x ", cell("head_dim"));
  row.group =
      group_column.empty() ? absl::StrCat(cell("gpu"), ", ", cell("kernel"), ", ", cell("dtype")) : cell(group_column);
  return row;
}

// Of the entry that priced the row; unfused attention is priced by GEMMs and memory-bound kernels.
std::set<std::string> AttentionConstants(const v1::Accelerator& accelerator,
                                         const calibration::MeasuredAttention& measured) {
  const v1::Profile& profile = accelerator.profile();
  for (const v1::AttentionProfile& entry : profile.attention()) {
    const bool serves = std::find(entry.data_types().begin(), entry.data_types().end(),
                                  static_cast<int>(measured.data_type)) != entry.data_types().end();
    if (serves && entry.kernel() == measured.attention.kernel) return ConstantsOf(entry, profile.name());
  }
  return ConstantsOf(profile.memory_bound(), profile.name());
}

void Predict(const CsvTable& table, const CsvRow& csv, const std::vector<v1::Accelerator>& accelerators, Row* row) {
  const auto stop = [&](const absl::Status& status) {
    row->status = absl::IsUnimplemented(status) ? Status::kRefused : Status::kFailed;
    row->part = row->status == Status::kRefused ? "refused" : "failed";
    row->reason = std::string(status.message());
  };
  const absl::StatusOr<calibration::MeasuredAttention> measured = calibration::ReadMeasuredAttention(table, csv);
  if (!measured.ok()) return stop(measured.status());
  row->measured = measured->seconds * kMicro;
  row->assumptions = measured->assumptions;
  const auto accelerator = std::find_if(accelerators.begin(), accelerators.end(), [&](const v1::Accelerator& preset) {
    return calibration::IsAccelerator(preset, measured->gpu);
  });
  if (accelerator == accelerators.end()) {
    return stop(absl::UnimplementedError(absl::StrCat("accelerator ", measured->gpu)));
  }
  const absl::StatusOr<double> seconds = calibration::PredictAttention(*accelerator, *measured);
  if (!seconds.ok()) return stop(seconds.status());
  row->predicted = *seconds * kMicro;
  row->constants = AttentionConstants(*accelerator, *measured);
  row->part = calibration::IsHeldOut(*measured) ? "held out of calibration" : "calibration may see";
}

}  // namespace

absl::StatusOr<Report> ValidateAttention(const CsvTable& table, const AttentionOptions& options, Progress& progress) {
  ABSL_RETURN_IF_ERROR(calibration::CheckAttentionColumns(table));
  if (!options.group_column.empty()) ABSL_RETURN_IF_ERROR(table.Column(options.group_column).status());
  ABSL_ASSIGN_OR_RETURN(const std::vector<const CsvRow*> rows, SelectRows(table, options.where));
  if (rows.empty()) return NoRows(table);
  ABSL_ASSIGN_OR_RETURN(const std::vector<v1::Accelerator> accelerators, calibration::LoadAccelerators(options.load));
  Report report;
  report.group_column = options.group_column.empty() ? kDefaultGroup : options.group_column;
  report.unit = "us";
  report.digits = 1;
  report.rows.reserve(rows.size());
  progress.Start("validating attention", static_cast<std::int64_t>(rows.size()));
  for (const CsvRow* csv : rows) {
    Row row = RowOf(table, *csv, options.group_column);
    Predict(table, *csv, accelerators, &row);
    report.rows.push_back(std::move(row));
    progress.Advance(1);
  }
  return report;
}

}  // namespace orrery::validation
