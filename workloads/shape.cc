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
  shape.kv_bytes = Bytes(e * shape.tokens * shape.kv_width);
  shape.qkv_bytes = Bytes(e * shape.tokens * shape.qkv);
  shape.core_bytes = shape.repeats_keys() ? shape.width_bytes * 3 : shape.qkv_bytes;
  shape.ffn_bytes = Bytes(e * shape.tokens * shape.ffn);
  shape.up_bytes = Bytes(e * shape.tokens * shape.up);
  shape.score_bytes = Bytes(e * scores);
  shape.score_mask_bytes = Bytes(shape.dropout ? scores : 0);
  shape.statistics_bytes = Bytes(4 * shape.tokens * shape.heads);
}

void SetModel(const v1::Model& model, Shape& shape) {
  shape.hidden = model.hidden();
  shape.head_dim = model.head_dim();
  shape.heads = model.heads() / shape.tp;
  shape.width = shape.heads * shape.head_dim;
  shape.kv_heads = std::max<std::int64_t>(1, model.kv_heads() / shape.tp);
  shape.kv_width = shape.kv_heads * shape.head_dim;
  shape.qkv = shape.width + 2 * shape.kv_width;
  shape.ffn = model.ffn_hidden() / shape.tp;
  shape.gated = model.gated_mlp();
  shape.up = shape.gated ? 2 * shape.ffn : shape.ffn;
  shape.window = model.attention_window();
  shape.activation = model.activation();
  shape.positions = model.positions();
  shape.norm = model.norm();
  shape.rotary_fraction = model.rotary_fraction();
  shape.biases = model.biases();
  shape.embedding_norm = model.embedding_norm();
  shape.parallel_block = model.block() == v1::PARALLEL;
}

void SetTraining(const v1::Training& training, Shape& shape) {
  shape.seq = training.seq_len();
  shape.micro_batch = training.micro_batch();
  shape.tokens = shape.seq * shape.micro_batch;
  shape.dropout = training.dropout();
  shape.recompute = training.recompute();
  if (training.has_recompute_layers()) shape.recompute_layers = training.recompute_layers();
  shape.element_bytes = SizeOf(training.precision());
  shape.gradient_bytes = SizeOf(training.gradient_type());
  if (training.recompute() != v1::SELECTIVE) return;
  for (const int module : training.recompute_modules()) {
    shape.recompute_core |= module == v1::CORE_ATTENTION && !shape.flash();
    shape.recompute_activation |= module == v1::MLP_ACTIVATION;
    shape.recompute_norms |= module == v1::NORMS;
    shape.recompute_mlp |= module == v1::MLP;
  }
}

void SetSoftware(const v1::Software& software, Shape& shape) {
  shape.attention = software.attention_kernel();
  shape.fused_elementwise = software.fused_elementwise();
  shape.fused_norm = software.fused_norm();
  shape.fused_loss = software.fused_loss();
  shape.fused_rotary = software.fused_rotary();
  shape.fused_weight_gradient = software.fused_weight_gradient();
  shape.overlap_all = software.tp_overlap();
  shape.overlap_backward = software.tp_overlap() || software.tp_backward_overlap();
}

}  // namespace

Shape MakeShape(const v1::Run& run) {
  Shape shape;
  shape.tp = run.parallelism().tp();
  SetModel(run.model(), shape);
  SetSoftware(run.software(), shape);
  SetTraining(run.training(), shape);
  shape.vocab = PaddedVocabulary(run) / shape.tp;
  shape.sequence_parallel = run.parallelism().sequence_parallel() && shape.tp > 1;
  shape.reduces_every_micro_batch = run.parallelism().zero_stage() == 3 || run.software().reduce_every_micro_batch();
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
