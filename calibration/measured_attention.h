// A measured attention kernel: one row of a table with the columns
//   source, gpu, kernel, pass (fwd, bwd, fwd+bwd), causal (0, 1), head_dim, head_dim_v, batch, heads_q, heads_kv,
//   seqlen, dtype (fp16, bf16, fp8), time_us, tflops
// FLOPs by the usual convention: 4 b h s^2 d forward, half of it with a causal mask, 2.5 times as many backward.
#ifndef ORRERY_CALIBRATION_MEASURED_ATTENTION_H_
#define ORRERY_CALIBRATION_MEASURED_ATTENTION_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/csv.h"
#include "orrery/v1/cluster.pb.h"
#include "sim/kernels/attention.h"
#include "workloads/operator.h"

namespace orrery::calibration {

struct MeasuredAttention {
  int line = 0;
  std::string source;
  std::string gpu;
  v1::DataType data_type = v1::FP16;
  workloads::Attention attention;  // kernel and shape; `backward` is false
  bool forward = true;             // which directions were timed
  bool backward = false;
  double seconds = 0;
  // Blank cells that were filled in, each "field = value".
  std::vector<std::string> assumptions;
};

// NOT_FOUND where the table lacks a column that is needed.
absl::Status CheckAttentionColumns(const CsvTable& table);
// One row. UNIMPLEMENTED names what has no model: a kernel, a head dimension of its own for values; INVALID_ARGUMENT a
// cell that cannot be read. Blank heads follow from time and rate.
absl::StatusOr<MeasuredAttention> ReadMeasuredAttention(const CsvTable& table, const CsvRow& row);

// Predicted seconds of the directions that were timed: fused kernels by their entry in the accelerator's profile, one
// launch each; UNFUSED as unfused_attention.h has it. UNIMPLEMENTED where the profile lacks kernel or data type.
absl::StatusOr<double> PredictAttention(const v1::Accelerator& accelerator, const MeasuredAttention& measured);

// The same by one model, each direction a launch of at least `floor` seconds.
double FusedAttentionSeconds(const kernels::AttentionModel& model, double floor, const MeasuredAttention& measured);

}  // namespace orrery::calibration

#endif  // ORRERY_CALIBRATION_MEASURED_ATTENTION_H_
