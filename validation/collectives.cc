#include "validation/collectives.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibration/collective_fit.h"
#include "calibration/measured.h"
#include "calibration/measured_collectives.h"

namespace orrery::validation {
namespace {

namespace nccl = collectives::nccl;

constexpr double kMicro = 1e6;
constexpr char kDefaultGroup[] = "hardware, collective, size";

std::string BandOf(std::int64_t bytes) {
  if (bytes < (64 << 10)) return "under 64 KiB";
  if (bytes < (1 << 20)) return "64 KiB to 1 MiB";
  if (bytes < (256 << 20)) return "1 to 256 MiB";
  return "256 MiB and more";
}

Row Predict(const CsvTable& table, const CsvRow& csv, const calibration::CollectiveRecord& record,
            const std::string& group_column) {
  const auto cell = [&](std::string_view column) { return std::string(calibration::Cell(table, csv, column)); };
  Row row;
  row.line = csv.line;
  row.id = absl::StrCat(cell("hardware"), " ", cell("gpus"), " ", cell("collective"), " ", cell("bytes"));
  const absl::StatusOr<calibration::MeasuredCollective> measured = record.Read(table, csv);
  const auto stop = [&](const absl::Status& status) {
    row.status = absl::IsUnimplemented(status) ? Status::kRefused : Status::kFailed;
    row.reason = std::string(status.message());
    row.part = row.status == Status::kRefused ? "refused" : "failed";
    row.group = group_column.empty() ? cell("hardware") : cell(group_column);
    return row;
  };
  if (!measured.ok()) return stop(measured.status());
  row.group = group_column.empty()
                  ? absl::StrCat(cell("hardware"), ", ", cell("collective"), ", ", BandOf(measured->bytes))
                  : cell(group_column);
  row.band = BandOf(measured->bytes);
  row.measured = measured->seconds * kMicro;
  row.assumptions = measured->assumptions;
  nccl::Price price;
  const absl::StatusOr<double> predicted = calibration::PredictCollective(*measured, *measured->times, &price);
  if (!predicted.ok()) return stop(absl::UnimplementedError(predicted.status().message()));
  row.predicted = *predicted * kMicro;
  row.flags.push_back(
      absl::StrCat(nccl::AlgorithmName(price.variant.algorithm), " ", nccl::ProtocolName(price.variant.protocol)));
  row.part = measured->use != "fit"              ? "not for fitting"
             : calibration::IsHeldOut(*measured) ? "held out of calibration"
                                                 : "calibration may see";
  return row;
}

}  // namespace

absl::StatusOr<Report> ValidateCollectives(const CsvTable& table, const CollectivesOptions& options,
                                           Progress& progress) {
  ABSL_RETURN_IF_ERROR(calibration::CheckCollectiveColumns(table));
  if (!options.group_column.empty()) ABSL_RETURN_IF_ERROR(table.Column(options.group_column).status());
  ABSL_ASSIGN_OR_RETURN(const std::vector<const CsvRow*> rows, SelectRows(table, options.where));
  if (rows.empty()) return NoRows(table);
  ABSL_ASSIGN_OR_RETURN(const calibration::CollectiveRecord record, calibration::CollectiveRecord::Load(options.load));
  Report report;
  report.group_column = options.group_column.empty() ? kDefaultGroup : options.group_column;
  report.unit = "us";
  report.digits = 1;
  report.rows.reserve(rows.size());
  progress.Start("validating collectives", static_cast<std::int64_t>(rows.size()));
  for (const CsvRow* row : rows) {
    report.rows.push_back(Predict(table, *row, record, options.group_column));
    progress.Advance(1);
  }
  return report;
}

}  // namespace orrery::validation
