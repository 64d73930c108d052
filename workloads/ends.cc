#include "workloads/ends.h"

#include <array>

#include "workloads/layer.h"
#include "workloads/linear.h"

namespace orrery::workloads {
namespace {

constexpr std::int64_t kTokenIdBytes = 8;

Bytes TokenIds(const Shape& shape) { return Bytes(kTokenIdBytes * shape.tokens); }

// One fp32 number per token, over the tensor-parallel group.
void ReducePerToken(const Shape& shape, std::string_view name, Recorder& out) {
  if (shape.tp > 1) out.AddCollective(name, CollectiveType::kAllReduce, Bytes(4 * shape.tokens), 0);
}

// Elements of this rank's logits.
std::int64_t Logits(const Shape& shape) { return shape.tokens * shape.vocab; }

Operator& LossKernel(std::string_view name, const Shape& shape, std::int64_t bytes_per_logit, int kernels,
                     Recorder& out) {
  Operator& op = out.AddElementwise(name, Bytes(bytes_per_logit * Logits(shape)), kernels);
  op.activation_class = ActivationClass::kLogits;
  return op;
}

}  // namespace

void EmbeddingForward(const Shape& shape, Recorder& out) {
  const Bytes region = shape.region_bytes;
  out.AddElementwise("token embedding", shape.hidden_bytes * 2 + TokenIds(shape), 2).allocates =
      shape.hidden_bytes + TokenIds(shape);
  ReduceOutput(shape, out);
  Operator& op = out.AddElementwise("position embedding and dropout",
                                    region * (shape.dropout ? 5 : 3) + shape.mask_bytes, shape.dropout ? 2 : 1);
  op.allocates = shape.mask_bytes;
  op.frees = region;
  op.workspace = region;
}

void EmbeddingBackward(const Shape& shape, Recorder& out) {
  out.set_pass(Pass::kInputGradient);
  const Bytes region = shape.region_bytes;
  Operator& dropout = shape.dropout ? out.AddElementwise("embedding dropout gradient", region * 2 + shape.mask_bytes)
                                    : out.AddElementwise("embedding gradient", region);
  dropout.allocates = region;
  dropout.frees = shape.mask_bytes;
  const Bytes gathered = GatherOutputGradient(shape, region, out);
  // A dense gradient of the table is zeroed, the tokens' rows are added to it, and it is added to the main gradient;
  // the positions' sums over the batch come with it.
  out.set_pass(Pass::kWeightGradient);
  const std::int64_t table = shape.vocab * shape.hidden;
  Operator& op = out.AddElementwise(
      "embedding weight gradient",
      Bytes(table * (2 * shape.element_bytes + 2 * shape.gradient_bytes)) + shape.hidden_bytes * 4, 4);
  op.workspace = Bytes(table * shape.element_bytes);
  op.frees = gathered + TokenIds(shape);
}

void HeadForward(const Shape& shape, Recorder& out) {
  Norm("final norm", shape.region_bytes, out).allocates = shape.region_bytes * 2;
  GatherInput(shape, out);
  ColumnForward(shape, kHead, shape.vocab, out).activation_class = ActivationClass::kLogits;
  // Conversion to fp32 (e + 4 bytes per logit) and a pass for the maximum (4).
  LossKernel("loss: largest logit", shape, shape.element_bytes + 8, 2, out).allocates = Bytes(4 * Logits(shape));
  ReducePerToken(shape, "all-reduce of largest logit", out);
  // Subtraction, exponential (8 each, in place) and sum (4); the predicted logit is picked between them.
  LossKernel("loss: exponentials", shape, 20, 5, out);
  ReducePerToken(shape, "all-reduce of predicted logit", out);
  ReducePerToken(shape, "all-reduce of sum of exponentials", out);
  LossKernel("loss: softmax", shape, 8, 3, out);
}

void HeadBackward(const Shape& shape, Recorder& out) {
  out.set_pass(Pass::kInputGradient);
  const Bytes region = shape.region_bytes;
  const Bytes gradient(shape.element_bytes * Logits(shape));
  const Bytes softmax(4 * Logits(shape));
  // Softmax minus one-hot, times the loss's gradient, in place.
  LossKernel("loss gradient", shape, 8, 2, out).frees = gradient + softmax;
  // Its conversion to 16 bit outlives the logits: from here on it is an activation like any other.
  Operator& convert = out.AddElementwise("logits gradient", gradient + softmax);
  convert.workspace = softmax;
  convert.allocates = gradient;
  const std::array<ColumnLayer, 1> head{{{kHead, shape.vocab, gradient}}};
  ColumnBackward(shape, head, region, out);
  Operator& norm = NormBackward("final norm gradient", region, out);
  norm.frees = region * 2;  // its output's gradient and its input
  norm.workspace = region;  // the last layer's output gradient
}

}  // namespace orrery::workloads
