// `orrery validate runs`: published training runs, predicted.
//
// A row of the record becomes a spec: what it prints is taken, a blank is filled by the documented default of its
// software level and the filling is reported. A row that needs a feature that does not exist is refused and names it.
#ifndef ORRERY_VALIDATION_RUNS_H_
#define ORRERY_VALIDATION_RUNS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/csv.h"
#include "base/progress.h"
#include "orrery/v1/run.pb.h"
#include "proto/loader.h"
#include "validation/record.h"
#include "validation/report.h"

namespace orrery::validation {

// The spec that a row describes, before it is resolved. UNIMPLEMENTED names the first missing feature; INVALID_ARGUMENT
// a cell that cannot be read.
struct RunOfRow {
  v1::Run run;
  std::vector<std::string> assumptions;
};
absl::StatusOr<RunOfRow> MakeRun(const Record& record, const spec::LoadOptions& options);

struct RunsOptions {
  spec::LoadOptions load;
  std::vector<Condition> where;
  std::string group_column = "source";
};

// NOT_FOUND where the table lacks a column that is needed, or no row is left.
absl::StatusOr<Report> ValidateRuns(const CsvTable& table, const RunsOptions& options, Progress& progress);

}  // namespace orrery::validation

#endif  // ORRERY_VALIDATION_RUNS_H_
