// `orrery calibrate import`: a base profile and tables of measured kernels become a fitted profile and its report.
#ifndef ORRERY_CALIBRATION_IMPORT_H_
#define ORRERY_CALIBRATION_IMPORT_H_

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/csv.h"
#include "calibration/attention_fit.h"
#include "calibration/gemm_fit.h"
#include "orrery/v1/cluster.pb.h"

namespace orrery::calibration {

struct ImportOptions {
  // Resolved; its profile is replaced by `base`.
  v1::Accelerator accelerator;
  v1::Profile base;
  // Rows whose gpu begins with one of these; none: those that name the accelerator (IsAccelerator).
  std::vector<std::string> gpu_prefixes;
  // Constants of GEMM that stay as the base has them, because it knows them better than the rows do.
  std::set<std::string> keep;
  // What regenerates the profile; stands in its head.
  std::string command;
};

// A median error of fitted rows beyond this is no fit: the model cannot say what was measured.
inline constexpr double kWorstMedian = 0.3;

struct ImportResult {
  v1::Profile profile;
  std::vector<GemmFit> gemm;            // one per entry of the profile, in its order
  std::vector<AttentionFit> attention;  // empty without a table of attention
  // Rows of the GPU that no entry prices, by what they lack.
  std::map<std::string, int> refused;
};

// Either table may be absent. INVALID_ARGUMENT where `keep` names no constant of GEMM that is fitted, or a row of the
// GPU cannot be read, NOT_FOUND where a table lacks a column or has no row that an entry of the profile serves.
absl::StatusOr<ImportResult> Import(const ImportOptions& options, const CsvTable* gemm, const CsvTable* attention);

// The profile's file: its head names the command, the rows and the errors.
std::string ImportedProfileText(const ImportOptions& options, const ImportResult& result);
// What was fitted, how well, and what the rows do not determine.
std::string ImportText(const ImportResult& result);
std::string ImportJson(const ImportResult& result);

}  // namespace orrery::calibration

#endif  // ORRERY_CALIBRATION_IMPORT_H_
