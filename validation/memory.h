// `orrery validate memory`: published peaks of device memory, predicted. In GiB.
//
// Two tables are known by their columns:
//   * Megatron-LM's functional tests (columns named as Megatron-LM's arguments): allocator peak of the last pipeline
//     rank. See megatron_memory.h.
//   * published peaks (source, model, gpu, ...): see published_memory.h.
// A row becomes a spec; what it does not print is filled by the documented default and the filling is reported. A row
// that needs a feature that does not exist is refused and names it.
#ifndef ORRERY_VALIDATION_MEMORY_H_
#define ORRERY_VALIDATION_MEMORY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/csv.h"
#include "base/progress.h"
#include "proto/loader.h"
#include "validation/record.h"
#include "validation/report.h"

namespace orrery::validation {

struct MemoryOptions {
  spec::LoadOptions load;
  std::vector<Condition> where = {};
  std::string group_column = {};  // empty: the family of tests (the folder of test_case), or the source
  int threads = 1;
};

// INVALID_ARGUMENT where the table is none of the two; NOT_FOUND where no row is left or a column is missing.
absl::StatusOr<Report> ValidateMemory(const CsvTable& table, const MemoryOptions& options, Progress& progress);

}  // namespace orrery::validation

#endif  // ORRERY_VALIDATION_MEMORY_H_
