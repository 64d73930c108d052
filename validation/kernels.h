// `orrery validate kernels`: measured GEMMs (columns as in docs/calibration.md), predicted.
//
// The row's gpu names an accelerator preset by its name or an alias, its dtype the entry of that preset's profile. Rows
// that no profile has a price for are refused, naming what is missing. Kernels of less than 20 us, which most sources'
// timers do not resolve, are a group of their own beside every group; summaries tell apart what calibrations may see,
// what they hold out, and the short ones.
#ifndef ORRERY_VALIDATION_KERNELS_H_
#define ORRERY_VALIDATION_KERNELS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/csv.h"
#include "base/progress.h"
#include "proto/loader.h"
#include "validation/record.h"
#include "validation/report.h"

namespace orrery::validation {

struct KernelsOptions {
  spec::LoadOptions load;
  std::vector<Condition> where;
  std::string group_column;  // empty: gpu, dtype and library together
};

// In microseconds. NOT_FOUND where the table lacks a column that is needed, or no row is left; a row that cannot be
// read has failed.
absl::StatusOr<Report> ValidateKernels(const CsvTable& table, const KernelsOptions& options, Progress& progress);

}  // namespace orrery::validation

#endif  // ORRERY_VALIDATION_KERNELS_H_
