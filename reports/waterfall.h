// From achieved to peak MFU, one cause of lost time after the other.
//
// Causes are switched off cumulatively, in the order of v1::Cause, each by simulating a spec with one more entry in
// simulation.without; a step is what the iteration time falls by. What is left above model FLOPs at peak is the
// remainder: imbalance between stages and FLOPs that the convention does not count. Where transfers share links, that
// goes first, as contention: all further steps have a network of its own for every transfer.
#ifndef ORRERY_REPORTS_WATERFALL_H_
#define ORRERY_REPORTS_WATERFALL_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/units.h"
#include "sim/training/simulate.h"

namespace orrery::reports {

struct WaterfallStep {
  v1::Cause cause = v1::CAUSE_UNSPECIFIED;  // unspecified: contention
  std::string_view name;
  // What the step removes from the iteration, and adds to MFU (as a share of peak).
  Time time;
  double mfu = 0;
  // Why, where a step is negative; else empty.
  std::string_view note;
};

struct Waterfall {
  double achieved_mfu = 0;
  std::vector<WaterfallStep> steps;  // from the achieved MFU upwards
  Time remainder;
  double remainder_mfu = 0;
  // Why, where the remainder is negative; else empty.
  std::string_view remainder_note;
};

std::string_view CauseName(v1::Cause cause);

// Causes in the order in which they are switched off.
std::vector<v1::Cause> WaterfallCauses();

// The spec without shared and slow links.
v1::Run WithoutContention(const v1::Run& run);

// The spec of a step: `run`, which has no contention, without the first `steps` causes.
v1::Run RunOfStep(const v1::Run& run, std::size_t steps);

// `result` is what `run` gives.
absl::StatusOr<Waterfall> MakeWaterfall(const v1::Run& run, const training::Result& result);

}  // namespace orrery::reports

#endif  // ORRERY_REPORTS_WATERFALL_H_
