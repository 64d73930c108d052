// Building the operators of a chunk; the right answer is the executed FLOPs of its layers, embedding and head.
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

void BM_BuildLlamaChunk(benchmark::State& state) {
  v1::Run run = MakeLlama(8, 1);
  run.mutable_model()->set_vocab(129024);
  double flops = 0;
  for (auto _ : state) {
    const ChunkWork work = BuildChunk(run, {.layers = 32, .embedding = true, .head = true});
    flops = 0;
    for (const Operator& op : work.forward) flops += op.flops.count();
  }
  // Forward, per rank of eight: 2 h (h + 2 h / 4 + h + 3 f) per token and layer, 2 h V for the logits; attention 4 h
  // per visible pair.
  const double h = 4096, f = 14336, s = 2048, v = 129024;
  const double expected = (s * (32 * 2 * h * (2.5 * h + 3 * f) + 2 * h * v) + 32 * 4 * h * s * (s + 1) / 2) / 8;
  if (flops != expected) state.SkipWithError("wrong FLOPs");
}
BENCHMARK(BM_BuildLlamaChunk);

}  // namespace
}  // namespace orrery::workloads
