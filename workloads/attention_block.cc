#include "workloads/attention_block.h"

namespace orrery::workloads {
namespace {

// Kernels and bytes per score of softmax where scale, mask and softmax are not fused: mask (read, write), conversion to
// fp32, softmax in fp32, conversion back: 4 + 6 + 8 + 6 in 16-bit training.
constexpr int kEagerSoftmaxKernels = 4;
constexpr std::int64_t kEagerSoftmaxBytes = 24;

std::int64_t Batch(const Shape& shape) { return shape.micro_batch * shape.heads; }

Attention FusedAttention(const Shape& shape, bool backward) {
  return {.kernel = shape.attention,
          .batch = shape.micro_batch,
          .heads = shape.heads,
          .q = shape.seq,
          .kv = shape.seq,
          .head_dim = shape.head_dim,
          .window = shape.window,
          .kv_heads = shape.repeats_keys() ? shape.heads : shape.kv_heads,
          .backward = backward};
}

double FusedFlops(const Shape& shape, bool backward) {
  // Two products of 2 head_dim FLOPs per pair forward, five backward.
  return (backward ? 10.0 : 4.0) * static_cast<double>(Batch(shape)) * static_cast<double>(shape.head_dim) *
         VisiblePairs(shape.seq, shape.seq, shape.window);
}

void Softmax(const Shape& shape, Recorder& out) {
  const Bytes scores = shape.score_bytes;
  Operator& op = shape.fused_elementwise
                     ? out.AddMemoryBound("softmax", MemoryBoundClass::kSoftmax, scores * 2)
                     : out.AddMemoryBound("softmax", MemoryBoundClass::kSoftmax,
                                          scores / shape.element_bytes * kEagerSoftmaxBytes, kEagerSoftmaxKernels);
  if (!shape.fused_elementwise) op.workspace += scores / shape.element_bytes * 4;  // the fp32 copy
  op.allocates += scores;                                                          // its output
  op.frees += scores;                                                              // its input
}

// QK^T, softmax, dropout: leaves what AV reads, and what backward needs if `keep`.
void Scores(const Shape& shape, bool keep, Recorder& out) {
  const Bytes scores = shape.score_bytes;
  if (shape.positions == v1::ALIBI) out.AddElementwise("position bias", scores * 2).workspace += scores;
  out.AddGemm("scores", {.batch = Batch(shape), .m = shape.seq, .n = shape.seq, .k = shape.head_dim}).allocates +=
      scores;
  Softmax(shape, out);
  if (!shape.dropout) return;
  Operator& op = out.AddElementwise("attention dropout", scores * 2 + shape.score_mask_bytes);
  op.allocates += scores + shape.score_mask_bytes;
  if (!keep) op.frees += scores;  // the softmax output
}

Operator& WeightedSum(const Shape& shape, Recorder& out) {
  return out.AddGemm("weighted sum", {.batch = Batch(shape), .m = shape.seq, .n = shape.head_dim, .k = shape.seq});
}

// The sum over values is laid out by head; the projection wants it by token.
void CopyContext(const Shape& shape, Recorder& out) {
  out.AddElementwise("context layout", shape.width_bytes * 2).workspace += shape.width_bytes;
}

bool CopiesForFlash(const Shape& shape) {
  return shape.fused_elementwise &&
         (shape.attention == v1::FLASH_ATTENTION_1 || shape.attention == v1::FLASH_ATTENTION_2);
}

void CopyQkv(const Shape& shape, int kernels, Recorder& out) {
  out.AddElementwise("qkv layout", shape.qkv_bytes * 2, kernels).workspace += shape.qkv_bytes;
}

// Gradients apart become one tensor: a kernel each, or one of eager PyTorch.
void JoinGradients(const Shape& shape, Recorder& out) {
  if (!shape.fused_elementwise) {
    CopyQkv(shape, 1, out);
  } else if (!shape.flash() || CopiesForFlash(shape)) {
    CopyQkv(shape, 3, out);
  }
}

void Rotate(const Shape& shape, std::string_view name, Recorder& out) {
  if (shape.positions != v1::ROTARY || shape.rotary_fraction <= 0) return;
  const Bytes both = shape.width_bytes + shape.kv_bytes;
  if (shape.fused_rotary) {
    out.AddElementwise(name, both * 2, 2).workspace += both;
    return;
  }
  const Bytes rotated(static_cast<std::int64_t>(shape.rotary_fraction * static_cast<double>(both.count())));
  const bool part = shape.rotary_fraction < 1;
  // At its largest: the products with cosine and sine and their sum.
  out.AddElementwise(name, rotated * 10 + (part ? both * 2 : Bytes(0)), part ? 12 : 10).workspace += rotated * 3;
}

// K and V once per query head.
void RepeatKeys(const Shape& shape, Recorder& out) {
  if (!shape.repeats_keys()) return;
  Operator& op = out.AddElementwise("repeat keys and values", (shape.kv_bytes + shape.width_bytes) * 2, 2);
  op.allocates += shape.width_bytes * 2;
  op.frees += shape.kv_bytes * 2;
}

// Gradients of K and V once per query head are summed over each group.
Operator& SumGroups(const Shape& shape, Recorder& out) {
  return out.AddElementwise("sum of grouped gradients", (shape.kv_bytes + shape.width_bytes) * 2, 2);
}

void UnfusedBackward(const Shape& shape, Recorder& out) {
  const Bytes scores = shape.score_bytes;
  const std::int64_t batch = Batch(shape);
  CopyContext(shape, out);
  out.AddGemm("attention weights gradient", {.batch = batch, .m = shape.seq, .n = shape.seq, .k = shape.head_dim})
      .allocates += scores;
  Operator& values =
      out.AddGemm("values gradient", {.batch = batch, .m = shape.seq, .n = shape.head_dim, .k = shape.seq});
  values.allocates += shape.width_bytes;
  values.frees += shape.width_bytes;  // the context's gradient
  if (shape.dropout) {
    values.frees += scores;  // dropout's output
    Operator& dropout = out.AddElementwise("attention dropout gradient", scores * 2 + shape.score_mask_bytes);
    dropout.workspace += scores;
    dropout.frees += shape.score_mask_bytes;
  }
  Operator& softmax = shape.fused_elementwise
                          ? out.AddMemoryBound("softmax gradient", MemoryBoundClass::kSoftmax, scores * 3)
                          : out.AddMemoryBound("softmax gradient", MemoryBoundClass::kSoftmax,
                                               scores / shape.element_bytes * kEagerSoftmaxBytes, kEagerSoftmaxKernels);
  if (!shape.fused_elementwise) softmax.workspace += scores / shape.element_bytes * 4;
  softmax.frees += scores;  // its output; the gradient is overwritten
  out.AddGemm("queries gradient", {.batch = batch, .m = shape.seq, .n = shape.head_dim, .k = shape.seq}).allocates +=
      shape.width_bytes;
  Operator& keys = out.AddGemm("keys gradient", {.batch = batch, .m = shape.seq, .n = shape.head_dim, .k = shape.seq});
  keys.allocates += shape.width_bytes;
  keys.frees += scores + shape.core_bytes;  // the scores' gradient; Q, K, V
  if (shape.repeats_keys()) {
    Operator& sum = SumGroups(shape, out);
    sum.allocates += shape.kv_bytes * 2;
    sum.frees += shape.width_bytes * 2;
  }
}

void FlashBackward(const Shape& shape, Recorder& out) {
  // Gradients of K and V per query head, where they exist for a moment.
  const bool per_head =
      shape.repeats_keys() || (shape.attention == v1::FLASH_ATTENTION_2 && shape.kv_heads < shape.heads);
  Operator& op = out.AddAttention("attention gradient", FusedAttention(shape, true), FusedFlops(shape, true));
  // Its output, which the projection's weight gradient may have freed already, and the fp32 sum of the queries'
  // gradient.
  op.workspace += shape.width_bytes + shape.width_bytes / shape.element_bytes * 4;
  op.allocates += per_head ? shape.width_bytes * 3 : shape.qkv_bytes;
  op.frees += shape.core_bytes + shape.width_bytes + shape.statistics_bytes;  // Q, K, V; the context's gradient
  if (!per_head) return;
  Operator& sum = SumGroups(shape, out);
  sum.allocates += shape.kv_bytes * 2;
  sum.frees += shape.width_bytes * 2;
}

}  // namespace

void AttentionForward(const Shape& shape, bool keep, Recorder& out) {
  Rotate(shape, "rotary positions", out);
  RepeatKeys(shape, out);
  if (shape.flash()) {
    if (CopiesForFlash(shape)) CopyQkv(shape, 3, out);
    Operator& op = out.AddAttention("attention", FusedAttention(shape, false), FusedFlops(shape, false));
    op.allocates += shape.width_bytes + shape.statistics_bytes;
    if (!keep) op.frees += shape.statistics_bytes;
    return;
  }
  Scores(shape, keep, out);
  Operator& op = WeightedSum(shape, out);
  op.allocates += shape.width_bytes;
  if (!keep) op.frees += shape.score_bytes + shape.score_mask_bytes;
  CopyContext(shape, out);
}

void AttentionRecompute(const Shape& shape, Recorder& out) {
  out.set_pass(Pass::kRecompute);
  Scores(shape, true, out);
  WeightedSum(shape, out).workspace += shape.width_bytes;  // the context itself was kept
  CopyContext(shape, out);
  out.set_pass(Pass::kInputGradient);
}

void AttentionBackward(const Shape& shape, Recorder& out) {
  shape.flash() ? FlashBackward(shape, out) : UnfusedBackward(shape, out);
  Rotate(shape, "rotary positions gradient", out);
  JoinGradients(shape, out);
}

}  // namespace orrery::workloads
