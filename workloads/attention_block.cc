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
  if (!shape.fused_elementwise) op.workspace = scores / shape.element_bytes * 4;  // the fp32 copy
  op.allocates = scores;                                                          // its output
  op.frees = scores;                                                              // its input
}

// QK^T, softmax, dropout: leaves what AV reads, and what backward needs if `keep`.
void Scores(const Shape& shape, bool keep, Recorder& out) {
  const Bytes scores = shape.score_bytes;
  out.AddGemm("scores", {.batch = Batch(shape), .m = shape.seq, .n = shape.seq, .k = shape.head_dim}).allocates =
      scores;
  Softmax(shape, out);
  if (!shape.dropout) return;
  Operator& op = out.AddElementwise("attention dropout", scores * 2 + shape.score_mask_bytes);
  op.allocates = scores + shape.score_mask_bytes;
  if (!keep) op.frees = scores;  // the softmax output
}

Operator& WeightedSum(const Shape& shape, Recorder& out) {
  return out.AddGemm("weighted sum", {.batch = Batch(shape), .m = shape.seq, .n = shape.head_dim, .k = shape.seq});
}

// The sum over values is laid out by head; the projection wants it by token.
void CopyContext(const Shape& shape, Recorder& out) {
  out.AddElementwise("context layout", shape.width_bytes * 2).workspace = shape.width_bytes;
}

// Q, K and V are interleaved per head in the output of one GEMM; kernels and gradients have them apart.
void CopyQkv(const Shape& shape, Recorder& out) {
  out.AddElementwise("qkv layout", shape.width_bytes * 6, 3).workspace = shape.width_bytes * 3;
}

void UnfusedBackward(const Shape& shape, Recorder& out) {
  const Bytes scores = shape.score_bytes;
  const std::int64_t batch = Batch(shape);
  CopyContext(shape, out);
  out.AddGemm("attention weights gradient", {.batch = batch, .m = shape.seq, .n = shape.seq, .k = shape.head_dim})
      .allocates = scores;
  Operator& values =
      out.AddGemm("values gradient", {.batch = batch, .m = shape.seq, .n = shape.head_dim, .k = shape.seq});
  values.allocates = shape.width_bytes;
  values.frees = shape.width_bytes;  // the context's gradient
  if (shape.dropout) {
    values.frees += scores;  // dropout's output
    Operator& dropout = out.AddElementwise("attention dropout gradient", scores * 2 + shape.score_mask_bytes);
    dropout.workspace = scores;
    dropout.frees = shape.score_mask_bytes;
  }
  Operator& softmax = shape.fused_elementwise
                          ? out.AddMemoryBound("softmax gradient", MemoryBoundClass::kSoftmax, scores * 3)
                          : out.AddMemoryBound("softmax gradient", MemoryBoundClass::kSoftmax,
                                               scores / shape.element_bytes * kEagerSoftmaxBytes, kEagerSoftmaxKernels);
  if (!shape.fused_elementwise) softmax.workspace = scores / shape.element_bytes * 4;
  softmax.frees = scores;  // its output; the gradient is overwritten
  out.AddGemm("queries gradient", {.batch = batch, .m = shape.seq, .n = shape.head_dim, .k = shape.seq}).allocates =
      shape.width_bytes;
  Operator& keys = out.AddGemm("keys gradient", {.batch = batch, .m = shape.seq, .n = shape.head_dim, .k = shape.seq});
  keys.allocates = shape.width_bytes;
  keys.frees = scores + shape.width_bytes * 3;  // the scores' gradient; Q, K, V
  CopyQkv(shape, out);
}

}  // namespace

void AttentionForward(const Shape& shape, bool keep, Recorder& out) {
  if (shape.flash()) {
    CopyQkv(shape, out);
    Operator& op = out.AddAttention("attention", FusedAttention(shape, false), FusedFlops(shape, false));
    op.allocates = shape.width_bytes + shape.statistics_bytes;
    if (!keep) op.frees = shape.statistics_bytes;
    return;
  }
  Scores(shape, keep, out);
  Operator& op = WeightedSum(shape, out);
  op.allocates = shape.width_bytes;
  if (!keep) op.frees = shape.score_bytes + shape.score_mask_bytes;
  CopyContext(shape, out);
}

void AttentionRecompute(const Shape& shape, Recorder& out) {
  out.set_pass(Pass::kRecompute);
  Scores(shape, true, out);
  WeightedSum(shape, out).workspace = shape.width_bytes;  // the context itself was kept
  CopyContext(shape, out);
  out.set_pass(Pass::kInputGradient);
}

void AttentionBackward(const Shape& shape, Recorder& out) {
  if (!shape.flash()) return UnfusedBackward(shape, out);
  Operator& op = out.AddAttention("attention gradient", FusedAttention(shape, true), FusedFlops(shape, true));
  // Its output, which the projection's weight gradient may have freed already, and the fp32 sum of the queries'
  // gradient.
  op.workspace = shape.width_bytes + shape.width_bytes / shape.element_bytes * 4;
  op.allocates = shape.width_bytes * 3;
  op.frees = shape.width_bytes * 4 + shape.statistics_bytes;  // Q, K, V; the context's gradient
  CopyQkv(shape, out);
}

}  // namespace orrery::workloads
