#include "workloads/layer.h"

#include <array>

#include "workloads/attention_block.h"
#include "workloads/linear.h"
#include "workloads/mlp.h"
#include "workloads/norm.h"

namespace orrery::workloads {
namespace {

void DropUnless(bool kept, Operator& op, Bytes bytes) {
  if (!kept) op.frees += bytes;
}

// x + dropout(y + bias). y (region_bytes) is freed; the mask is kept; the sum is allocated if another operator of the
// layer reads it, else it is the layer's output.
Operator& BiasDropoutAdd(const Shape& shape, Retention keep, bool last, Recorder& out) {
  // One kernel, or one for each of bias (where no GEMM adds it), dropout and sum: each reads its operands and writes
  // its result.
  int passes = 3;
  int kernels = 1;
  if (shape.eager_row_bias()) {
    passes += 2;
    ++kernels;
  }
  if (!shape.fused_elementwise && shape.dropout) {
    passes += 2;
    ++kernels;
  }
  if (!shape.fused_elementwise && shape.parallel_block) {  // the sum of both halves
    passes += 3;
    ++kernels;
  }
  const Bytes region = shape.region_bytes;
  Operator& op = out.AddElementwise("bias dropout add", region * passes + shape.mask_bytes, kernels);
  op.allocates += shape.mask_bytes + (last ? Bytes(0) : region);
  op.workspace += last ? region : Bytes(0);
  op.frees += region;
  DropUnless(keep.rest, op, shape.mask_bytes);
  return op;
}

// Gradient of dropout(y + bias): allocates the gradient of y where dropout makes it a tensor of its own; frees the
// mask. Returns the bytes of that tensor. Without dropout and bias there is no kernel.
Bytes DropoutBackward(const Shape& shape, Recorder& out) {
  const Bytes region = shape.region_bytes;
  // Dropout reads gradient and mask and writes; the bias's gradient sums over tokens.
  if (shape.dropout) {
    Operator& op = out.AddElementwise("dropout gradient", region * (shape.biases ? 3 : 2) + shape.mask_bytes,
                                      shape.biases ? 2 : 1);
    op.allocates += region;
    op.frees += shape.mask_bytes;
    return region;
  }
  if (shape.biases) out.AddElementwise("bias gradient", region);
  return Bytes(0);
}

// Norm, whose input is the layer's own unless it is the sum in the middle.
void InputNorm(const Shape& shape, Retention keep, Recorder& out) {
  Operator& op = NormForward(shape, "norm", keep.norms, out);
  if (keep.input) op.allocates += shape.region_bytes;
}

void QkvForward(const Shape& shape, Recorder& out) {
  ColumnForward(shape, kQkv, shape.qkv, out);
  // Eager linear layers have the bias in the GEMM.
  if (shape.biases && shape.fused_elementwise) {
    out.AddElementwise("qkv bias", shape.qkv_bytes * 2).workspace += shape.qkv_bytes;
  }
}

// Attention and its projection, the operator returned: the caller says who allocates the partial sums.
Operator& AttendAndProject(const Shape& shape, Retention keep, Recorder& out) {
  AttentionForward(shape, keep.core, out);
  Operator& op = RowForward(shape, kProjection, shape.width, out);
  DropUnless(keep.rest, op, shape.core_bytes + shape.width_bytes);  // Q, K, V, context
  return op;
}

void SerialForward(const Shape& shape, Retention keep, Recorder& out) {
  const Bytes region = shape.region_bytes;
  InputNorm(shape, keep, out);
  GatherInput(shape, out);
  QkvForward(shape, out);
  DropUnless(keep.norms, out.Last(), region);
  AttendAndProject(shape, keep, out).allocates += shape.hidden_bytes;
  ReduceOutput(shape, out);
  BiasDropoutAdd(shape, keep, /*last=*/false, out);
  NormForward(shape, "norm", keep.norms, out);  // its input is the sum above
  GatherInput(shape, out);
  DropUnless(keep.norms, MlpUp(shape, out), region);
  MlpDown(shape, keep, out).allocates += shape.hidden_bytes;
  ReduceOutput(shape, out);
  DropUnless(keep.rest, BiasDropoutAdd(shape, keep, /*last=*/true, out), region);  // the sum in the middle
}

void ParallelForward(const Shape& shape, Retention keep, Recorder& out) {
  InputNorm(shape, keep, out);
  GatherInput(shape, out);
  QkvForward(shape, out);
  DropUnless(keep.norms, MlpUp(shape, out), shape.region_bytes);
  AttendAndProject(shape, keep, out).allocates += shape.hidden_bytes;
  MlpDown(shape, keep, out);  // adds to the projection's output
  ReduceOutput(shape, out);
  BiasDropoutAdd(shape, keep, /*last=*/true, out);
}

// The output of a norm that the policy dropped. Its input is still there.
void NormRecompute(const Shape& shape, Recorder& out) {
  if (!shape.recompute_norms) return;
  out.set_pass(Pass::kRecompute);
  NormForward(shape, "norm", /*keep=*/true, out);
  out.set_pass(Pass::kInputGradient);
}

void AttentionPart(const Shape& shape, Recorder& out) {
  if (shape.recompute_core) AttentionRecompute(shape, out);
  AttentionBackward(shape, out);
  if (shape.biases) out.AddElementwise("qkv bias gradient", shape.qkv_bytes);
}

// Norm gradient, then the residual's: frees the gradient of the norm's output, the norm's input and the residual's
// gradient.
void CloseResidual(const Shape& shape, bool first, Recorder& out) {
  const Bytes region = shape.region_bytes;
  NormBackward(shape, "norm gradient", out).allocates += region;
  Operator& add = out.AddElementwise("residual gradient", region * 3);
  add.frees += region * 4;
  // The sum: kept for the other half of the layer, or handed to the layer before.
  (first ? add.workspace : add.allocates) += region;
}

void SerialBackward(const Shape& shape, Recorder& out) {
  const Bytes region = shape.region_bytes;
  const std::array<ColumnLayer, 1> up{{{kMlpUp, shape.up, shape.up_bytes}}};
  const std::array<ColumnLayer, 1> qkv{{{kQkv, shape.qkv, shape.qkv_bytes}}};
  // MLP half. The layer's output gradient becomes the residual's.
  out.AllocateWithNext(region);
  Bytes owned = DropoutBackward(shape, out);
  if (shape.recompute_mlp) NormRecompute(shape, out);
  MlpRecompute(shape, out);
  owned = GatherOutputGradient(shape, owned, out);
  MlpBackward(shape, owned, out);
  if (!shape.recompute_mlp) NormRecompute(shape, out);
  ColumnBackward(shape, up, region, out);
  CloseResidual(shape, /*first=*/false, out);
  // Attention half.
  owned = DropoutBackward(shape, out);
  owned = GatherOutputGradient(shape, owned, out);
  RowBackward(shape, kProjection, shape.width, owned + shape.width_bytes, out);
  AttentionPart(shape, out);
  NormRecompute(shape, out);
  ColumnBackward(shape, qkv, region, out);
  CloseResidual(shape, /*first=*/true, out);
}

void ParallelBackward(const Shape& shape, Recorder& out) {
  const Bytes region = shape.region_bytes;
  const std::array<ColumnLayer, 2> columns{{{kQkv, shape.qkv, shape.qkv_bytes}, {kMlpUp, shape.up, shape.up_bytes}}};
  out.AllocateWithNext(region);
  Bytes owned = DropoutBackward(shape, out);
  if (shape.recompute_mlp) NormRecompute(shape, out);
  MlpRecompute(shape, out);
  owned = GatherOutputGradient(shape, owned, out);
  MlpBackward(shape, Bytes(0), out);
  RowBackward(shape, kProjection, shape.width, owned + shape.width_bytes, out);
  AttentionPart(shape, out);
  if (!shape.recompute_mlp) NormRecompute(shape, out);
  ColumnBackward(shape, columns, region, out);
  CloseResidual(shape, /*first=*/true, out);
}

}  // namespace

void LayerForward(const Shape& shape, Retention keep, Recorder& out) {
  shape.parallel_block ? ParallelForward(shape, keep, out) : SerialForward(shape, keep, out);
}

void LayerBackward(const Shape& shape, Recorder& out) {
  if (shape.recompute == v1::FULL) {
    out.set_pass(Pass::kRecompute);
    LayerForward(shape, {.input = false}, out);
  }
  out.set_pass(Pass::kInputGradient);
  shape.parallel_block ? ParallelBackward(shape, out) : SerialBackward(shape, out);
}

}  // namespace orrery::workloads
