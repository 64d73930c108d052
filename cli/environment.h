// What the process finds around itself.
#ifndef ORRERY_CLI_ENVIRONMENT_H_
#define ORRERY_CLI_ENVIRONMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "proto/loader.h"

namespace orrery::cli {

// Spec folders: the user's, then the shipped specs (share/orrery/specs beside an installed binary, else the source
// tree's).
spec::LoadOptions LoadOptionsOf(const std::vector<std::string>& spec_path, const std::vector<std::string>& overrides);

std::int64_t PeakResidentBytes();
bool StandardErrorIsTerminal();

}  // namespace orrery::cli

#endif  // ORRERY_CLI_ENVIRONMENT_H_
