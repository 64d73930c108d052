// Building the operators of a chunk; the right answer is the executed FLOPs of twelve layers with embedding and head.
#include <benchmark/benchmark.h>

#include "tests/workloads/test_run.h"
#include "workloads/transformer.h"

namespace orrery::workloads {
namespace {

void BM_BuildChunk(benchmark::State& state) {
  const v1::Run run = MakeRun(k175B, 8, 1);
  double flops = 0;
  for (auto _ : state) {
    const ChunkWork work = BuildChunk(run, {.layers = 12, .embedding = true, .head = true});
    flops = 0;
    for (const Operator& op : work.forward) flops += op.flops.count();
  }
  // Forward, per rank of eight: 2 x 12 h^2 + 4 s h per token and layer, 2 h V per token for the logits.
  const double h = 12288, s = 2048, v = 51200;
  if (flops != s * (12 * (24 * h * h + 4 * s * h) + 2 * h * v) / 8) state.SkipWithError("wrong FLOPs");
}
BENCHMARK(BM_BuildChunk);

}  // namespace
}  // namespace orrery::workloads
