// The output of nccl-tests (all_reduce_perf and the like): a table among whatever else a terminal shows.
//
// Lines of the table begin, behind what a launcher may put before them, with a whole number, size, and end in two
// groups of time (us), algbw, busbw (GB/s) and #wrong, out-of-place and in-place; "N/A" where nothing was checked; 11
// to 13 columns by program and version. Everything else is skipped but for what names the program, ranks, hosts, GPUs
// per process and the library's version.
//
// Rows that are no measurement are left out, counted, and named by line: cut off, with other columns (output of several
// processes in one line), not numbers, not positive, with an algbw that is not size over time, with wrong values, or
// printed twice. A size that was measured again stays.
//
// Ranks are listed from 0, each as often as the others and on one host, and there are as many as whole processes have.
#ifndef ORRERY_CALIBRATION_NCCL_TESTS_LOG_H_
#define ORRERY_CALIBRATION_NCCL_TESTS_LOG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/collectives/nccl/tuner.h"

namespace orrery::calibration {

struct NcclTestsRow {
  int line = 0;
  std::int64_t bytes = 0;
  double out_of_place = 0;  // seconds
  double in_place = 0;
  double algbw = 0;  // GB/s, as printed, out of place
  double busbw = 0;
};

struct NcclTestsLog {
  std::optional<collectives::nccl::Operation> operation;  // where the log names the program
  std::int64_t ranks = 0;                                 // listed; 0: none
  std::int64_t hosts = 0;
  std::int64_t gpus_per_process = 1;
  std::string version;  // of NCCL; empty: not printed
  std::vector<NcclTestsRow> rows;
  int skipped = 0;                    // lines that are no rows
  int damaged = 0;                    // rows that are no measurement, left out
  std::vector<std::string> problems;  // "line 7: ...": the first of them
  std::vector<std::string> remarks;   // "line 7: ...": what is used and yet odd
};

// "good": no row is damaged; "fair": up to a tenth; "poor": more.
std::string GradeOf(const NcclTestsLog& log);

// INVALID_ARGUMENT where no row is left, with the first problem, if any, where the log is of several programs or
// versions of the library or several groups at once, and where the list of its ranks has gaps.
absl::StatusOr<NcclTestsLog> ParseNcclTestsLog(std::string_view text, std::string_view name);

}  // namespace orrery::calibration

#endif  // ORRERY_CALIBRATION_NCCL_TESTS_LOG_H_
