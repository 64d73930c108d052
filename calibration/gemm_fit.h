// Fits the constants of one GEMM entry of a profile to measured kernels.
//
// What is minimised is the mean of |ln(predicted / measured)|, and of a hundredth of its square, over the rows that the
// split lets a fit see and that take kShortKernel or longer, by coordinate searches: every constant in turn is moved up
// and down by a share that shrinks until nothing improves, from a few fixed starts and within fixed bounds; the best
// search counts. The answer depends on the rows alone, neither on the base's values nor on the order of constants in
// it; values are rounded to three digits. With fewer than kManyRows rows only `efficiency` is fitted, with none
// nothing; what is not fitted comes from the base with its source.
#ifndef ORRERY_CALIBRATION_GEMM_FIT_H_
#define ORRERY_CALIBRATION_GEMM_FIT_H_

#include <set>
#include <string>
#include <vector>

#include "base/statistics.h"
#include "calibration/measured.h"
#include "orrery/v1/cluster.pb.h"

namespace orrery::calibration {

// How well the rows determine a constant that was fitted.
struct Determination {
  std::string constant;
  // By how much what is minimised grows when the constant alone moves 10 % up or down, the smaller of both.
  double growth = 0;
  bool determined() const { return growth >= kDetermined; }
  static constexpr double kDetermined = 0.0001;
};

struct FitGroup {
  std::string name;  // gpu, dtype and library, as the table has them
  ErrorSummary fitted, held_out, too_short;
};

struct GemmFit {
  v1::GemmProfile profile;
  // Of kShortKernel and longer, as a fit sees them and held out; and the shorter ones of both.
  ErrorSummary fitted, held_out, too_short;
  std::vector<FitGroup> groups;  // in order of first appearance
  std::vector<Determination> constants;
};

// `rows` are those that this entry serves on this accelerator, which must hold a peak for its first type. Constants
// named in `keep` stay as the base has them.
GemmFit FitGemm(const v1::Accelerator& accelerator, const v1::GemmProfile& base, const std::vector<MeasuredGemm>& rows,
                const std::set<std::string>& keep = {});

// Names of the constants that a fit may change.
std::vector<std::string> FittedGemmConstants();

// Rows that make a fit of every constant.
inline constexpr int kManyRows = 100;

}  // namespace orrery::calibration

#endif  // ORRERY_CALIBRATION_GEMM_FIT_H_
