// Files of published measurements, which the repository does not hold: tests that use them say so when they are
// skipped.
#ifndef ORRERY_TESTS_REFERENCE_H_
#define ORRERY_TESTS_REFERENCE_H_

#include <cstdlib>
#include <filesystem>
#include <string>

namespace orrery::tests {

// Path of a file below $ORRERY_REFERENCE, or below shared/reference beside the source tree; "" where it is not there.
inline std::string ReferenceFile(const std::string& file) {
  const char* const given = std::getenv("ORRERY_REFERENCE");
  const std::filesystem::path folder = given != nullptr ? given : ORRERY_SOURCE_DIR "/../shared/reference";
  std::error_code ignored;
  return std::filesystem::exists(folder / file, ignored) ? (folder / file).string() : "";
}

}  // namespace orrery::tests

#endif  // ORRERY_TESTS_REFERENCE_H_
