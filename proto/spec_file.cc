#include "proto/spec_file.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "proto/limits.h"

namespace orrery::spec {

absl::Status StatusOf(const Diagnostics& diagnostics, std::vector<SpecError>* errors) {
  if (diagnostics.ok()) return absl::OkStatus();
  const std::vector<SpecError> sorted = diagnostics.Sorted();
  if (errors != nullptr) *errors = sorted;
  std::string message =
      absl::StrJoin(sorted, "\n", [](std::string* out, const SpecError& error) { *out += error.ToString(); });
  if (diagnostics.dropped() > 0) absl::StrAppend(&message, "\nand ", diagnostics.dropped(), " more errors");
  return absl::InvalidArgumentError(message);
}

absl::Status FileError(const std::string& filename, const std::string& message, std::vector<SpecError>* errors) {
  const SpecError error{.file = filename, .message = message};
  if (errors != nullptr) *errors = {error};
  return absl::InvalidArgumentError(error.ToString());
}

absl::StatusOr<std::string> ReadSpecFile(const std::string& path, std::vector<SpecError>* errors) {
  absl::StatusOr<std::string> text = orrery::ReadFile(path, limits::kFileBytes);
  if (text.ok()) return text;
  std::string message(text.status().message());
  // base names the path as we do.
  if (message.starts_with(path + ": ")) message.erase(0, path.size() + 2);
  return FileError(path, message, errors);
}

absl::Status CheckSpecPath(const LoadOptions& options, std::vector<SpecError>* errors) {
  for (const std::string& folder : options.spec_path) {
    std::error_code error;
    if (std::filesystem::is_directory(folder, error)) continue;
    const char* what = std::filesystem::exists(folder, error) ? "is no folder" : "does not exist";
    return FileError(absl::StrCat("spec path \"", folder, "\""),
                     absl::StrCat(what, "; allowed: a folder that holds ", absl::StrJoin(PresetKinds(), ", ")), errors);
  }
  return absl::OkStatus();
}

void ReportProblems(const std::vector<FieldProblem>& problems, const Origins& origins, Diagnostics* diagnostics) {
  for (const FieldProblem& problem : problems) {
    const bool known = std::any_of(problem.fields.begin(), problem.fields.end(),
                                   [&](const std::string& field) { return diagnostics->IsBad(field); });
    if (!known) diagnostics->ErrorAtWriter(origins, problem.fields, problem.message);
  }
}

}  // namespace orrery::spec
