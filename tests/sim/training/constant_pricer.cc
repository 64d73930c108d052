#include "tests/sim/training/constant_pricer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

namespace orrery::training::testing {
namespace {

PricedOperator Kernel(std::string_view name, std::int32_t layer, std::int64_t picoseconds, double slowness) {
  PricedOperator op;
  op.name = name;
  op.duration = Time(std::llround(static_cast<double>(picoseconds) * slowness));
  op.layer = layer;
  return op;
}

}  // namespace

PricedPass ConstantPricer::Pass(std::size_t stage, const std::array<std::int64_t, 2>& kernels, bool forward,
                                double slowness) const {
  const workloads::ChunkShape& shape = plan_.stages[stage];
  PricedPass pass;
  const auto add_end = [&](bool here, std::string_view name) {
    if (here && costs_.ends > 0) pass.operators.push_back(Kernel(name, -1, costs_.ends, slowness));
  };
  add_end(forward ? shape.embedding : shape.head, forward ? "embedding" : "head");
  for (std::int32_t i = 0; i < shape.layers; ++i) {
    const std::int32_t layer = forward ? i : static_cast<std::int32_t>(shape.layers) - 1 - i;
    const KernelKind kind = forward ? kForwardMatrix : kBackwardMatrix;
    pass.operators.push_back(Kernel("first", layer, kernels[0], slowness));
    pass.operators.back().kind = kind;
    if (plan_.tp > 1) {
      PricedOperator collective;
      collective.name = "collective";
      collective.time_class = engine::TimeClass::kExposedTp;
      collective.duration = Time(costs_.tp);
      collective.lead = Time(costs_.tp_lead);
      collective.is_collective = true;
      collective.layer = layer;
      pass.operators.push_back(collective);
    }
    pass.operators.push_back(Kernel("second", layer, kernels[1], slowness));
    pass.operators.back().kind = kind;
  }
  add_end(forward ? shape.head : shape.embedding, forward ? "head" : "embedding");
  return pass;
}

const PricedChunk& ConstantPricer::Chunk(std::size_t stage, double slowness) {
  const auto [entry, added] = chunks_.try_emplace({stage, slowness});
  if (added) {
    entry->second.forward = Pass(stage, costs_.forward[stage], true, slowness);
    const auto [first, second] = costs_.backward[stage];
    entry->second.backward = Pass(stage, {first, second}, false, slowness);
    entry->second.input_gradient = Pass(stage, {first, 0}, false, slowness);
    entry->second.weight_gradient = Pass(stage, {0, second}, false, slowness);
  }
  return entry->second;
}

RolePrices ConstantPricer::PricesOf(const layout::Coordinates& at) {
  RolePrices prices;
  prices.pipeline_rank = static_cast<std::int32_t>(at.pp);
  const double slowness = slowness_.Of(plan_.layout.RankOf(at));
  for (std::int32_t chunk = 0; chunk < plan_.ChunksOf(prices.pipeline_rank); ++chunk) {
    const auto stage = static_cast<std::size_t>(plan_.schedule.StageOf(prices.pipeline_rank, chunk));
    prices.chunks.push_back(&Chunk(stage, slowness));
    prices.parameter_gather.push_back({Time(costs_.gather)});
    prices.gradient_bucket.push_back(
        {.shards = {Time(costs_.reduction)}, .replicas = {Time(costs_.replica_reduction)}});
    prices.buckets.push_back(
        std::min(costs_.buckets, std::max(1, static_cast<std::int32_t>(plan_.stages[stage].layers))));
  }
  const Communication replicas{Time(costs_.replica_reduction)};
  prices.layer = {.conversion = Time(std::llround(static_cast<double>(costs_.layer_conversion) * slowness)),
                  .gather = {Time(costs_.layer_gather)},
                  .reduction = {.shards = {Time(costs_.layer_reduction)}, .replicas = replicas}};
  prices.root = {.conversion = Time(),
                 .gather = {Time(costs_.root_gather)},
                 .reduction = {.shards = {Time(costs_.root_reduction)}, .replicas = replicas}};
  prices.step_overhead = Time(costs_.step_overhead);
  prices.message.assign(plan_.links.channels[static_cast<std::size_t>(at.pp)].size(), {Time(costs_.message)});
  const std::vector<std::int32_t> embedding = plan_.EmbeddingRanks();
  prices.embedding_reduction = std::binary_search(embedding.begin(), embedding.end(), prices.pipeline_rank);
  if (plan_.copies() > 1) {
    prices.copies_reduction.assign(prices.chunks.size(), {Time(costs_.copies_reduction)});
  }
  prices.embedding_reduction_time = {Time(costs_.embedding_reduction)};
  prices.norm_barrier = {Time(costs_.norm_barrier)};
  prices.slowest_wait = Time(costs_.slowest_wait);
  prices.optimizer = Time(costs_.optimizer);
  return prices;
}

v1::Run MakeRun(const RunShape& shape) {
  v1::Run run;
  std::vector<std::int64_t> stage_layers = shape.stage_layers;
  if (stage_layers.empty()) stage_layers.assign(static_cast<std::size_t>(shape.pp * shape.virtual_stages), 1);
  run.mutable_model()->set_layers(std::accumulate(stage_layers.begin(), stage_layers.end(), std::int64_t{0}));
  run.mutable_model()->set_tied_embeddings(shape.tied_embeddings);
  v1::Cluster& cluster = *run.mutable_cluster();
  cluster.mutable_node()->set_gpus(shape.gpus_per_node);
  cluster.mutable_fabric()->set_nodes_per_leaf(shape.nodes_per_leaf);
  v1::Parallelism& parallelism = *run.mutable_parallelism();
  parallelism.set_tp(shape.tp);
  parallelism.set_cp(1);
  parallelism.set_dp(shape.dp);
  parallelism.set_pp(shape.pp);
  parallelism.set_gpus(shape.tp * shape.dp * shape.pp);
  parallelism.set_virtual_stages(shape.virtual_stages);
  parallelism.set_zero_stage(shape.zero_stage);
  parallelism.set_shard_ranks(shape.shard_ranks == 0 ? shape.dp : shape.shard_ranks);
  for (const std::int64_t layers : stage_layers) parallelism.add_stage_layers(layers);
  run.mutable_training()->set_micro_batch(1);
  run.mutable_training()->set_global_batch(shape.dp * shape.micro_batches);
  run.mutable_training()->set_data_seconds(shape.data_seconds);
  v1::Software& software = *run.mutable_software();
  software.set_message_mode(shape.message_mode);
  software.set_split_message_mode(shape.message_mode);
  software.set_gradient_reduction(shape.overlapped ? v1::OVERLAPPED : v1::EXPOSED);
  software.set_parameter_gather(shape.overlapped ? v1::OVERLAPPED : v1::EXPOSED);
  software.set_norm_barrier(shape.norm_barrier);
  software.set_reduce_every_micro_batch(shape.reduce_every_micro_batch);
  software.set_reshard_after_forward(shape.reshard_after_forward);
  software.set_gather_ahead(shape.gather_ahead);
  software.set_issue_seconds(shape.issue_seconds);
  run.mutable_schedule()->set_name(shape.schedule);
  run.mutable_schedule()->set_group_size(shape.group_size);
  run.mutable_perturbation()->mutable_jitter()->set_mode(v1::NO_JITTER);
  v1::Simulation& simulation = *run.mutable_simulation();
  simulation.set_iterations(3);
  simulation.set_flops_convention("model");
  simulation.set_fold(v1::ON);
  simulation.set_granularity(v1::CHUNK);
  simulation.set_engine(v1::WORKLIST);
  return run;
}

}  // namespace orrery::training::testing
