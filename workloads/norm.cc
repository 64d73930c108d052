#include "workloads/norm.h"

namespace orrery::workloads {
namespace {

// Bytes per element and kernels, see norm.h.
struct Cost {
  std::int64_t forward = 0;
  int forward_kernels = 0;
  std::int64_t backward = 0;
  int backward_kernels = 0;
  std::int64_t kept = 0;
};

Cost CostOf(const Shape& shape) {
  const std::int64_t e = shape.element_bytes;
  if (shape.norm == v1::LAYER_NORM) {
    // PyTorch has a kernel for layer norm; only the conversions around it are eager.
    if (shape.fused_norm || e == 4) return {2 * e, 1, 5 * e, 3, 0};
    return {2 * e + 16, 3, 2 * e + 28, 5, 4 - e};
  }
  if (shape.fused_norm) return {2 * e, 1, 5 * e, 3, 0};
  return {4 * e + 24, 8, 8 * e + 68, 15, 4};
}

Bytes PerElement(const Shape& shape, std::int64_t bytes) { return shape.region_bytes / shape.element_bytes * bytes; }

}  // namespace

Operator& NormForward(const Shape& shape, std::string_view name, bool keep, Recorder& out) {
  const Cost cost = CostOf(shape);
  Operator& op =
      out.AddMemoryBound(name, MemoryBoundClass::kNorm, PerElement(shape, cost.forward), cost.forward_kernels);
  op.allocates += shape.region_bytes;
  (keep ? op.allocates : op.workspace) += PerElement(shape, cost.kept);
  return op;
}

Operator& NormBackward(const Shape& shape, std::string_view name, Recorder& out) {
  const Cost cost = CostOf(shape);
  Operator& op =
      out.AddMemoryBound(name, MemoryBoundClass::kNorm, PerElement(shape, cost.backward), cost.backward_kernels);
  op.frees += PerElement(shape, cost.kept);
  return op;
}

}  // namespace orrery::workloads
