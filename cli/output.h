// Where commands write, and how errors end a process.
#ifndef ORRERY_CLI_OUTPUT_H_
#define ORRERY_CLI_OUTPUT_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace orrery::cli {

// To the file, or to standard output where `path` is empty. A file is replaced whole or not at all.
absl::Status Write(std::string_view text, const std::string& path);

// INVALID_ARGUMENT where the command would write over what it reads. `option` is what names `path`; either may be
// empty.
absl::Status CheckNotRead(std::string_view option, const std::string& path, const std::vector<std::string>& inputs);

// Each line as Printable has it.
std::string PrintableLines(std::string_view text);

// Prints the status to standard error, a line for each of its lines; returns the exit code that its kind stands for.
int Fail(const absl::Status& status);
// The same where no error has several lines: a line break is part of a name.
int FailOnOneLine(const absl::Status& status);

void Warn(std::string_view message);

}  // namespace orrery::cli

#endif  // ORRERY_CLI_OUTPUT_H_
