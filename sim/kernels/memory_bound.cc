#include "sim/kernels/memory_bound.h"

#include <algorithm>

namespace orrery::kernels {

using workloads::MemoryBoundClass;

MemoryBoundModel::MemoryBoundModel(const v1::Accelerator& accelerator)
    : floor_(accelerator.profile().kernel_floor().value()) {
  const v1::MemoryBoundProfile& profile = accelerator.profile().memory_bound();
  const double memory = accelerator.memory_bandwidth();
  // A chip whose cache is slower than its memory does not use it.
  const double cache = std::max(profile.cache_bandwidth().value(), memory);
  const auto set = [&](MemoryBoundClass memory_class, const v1::Constant& share, double cache_bytes) {
    rates_[static_cast<std::size_t>(memory_class)] = {1 / (memory * share.value()), 1 / (cache * share.value()),
                                                      cache_bytes};
  };
  const double cache_bytes = profile.cache_bytes().value();
  set(MemoryBoundClass::kElementwise, profile.elementwise(), cache_bytes);
  set(MemoryBoundClass::kActivation, profile.activation(), cache_bytes);
  set(MemoryBoundClass::kNorm, profile.norm(), cache_bytes);
  set(MemoryBoundClass::kSoftmax, profile.softmax(), cache_bytes);
  set(MemoryBoundClass::kOptimizer, profile.optimizer(), 0);
  set(MemoryBoundClass::kStrided, profile.strided(), cache_bytes);
}

double MemoryBoundModel::Seconds(MemoryBoundClass memory_class, Bytes traffic, int kernels) const {
  const Rates& rates = rates_[static_cast<std::size_t>(memory_class)];
  const auto bytes = static_cast<double>(traffic.count());
  const double cached = std::min(bytes, rates.cache_bytes * static_cast<double>(kernels));
  return static_cast<double>(kernels) * floor_ + (bytes - cached) * rates.memory + cached * rates.cache;
}

}  // namespace orrery::kernels
