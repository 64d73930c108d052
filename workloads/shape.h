// The sizes of one micro-batch on one tensor-parallel rank, and the features that decide which operators there are,
// read from the spec once so that the builders below do plain arithmetic.
//
// s tokens, b sequences, h hidden, a heads, g heads of keys and values, d head dimension, f MLP width, V padded
// vocabulary, t tensor-parallel degree.
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
  std::int64_t heads = 0;     // a / t
  std::int64_t width = 0;     // a d / t, the width of Q and of the context
  std::int64_t kv_heads = 0;  // max(1, g / t): ranks beyond g hold copies
  std::int64_t kv_width = 0;  // the width of each of K and V
  std::int64_t qkv = 0;       // all three
  std::int64_t ffn = 0;       // f / t
  std::int64_t up = 0;        // columns of the MLP's first product: f / t, twice that where it is gated
  std::int64_t vocab = 0;     // V / t
  std::int64_t window = 0;
  v1::Activation activation = v1::GELU;
  v1::Positions positions = v1::LEARNED;
  v1::NormKind norm = v1::LAYER_NORM;
  double rotary_fraction = 1;
  bool gated = false;
  bool biases = true;
  bool embedding_norm = false;
  bool parallel_block = false;
  bool sequence_parallel = false;  // and tp > 1
  bool dropout = false;
  bool fused_elementwise = false;
  bool fused_norm = false;
  bool fused_loss = false;
  bool fused_rotary = false;
  bool fused_weight_gradient = false;
  // Gradients leave for their reduction with every micro-batch, so that none is accumulated here (FSDP, ZeRO-3).
  bool reduces_every_micro_batch = false;
  bool overlap_all = false;       // software.tp_overlap
  bool overlap_backward = false;  // software.tp_overlap or tp_backward_overlap
  v1::AttentionKernel attention = v1::UNFUSED;
  v1::Recompute recompute = v1::NONE;
  std::int64_t recompute_layers = -1;  // of a stage, FULL; -1: all
  // Parts that SELECTIVE computes again.
  bool recompute_core =
      false;  // not where attention is fused, which does it by itself (Megatron-LM's ParallelAttention)
  bool recompute_activation = false;
  bool recompute_norms = false;
  bool recompute_mlp = false;
  std::int64_t element_bytes = 2;   // of an activation
  std::int64_t gradient_bytes = 4;  // of a main gradient

  Bytes hidden_bytes;      // the residual stream, whole: 2 s b h
  Bytes region_bytes;      // the same where norms, dropouts and residuals run: / t with sequence parallelism
  Bytes mask_bytes;        // dropout mask of that region, one byte per element; 0 without dropout
  Bytes width_bytes;       // Q or the context
  Bytes kv_bytes;          // K or V
  Bytes qkv_bytes;         // all three
  Bytes core_bytes;        // the three as attention's core keeps them: K and V repeated where its kernels need that
  Bytes ffn_bytes;         // the MLP's inner activation
  Bytes up_bytes;          // what it is computed from
  Bytes score_bytes;       // attention scores: 2 a s^2 b / t
  Bytes score_mask_bytes;  // their dropout mask; 0 without dropout
  Bytes statistics_bytes;  // fused attention: one fp32 log-sum-exp per query and head

  bool flash() const { return attention != v1::UNFUSED; }
  // Grouped K and V are written out once per query head, for kernels that know no groups.
  bool repeats_keys() const {
    return kv_heads < heads &&
           (attention == v1::UNFUSED || attention == v1::FLASH_ATTENTION_1 || attention == v1::TRITON_ATTENTION);
  }
  // Biases of row-parallel layers are added after the sum over ranks, so that no GEMM can do it.
  bool eager_row_bias() const { return biases && !fused_elementwise && tp > 1; }
};

Shape MakeShape(const v1::Run& run);

// Pairs (query, key) that causal attention of `q` last tokens out of `kv` sees, each query at most `window` keys (0:
// all).
double VisiblePairs(std::int64_t q, std::int64_t kv, std::int64_t window);

}  // namespace orrery::workloads

#endif  // ORRERY_WORKLOADS_SHAPE_H_
