// `orrery validate collectives`: measured collectives (columns as in docs/collectives.md), predicted.
//
// A row's hardware names a system of specs/record/collective_systems.txtpb. Groups are hardware, collective and band of
// size; summaries tell apart what calibrations may see, what they hold out, and what is not for fitting.
#ifndef ORRERY_VALIDATION_COLLECTIVES_H_
#define ORRERY_VALIDATION_COLLECTIVES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/csv.h"
#include "base/progress.h"
#include "proto/loader.h"
#include "validation/record.h"
#include "validation/report.h"

namespace orrery::validation {

struct CollectivesOptions {
  spec::LoadOptions load;
  std::vector<Condition> where;
  std::string group_column;  // empty: hardware, collective, band
};

// In microseconds. NOT_FOUND where the table lacks a column that is needed, or no row is left; a row that cannot be
// read has failed.
absl::StatusOr<Report> ValidateCollectives(const CsvTable& table, const CollectivesOptions& options,
                                           Progress& progress);

}  // namespace orrery::validation

#endif  // ORRERY_VALIDATION_COLLECTIVES_H_
