// How long one kernel takes on one accelerator: GEMMs by tiles and waves (gemm.h), fused attention by kernel generation
// (attention.h), everything else by bytes (memory_bound.h), and never less than the launch floor per kernel.
#ifndef ORRERY_SIM_KERNELS_KERNEL_PRICES_H_
#define ORRERY_SIM_KERNELS_KERNEL_PRICES_H_

#include <array>
#include <optional>

#include "base/units.h"
#include "orrery/v1/run.pb.h"
#include "sim/kernels/attention.h"
#include "sim/kernels/gemm.h"
#include "sim/kernels/memory_bound.h"
#include "workloads/operator.h"

namespace orrery::kernels {

// Immutable after construction; prices may be asked for from any thread.
class KernelPrices {
 public:
  // `accelerator` must be resolved and hold a peak for `precision`, and a profile with an entry for every attention
  // kernel that is priced.
  KernelPrices(const v1::Accelerator& accelerator, v1::DataType precision);

  // Seconds on the device of an operator that is not a collective; `kernels` launches at least the launch floor each.
  double Seconds(const workloads::Operator& op) const;

  // Whether memory bandwidth decides that time, not multiprocessors.
  bool IsMemoryBound(const workloads::Operator& op) const;

  // The same at the accelerator's peak rate: FLOPs / peak, nothing for memory-bound work. (Waterfall: no kernel
  // losses.)
  double SecondsAtPeak(const workloads::Operator& op) const;

  // An optimizer update that moves `traffic` bytes in `kernels` launches.
  double OptimizerSeconds(Bytes traffic, int kernels) const;

  FlopsPerSecond peak() const { return peak_; }

 private:
  FlopsPerSecond peak_;
  double kernel_floor_ = 0;  // seconds
  GemmModel gemm_;
  std::array<std::optional<AttentionModel>, v1::AttentionKernel_ARRAYSIZE> attention_;
  MemoryBoundModel memory_bound_;
};

}  // namespace orrery::kernels

#endif  // ORRERY_SIM_KERNELS_KERNEL_PRICES_H_
