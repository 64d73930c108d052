// One GEMM price; the right answer is the measured 1,208 us of 2048 x 8192 x 8192 on an A100 (vidur), within 10 %.
#include <benchmark/benchmark.h>

#include "sim/kernels/kernel_prices.h"
#include "tests/sim/kernels/toy_accelerator.h"

namespace orrery::kernels {
namespace {

void BM_GemmPrice(benchmark::State& state) {
  const KernelPrices prices(A100(), v1::FP16);
  workloads::Operator op;
  op.kind = workloads::OperatorKind::kGemm;
  op.gemm = {.m = 2048, .n = 8192, .k = 8192};
  double seconds = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(op);
    seconds = prices.Seconds(op);
    benchmark::DoNotOptimize(seconds);
  }
  if (seconds < 0.9 * 1208e-6 || seconds > 1.1 * 1208e-6) state.SkipWithError("wrong price");
}
BENCHMARK(BM_GemmPrice);

}  // namespace
}  // namespace orrery::kernels
