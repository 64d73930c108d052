// The part of `orrery calibrate import` that is about collectives.
#ifndef ORRERY_CLI_CALIBRATE_COLLECTIVES_H_
#define ORRERY_CLI_CALIBRATE_COLLECTIVES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/commands.h"

namespace orrery::cli {

// Options of logs that were given.
std::vector<std::string> LogOptions(const CalibrateImportArguments& arguments);

bool IsOfCollectives(const CalibrateImportArguments& arguments);
// Whether the rows fit. INVALID_ARGUMENT where options do not go together.
absl::StatusOr<bool> ImportCollectives(const CalibrateImportArguments& arguments);

}  // namespace orrery::cli

#endif  // ORRERY_CLI_CALIBRATE_COLLECTIVES_H_
