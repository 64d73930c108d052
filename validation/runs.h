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
#include "validation/catalogue.h"
#include "validation/record.h"
#include "validation/report.h"

namespace orrery::validation {

// The spec that a row describes, before it is resolved. UNIMPLEMENTED names the first missing feature; INVALID_ARGUMENT
// a cell that cannot be read.
struct RunOfRow {
  v1::Run run;
  std::vector<std::string> assumptions;
  // The source does not print the micro-batch, and there is no pipeline: the largest that fits in memory is taken.
  bool micro_batch_open = false;
};
absl::StatusOr<RunOfRow> MakeRun(const Record& record, const Catalogue& catalogue);

struct RunsOptions {
  spec::LoadOptions load;
  std::vector<Condition> where;
  std::string group_column = "source";
  // Rows are predicted side by side; the report does not depend on it.
  int threads = 1;
};

// NOT_FOUND where the table lacks a column that is needed, or no row is left.
absl::StatusOr<Report> ValidateRuns(const CsvTable& table, const RunsOptions& options, Progress& progress);

}  // namespace orrery::validation

#endif  // ORRERY_VALIDATION_RUNS_H_
