#include "workloads/shape.h"

#include <algorithm>

#include "workloads/transformer.h"

namespace orrery::workloads {
namespace {

std::int64_t SizeOf(v1::DataType type) { return type == v1::FP32 ? 4 : 2; }

void SetSizes(Shape& shape) {
  const std::int64_t e = shape.element_bytes;
  const std::int64_t scores = shape.micro_batch * shape.heads * shape.seq * shape.seq;
  shape.hidden_bytes = Bytes(e * shape.tokens * shape.hidden);
  shape.region_bytes = shape.sequence_parallel ? shape.hidden_bytes / shape.tp : shape.hidden_bytes;
  shape.mask_bytes = shape.dropout ? shape.region_bytes / e : Bytes(0);
  shape.width_bytes = Bytes(e * shape.tokens * shape.width);
  shape.ffn_bytes = Bytes(e * shape.tokens * shape.ffn);
  shape.score_bytes = Bytes(e * scores);
  shape.score_mask_bytes = Bytes(shape.dropout ? scores : 0);
  shape.statistics_bytes = Bytes(4 * shape.tokens * shape.heads);
}

}  // namespace

Shape MakeShape(const v1::Run& run) {
  const v1::Model& model = run.model();
  const v1::Training& training = run.training();
  const v1::Software& software = run.software();
  Shape shape;
  shape.tp = run.parallelism().tp();
  shape.seq = training.seq_len();
  shape.micro_batch = training.micro_batch();
  shape.tokens = shape.seq * shape.micro_batch;
  shape.hidden = model.hidden();
  shape.head_dim = model.head_dim();
  shape.heads = model.heads() / shape.tp;
  shape.width = shape.heads * shape.head_dim;
  shape.ffn = model.ffn_hidden() / shape.tp;
  shape.vocab = PaddedVocabulary(run) / shape.tp;
  shape.window = model.attention_window();
  shape.parallel_block = model.block() == v1::PARALLEL;
  shape.sequence_parallel = run.parallelism().sequence_parallel() && shape.tp > 1;
  shape.dropout = training.dropout();
  shape.fused_elementwise = software.fused_elementwise();
  shape.fused_weight_gradient = software.fused_weight_gradient();
  shape.overlap_all = software.tp_overlap();
  shape.overlap_backward = software.tp_overlap() || software.tp_backward_overlap();
  shape.attention = software.attention_kernel();
  shape.recompute = training.recompute();
  shape.element_bytes = SizeOf(training.precision());
  shape.gradient_bytes = SizeOf(training.gradient_type());
  SetSizes(shape);
  return shape;
}

double VisiblePairs(std::int64_t q, std::int64_t kv, std::int64_t window) {
  const std::int64_t limit = window == 0 ? kv : std::min(window, kv);
  const std::int64_t before = kv - q;  // keys that all queries see
  // Query i of 1..q sees min(before + i, limit) keys: a ramp up to the limit, then a band.
  const std::int64_t ramp = std::clamp<std::int64_t>(limit - before, 0, q);
  const double r = static_cast<double>(ramp);
  const double ramp_pairs = r * static_cast<double>(before) + r * (r + 1) / 2;
  return ramp_pairs + static_cast<double>(q - ramp) * static_cast<double>(limit);
}

}  // namespace orrery::workloads
