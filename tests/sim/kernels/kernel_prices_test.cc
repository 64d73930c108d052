#include "sim/kernels/kernel_prices.h"

#include <gtest/gtest.h>

#include "tests/sim/kernels/toy_accelerator.h"

namespace orrery::kernels {
namespace {

using workloads::MemoryBoundClass;
using workloads::Operator;
using workloads::OperatorKind;

Operator MemoryBound(MemoryBoundClass memory_class, std::int64_t bytes, int kernels = 1) {
  Operator op;
  op.kind = OperatorKind::kMemoryBound;
  op.memory_bound = {memory_class, Bytes(bytes)};
  op.kernels = kernels;
  return op;
}

// 1e9 bytes at shares 0.5, 0.4, 0.25, 0.2, 0.8 and 0.1 of 1e12 bytes/s, and 1 us to start.
TEST(KernelPrices, BandwidthByClass) {
  const KernelPrices prices(ToyAccelerator(), v1::FP16);
  EXPECT_DOUBLE_EQ(prices.Seconds(MemoryBound(MemoryBoundClass::kElementwise, 1'000'000'000)), 2.001e-3);
  EXPECT_DOUBLE_EQ(prices.Seconds(MemoryBound(MemoryBoundClass::kActivation, 1'000'000'000)), 2.501e-3);
  EXPECT_DOUBLE_EQ(prices.Seconds(MemoryBound(MemoryBoundClass::kNorm, 1'000'000'000)), 4.001e-3);
  EXPECT_DOUBLE_EQ(prices.Seconds(MemoryBound(MemoryBoundClass::kSoftmax, 1'000'000'000)), 5.001e-3);
  EXPECT_DOUBLE_EQ(prices.Seconds(MemoryBound(MemoryBoundClass::kOptimizer, 1'000'000'000)), 1.251e-3);
  EXPECT_DOUBLE_EQ(prices.Seconds(MemoryBound(MemoryBoundClass::kStrided, 1'000'000'000)), 10.001e-3);
  EXPECT_DOUBLE_EQ(prices.OptimizerSeconds(Bytes(1'000'000'000), 1), 1.251e-3);
}

// A kernel takes at least 1 us; seven take seven. 8 bytes at 0.5e12 bytes/s are 16 ps more.
TEST(KernelPrices, Floor) {
  const KernelPrices prices(ToyAccelerator(), v1::FP16);
  EXPECT_DOUBLE_EQ(prices.Seconds(MemoryBound(MemoryBoundClass::kElementwise, 8)), 1e-6 + 16e-12);
  EXPECT_DOUBLE_EQ(prices.Seconds(MemoryBound(MemoryBoundClass::kElementwise, 8, 7)), 7e-6 + 16e-12);
  EXPECT_DOUBLE_EQ(prices.OptimizerSeconds(Bytes(8), 3), 3e-6 + 10e-12);
  Operator gemm;
  gemm.kind = OperatorKind::kGemm;
  gemm.gemm = {.m = 1, .n = 1, .k = 1};  // one tile of 200 FLOPs: 0.4 us
  EXPECT_DOUBLE_EQ(prices.Seconds(gemm), 1e-6);
}

// 100 MB in the cache at 4e12 bytes/s: 900 MB at 0.5e12 and 100 MB at 2e12 bytes/s, 1.8 ms and 0.05 ms. Two kernels
// have 200 MB in it: 1.6 and 0.1 ms. The optimizer finds nothing there. A slow cache is not used.
TEST(KernelPrices, CacheServesItsShare) {
  v1::Accelerator toy = ToyAccelerator();
  v1::MemoryBoundProfile& profile = *toy.mutable_profile()->mutable_memory_bound();
  profile.mutable_cache_bytes()->set_value(1e8);
  const KernelPrices prices(toy, v1::FP16);
  EXPECT_DOUBLE_EQ(prices.Seconds(MemoryBound(MemoryBoundClass::kElementwise, 1'000'000'000)), 1.851e-3);
  EXPECT_DOUBLE_EQ(prices.Seconds(MemoryBound(MemoryBoundClass::kElementwise, 1'000'000'000, 2)), 1.702e-3);
  EXPECT_DOUBLE_EQ(prices.Seconds(MemoryBound(MemoryBoundClass::kElementwise, 50'000'000)), 0.026e-3);
  EXPECT_DOUBLE_EQ(prices.OptimizerSeconds(Bytes(1'000'000'000), 1), 1.251e-3);
  profile.mutable_cache_bandwidth()->set_value(1e6);
  EXPECT_DOUBLE_EQ(KernelPrices(toy, v1::FP16).Seconds(MemoryBound(MemoryBoundClass::kElementwise, 1'000'000'000)),
                   2.001e-3);
}

TEST(KernelPrices, GemmAndAttentionGoToTheirModels) {
  const v1::Accelerator toy = ToyAccelerator();
  const KernelPrices prices(toy, v1::FP16);
  EXPECT_EQ(prices.peak(), FlopsPerSecond(4e9));
  Operator gemm;
  gemm.kind = OperatorKind::kGemm;
  gemm.gemm = {.m = 100, .n = 100, .k = 100};
  gemm.flops = Flops(2e6);
  EXPECT_DOUBLE_EQ(prices.Seconds(gemm),
                   GemmModel(toy, toy.profile().gemm(0), FlopsPerSecond(4e9), 2).Seconds(gemm.gemm));
  EXPECT_DOUBLE_EQ(prices.SecondsAtPeak(gemm), 2e6 / 4e9);
  Operator attention;
  attention.kind = OperatorKind::kAttention;
  attention.attention = {.kernel = v1::FLASH_ATTENTION_2, .batch = 1, .heads = 4, .q = 32, .kv = 32, .head_dim = 16};
  EXPECT_DOUBLE_EQ(prices.Seconds(attention), 163840 / 2e9 + 0.5 * 16384 / 0.5e9 + 1e-6);
  EXPECT_EQ(prices.SecondsAtPeak(MemoryBound(MemoryBoundClass::kNorm, 1'000'000'000)), 0);
}

}  // namespace
}  // namespace orrery::kernels
