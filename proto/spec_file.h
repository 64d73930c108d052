// Reading a spec as a file, and the status of what was found wrong with it. Used inside the loader only.
#ifndef ORRERY_PROTO_SPEC_FILE_H_
#define ORRERY_PROTO_SPEC_FILE_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/loader.h"
#include "proto/origins.h"

namespace orrery::spec {

// INVALID_ARGUMENT that joins the errors, one a line; `errors`, where given, gets them one by one.
absl::Status StatusOf(const Diagnostics& diagnostics, std::vector<SpecError>* errors);

// A file that cannot be read as a spec at all.
absl::Status FileError(const std::string& filename, const std::string& message, std::vector<SpecError>* errors);

absl::StatusOr<std::string> ReadSpecFile(const std::string& path, std::vector<SpecError>* errors);

// A folder that is not there would only surface as a preset that is not found, or not at all.
absl::Status CheckSpecPath(const LoadOptions& options, std::vector<SpecError>* errors);

// What a layer above finds wrong, unless it is known already.
void ReportProblems(const std::vector<FieldProblem>& problems, const Origins& origins, Diagnostics* diagnostics);

}  // namespace orrery::spec

#endif  // ORRERY_PROTO_SPEC_FILE_H_
