// The sizes of one micro-batch on one tensor-parallel rank, and the features that decide which operators there are,
// read from the spec once so that the builders below do plain arithmetic.
//
// s tokens, b sequences, h hidden, a heads, d head dimension, f MLP width, V padded vocabulary, t tensor-parallel
// degree.
#ifndef ORRERY_WORKLOADS_SHAPE_H_
#define ORRERY_WORKLOADS_SHAPE_H_

#include <cstdint>

#include "base/units.h"
#include "orrery/v1/run.pb.h"

namespace orrery::workloads {

struct Shape {
  std::int64_t tp = 1;
  std::int64_t seq = 0;          // s
  std::int64_t micro_batch = 0;  // b
  std::int64_t tokens = 0;       // s b
  std::int64_t hidden = 0;       // h
  std::int64_t head_dim = 0;     // d
  // This rank's shares.
  std::int64_t heads = 0;  // a / t
  std::int64_t width = 0;  // a d / t, the width of each of Q, K, V and of the context
  std::int64_t ffn = 0;    // f / t
  std::int64_t vocab = 0;  // V / t
  std::int64_t window = 0;
  bool parallel_block = false;
  bool sequence_parallel = false;  // and tp > 1
  bool dropout = false;
  bool fused_elementwise = false;
  bool fused_weight_gradient = false;
  bool overlap_all = false;       // software.tp_overlap
  bool overlap_backward = false;  // software.tp_overlap or tp_backward_overlap
  v1::AttentionKernel attention = v1::UNFUSED;
  v1::Recompute recompute = v1::NONE;
  std::int64_t element_bytes = 2;   // of an activation
  std::int64_t gradient_bytes = 4;  // of a main gradient

  Bytes hidden_bytes;      // the residual stream, whole: 2 s b h
  Bytes region_bytes;      // the same where norms, dropouts and residuals run: / t with sequence parallelism
  Bytes mask_bytes;        // dropout mask of that region, one byte per element; 0 without dropout
  Bytes width_bytes;       // one of Q, K, V or the context
  Bytes ffn_bytes;         // the MLP's inner activation
  Bytes score_bytes;       // attention scores: 2 a s^2 b / t
  Bytes score_mask_bytes;  // their dropout mask; 0 without dropout
  Bytes statistics_bytes;  // fused attention: one fp32 log-sum-exp per query and head

  bool flash() const { return attention != v1::UNFUSED; }
  // The scores are computed again in the backward pass. Fused attention does that by itself, so that selective
  // recomputation changes nothing there (Megatron-LM's ParallelAttention).
  bool recomputes_core() const { return recompute == v1::SELECTIVE && !flash(); }
};

Shape MakeShape(const v1::Run& run);

// Pairs (query, key) that causal attention of `q` last tokens out of `kv` sees, each query at most `window` keys (0:
// all).
double VisiblePairs(std::int64_t q, std::int64_t kv, std::int64_t window);

}  // namespace orrery::workloads

#endif  // ORRERY_WORKLOADS_SHAPE_H_
