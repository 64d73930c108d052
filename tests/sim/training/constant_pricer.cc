#include "tests/sim/training/constant_pricer.h"

#include <array>
#include <cmath>

namespace orrery::training::testing {
namespace {

PricedOperator Kernel(std::string_view name, std::int64_t picoseconds, double slowness) {
  PricedOperator op;
  op.name = name;
  op.duration = Time(std::llround(static_cast<double>(picoseconds) * slowness));
  op.layer = 0;
  return op;
}

}  // namespace

PricedPass ConstantPricer::Pass(const std::array<std::int64_t, 2>& kernels, double slowness) const {
  PricedPass pass;
  pass.operators.push_back(Kernel("first", kernels[0], slowness));
  if (plan_.tp > 1) {
    PricedOperator collective;
    collective.name = "collective";
    collective.time_class = engine::TimeClass::kExposedTp;
    collective.duration = Time(costs_.tp);
    collective.lead = Time(costs_.tp_lead);
    collective.is_collective = true;
    collective.layer = 0;
    pass.operators.push_back(collective);
  }
  pass.operators.push_back(Kernel("second", kernels[1], slowness));
  return pass;
}

const PricedChunk& ConstantPricer::Chunk(std::size_t stage, double slowness) {
  const auto [entry, added] = chunks_.try_emplace({stage, slowness});
  if (added) {
    entry->second.forward = Pass(costs_.forward[stage], slowness);
    entry->second.backward = Pass(costs_.backward[stage], slowness);
  }
  return entry->second;
}

RolePrices ConstantPricer::PricesOf(const layout::Coordinates& at) {
  RolePrices prices;
  prices.pipeline_rank = static_cast<std::int32_t>(at.pp);
  const double slowness = slowness_.Of(plan_.layout.RankOf(at));
  for (std::int32_t chunk = 0; chunk < plan_.chunks; ++chunk) {
    const auto stage = static_cast<std::size_t>(plan_.schedule.StageOf(prices.pipeline_rank, chunk));
    prices.chunks.push_back(&Chunk(stage, slowness));
    prices.parameter_gather.push_back(Time(costs_.gather));
    prices.gradient_bucket.push_back(Time(costs_.reduction));
    prices.buckets.push_back(costs_.buckets);
  }
  prices.message.fill(Time(costs_.message));
  prices.embedding_reduction =
      plan_.pp > 1 && (at.pp == 0 || at.pp + 1 == plan_.pp) && plan_.run.model().tied_embeddings();
  prices.embedding_reduction_time = Time(costs_.embedding_reduction);
  prices.norm_barrier = Time(costs_.norm_barrier);
  prices.slowest_wait = Time(costs_.slowest_wait);
  prices.optimizer = Time(costs_.optimizer);
  return prices;
}

v1::Run MakeRun(const RunShape& shape) {
  v1::Run run;
  run.mutable_model()->set_layers(shape.pp * shape.virtual_stages);
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
  run.mutable_training()->set_micro_batch(1);
  run.mutable_training()->set_global_batch(shape.dp * shape.micro_batches);
  run.mutable_training()->set_data_seconds(shape.data_seconds);
  v1::Software& software = *run.mutable_software();
  software.set_message_mode(shape.message_mode);
  software.set_gradient_reduction(shape.overlapped ? v1::OVERLAPPED : v1::EXPOSED);
  software.set_parameter_gather(shape.overlapped ? v1::OVERLAPPED : v1::EXPOSED);
  software.set_norm_barrier(shape.norm_barrier);
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
