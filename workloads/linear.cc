#include "workloads/linear.h"

namespace orrery::workloads {
namespace {

// dW[outputs, inputs] (+)= dY[tokens, outputs]^T X[tokens, inputs], and the addition to the main gradient where it is a
// kernel of its own.
void WeightGradient(const Shape& shape, LinearNames names, std::int64_t outputs, std::int64_t inputs, Bytes freed,
                    Recorder& out) {
  out.set_pass(Pass::kWeightGradient);
  const bool fp32 = shape.gradient_bytes == 4;
  Operator& op = out.AddGemm(
      names.weight_gradient,
      {.m = outputs, .n = inputs, .k = shape.tokens, .accumulates_fp32 = shape.fused_weight_gradient && fp32});
  op.frees += freed;
  if (!shape.fused_weight_gradient) {
    const Bytes gradient(outputs * inputs * shape.element_bytes);
    op.workspace += gradient;
    out.AddElementwise("gradient accumulation", Bytes(outputs * inputs * AccumulationBytes(shape))).workspace +=
        gradient;
  }
  out.set_pass(Pass::kInputGradient);
}

}  // namespace

std::int64_t AccumulationBytes(const Shape& shape) {
  return shape.element_bytes + (shape.reduces_every_micro_batch ? 1 : 2) * shape.gradient_bytes;
}

void GatherInput(const Shape& shape, Recorder& out) {
  if (!shape.sequence_parallel) return;
  out.AddCollective("gather", CollectiveType::kAllGather, shape.hidden_bytes, shape.overlap_all ? 1 : 0).workspace +=
      shape.hidden_bytes;
}

Operator& ColumnForward(const Shape& shape, LinearNames names, std::int64_t outputs, Recorder& out) {
  Operator& op = out.AddGemm(names.forward, {.m = shape.tokens, .n = outputs, .k = shape.hidden});
  if (shape.sequence_parallel) op.workspace += shape.hidden_bytes;
  op.allocates += Bytes(shape.element_bytes * shape.tokens * outputs);
  return op;
}

void ColumnBackward(const Shape& shape, std::span<const ColumnLayer> layers, Bytes input, Recorder& out) {
  Bytes freed = input;
  if (shape.sequence_parallel) {
    // Korthikanti et al. 4.2.2: this gather runs beside the input gradient, which does not need it.
    out.AddCollective("gather for weight gradient", CollectiveType::kAllGather, shape.hidden_bytes, 1).allocates +=
        shape.hidden_bytes;
    freed += shape.hidden_bytes;
  }
  for (const ColumnLayer& layer : layers) {
    Operator& op = out.AddGemm(layer.names.input_gradient, {.m = shape.tokens, .n = shape.hidden, .k = layer.outputs});
    op.allocates += layer.adopted;
    if (&layer == &layers.front()) op.allocates += shape.hidden_bytes;  // the others add to it
  }
  const int overlaps = shape.overlap_backward ? 1 : 0;
  if (shape.sequence_parallel) {
    Operator& op = out.AddCollective("reduce-scatter", CollectiveType::kReduceScatter, shape.hidden_bytes, overlaps);
    op.allocates += shape.region_bytes;
    op.frees += shape.hidden_bytes;
  } else if (shape.tp > 1) {
    out.AddCollective("all-reduce", CollectiveType::kAllReduce, shape.hidden_bytes, overlaps);
  }
  for (const ColumnLayer& layer : layers) {
    Bytes frees = layer.output_gradient;
    if (&layer == &layers.back()) frees += freed;
    WeightGradient(shape, layer.names, layer.outputs, shape.hidden, frees, out);
  }
}

Operator& RowForward(const Shape& shape, LinearNames names, std::int64_t inputs, Recorder& out) {
  return out.AddGemm(names.forward, {.m = shape.tokens, .n = shape.hidden, .k = inputs});
}

void ReduceOutput(const Shape& shape, Recorder& out) {
  const int overlaps = shape.overlap_all ? -1 : 0;
  if (shape.sequence_parallel) {
    Operator& op = out.AddCollective("reduce-scatter", CollectiveType::kReduceScatter, shape.hidden_bytes, overlaps);
    op.allocates += shape.region_bytes;
    op.frees += shape.hidden_bytes;
  } else if (shape.tp > 1) {
    out.AddCollective("all-reduce", CollectiveType::kAllReduce, shape.hidden_bytes, overlaps);
  }
}

Bytes GatherOutputGradient(const Shape& shape, Bytes owned, Recorder& out) {
  if (!shape.sequence_parallel) return owned;
  Operator& op = out.AddCollective("gather of output gradient", CollectiveType::kAllGather, shape.hidden_bytes,
                                   shape.overlap_all ? 1 : 0);
  op.allocates += shape.hidden_bytes;
  op.frees += owned;
  return shape.hidden_bytes;
}

void RowBackward(const Shape& shape, LinearNames names, std::int64_t inputs, Bytes freed, Recorder& out) {
  out.AddGemm(names.input_gradient, {.m = shape.tokens, .n = inputs, .k = shape.hidden}).allocates +=
      Bytes(shape.element_bytes * shape.tokens * inputs);
  WeightGradient(shape, names, shape.hidden, inputs, freed, out);
}

}  // namespace orrery::workloads
