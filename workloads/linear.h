// Tensor-parallel linear layers (Shoeybi et al. 2019, section 3; with sequence parallelism Korthikanti et al. 2022,
// section 4.2.2).
//
// Column-parallel (QKV, MLP up, output head): every rank holds a slice of the outputs, the input is whole. Forward:
// with sequence parallelism the input is gathered first. Backward: the input's gradient is a sum over ranks:
// all-reduced, or reduce-scattered; with sequence parallelism the input, kept as this rank's slice, is gathered once
// more for the weight gradient. Row-parallel (projection, MLP down): every rank holds a slice of the inputs, the output
// is a sum over ranks: all-reduced, or reduce-scattered; its gradient is gathered with sequence parallelism.
//
// Gradient temporaries are allocated by the operator that writes them and freed by the last that reads them; the
// weight-gradient GEMM frees its input and its output's gradient, so that a split backward pass keeps both until then.
#ifndef ORRERY_WORKLOADS_LINEAR_H_
#define ORRERY_WORKLOADS_LINEAR_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "workloads/recorder.h"
#include "workloads/shape.h"

namespace orrery::workloads {

struct LinearNames {
  std::string_view forward;
  std::string_view input_gradient;
  std::string_view weight_gradient;
};
inline constexpr LinearNames kQkv{"qkv", "qkv input gradient", "qkv weight gradient"};
inline constexpr LinearNames kProjection{"projection", "projection input gradient", "projection weight gradient"};
inline constexpr LinearNames kMlpUp{"mlp up", "mlp up input gradient", "mlp up weight gradient"};
inline constexpr LinearNames kMlpDown{"mlp down", "mlp down input gradient", "mlp down weight gradient"};
inline constexpr LinearNames kHead{"head", "head input gradient", "head weight gradient"};

// A column-parallel layer in its backward pass.
struct ColumnLayer {
  LinearNames names;
  std::int64_t outputs = 0;  // of this rank
  Bytes output_gradient;     // freed with its weight gradient
  Bytes adopted =
      Bytes(0);  // of it, what the input gradient's GEMM is said to allocate: written in place of the output
};

// Bytes per weight of what follows a weight gradient that no GEMM accumulates: it is added to the main gradient, or
// copied to where it is reduced from.
std::int64_t AccumulationBytes(const Shape& shape);

// Gathers the input of a column-parallel layer where it is sharded along the sequence.
void GatherInput(const Shape& shape, Recorder& out);
// tokens x outputs from an input of width h; with sequence parallelism the gathered input is temporary.
Operator& ColumnForward(const Shape& shape, LinearNames names, std::int64_t outputs, Recorder& out);
// Layers that share one input (`input` bytes kept), the gradients of which add up: one gather, one reduction. Leaves
// the gradient of the input, region_bytes, allocated.
void ColumnBackward(const Shape& shape, std::span<const ColumnLayer> layers, Bytes input, Recorder& out);

// tokens x h partial sums from an input of width `inputs`.
Operator& RowForward(const Shape& shape, LinearNames names, std::int64_t inputs, Recorder& out);
// Sums the partial output(s) over ranks: leaves region_bytes allocated, frees the partial sums.
void ReduceOutput(const Shape& shape, Recorder& out);
// Gathers the gradient of the output where it is sharded. `owned` bytes hold it now (0: it is somebody else's tensor);
// returns what the weight gradient that reads it last has to free.
Bytes GatherOutputGradient(const Shape& shape, Bytes owned, Recorder& out);
// Gradient of input (allocated: tokens x inputs) and weight (frees `freed`).
void RowBackward(const Shape& shape, LinearNames names, std::int64_t inputs, Bytes freed, Recorder& out);

}  // namespace orrery::workloads

#endif  // ORRERY_WORKLOADS_LINEAR_H_
