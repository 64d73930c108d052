// Measured kernels: rows of a table of the record (columns as in docs/calibration.md), and which of them a fit may see.
#ifndef ORRERY_CALIBRATION_MEASURED_H_
#define ORRERY_CALIBRATION_MEASURED_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/csv.h"
#include "base/units.h"
#include "orrery/v1/cluster.pb.h"
#include "proto/loader.h"
#include "workloads/operator.h"

namespace orrery::calibration {

// Kernels of fewer microseconds are summed up apart: the timers of most sources count in steps of 0.5 to 1 us.
inline constexpr double kShortKernel = 20;

struct MeasuredGemm {
  int line = 0;
  std::string source;
  std::string gpu;
  std::string library;
  std::string dtype;  // as written
  v1::DataType type = v1::DATA_TYPE_UNSPECIFIED;
  workloads::Gemm gemm;
  double microseconds = 0;  // as written

  double seconds() const { return microseconds * 1e-6; }
};

// NOT_FOUND where the table lacks a column that ReadGemm needs.
absl::Status CheckGemmColumns(const CsvTable& table);
// One row. UNIMPLEMENTED names the feature that no profile has a price for ("grouped GEMM"); INVALID_ARGUMENT a cell
// that is no measurement: shapes are whole numbers of 1 and more, times positive.
absl::StatusOr<MeasuredGemm> ReadGemm(const CsvTable& table, const CsvRow& row);

// The operand type that a source means: "fp16", "bf16 (torch)", "16-bit", "fp8_e4m3", "tf32". Nothing where it is none
// of ours.
std::optional<v1::DataType> DataTypeOf(std::string_view dtype);

// The index of the entry that serves a type, and its peak; -1 and 0 where there is none.
int GemmEntryOf(const v1::Profile& profile, v1::DataType type);
FlopsPerSecond PeakOf(const v1::Accelerator& accelerator, v1::DataType type);

// Whether a table means this accelerator: its name or an alias, a remark in parentheses behind it aside.
bool IsAccelerator(const v1::Accelerator& accelerator, std::string_view gpu);
// Every accelerator preset, loaded, in order of name.
absl::StatusOr<std::vector<v1::Accelerator>> LoadAccelerators(const spec::LoadOptions& options);

// A fifth of all names, by a hash that is fixed here: adding rows moves none from one side to the other.
bool HeldOut(std::string_view name);

// Which rows a fit may see. Whole families of shapes, named "n,k", and whole sources are held out. An entry of a
// profile with few rows holds none out: it is fitted on all that there is.
class Split {
 public:
  static constexpr int kFewRows = 40;
  explicit Split(int rows) : holds_out_(rows >= kFewRows) {}
  bool IsHeldOut(const MeasuredGemm& row) const;

 private:
  bool holds_out_;
};

// A cell as a number of (0, max]. INVALID_ARGUMENT names line, column and cell.
absl::StatusOr<double> PositiveNumber(const CsvTable& table, const CsvRow& row, std::string_view column, double min,
                                      double max);
// The same as a whole number of [1, max].
absl::StatusOr<std::int64_t> PositiveInteger(const CsvTable& table, const CsvRow& row, std::string_view column,
                                             std::int64_t max);
// The cell's text, "" where the table has no such column.
std::string_view Cell(const CsvTable& table, const CsvRow& row, std::string_view column);

}  // namespace orrery::calibration

#endif  // ORRERY_CALIBRATION_MEASURED_H_
