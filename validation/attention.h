// `orrery validate attention`: measured attention kernels (columns as in calibration/measured_attention.h), predicted.
//
// The row's gpu names an accelerator preset by its name or an alias; its kernel, pass, mask, shape and dtype the entry
// of that preset's profile, or the eager kernels of unfused attention. Rows that no profile has a price for are
// refused, naming what is missing. Summaries tell apart what calibrations may see and what they hold out.
#ifndef ORRERY_VALIDATION_ATTENTION_H_
#define ORRERY_VALIDATION_ATTENTION_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/csv.h"
#include "base/progress.h"
#include "proto/loader.h"
#include "validation/record.h"
#include "validation/report.h"

namespace orrery::validation {

struct AttentionOptions {
  spec::LoadOptions load;
  std::vector<Condition> where;
  std::string group_column;  // empty: gpu, kernel and dtype together
};

// In microseconds. NOT_FOUND where the table lacks a column that is needed, or no row is left; a row that cannot be
// read has failed.
absl::StatusOr<Report> ValidateAttention(const CsvTable& table, const AttentionOptions& options, Progress& progress);

}  // namespace orrery::validation

#endif  // ORRERY_VALIDATION_ATTENTION_H_
