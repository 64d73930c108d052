// What to change so that a run fits into memory, and what that costs.
//
// Changes that people make first are tried one by one, then, where none suffices, in pairs: sequence parallelism, more
// ZeRO, recomputation of parts, of some layers or of all, half the micro-batch, twice the tensor or pipeline
// parallelism on the same GPUs. Each is a list of --set arguments, so that whatever is derived from the changed fields
// is derived again; illegal ones are passed over. What fits is ordered by predicted iteration time.
#ifndef ORRERY_REPORTS_FIT_ADVICE_H_
#define ORRERY_REPORTS_FIT_ADVICE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/progress.h"
#include "orrery/v1/run.pb.h"
#include "sim/training/simulate.h"

namespace orrery::reports {

// A change to a run that fits.
struct Change {
  std::string description;
  // Arguments of --set, in order.
  std::vector<std::string> overrides;
  double iteration_seconds = 0;
  // Against the run as it is, timed as if it fitted: 0.05 is 5 % longer.
  double cost = 0;
  // Allocator and runtime on the fullest rank.
  std::int64_t device_peak_bytes = 0;
};

struct FitAdvice {
  // Where the run does not fit: cheapest first.
  std::vector<Change> changes;
  // Where it does: the largest micro-batch that divides the batch and fits.
  std::int64_t largest_micro_batch = 0;
  // Runs that were tried.
  int tried = 0;
};

// The run with these overrides besides its own; an error where that is not legal.
using Reload = std::function<absl::StatusOr<v1::Run>(const std::vector<std::string>& overrides)>;

// `result` is what the run as it is gives.
FitAdvice Advise(const training::Result& result, const Reload& reload, Progress& progress);

// Allocator and runtime on the fullest rank, in bytes.
std::int64_t DevicePeak(const training::Result& result);

}  // namespace orrery::reports

#endif  // ORRERY_REPORTS_FIT_ADVICE_H_
