#include "cli/environment.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "sim/training/plan.h"
#include "sim/training/run_schedule.h"
#include "sim/training/slow_links.h"

namespace orrery::cli {

spec::LoadOptions LoadOptionsOf(const std::vector<std::string>& spec_path, const std::vector<std::string>& overrides) {
  spec::LoadOptions options{.spec_path = spec_path,
                            .overrides = overrides,
                            .check = training::ProblemsOf,
                            .check_sound = training::LinkProblems,
                            .stages_per_rank = training::StagesPerRank};
  std::error_code error;
  const std::filesystem::path binary = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path installed = binary.parent_path().parent_path() / "share/orrery/specs";
  options.spec_path.push_back(!error && std::filesystem::is_directory(installed, error) ? installed.string()
                                                                                        : ORRERY_SOURCE_SPECS);
  return options;
}

std::int64_t PeakResidentBytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  constexpr std::int64_t kKiB = 1024;  // unit of ru_maxrss on Linux
  return usage.ru_maxrss * kKiB;
}

bool StandardErrorIsTerminal() { return isatty(STDERR_FILENO) == 1; }

}  // namespace orrery::cli
