#include "workloads/mlp.h"

#include "workloads/linear.h"

namespace orrery::workloads {
namespace {

struct Cost {
  int passes = 0;
  int kernels = 0;
};

Cost ForwardCost(const Shape& shape) {
  if (shape.fused_elementwise) return {shape.gated ? 3 : 2, 1};
  Cost cost = shape.activation == v1::SQUARED_RELU ? Cost{4, 2} : Cost{2, 1};
  if (shape.gated) cost = {cost.passes + 3, cost.kernels + 1};
  return cost;
}

Cost BackwardCost(const Shape& shape) {
  if (shape.fused_elementwise) return {shape.gated ? 5 : 3, 1};
  Cost cost = shape.activation == v1::SQUARED_RELU ? Cost{6, 2} : Cost{3, 1};
  if (shape.gated) cost = {cost.passes + 6 + 4, cost.kernels + 2 + 1};
  return cost;
}

// act(x U) as a tensor of its own.
Bytes OperandOfProduct(const Shape& shape) {
  return shape.gated && !shape.fused_elementwise ? shape.ffn_bytes : Bytes(0);
}

bool KeepsInput(const Shape& shape) {
  return shape.gated || shape.activation != v1::RELU || shape.recompute_activation;
}

void Activation(const Shape& shape, Retention keep, Recorder& out) {
  const Cost cost = ForwardCost(shape);
  Operator& op =
      out.AddMemoryBound("activation", MemoryBoundClass::kActivation, shape.ffn_bytes * cost.passes, cost.kernels);
  op.allocates += shape.ffn_bytes;
  (keep.activation ? op.allocates : op.workspace) += OperandOfProduct(shape);
  if (!keep.mlp || !KeepsInput(shape)) op.frees += shape.up_bytes;
}

}  // namespace

Operator& MlpUp(const Shape& shape, Recorder& out) { return ColumnForward(shape, kMlpUp, shape.up, out); }

Operator& MlpDown(const Shape& shape, Retention keep, Recorder& out) {
  Activation(shape, keep, out);
  Operator& down = RowForward(shape, kMlpDown, shape.ffn, out);
  if (!keep.activation) down.frees += shape.ffn_bytes;
  return down;
}

void MlpRecompute(const Shape& shape, Recorder& out) {
  if (!shape.recompute_mlp && !shape.recompute_activation) return;
  const Pass pass = out.pass();
  out.set_pass(Pass::kRecompute);
  if (shape.recompute_mlp) {
    // The whole module runs again, its last product and reduction included, though nobody reads their result.
    GatherInput(shape, out);
    MlpUp(shape, out);
    MlpDown(shape, {}, out).allocates += shape.hidden_bytes;
    ReduceOutput(shape, out);
    out.Last().frees += shape.region_bytes;
  } else {
    Activation(shape, {}, out);
  }
  out.set_pass(pass);
}

void MlpBackward(const Shape& shape, Bytes output_gradient, Recorder& out) {
  RowBackward(shape, kMlpDown, shape.ffn, output_gradient + shape.ffn_bytes, out);
  const Cost cost = BackwardCost(shape);
  Operator& op = out.AddMemoryBound("activation gradient", MemoryBoundClass::kActivation, shape.ffn_bytes * cost.passes,
                                    cost.kernels);
  op.allocates += shape.up_bytes;
  op.frees += shape.ffn_bytes + OperandOfProduct(shape);
  if (KeepsInput(shape)) op.frees += shape.up_bytes;
  if (shape.biases) out.AddElementwise("mlp bias gradient", shape.up_bytes);
}

}  // namespace orrery::workloads
