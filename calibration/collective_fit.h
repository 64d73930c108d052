// Fits the constants of NCCL's times on one architecture (NcclTimes) to measured collectives.
//
// What is minimised is the mean of |ln(predicted / measured)|, and of a hundredth of its square, over the rows that the
// split lets a fit see, by a coordinate search from one fixed start and within fixed bounds, each of which is what the
// hardware could do at all; values are rounded to three digits. A constant that no row responds to stays the base's, as
// does `launch`, which only programs with a process per GPU show, and `channel_bandwidth` where no two rings (Simple)
// have different numbers of channels or cross different links: one node's sweep cannot tell it from `nvlink_share`.
#ifndef ORRERY_CALIBRATION_COLLECTIVE_FIT_H_
#define ORRERY_CALIBRATION_COLLECTIVE_FIT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/statistics.h"
#include "calibration/gemm_fit.h"
#include "calibration/measured_collectives.h"
#include "orrery/v1/nccl.pb.h"

namespace orrery::calibration {

// A fifth of all sweeps, a sweep being what one source measured of one operation on so many GPUs of a system.
bool IsHeldOut(const MeasuredCollective& row);
// What took no longer than hosts need to issue it says nothing about devices: a fit does not see it.
bool IsBoundByHost(const MeasuredCollective& row);

struct CollectiveFit {
  v1::NcclTimes times;
  ErrorSummary fitted, held_out;
  std::vector<Determination> constants;
};

// All rows must be of the architecture. INVALID_ARGUMENT names a row that the library could not carry out.
absl::StatusOr<CollectiveFit> FitCollectives(const v1::NcclTimes& base, const std::vector<MeasuredCollective>& rows);

}  // namespace orrery::calibration

#endif  // ORRERY_CALIBRATION_COLLECTIVE_FIT_H_
