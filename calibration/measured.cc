#include "calibration/measured.h"

#include <charconv>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "base/format.h"
#include "base/sha256.h"
#include "base/status_macros.h"

namespace orrery::calibration {
namespace {

constexpr std::int64_t kLargestSize = 100'000'000;  // of one dimension
constexpr double kMostResults = 1e15;               // batch m n: tiles are counted in 64 bits
constexpr double kShortestMicroseconds = 1e-3;
constexpr double kLongestMicroseconds = 1e9;

absl::Status BadCell(const CsvTable& table, const CsvRow& row, std::string_view column, std::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat(table.name(), ":", row.line, ": ", std::string(column), ": \"",
                                                 std::string(Cell(table, row, column)),
                                                 "\"; allowed: ", std::string(allowed)));
}

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

std::string_view Cell(const CsvTable& table, const CsvRow& row, std::string_view column) {
  const std::optional<std::size_t> index = table.FindColumn(column);
  return index.has_value() ? std::string_view(row.cells[*index]) : std::string_view();
}

absl::StatusOr<double> PositiveNumber(const CsvTable& table, const CsvRow& row, std::string_view column, double min,
                                      double max) {
  const std::string_view cell = Cell(table, row, column);
  double value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size() || !(value >= min && value <= max)) {
    return BadCell(table, row, column, absl::StrCat("a number from ", FormatDouble(min), " to ", FormatDouble(max)));
  }
  return value;
}

absl::StatusOr<std::int64_t> PositiveInteger(const CsvTable& table, const CsvRow& row, std::string_view column,
                                             std::int64_t max) {
  const std::string_view cell = Cell(table, row, column);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
  if (error != std::errc() || end != cell.data() + cell.size() || value < 1 || value > max) {
    return BadCell(table, row, column, absl::StrCat("a whole number from 1 to ", max));
  }
  return value;
}

std::optional<v1::DataType> DataTypeOf(std::string_view dtype) {
  if (dtype.starts_with("fp16") || dtype.starts_with("16-bit")) return v1::FP16;
  if (dtype.starts_with("bf16")) return v1::BF16;
  if (dtype.starts_with("fp8")) return v1::FP8;
  if (dtype.starts_with("fp32") || dtype.starts_with("tf32")) return v1::FP32;
  return std::nullopt;
}

absl::Status CheckGemmColumns(const CsvTable& table) {
  for (const char* column : {"source", "gpu", "op", "m", "n", "k", "batch_or_groups", "dtype", "time_us", "library"}) {
    ABSL_RETURN_IF_ERROR(table.Column(column).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<MeasuredGemm> ReadGemm(const CsvTable& table, const CsvRow& row) {
  MeasuredGemm measured;
  measured.line = row.line;
  measured.source = Cell(table, row, "source");
  measured.gpu = Cell(table, row, "gpu");
  measured.library = Cell(table, row, "library");
  measured.dtype = Cell(table, row, "dtype");
  ABSL_ASSIGN_OR_RETURN(measured.gemm.m, PositiveInteger(table, row, "m", kLargestSize));
  ABSL_ASSIGN_OR_RETURN(measured.gemm.n, PositiveInteger(table, row, "n", kLargestSize));
  ABSL_ASSIGN_OR_RETURN(measured.gemm.k, PositiveInteger(table, row, "k", kLargestSize));
  ABSL_ASSIGN_OR_RETURN(measured.gemm.batch, PositiveInteger(table, row, "batch_or_groups", kLargestSize));
  if (static_cast<double>(measured.gemm.batch) * static_cast<double>(measured.gemm.m) *
          static_cast<double>(measured.gemm.n) >
      kMostResults) {
    return BadCell(table, row, "m", absl::StrCat("batch x m x n of at most ", FormatDouble(kMostResults)));
  }
  ABSL_ASSIGN_OR_RETURN(measured.microseconds,
                        PositiveNumber(table, row, "time_us", kShortestMicroseconds, kLongestMicroseconds));
  // The library of a row may stand in its type: "fp8 blockwise (DeepGEMM)".
  const std::string_view op = Cell(table, row, "op");
  if (Contains(op, "grouped") || Contains(op, "moe")) return absl::UnimplementedError("grouped GEMM");
  if (measured.library == "deepgemm" || Contains(measured.dtype, "block")) {
    return absl::UnimplementedError("FP8 with scales per block");
  }
  const std::optional<v1::DataType> type = DataTypeOf(measured.dtype);
  if (!type.has_value()) return absl::UnimplementedError(absl::StrCat("data type ", measured.dtype));
  measured.type = *type;
  return measured;
}

int GemmEntryOf(const v1::Profile& profile, v1::DataType type) {
  for (int i = 0; i < profile.gemm_size(); ++i) {
    for (const int served : profile.gemm(i).data_types()) {
      if (served == type) return i;
    }
  }
  return -1;
}

FlopsPerSecond PeakOf(const v1::Accelerator& accelerator, v1::DataType type) {
  for (const v1::PeakRate& peak : accelerator.peak()) {
    if (peak.data_type() == type) return FlopsPerSecond(peak.flops_per_second());
  }
  return FlopsPerSecond(0);
}

bool IsAccelerator(const v1::Accelerator& accelerator, std::string_view gpu) {
  const auto is = [&](std::string_view name) {
    if (!gpu.starts_with(name)) return false;
    std::string_view rest = gpu.substr(name.size());
    while (rest.starts_with(' ')) rest.remove_prefix(1);
    return rest.empty() || rest.front() == '(';
  };
  if (is(accelerator.name())) return true;
  for (const std::string& alias : accelerator.aliases()) {
    if (is(alias)) return true;
  }
  return false;
}

absl::StatusOr<std::vector<v1::Accelerator>> LoadAccelerators(const spec::LoadOptions& options) {
  ABSL_ASSIGN_OR_RETURN(const std::vector<std::string> names, spec::ListPresets("accelerators", options));
  std::vector<v1::Accelerator> accelerators(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    ABSL_RETURN_IF_ERROR(spec::LoadPreset(names[i], options, &accelerators[i]));
  }
  return accelerators;
}

bool HeldOut(std::string_view name) {
  const std::string digest = Sha256Hex(name);
  std::uint32_t number = 0;
  std::from_chars(digest.data(), digest.data() + 8, number, 16);
  return number % 5 == 0;
}

bool Split::IsHeldOut(const MeasuredGemm& row) const {
  if (!holds_out_) return false;
  return HeldOut(absl::StrCat(row.gemm.n, ",", row.gemm.k)) || HeldOut(row.source);
}

}  // namespace orrery::calibration
