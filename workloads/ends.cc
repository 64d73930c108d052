#include "workloads/ends.h"

#include <array>

#include "workloads/linear.h"
#include "workloads/norm.h"

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

// Sequence of Megatron-LM's vocabulary-parallel loss.
void UnfusedLoss(const Shape& shape, Recorder& out) {
  // Conversion to fp32 (e + 4 bytes per logit) and a pass for the maximum (4).
  LossKernel("loss: largest logit", shape, shape.element_bytes + 8, 2, out).allocates += Bytes(4 * Logits(shape));
  ReducePerToken(shape, "all-reduce of largest logit", out);
  // Subtraction, exponential (8 each, in place) and sum (4); the predicted logit is picked between them.
  LossKernel("loss: exponentials", shape, 20, 5, out);
  ReducePerToken(shape, "all-reduce of predicted logit", out);
  ReducePerToken(shape, "all-reduce of sum of exponentials", out);
  LossKernel("loss: softmax", shape, 8, 3, out);
}

void FusedLoss(const Shape& shape, Recorder& out) {
  LossKernel("loss", shape, 2 * shape.element_bytes, 1, out);
  ReducePerToken(shape, "all-reduce of largest logit", out);
  ReducePerToken(shape, "all-reduce of predicted logit", out);
  ReducePerToken(shape, "all-reduce of sum of exponentials", out);
}

// Frees what the loss kept. Returns how much of the gradient of the logits the operator after has to allocate.
Bytes LossBackward(const Shape& shape, Recorder& out) {
  const Bytes gradient(shape.element_bytes * Logits(shape));
  const Bytes softmax(4 * Logits(shape));
  if (shape.fused_loss) {
    LossKernel("loss gradient", shape, 2 * shape.element_bytes, 1, out).frees += gradient;
    return gradient;
  }
  // Softmax minus one-hot, times the loss's gradient, in place.
  LossKernel("loss gradient", shape, 8, 2, out).frees += gradient + softmax;
  // Its conversion to 16 bit outlives the logits: from here on it is an activation like any other.
  Operator& convert = out.AddElementwise("logits gradient", gradient + softmax);
  convert.workspace += softmax;
  convert.allocates += gradient;
  return Bytes(0);
}

}  // namespace

void EmbeddingForward(const Shape& shape, Recorder& out) {
  const Bytes region = shape.region_bytes;
  out.AddElementwise("token embedding", shape.hidden_bytes * 2 + TokenIds(shape), 2).allocates +=
      shape.hidden_bytes + TokenIds(shape);
  ReduceOutput(shape, out);
  if (shape.embedding_norm) NormForward(shape, "embedding norm", /*keep=*/true, out);
  const bool learned = shape.positions == v1::LEARNED;
  if (learned || shape.dropout) {
    // Positions are read and added (3), dropout reads and writes (2).
    const int passes = (learned ? 3 : 0) + (shape.dropout ? 2 : 0);
    Operator& op = out.AddElementwise(learned ? "position embedding and dropout" : "embedding dropout",
                                      region * passes + shape.mask_bytes, learned && shape.dropout ? 2 : 1);
    op.allocates += shape.mask_bytes;
    op.workspace += region;
  }
  out.Last().frees += region;  // the first layer owns the sum
}

void EmbeddingBackward(const Shape& shape, Recorder& out) {
  out.set_pass(Pass::kInputGradient);
  const Bytes region = shape.region_bytes;
  Operator& dropout = shape.dropout ? out.AddElementwise("embedding dropout gradient", region * 2 + shape.mask_bytes)
                                    : out.AddElementwise("embedding gradient", region);
  dropout.allocates += region;
  dropout.frees += shape.mask_bytes;
  if (shape.embedding_norm) {
    Operator& norm = NormBackward(shape, "embedding norm gradient", out);
    norm.allocates += region;
    norm.frees += region * 2;  // its output's gradient and its input
  }
  const Bytes gathered = GatherOutputGradient(shape, region, out);
  // A dense gradient of the table is zeroed, the tokens' rows are added to it, and it goes where gradients go; the
  // positions' sums over the batch come with it.
  out.set_pass(Pass::kWeightGradient);
  const std::int64_t table = shape.vocab * shape.hidden;
  Operator& op =
      out.AddElementwise("embedding weight gradient",
                         Bytes(table * (shape.element_bytes + AccumulationBytes(shape))) + shape.hidden_bytes * 4, 4);
  op.workspace += Bytes(table * shape.element_bytes);
  op.frees += gathered + TokenIds(shape);
}

void HeadForward(const Shape& shape, Recorder& out) {
  NormForward(shape, "final norm", /*keep=*/true, out).allocates += shape.region_bytes;
  GatherInput(shape, out);
  ColumnForward(shape, kHead, shape.vocab, out).activation_class = ActivationClass::kLogits;
  shape.fused_loss ? FusedLoss(shape, out) : UnfusedLoss(shape, out);
}

void HeadBackward(const Shape& shape, Recorder& out) {
  out.set_pass(Pass::kInputGradient);
  const Bytes region = shape.region_bytes;
  const Bytes gradient(shape.element_bytes * Logits(shape));
  const Bytes adopted = LossBackward(shape, out);
  const std::array<ColumnLayer, 1> head{{{kHead, shape.vocab, gradient, adopted}}};
  ColumnBackward(shape, head, region, out);
  Operator& norm = NormBackward(shape, "final norm gradient", out);
  norm.frees += region * 2;  // its output's gradient and its input
  norm.workspace += region;  // the last layer's output gradient
}

}  // namespace orrery::workloads
