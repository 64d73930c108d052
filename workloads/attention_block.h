// The core of attention: from Q, K, V to the context, per tensor-parallel rank (its heads).
//
// Unfused, as Megatron-LM had it until 2023 (Korthikanti et al. 2022, figure 3): QK^T as a batched GEMM, scale + mask +
// softmax, dropout, AV as a batched GEMM; the whole s x s square is computed, a window only masks. Kept for the
// backward pass: softmax output 2 a s^2 b, dropout mask a s^2 b, dropout output 2 a s^2 b (without dropout the softmax
// output alone), and Q, K, V. Fused (FlashAttention): one kernel that keeps Q, K, V, its output and one fp32 number per
// query and head; it computes the visible pairs only, and backward 2.5 times the forward FLOPs (it recomputes the
// scores).
//
// Grouped keys and values are repeated in memory for kernels without groups (batched GEMMs, FlashAttention-1, Triton).
// FlashAttention-2 writes their gradients once per query head, summed after it; later kernels sum inside.
//
// Rotary positions: a fused kernel each for Q and K, or per rotated element x cos 2, the half turned 1 + 2, times sin
// 2, the sum 3: ten passes in five kernels, and two of the whole where only a part of the head is rotated. The backward
// pass turns the gradients back at the same cost. ALiBi: inside a fused kernel its bias costs nothing next to the
// softmax; unfused, the scores start as a copy of it, to which the GEMM adds.
//
// Copies of layout: Q, K, V are interleaved per head in one GEMM's output, and FlashAttention-1 and -2 as Megatron-LM
// called them want them apart; eager PyTorch passes views, and its backward pass lays the three gradients side by side.
#ifndef ORRERY_WORKLOADS_ATTENTION_BLOCK_H_
#define ORRERY_WORKLOADS_ATTENTION_BLOCK_H_

#include "workloads/recorder.h"
#include "workloads/shape.h"

namespace orrery::workloads {

// Allocates the context, width_bytes. `keep`: what backward needs stays allocated; Q, K, V (qkv_bytes) are the
// caller's, who finds core_bytes of them after.
void AttentionForward(const Shape& shape, bool keep, Recorder& out);

// Selective recomputation: everything that `keep` would have kept, from Q, K, V (kRecompute).
void AttentionRecompute(const Shape& shape, Recorder& out);

// Consumes the context's gradient (width_bytes) and what AttentionForward kept, Q, K and V included; leaves the
// gradients of Q, K and V (qkv_bytes) allocated.
void AttentionBackward(const Shape& shape, Recorder& out);

}  // namespace orrery::workloads

#endif  // ORRERY_WORKLOADS_ATTENTION_BLOCK_H_
