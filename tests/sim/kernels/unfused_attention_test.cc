#include "sim/kernels/unfused_attention.h"

#include <gtest/gtest.h>

#include "tests/sim/kernels/toy_accelerator.h"

namespace orrery::kernels {
namespace {

using workloads::MemoryBoundClass;
using workloads::Operator;
using workloads::OperatorKind;

// 2 x 3 problems of 8 queries, 16 keys and 4 elements: 6 x 128 scores, 6 x 32 elements of Q and O, 6 x 64 of K and V.
workloads::Attention Problem() { return {.batch = 2, .heads = 3, .q = 8, .kv = 16, .head_dim = 4}; }

std::int64_t BytesOf(const std::vector<Operator>& kernels, MemoryBoundClass memory_class) {
  std::int64_t bytes = 0;
  for (const Operator& op : kernels) {
    if (op.kind == OperatorKind::kMemoryBound && op.memory_bound.memory_class == memory_class) {
      bytes += op.memory_bound.traffic.count();
    }
  }
  return bytes;
}

double ProductFlops(const std::vector<Operator>& kernels) {
  double flops = 0;
  for (const Operator& op : kernels) {
    if (op.kind != OperatorKind::kGemm) continue;
    EXPECT_EQ(op.gemm.batch, 6);
    flops += 2.0 * 6 * static_cast<double>(op.gemm.m * op.gemm.n * op.gemm.k);
  }
  return flops;
}

// Forward: two products of 2 x 4 FLOPs per score; softmax moves the 768 scores twice, a mask twice more; Q, K, V, O are
// copied, read and written with two bytes an element: 2 x 2 x (2 x 192 + 2 x 384).
TEST(UnfusedAttention, ForwardByHand) {
  workloads::Attention attention = Problem();
  attention.causal = false;
  const std::vector<Operator> kernels = UnfusedAttentionKernels(attention);
  EXPECT_DOUBLE_EQ(ProductFlops(kernels), 768 * 16);
  EXPECT_EQ(BytesOf(kernels, MemoryBoundClass::kSoftmax), 768 * 2 * 2);
  EXPECT_EQ(BytesOf(kernels, MemoryBoundClass::kStrided), 2 * 2 * (2 * 192 + 2 * 384));
  attention.causal = true;
  EXPECT_EQ(BytesOf(UnfusedAttentionKernels(attention), MemoryBoundClass::kStrided),
            2 * 2 * (2 * 192 + 2 * 384) + 768 * 2 * 2);
  EXPECT_DOUBLE_EQ(ProductFlops(UnfusedAttentionKernels(attention)), 768 * 16);
}

// Backward: four products; softmax's gradient reads two tensors of scores and writes one; dO once, dQ, dK, dV twice.
TEST(UnfusedAttention, BackwardByHand) {
  workloads::Attention attention = Problem();
  attention.backward = true;
  const std::vector<Operator> kernels = UnfusedAttentionKernels(attention);
  EXPECT_DOUBLE_EQ(ProductFlops(kernels), 768 * 32);
  EXPECT_EQ(BytesOf(kernels, MemoryBoundClass::kSoftmax), 768 * 2 * 3);
  EXPECT_EQ(BytesOf(kernels, MemoryBoundClass::kStrided), 2 * 2 * (192 + 2 * (192 + 2 * 384)));
}

TEST(UnfusedAttention, SecondsAreTheSum) {
  const KernelPrices prices(ToyAccelerator(), v1::FP16);
  double sum = 0;
  for (const Operator& op : UnfusedAttentionKernels(Problem())) sum += prices.Seconds(op);
  EXPECT_DOUBLE_EQ(UnfusedAttentionSeconds(prices, Problem()), sum);
  EXPECT_GT(sum, 6e-6);  // six launches and more
}

}  // namespace
}  // namespace orrery::kernels
