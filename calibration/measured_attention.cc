#include "calibration/measured_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "calibration/measured.h"
#include "sim/kernels/kernel_prices.h"
#include "sim/kernels/unfused_attention.h"

namespace orrery::calibration {
namespace {

// Names under which tables list the kernel generations. Others are builds of their own (early, deterministic, variable
// length, a later compiler) and have no profile.
struct KernelName {
  std::string_view name;
  v1::AttentionKernel kernel;
};
constexpr std::array kKernels = {
    KernelName{"torch_std", v1::UNFUSED},       KernelName{"FA1", v1::FLASH_ATTENTION_1},
    KernelName{"FA2", v1::FLASH_ATTENTION_2},   KernelName{"FA3", v1::FLASH_ATTENTION_3},
    KernelName{"FA4", v1::FLASH_ATTENTION_4},   KernelName{"FA4 2CTA", v1::FLASH_ATTENTION_4},
    KernelName{"Triton", v1::TRITON_ATTENTION}, KernelName{"cuDNN", v1::CUDNN_ATTENTION},
};

constexpr std::int64_t kLargestSize = 100'000'000;
constexpr double kShortestMicroseconds = 1e-3;
constexpr double kLongestMicroseconds = 1e9;
constexpr double kLowestRate = 1e-6;
constexpr double kHighestRate = 1e9;  // TFLOP/s
constexpr double kMicrosecond = 1e-6;
constexpr double kTeraflop = 1e12;

absl::Status BadCell(const CsvTable& table, const CsvRow& row, std::string_view column, std::string_view allowed) {
  return absl::InvalidArgumentError(absl::StrCat(table.name(), ":", row.line, ": ", std::string(column), ": \"",
                                                 std::string(Cell(table, row, column)),
                                                 "\"; allowed: ", std::string(allowed)));
}

absl::Status ReadKernel(const CsvTable& table, const CsvRow& row, MeasuredAttention* measured) {
  const std::string_view kernel = Cell(table, row, "kernel");
  const auto* named =
      std::find_if(kKernels.begin(), kKernels.end(), [&](const KernelName& k) { return k.name == kernel; });
  if (named == kKernels.end()) return absl::UnimplementedError(absl::StrCat("kernel ", std::string(kernel)));
  measured->attention.kernel = named->kernel;
  const std::string_view dtype = Cell(table, row, "dtype");
  const std::optional<v1::DataType> type = DataTypeOf(dtype);
  if (!type.has_value()) return absl::UnimplementedError(absl::StrCat("data type ", std::string(dtype)));
  measured->data_type = *type;
  const std::string_view pass = Cell(table, row, "pass");
  if (pass != "fwd" && pass != "bwd" && pass != "fwd+bwd") return BadCell(table, row, "pass", "fwd, bwd, fwd+bwd");
  measured->forward = pass != "bwd";
  measured->backward = pass != "fwd";
  const std::string_view causal = Cell(table, row, "causal");
  if (causal != "0" && causal != "1") return BadCell(table, row, "causal", "0, 1");
  measured->attention.causal = causal == "1";
  return absl::OkStatus();
}

absl::Status ReadShape(const CsvTable& table, const CsvRow& row, MeasuredAttention* measured) {
  workloads::Attention& attention = measured->attention;
  ABSL_ASSIGN_OR_RETURN(attention.head_dim, PositiveInteger(table, row, "head_dim", kLargestSize));
  if (!Cell(table, row, "head_dim_v").empty() && Cell(table, row, "head_dim_v") != Cell(table, row, "head_dim")) {
    return absl::UnimplementedError("a head dimension of its own for values");
  }
  ABSL_ASSIGN_OR_RETURN(attention.batch, PositiveInteger(table, row, "batch", kLargestSize));
  ABSL_ASSIGN_OR_RETURN(attention.q, PositiveInteger(table, row, "seqlen", kLargestSize));
  attention.kv = attention.q;
  if (!Cell(table, row, "heads_q").empty()) {
    ABSL_ASSIGN_OR_RETURN(attention.heads, PositiveInteger(table, row, "heads_q", kLargestSize));
    return absl::OkStatus();
  }
  ABSL_ASSIGN_OR_RETURN(const double rate, PositiveNumber(table, row, "tflops", kLowestRate, kHighestRate));
  const auto length = static_cast<double>(attention.q);
  const double units = (measured->forward ? 4.0 : 0.0) + (measured->backward ? 10.0 : 0.0);
  const double per_head = units * static_cast<double>(attention.batch) * length * length *
                          static_cast<double>(attention.head_dim) / (attention.causal ? 2 : 1);
  const double heads = std::round(rate * kTeraflop * measured->seconds / per_head);
  if (!(heads >= 1 && heads <= static_cast<double>(kLargestSize))) {
    return BadCell(table, row, "tflops", "the rate that time_us makes of the shape");
  }
  attention.heads = static_cast<std::int64_t>(heads);
  measured->assumptions.push_back(absl::StrCat("heads_q = ", attention.heads));
  return absl::OkStatus();
}

// Sums `seconds` over the directions that were timed.
template <typename Seconds>
double OverDirections(const MeasuredAttention& measured, const Seconds& seconds) {
  double total = 0;
  for (const bool backward : {false, true}) {
    if (!(backward ? measured.backward : measured.forward)) continue;
    workloads::Attention attention = measured.attention;
    attention.backward = backward;
    total += seconds(attention);
  }
  return total;
}

}  // namespace

absl::Status CheckAttentionColumns(const CsvTable& table) {
  for (const char* column :
       {"source", "gpu", "kernel", "pass", "causal", "head_dim", "batch", "heads_q", "seqlen", "dtype", "time_us"}) {
    ABSL_RETURN_IF_ERROR(table.Column(column).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<MeasuredAttention> ReadMeasuredAttention(const CsvTable& table, const CsvRow& row) {
  MeasuredAttention measured;
  measured.line = row.line;
  measured.source = Cell(table, row, "source");
  measured.gpu = Cell(table, row, "gpu");
  ABSL_ASSIGN_OR_RETURN(const double microseconds,
                        PositiveNumber(table, row, "time_us", kShortestMicroseconds, kLongestMicroseconds));
  measured.seconds = microseconds * kMicrosecond;
  ABSL_RETURN_IF_ERROR(ReadKernel(table, row, &measured));
  ABSL_RETURN_IF_ERROR(ReadShape(table, row, &measured));
  const workloads::Attention& shape = measured.attention;
  const double scores = static_cast<double>(shape.batch) * static_cast<double>(shape.heads) *
                        static_cast<double>(shape.q) * static_cast<double>(shape.kv);
  constexpr double kMostScores = 1e17;  // their bytes are counted in 64 bits
  if (scores > kMostScores) return BadCell(table, row, "seqlen", "at most 1e17 scores");
  return measured;
}

double FusedAttentionSeconds(const kernels::AttentionModel& model, double floor, const MeasuredAttention& measured) {
  return OverDirections(measured,
                        [&](const workloads::Attention& attention) { return model.Seconds(attention) + floor; });
}

absl::StatusOr<double> PredictAttention(const v1::Accelerator& accelerator, const MeasuredAttention& measured) {
  const std::string type = v1::DataType_Name(measured.data_type);
  const auto serves = [&](const google::protobuf::RepeatedField<int>& types) {
    return std::find(types.begin(), types.end(), static_cast<int>(measured.data_type)) != types.end();
  };
  if (PeakOf(accelerator, measured.data_type).count() <= 0) {
    return absl::UnimplementedError(absl::StrCat(type, " on ", accelerator.name()));
  }
  if (measured.attention.kernel == v1::UNFUSED) {
    const auto& gemms = accelerator.profile().gemm();
    if (std::none_of(gemms.begin(), gemms.end(), [&](const auto& entry) { return serves(entry.data_types()); })) {
      return absl::UnimplementedError(absl::StrCat("GEMM times for ", type, " on ", accelerator.name()));
    }
    const kernels::KernelPrices prices(accelerator, measured.data_type);
    return OverDirections(measured, [&](const workloads::Attention& attention) {
      return kernels::UnfusedAttentionSeconds(prices, attention);
    });
  }
  for (const v1::AttentionProfile& entry : accelerator.profile().attention()) {
    if (entry.kernel() != measured.attention.kernel || !serves(entry.data_types())) continue;
    if (*std::max_element(entry.head_dims().begin(), entry.head_dims().end()) < measured.attention.head_dim) {
      return absl::UnimplementedError(absl::StrCat("heads of ", measured.attention.head_dim, " elements"));
    }
    const kernels::AttentionModel model(entry, accelerator.sms(), PeakOf(accelerator, measured.data_type));
    return FusedAttentionSeconds(model, accelerator.profile().kernel_floor().value(), measured);
  }
  return absl::UnimplementedError(
      absl::StrCat(v1::AttentionKernel_Name(measured.attention.kernel), " for ", type, " on ", accelerator.name()));
}

}  // namespace orrery::calibration
