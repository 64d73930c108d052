#include "cli/output.h"

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "cli/commands.h"

namespace orrery::cli {
namespace {

void PrintError(std::string_view prefix, std::string_view message) {
  const std::string line = absl::StrCat(std::string(prefix), std::string(message), "\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

absl::Status Write(std::string_view text, const std::string& path) {
  if (!path.empty()) return WriteFile(path, text);
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0) {
    return absl::InvalidArgumentError("cannot write to standard output");
  }
  return absl::OkStatus();
}

absl::Status CheckNotRead(std::string_view option, const std::string& path, const std::vector<std::string>& inputs) {
  std::error_code ignored;
  for (const std::string& input : inputs) {
    if (path.empty() || input.empty() || !std::filesystem::equivalent(path, input, ignored)) continue;
    return absl::InvalidArgumentError(absl::StrCat(absl::string_view(option.data(), option.size()), ": ", path,
                                                   " is read by this command; allowed: another file"));
  }
  return absl::OkStatus();
}

int Fail(const absl::Status& status) {
  if (status.code() == absl::StatusCode::kInternal) {
    PrintError("internal error (please report it): ", std::string(status.message()));
    return kBug;
  }
  PrintError("error: ", std::string(status.message()));
  return status.code() == absl::StatusCode::kFailedPrecondition ? kAnswerIsNo : kBadInput;
}

void Warn(std::string_view message) { PrintError("warning: ", message); }

}  // namespace orrery::cli
