#include "sim/kernels/kernel_prices.h"

#include <algorithm>

#include "base/check.h"

namespace orrery::kernels {
namespace {

using workloads::OperatorKind;

FlopsPerSecond PeakOf(const v1::Accelerator& accelerator, v1::DataType precision) {
  for (const v1::PeakRate& peak : accelerator.peak()) {
    if (peak.data_type() == precision) return FlopsPerSecond(peak.flops_per_second());
  }
  return FlopsPerSecond(0);
}

bool Serves(const google::protobuf::RepeatedField<int>& types, v1::DataType type) {
  return std::find(types.begin(), types.end(), static_cast<int>(type)) != types.end();
}

const v1::GemmProfile& GemmProfileOf(const v1::Accelerator& accelerator, v1::DataType precision) {
  for (const v1::GemmProfile& entry : accelerator.profile().gemm()) {
    if (Serves(entry.data_types(), precision)) return entry;
  }
  ORRERY_CHECK(false);
}

// What the matrix units' peak is worth under continuous load.
FlopsPerSecond SustainedPeak(const v1::Accelerator& accelerator, v1::DataType precision) {
  const double sustained = GemmProfileOf(accelerator, precision).sustained().value();
  return FlopsPerSecond(PeakOf(accelerator, precision).count() * sustained);
}

}  // namespace

KernelPrices::KernelPrices(const v1::Accelerator& accelerator, v1::DataType precision)
    : peak_(PeakOf(accelerator, precision)),
      kernel_floor_(accelerator.profile().kernel_floor().value()),
      gemm_(accelerator, GemmProfileOf(accelerator, precision), SustainedPeak(accelerator, precision),
            OperandBytes(precision)),
      memory_bound_(accelerator) {
  ORRERY_CHECK(peak_.count() > 0);
  for (const v1::AttentionProfile& profile : accelerator.profile().attention()) {
    if (!Serves(profile.data_types(), precision)) continue;
    attention_[static_cast<std::size_t>(profile.kernel())].emplace(profile, accelerator.sms(), peak_);
  }
}

double KernelPrices::Seconds(const workloads::Operator& op) const {
  switch (op.kind) {
    case OperatorKind::kGemm:
      return std::max(gemm_.Seconds(op.gemm), kernel_floor_);
    case OperatorKind::kAttention: {
      const std::optional<AttentionModel>& model = attention_[static_cast<std::size_t>(op.attention.kernel)];
      ORRERY_CHECK(model.has_value());
      return model->Seconds(op.attention) + static_cast<double>(op.kernels) * kernel_floor_;
    }
    case OperatorKind::kMemoryBound:
      return memory_bound_.Seconds(op.memory_bound.memory_class, op.memory_bound.traffic, op.kernels);
    case OperatorKind::kCollective:
      break;
  }
  ORRERY_CHECK(false && "collectives have no kernel price");
  return 0;
}

bool KernelPrices::IsMemoryBound(const workloads::Operator& op) const {
  if (op.kind == OperatorKind::kGemm) return gemm_.IsMemoryBound(op.gemm);
  return op.kind == OperatorKind::kMemoryBound;
}

double KernelPrices::SecondsAtPeak(const workloads::Operator& op) const { return SecondsAt(op.flops, peak_); }

double KernelPrices::OptimizerSeconds(Bytes traffic, int kernels) const {
  return memory_bound_.Seconds(workloads::MemoryBoundClass::kOptimizer, traffic, kernels);
}

}  // namespace orrery::kernels
