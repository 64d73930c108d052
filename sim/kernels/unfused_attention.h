// Time of attention without a fused kernel, as an eager framework runs it in 16 bits (PyTorch's baddbmm, softmax and
// bmm):
//   forward   Q, K, V by head             transposed copies: each read and written
//             scores = Q K^T / sqrt(d)    GEMM, batch x heads products of [q, kv] over d
//             scores + mask               with a causal mask only: reads and writes the scores
//             softmax                     reads and writes the scores
//             P V                         GEMM, [q, d] over kv
//             O by token                  transposed copy
//   backward  dO by head                  transposed copy
//             dV = P^T dO, dP = dO V^T    GEMMs
//             softmax's gradient          reads dP and P, writes dS
//             dQ = dS K, dK = dS^T Q      GEMMs
//             dQ, dK, dV by token         transposed copies, and once more into one tensor
// A mask saves nothing: all scores are computed. At longer sequences it is bound by moving the scores, 2 q kv bytes per
// batch and head, four times and more. What a training framework runs instead (fp32 softmax, fused masks, dropout)
// stands in workloads/attention_block.cc.
#ifndef ORRERY_SIM_KERNELS_UNFUSED_ATTENTION_H_
#define ORRERY_SIM_KERNELS_UNFUSED_ATTENTION_H_

#include <vector>

#include "sim/kernels/kernel_prices.h"
#include "workloads/operator.h"

namespace orrery::kernels {

// The kernels above, in their order.
std::vector<workloads::Operator> UnfusedAttentionKernels(const workloads::Attention& attention);

// Sum of their prices; launch floors included.
double UnfusedAttentionSeconds(const KernelPrices& prices, const workloads::Attention& attention);

}  // namespace orrery::kernels

#endif  // ORRERY_SIM_KERNELS_UNFUSED_ATTENTION_H_
