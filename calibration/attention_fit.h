// Constants of attention kernels from measured rows.
//
// Per kernel generation and data type the constants of sim/kernels/attention.h that the rows determine are found by a
// random search that minimises the mean |log(predicted / measured)|, from fixed starts with a slight pull
// to them; what the rows do not determine stays as the profile had it. A profile that is calibrated again with the same
// rows stays the same. Rows of a family (source, head dimension,
// length) stay together; a hash keeps a fifth of the families out, on which the result is judged. Same rows, same
// constants, on every machine. Attention without a fused kernel determines two classes of memory-bound kernels: softmax
// and strided.
#ifndef ORRERY_CALIBRATION_ATTENTION_FIT_H_
#define ORRERY_CALIBRATION_ATTENTION_FIT_H_

#include <string>
#include <vector>

#include "calibration/gemm_fit.h"
#include "calibration/measured_attention.h"
#include "orrery/v1/cluster.pb.h"

namespace orrery::calibration {

struct AttentionFit {
  std::string name;  // "FLASH_ATTENTION_2 FP16 BF16", or "UNFUSED"
  ErrorSummary fitted;
  ErrorSummary held_out;
  // Constants that the rows do not determine and that kept their value or ratio, each with the reason.
  std::vector<std::string> undetermined;
};

// Whether the row's family is kept out of every fit.
bool IsHeldOut(const MeasuredAttention& row);

// A copy of `base`, an entry of the accelerator's profile, with the constants that `rows` determine; rows of other
// kernels and data types are passed over. The fitted constants' sources say so, with rows and errors. `rows` must be
// measurements of this accelerator.
v1::AttentionProfile FitAttention(const v1::Accelerator& accelerator, const v1::AttentionProfile& base,
                                  const std::vector<MeasuredAttention>& rows, AttentionFit* fit);

// The same for `softmax` and `strided` of the accelerator's memory-bound kernels, by its GEMM prices and UNFUSED rows.
v1::MemoryBoundProfile FitUnfusedAttention(const v1::Accelerator& accelerator,
                                           const std::vector<MeasuredAttention>& rows, AttentionFit* fit);

// Both for all that the accelerator's profile holds, in its order and UNFUSED last.
std::vector<AttentionFit> CalibrateAttention(const std::vector<MeasuredAttention>& rows, v1::Accelerator* accelerator);

}  // namespace orrery::calibration

#endif  // ORRERY_CALIBRATION_ATTENTION_FIT_H_
