// Time of a kernel that is bound by memory: an element-wise operation, a norm, a softmax, an optimizer update.
//
//   time = n (floor + (D / m + C / l) / e),   C = min(c, bytes / n),   D = bytes / n - C
// for n launches that move `bytes` together. m is the nominal memory bandwidth, e the share of it that kernels of the
// class reach on large tensors. Of what a kernel moves, up to c bytes are in the cache, because the kernel before wrote
// them or because nothing has to wait for the write, and move at the cache's bandwidth l. The floor, the shortest
// kernel that there is, fills and drains the chip and so adds to every kernel: small tensors reach a small share.
// Optimizer states were not touched before: c = 0.
#ifndef ORRERY_SIM_KERNELS_MEMORY_BOUND_H_
#define ORRERY_SIM_KERNELS_MEMORY_BOUND_H_

#include <array>

#include "base/units.h"
#include "orrery/v1/cluster.pb.h"
#include "workloads/operator.h"

namespace orrery::kernels {

class MemoryBoundModel {
 public:
  explicit MemoryBoundModel(const v1::Accelerator& accelerator);

  // `traffic` is read and written by `kernels` launches together. Monotone in both.
  double Seconds(workloads::MemoryBoundClass memory_class, Bytes traffic, int kernels) const;

 private:
  struct Rates {
    double memory = 0;       // seconds per byte
    double cache = 0;        // seconds per byte
    double cache_bytes = 0;  // per launch
  };

  double floor_ = 0;  // seconds
  std::array<Rates, workloads::kMemoryBoundClasses> rates_;
};

}  // namespace orrery::kernels

#endif  // ORRERY_SIM_KERNELS_MEMORY_BOUND_H_
