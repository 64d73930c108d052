#include "cli/output.h"

#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/utf8.h"
#include "cli/commands.h"

namespace orrery::cli {
namespace {

void PrintError(std::string_view prefix, const std::string& printable) {
  const std::string text = absl::StrCat(std::string(prefix), printable, "\n");
  std::fwrite(text.data(), 1, text.size(), stderr);
}

int Fail(absl::StatusCode code, const std::string& printable) {
  if (code == absl::StatusCode::kInternal) {
    PrintError("internal error (please report it): ", printable);
    return kBug;
  }
  PrintError("error: ", printable);
  return code == absl::StatusCode::kFailedPrecondition ? kAnswerIsNo : kBadInput;
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

std::string PrintableLines(std::string_view text) {
  std::string lines;
  while (true) {
    const std::size_t end = text.find('\n');
    lines += Printable(text.substr(0, end));
    if (end == std::string_view::npos) return lines;
    lines += '\n';
    text.remove_prefix(end + 1);
  }
}

int Fail(const absl::Status& status) { return Fail(status.code(), PrintableLines(std::string(status.message()))); }

int FailOnOneLine(const absl::Status& status) { return Fail(status.code(), Printable(std::string(status.message()))); }

void Warn(std::string_view message) { PrintError("warning: ", Printable(message)); }

}  // namespace orrery::cli
