// `orrery calibrate import` of measured collectives: a table of the record or an output of nccl-tests becomes the times
// of an architecture (NcclTimes) and a report.
#ifndef ORRERY_CALIBRATION_COLLECTIVE_IMPORT_H_
#define ORRERY_CALIBRATION_COLLECTIVE_IMPORT_H_

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/csv.h"
#include "calibration/collective_fit.h"
#include "calibration/nccl_tests_log.h"
#include "orrery/v1/cluster.pb.h"
#include "proto/loader.h"

namespace orrery::calibration {

struct CollectiveImport {
  CollectiveFit fit;
  int rows = 0;
  // Rows of the architecture that were left out, by reason.
  std::map<std::string, int> refused;
  // Of a log: its grade (nccl_tests_log.h), rows that were damaged and left out, and the first of these.
  std::string grade;
  int damaged = 0;
  std::vector<std::string> problems;
  std::vector<std::string> remarks;
  std::vector<std::string> assumptions;
  bool foreign_version = false;  // of NCCL, outside of those that are listed
};

// `base`: a preset of nccl_times, whose architecture the rows must have. Of a table, rows with use = fit (all where it
// has no such column). NOT_FOUND where no row is left.
absl::StatusOr<CollectiveImport> ImportCollectiveTable(const CsvTable& table, const std::string& base,
                                                       const spec::LoadOptions& options);

// What a log does not say.
struct NcclTestsImport {
  std::string cluster;    // preset
  std::string version;    // of NCCL, where the log prints none
  std::string operation;  // where the log does not name the program
  std::string base;
};
absl::StatusOr<CollectiveImport> ImportNcclTests(const NcclTestsLog& log, std::string_view name,
                                                 const NcclTestsImport& import, const spec::LoadOptions& options);

// The file of the fitted times: its head names the command, the rows and the errors.
std::string ImportedTimesText(const CollectiveImport& import, const std::string& command);
std::string CollectiveImportText(const CollectiveImport& import);
std::string CollectiveImportJson(const CollectiveImport& import);

}  // namespace orrery::calibration

#endif  // ORRERY_CALIBRATION_COLLECTIVE_IMPORT_H_
