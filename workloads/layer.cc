#include "workloads/layer.h"

#include <array>

#include "workloads/attention_block.h"
#include "workloads/linear.h"

namespace orrery::workloads {
namespace {

// Frees what the pass does not keep after its last reader.
void Drop(Operator& op, Retention keep, Bytes bytes) {
  if (!keep.inner) op.frees += bytes;
}

// x + dropout(y + bias). y (region_bytes) is freed; the mask is kept; the sum is allocated if another operator of the
// layer reads it, else it is the layer's output.
Operator& BiasDropoutAdd(const Shape& shape, Retention keep, bool last, Recorder& out) {
  const Bytes region = shape.region_bytes;
  Operator& op = shape.fused_elementwise
                     ? out.AddElementwise("bias dropout add", region * 3 + shape.mask_bytes)
                     // bias, dropout, residual: each reads its operands and writes its result
                     : out.AddElementwise("bias dropout add", region * (shape.dropout ? 7 : 5) + shape.mask_bytes,
                                          shape.dropout ? 3 : 2);
  op.allocates = shape.mask_bytes + (last ? Bytes(0) : region);
  op.workspace = last ? region : Bytes(0);
  op.frees = region;
  Drop(op, keep, shape.mask_bytes);
  return op;
}

// Gradient of dropout(y + bias): allocates the gradient of y where dropout makes it a tensor of its own; frees the
// mask. Returns the bytes of that tensor.
Bytes DropoutBackward(const Shape& shape, Bytes allocates, Recorder& out) {
  const Bytes region = shape.region_bytes;
  // Dropout reads gradient and mask and writes; the bias's gradient sums over tokens.
  Operator& op = shape.dropout ? out.AddElementwise("dropout gradient", region * 3 + shape.mask_bytes, 2)
                               : out.AddElementwise("bias gradient", region);
  const Bytes own = shape.dropout ? region : Bytes(0);
  op.allocates = allocates + own;
  op.frees = shape.mask_bytes;
  return own;
}

void QkvForward(const Shape& shape, Recorder& out) {
  ColumnForward(shape, kQkv, 3 * shape.width, out);
  out.AddElementwise("qkv bias", shape.width_bytes * 6).workspace = shape.width_bytes * 3;
}

// Attention and its projection, the operator returned: the caller says who allocates the partial sums.
Operator& AttendAndProject(const Shape& shape, Retention keep, Recorder& out) {
  AttentionForward(shape, keep.core, out);
  Operator& op = RowForward(shape, kProjection, shape.width, out);
  Drop(op, keep, shape.width_bytes * 4);  // Q, K, V, context
  return op;
}

// Its output is GELU's input.
Operator& Up(const Shape& shape, Recorder& out) { return ColumnForward(shape, kMlpUp, shape.ffn, out); }

Operator& GeluAndDown(const Shape& shape, Retention keep, Recorder& out) {
  const Bytes inner = shape.ffn_bytes;
  Operator& gelu = shape.fused_elementwise
                       ? out.AddMemoryBound("bias gelu", MemoryBoundClass::kActivation, inner * 2)
                       : out.AddMemoryBound("bias gelu", MemoryBoundClass::kActivation, inner * 4, 2);
  gelu.allocates = inner;
  Drop(gelu, keep, inner);
  Operator& down = RowForward(shape, kMlpDown, shape.ffn, out);
  Drop(down, keep, inner);
  return down;
}

void SerialForward(const Shape& shape, Retention keep, Recorder& out) {
  const Bytes region = shape.region_bytes;
  Norm("norm", region, out).allocates = keep.input ? region * 2 : region;
  GatherInput(shape, out);
  QkvForward(shape, out);
  AttendAndProject(shape, keep, out).allocates = shape.hidden_bytes;
  ReduceOutput(shape, out);
  Drop(BiasDropoutAdd(shape, keep, /*last=*/false, out), keep, region);  // the first norm's output
  Norm("norm", region, out).allocates = region;                          // its input is the sum above
  GatherInput(shape, out);
  Drop(Up(shape, out), keep, region);
  GeluAndDown(shape, keep, out).allocates = shape.hidden_bytes;
  ReduceOutput(shape, out);
  Drop(BiasDropoutAdd(shape, keep, /*last=*/true, out), keep, region);  // the sum in the middle
}

void ParallelForward(const Shape& shape, Retention keep, Recorder& out) {
  const Bytes region = shape.region_bytes;
  Norm("norm", region, out).allocates = keep.input ? region * 2 : region;
  GatherInput(shape, out);
  QkvForward(shape, out);
  Drop(Up(shape, out), keep, region);
  AttendAndProject(shape, keep, out).allocates = shape.hidden_bytes;
  GeluAndDown(shape, keep, out);  // adds to the projection's output
  ReduceOutput(shape, out);
  BiasDropoutAdd(shape, keep, /*last=*/true, out);
}

// From the gradient of GELU's output to that of its input, in both blocks.
void GeluBackward(const Shape& shape, Recorder& out) {
  const Bytes inner = shape.ffn_bytes;
  Operator& op = out.AddMemoryBound("gelu gradient", MemoryBoundClass::kActivation, inner * 3);
  op.allocates = inner;
  op.frees = inner * 2;
  out.AddElementwise("mlp bias gradient", inner);
}

void AttentionPart(const Shape& shape, Recorder& out) {
  if (shape.recomputes_core()) AttentionRecompute(shape, out);
  AttentionBackward(shape, out);
  out.AddElementwise("qkv bias gradient", shape.width_bytes * 3);
}

// Norm gradient, then the residual's: frees the gradient of the norm's output, the norm's input and the residual's
// gradient.
void CloseResidual(const Shape& shape, bool first, Recorder& out) {
  const Bytes region = shape.region_bytes;
  NormBackward("norm gradient", region, out).allocates = region;
  Operator& add = out.AddElementwise("residual gradient", region * 3);
  add.frees = region * 4;
  // The sum: kept for the other half of the layer, or handed to the layer before.
  add.allocates = first ? Bytes(0) : region;
  add.workspace = first ? region : Bytes(0);
}

void SerialBackward(const Shape& shape, Recorder& out) {
  const Bytes region = shape.region_bytes;
  const std::array<ColumnLayer, 1> up{{{kMlpUp, shape.ffn, shape.ffn_bytes}}};
  const std::array<ColumnLayer, 1> qkv{{{kQkv, 3 * shape.width, shape.width_bytes * 3}}};
  // MLP half. The layer's output gradient becomes the residual's.
  Bytes owned = DropoutBackward(shape, region, out);
  owned = GatherOutputGradient(shape, owned, out);
  RowBackward(shape, kMlpDown, shape.ffn, owned + shape.ffn_bytes, out);
  GeluBackward(shape, out);
  ColumnBackward(shape, up, region, out);
  CloseResidual(shape, /*first=*/false, out);
  // Attention half.
  owned = DropoutBackward(shape, Bytes(0), out);
  owned = GatherOutputGradient(shape, owned, out);
  RowBackward(shape, kProjection, shape.width, owned + shape.width_bytes, out);
  AttentionPart(shape, out);
  ColumnBackward(shape, qkv, region, out);
  CloseResidual(shape, /*first=*/true, out);
}

void ParallelBackward(const Shape& shape, Recorder& out) {
  const Bytes region = shape.region_bytes;
  const std::array<ColumnLayer, 2> columns{
      {{kQkv, 3 * shape.width, shape.width_bytes * 3}, {kMlpUp, shape.ffn, shape.ffn_bytes}}};
  Bytes owned = DropoutBackward(shape, region, out);
  owned = GatherOutputGradient(shape, owned, out);
  RowBackward(shape, kMlpDown, shape.ffn, shape.ffn_bytes, out);
  GeluBackward(shape, out);
  RowBackward(shape, kProjection, shape.width, owned + shape.width_bytes, out);
  AttentionPart(shape, out);
  ColumnBackward(shape, columns, region, out);
  CloseResidual(shape, /*first=*/true, out);
}

}  // namespace

Retention ForwardRetention(const Shape& shape) {
  const bool full = shape.recompute == v1::FULL;
  return {.input = true, .core = !full && !shape.recomputes_core(), .inner = !full};
}

Operator& Norm(std::string_view name, Bytes region, Recorder& out) {
  return out.AddMemoryBound(name, MemoryBoundClass::kNorm, region * 2);
}

Operator& NormBackward(std::string_view name, Bytes region, Recorder& out) {
  // The input's gradient reads the output's and the input and writes one; the weights' gradients read both again, in
  // two stages.
  return out.AddMemoryBound(name, MemoryBoundClass::kNorm, region * 5, 3);
}

void LayerForward(const Shape& shape, Retention keep, Recorder& out) {
  shape.parallel_block ? ParallelForward(shape, keep, out) : SerialForward(shape, keep, out);
}

void LayerBackward(const Shape& shape, Recorder& out) {
  if (shape.recompute == v1::FULL) {
    out.set_pass(Pass::kRecompute);
    LayerForward(shape, {.input = false, .core = true, .inner = true}, out);
  }
  out.set_pass(Pass::kInputGradient);
  shape.parallel_block ? ParallelBackward(shape, out) : SerialBackward(shape, out);
}

}  // namespace orrery::workloads
