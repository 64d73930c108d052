#include "validation/kernels.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibration/measured.h"
#include "sim/kernels/gemm.h"
#include "validation/constants.h"

namespace orrery::validation {
namespace {

constexpr char kDefaultGroup[] = "gpu, dtype, library";
constexpr char kShort[] = "under 20 us";

// A row of the table, read; and which accelerator and which entry of its profile it falls to.
struct Candidate {
  absl::StatusOr<calibration::MeasuredGemm> measured = absl::UnknownError("");
  std::optional<std::size_t> accelerator;
  int entry = -1;
};

class KernelValidator {
 public:
  KernelValidator(const CsvTable& table, const std::vector<v1::Accelerator>& accelerators)
      : table_(table), accelerators_(accelerators) {
    // What an entry holds out depends on how many rows it has in the whole table, not on what --where leaves.
    for (const CsvRow& row : table.rows()) {
      const Candidate candidate = Read(row);
      if (candidate.entry >= 0) ++rows_[{*candidate.accelerator, candidate.entry}];
    }
  }

  Row Predict(const CsvRow& csv, const std::string& group_column) const {
    const auto cell = [&](std::string_view column) { return std::string(calibration::Cell(table_, csv, column)); };
    Row row;
    row.line = csv.line;
    row.id = absl::StrCat(cell("gpu"), " ", cell("op"), " ", cell("batch_or_groups"), " x ", cell("m"), " x ",
                          cell("n"), " x ", cell("k"));
    row.group = group_column.empty() ? absl::StrCat(cell("gpu"), ", ", cell("dtype"), ", ", cell("library"))
                                     : cell(group_column);
    const Candidate candidate = Read(csv);
    if (!candidate.measured.ok()) {
      row.status = absl::IsUnimplemented(candidate.measured.status()) ? Status::kRefused : Status::kFailed;
      row.reason = std::string(candidate.measured.status().message());
      row.part = row.status == Status::kRefused ? "refused" : "failed";
      return row;
    }
    const calibration::MeasuredGemm& measured = *candidate.measured;
    row.measured = measured.microseconds;
    if (candidate.entry < 0) {
      row.status = Status::kRefused;
      row.part = "refused";
      row.reason = candidate.accelerator.has_value()
                       ? absl::StrCat("a GEMM price in ", v1::DataType_Name(measured.type))
                       : absl::StrCat("accelerator ", measured.gpu);
      return row;
    }
    const v1::Accelerator& accelerator = accelerators_[*candidate.accelerator];
    const v1::GemmProfile& profile = accelerator.profile().gemm(candidate.entry);
    const kernels::GemmModel model(accelerator, profile, calibration::PeakOf(accelerator, measured.type),
                                   kernels::OperandBytes(measured.type));
    const double floor = accelerator.profile().kernel_floor().value();
    row.constants = ConstantsOf(profile, accelerator.profile().name());
    row.predicted = std::max(model.Seconds(measured.gemm), floor) * kMicro;
    const calibration::Split split(rows_.at({*candidate.accelerator, candidate.entry}));
    if (measured.microseconds < calibration::kShortKernel) {
      row.part = kShort;
      absl::StrAppend(&row.group, ", ", kShort);
    } else {
      row.part = split.IsHeldOut(measured) ? "held out of calibration" : "calibration may see";
    }
    return row;
  }

 private:
  static constexpr double kMicro = 1e6;

  Candidate Read(const CsvRow& row) const {
    Candidate candidate;
    candidate.measured = calibration::ReadGemm(table_, row);
    if (!candidate.measured.ok()) return candidate;
    for (std::size_t i = 0; i < accelerators_.size(); ++i) {
      if (!calibration::IsAccelerator(accelerators_[i], candidate.measured->gpu)) continue;
      candidate.accelerator = i;
      if (calibration::PeakOf(accelerators_[i], candidate.measured->type).count() > 0) {
        candidate.entry = calibration::GemmEntryOf(accelerators_[i].profile(), candidate.measured->type);
      }
      break;
    }
    return candidate;
  }

  const CsvTable& table_;
  const std::vector<v1::Accelerator>& accelerators_;
  std::map<std::pair<std::size_t, int>, int> rows_;  // by accelerator and entry
};

}  // namespace

absl::StatusOr<Report> ValidateKernels(const CsvTable& table, const KernelsOptions& options, Progress& progress) {
  ABSL_RETURN_IF_ERROR(calibration::CheckGemmColumns(table));
  if (!options.group_column.empty()) ABSL_RETURN_IF_ERROR(table.Column(options.group_column).status());
  ABSL_ASSIGN_OR_RETURN(const std::vector<const CsvRow*> rows, SelectRows(table, options.where));
  if (rows.empty()) return NoRows(table);
  ABSL_ASSIGN_OR_RETURN(const std::vector<v1::Accelerator> accelerators, calibration::LoadAccelerators(options.load));
  const KernelValidator validator(table, accelerators);
  Report report;
  report.group_column = options.group_column.empty() ? kDefaultGroup : options.group_column;
  report.unit = "us";
  report.digits = 1;
  report.rows.reserve(rows.size());
  progress.Start("validating kernels", static_cast<std::int64_t>(rows.size()));
  for (const CsvRow* row : rows) {
    report.rows.push_back(validator.Predict(*row, options.group_column));
    progress.Advance(1);
  }
  return report;
}

}  // namespace orrery::validation
