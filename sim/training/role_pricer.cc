#include "sim/training/role_pricer.h"

#include <algorithm>

#include "sim/training/model_states.h"

namespace orrery::training {
namespace {

using collectives::nccl::Operation;
using layout::Coordinates;
using layout::GroupAxis;
using layout::Placement;

}  // namespace

SpecPricer::SpecPricer(const Plan& plan, const kernels::KernelPrices& kernels,
                       const collectives::CollectivePrices& collectives)
    : plan_(plan),
      kernels_(kernels),
      collectives_(collectives),
      pricer_(plan, kernels, collectives),
      overlap_(plan.run),
      slowness_(plan) {
  PriceNominalStages();
}

void SpecPricer::PriceNominalStages() {
  const Placement tp_group = plan_.layout.PlacementOf(GroupAxis::kTp, {});
  Time busiest;
  for (const workloads::ChunkShape& stage : plan_.stages) nominal_stages_.push_back(&ChunkPrices(stage, tp_group, 1));
  for (std::int32_t rank = 0; rank < plan_.pp; ++rank) {
    Time busy;
    for (std::int32_t chunk = 0; chunk < plan_.ChunksOf(rank); ++chunk) {
      const PricedChunk& stage = *nominal_stages_[static_cast<std::size_t>(plan_.schedule.StageOf(rank, chunk))];
      busy += (stage.forward.compute + stage.backward.compute) * plan_.MicroBatchesOf(rank, chunk);
    }
    busiest = std::max(busiest, busy);
  }
  // Tensor-parallel groups wait for their own slowest member at every collective; what is left is the wait of the whole
  // run for its slowest group.
  const double rest = ExpectedSlowness(plan_, plan_.world) - ExpectedSlowness(plan_, plan_.tp);
  slowest_wait_ = TimeFromSeconds(SecondsFromTime(busiest) * rest) + TimeFromSeconds(ExpectedSkewSeconds(plan_));
}

const PricedChunk& SpecPricer::ChunkPrices(const workloads::ChunkShape& shape, const Placement& tp_group,
                                           double slowness) {
  const ShapeKey shape_key = {shape.layers, shape.embedding, shape.head};
  const ChunkKey key = {
      shape_key,       tp_group.ranks, tp_group.nodes, tp_group.max_ranks_per_node, tp_group.min_ranks_per_node,
      tp_group.leaves, slowness};
  const auto found = chunks_.find(key);
  if (found != chunks_.end()) return found->second;
  auto work = work_.find(shape_key);
  if (work == work_.end()) work = work_.emplace(shape_key, workloads::BuildChunk(plan_.run, shape)).first;
  return chunks_.emplace(key, pricer_.Price(work->second, tp_group, slowness)).first->second;
}

RolePrices SpecPricer::PricesOf(const Coordinates& at) {
  RolePrices prices;
  prices.pipeline_rank = static_cast<std::int32_t>(at.pp);
  const Placement tp_group = plan_.layout.PlacementOf(GroupAxis::kTp, at);
  const double slowness = slowness_.Of(plan_.layout.RankOf(at));
  for (std::int32_t chunk = 0; chunk < plan_.ChunksOf(prices.pipeline_rank); ++chunk) {
    prices.chunks.push_back(&ChunkPrices(plan_.Stage(prices.pipeline_rank, chunk), tp_group, slowness));
  }
  if (plan_.pp > 1) PriceMessages(at, prices);
  PriceDataParallel(at, prices);
  PriceCopiesReduction(at, prices);
  PriceEmbeddingReduction(at, prices);
  PriceUpdate(at, prices);
  prices.slowest_wait = slowest_wait_;
  if (!plan_.Without(v1::CAUSE_HOST)) {
    const v1::HostProfile& host = plan_.run.cluster().accelerator().profile().host();
    prices.step_overhead = TimeFromSeconds(host.step_overhead().value());
  }
  return prices;
}

// Tensor-parallel ranks hold the same activation: they send a part each, and the receiver gathers it unless the parts
// are what sequence parallelism wants (SC21 section 4.1).
void SpecPricer::PriceMessages(const Coordinates& at, RolePrices& prices) const {
  const std::vector<Channel>& channels = plan_.links.channels[static_cast<std::size_t>(at.pp)];
  prices.message.resize(channels.size());
  if (plan_.Without(v1::CAUSE_EXPOSED_PP)) return;
  const v1::Run& run = plan_.run;
  const std::int64_t whole = run.training().seq_len() * run.training().micro_batch() * run.model().hidden() *
                             BytesOf(run.training().precision());
  const bool sharded = run.parallelism().sequence_parallel();
  const bool scattered = !sharded && run.software().scatter_gather() && plan_.tp > 1;
  const Bytes part(sharded || scattered ? whole / plan_.tp : whole);
  const auto between = [&](std::int64_t from, std::int64_t to, bool is_send) {
    Coordinates sender = at;
    Coordinates receiver = at;
    sender.pp = from;
    receiver.pp = to;
    const std::int64_t from_rank = plan_.layout.RankOf(sender);
    const std::int64_t to_rank = plan_.layout.RankOf(receiver);
    collectives::Price price = collectives_.MessagePrice(part, from_rank, to_rank);
    if (scattered) {
      price.seconds +=
          collectives_.Seconds(Operation::kAllGather, Bytes(whole), plan_.layout.PlacementOf(GroupAxis::kTp, receiver));
    }
    const bool across_nodes = plan_.layout.NodeOf(from_rank) != plan_.layout.NodeOf(to_rank);
    return CommunicationOf(plan_, price, overlap_.OfMessage(price, is_send, across_nodes));
  };
  for (std::size_t i = 0; i < channels.size(); ++i) {
    const bool is_send = channels[i].is_send;
    prices.message[i] = is_send ? between(at.pp, channels[i].peer, true) : between(channels[i].peer, at.pp, false);
  }
}

Communication SpecPricer::DataParallel(const Coordinates& at, Operation operation, std::int64_t bytes,
                                       GroupAxis axis) const {
  if (plan_.Without(v1::CAUSE_EXPOSED_DP)) return {};
  const Placement group = plan_.layout.PlacementOf(axis, at);
  const collectives::Price price = collectives_.PriceOf(operation, Bytes(bytes), group);
  return CommunicationOf(plan_, price, overlap_.OfCollective(price, group));
}

// Where ranks shard, each reduces its own part; copies of that part are then made equal.
ReductionPrices SpecPricer::PriceReduction(const Coordinates& at, std::int64_t bytes) const {
  const Operation operation =
      plan_.run.parallelism().zero_stage() > 0 ? Operation::kReduceScatter : Operation::kAllReduce;
  return {.shards = DataParallel(at, operation, bytes, GroupAxis::kShard),
          .replicas = DataParallel(at, Operation::kAllReduce, plan_.ShardOf(bytes), GroupAxis::kReplica)};
}

// The converted shard is read in fp32 and written in 16 bit, by one kernel: a unit's parameters lie side by side.
UnitPrices SpecPricer::PriceUnit(const Coordinates& at, const workloads::ChunkShape& shape) const {
  const v1::Training& training = plan_.run.training();
  const std::int64_t parameters = workloads::Parameters(plan_.run, shape).total();
  const std::int64_t bytes = BytesOf(training.precision());
  UnitPrices unit;
  if (pricer_.converts()) {
    const double seconds = pricer_.ConversionSeconds(plan_.ShardOf(parameters), 1);
    unit.conversion = TimeFromSeconds(seconds * slowness_.Of(plan_.layout.RankOf(at)));
  }
  unit.gather = DataParallel(at, Operation::kAllGather, parameters * bytes, GroupAxis::kShard);
  unit.reduction = PriceReduction(at, parameters * BytesOf(training.gradient_type()));
  return unit;
}

void SpecPricer::PriceDataParallel(const Coordinates& at, RolePrices& prices) const {
  const v1::Run& run = plan_.run;
  if (plan_.gathers_units()) {
    prices.layer = PriceUnit(at, {.layers = 1, .embedding = false, .head = false});
    prices.root = PriceUnit(at, {.layers = 0, .embedding = true, .head = true});
  }
  for (std::int32_t chunk = 0; chunk < plan_.ChunksOf(prices.pipeline_rank); ++chunk) {
    const workloads::ChunkShape& shape = plan_.Stage(prices.pipeline_rank, chunk);
    const std::int64_t parameters = workloads::Parameters(run, shape).total();
    const std::int32_t buckets = BucketsOf(plan_, shape);
    prices.buckets.push_back(buckets);
    prices.gradient_bucket.push_back(
        PriceReduction(at, parameters * BytesOf(run.training().gradient_type()) / buckets));
    const std::int32_t parts = run.software().parameter_gather() == v1::OVERLAPPED ? buckets : 1;
    prices.parameter_gather.push_back(DataParallel(
        at, Operation::kAllGather, parameters * BytesOf(run.training().precision()) / parts, GroupAxis::kShard));
  }
  constexpr std::int64_t kNormBytes = 4;  // one fp32
  prices.norm_barrier = DataParallel(at, Operation::kAllReduce, kNormBytes, GroupAxis::kWorld);
  prices.norm_barrier.progress = Time();  // so few bytes slow nobody
}

// Copies of a stage are replicas of each other: what a rank reduced with its shard group is made equal among them.
void SpecPricer::PriceCopiesReduction(const Coordinates& at, RolePrices& prices) const {
  if (plan_.copies() == 1) return;
  for (std::int32_t chunk = 0; chunk < plan_.ChunksOf(prices.pipeline_rank); ++chunk) {
    const std::int64_t gradients = workloads::Parameters(plan_.run, plan_.Stage(prices.pipeline_rank, chunk)).total() *
                                   BytesOf(plan_.run.training().gradient_type());
    const Placement holders =
        plan_.layout.PlacementOf(plan_.HoldersOf(plan_.schedule.StageOf(prices.pipeline_rank, chunk)), at);
    prices.copies_reduction.push_back(
        plan_.Without(v1::CAUSE_EXPOSED_DP)
            ? Communication()
            : CommunicationOf(plan_,
                              collectives_.PriceOf(Operation::kAllReduce, Bytes(plan_.ShardOf(gradients)), holders)));
  }
}

void SpecPricer::PriceEmbeddingReduction(const Coordinates& at, RolePrices& prices) const {
  const v1::Run& run = plan_.run;
  const std::vector<std::int32_t> ranks = plan_.EmbeddingRanks();
  prices.embedding_reduction = std::binary_search(ranks.begin(), ranks.end(), prices.pipeline_rank);
  if (!prices.embedding_reduction || plan_.Without(v1::CAUSE_EXPOSED_PP)) return;
  const std::int64_t table =
      workloads::PaddedVocabulary(run) / plan_.tp * run.model().hidden() * BytesOf(run.training().gradient_type());
  prices.embedding_reduction_time = CommunicationOf(
      plan_, collectives_.PriceOf(Operation::kAllReduce, Bytes(table), plan_.layout.PlacementOf(ranks, at)));
}

void SpecPricer::PriceUpdate(const Coordinates& at, RolePrices& prices) const {
  const OptimizerWork update = UpdateOf(plan_, prices.pipeline_rank);
  prices.optimizer_kernels = update.kernels;
  if (plan_.Without(v1::CAUSE_OPTIMIZER)) return;
  prices.optimizer = TimeFromSeconds(kernels_.OptimizerSeconds(update.traffic, update.kernels) *
                                     slowness_.Of(plan_.layout.RankOf(at)));
}

}  // namespace orrery::training
