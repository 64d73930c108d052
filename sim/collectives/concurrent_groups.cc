#include "sim/collectives/concurrent_groups.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "sim/collectives/ring_orders.h"
#include "sim/engine/replay.h"
#include "sim/network/shared_transfers.h"

namespace orrery::collectives {
namespace {

using nccl::Operation;

std::vector<Flow> Flows(const Phase& phase, const topology::Topology& topology, const RanksByNode& group) {
  switch (phase.among) {
    case Among::kNode:
      return InsideNodesFlows(group);
    case Among::kRail:
      return OnRailsFlows(group);
    case Among::kGroup:
      break;
  }
  return FlowsOn(topology, phase.footprint, group);
}

std::int64_t RanksOf(const RanksByNode& group) {
  std::int64_t ranks = 0;
  for (const std::vector<std::int64_t>& node : group) ranks += static_cast<std::int64_t>(node.size());
  return ranks;
}

// One unit stands for the ranks of a group, which do the same at the same time.
engine::World WorldOf(const std::vector<Phase>& phases, std::size_t groups, std::int64_t ranks) {
  engine::World world;
  engine::Program program;
  for (const Phase& phase : phases) {
    engine::Op op;
    op.kind = engine::OpKind::kCollective;
    op.pattern = static_cast<std::uint16_t>(program.ops.size());
    op.use = static_cast<std::int32_t>(program.ops.size());
    op.duration = phase.fixed + phase.progress;
    program.ops.push_back(op);
    program.op_progress.push_back(phase.progress);
  }
  program.host_ops = {{}};
  program.num_groups = 1;
  program.update_op = static_cast<std::int32_t>(phases.size()) - 1;
  world.programs.push_back(std::move(program));
  for (std::size_t g = 0; g < groups; ++g) {
    const auto unit = static_cast<std::int32_t>(g);
    world.units.push_back({.program = 0,
                           .multiplicity = ranks,
                           .first_rank = static_cast<std::int64_t>(g) * ranks,
                           .peers = {},
                           .groups = {unit}});
    world.groups.push_back({unit});
    world.group_routes.emplace_back(phases.size(), -1);
  }
  return world;
}

}  // namespace

absl::StatusOr<std::vector<RanksByNode>> PlaceGroups(const v1::Cluster& cluster, const GroupPlacement& placement) {
  const auto refuse = [](const auto&... words) { return absl::InvalidArgumentError(absl::StrCat(words...)); };
  constexpr std::int64_t kMostGroups = 1 << 16;
  const std::int64_t gpus = cluster.node().gpus();
  if (placement.groups < 1 || placement.groups > kMostGroups || placement.node_stride < 1 || placement.nodes < 1) {
    return refuse(placement.groups, " groups, on every ", placement.node_stride, "th of ", placement.nodes,
                  " nodes; allowed: 1 to ", kMostGroups, " groups, from 1 on for both others");
  }
  if (placement.ranks % placement.nodes != 0) {
    return refuse(placement.ranks, " GPUs on ", placement.nodes,
                  " nodes; allowed where links are shared: as many on every node");
  }
  const std::int64_t local = placement.ranks / placement.nodes;
  if (local > gpus || gpus % local != 0) {
    return refuse(local, " GPUs of a group on each node of ", gpus, "; allowed where links are shared: divisors of ",
                  gpus);
  }
  const std::int64_t side_by_side = gpus / local;
  const std::int64_t shifts = std::min(placement.node_stride, (placement.groups + side_by_side - 1) / side_by_side);
  if (placement.nodes - 1 > (cluster.nodes() - shifts) / placement.node_stride) {
    return refuse(placement.nodes, " nodes, every ", placement.node_stride, "th, and ", shifts - 1,
                  " behind them for further groups; allowed: up to the ", cluster.nodes(), " nodes of the cluster");
  }
  std::vector<RanksByNode> groups;
  for (std::int64_t j = 0; j < placement.groups; ++j) {
    RanksByNode& group = groups.emplace_back(static_cast<std::size_t>(placement.nodes));
    const std::int64_t shift = j / side_by_side % placement.node_stride;
    const std::int64_t first = j % side_by_side * local;
    for (std::int64_t i = 0; i < placement.nodes; ++i) {
      const std::int64_t node = i * placement.node_stride + shift;
      for (std::int64_t r = 0; r < local; ++r) {
        group[static_cast<std::size_t>(i)].push_back(node * gpus + first + r);
      }
    }
  }
  return groups;
}

absl::StatusOr<Phase> PhaseOf(Operation operation, std::int64_t bytes, const nccl::Price& price,
                              const RanksByNode& group) {
  const v1::NcclAlgorithm algorithm = price.variant.algorithm;
  if (algorithm == v1::COLLNET_DIRECT || algorithm == v1::COLLNET_CHAIN ||
      (algorithm == v1::NVLS && group.size() > 1)) {
    return absl::UnimplementedError("shared links: reductions in network switches");
  }
  return Phase{.footprint = {.operation = operation, .variant = price.variant, .bytes = bytes},
               .fixed = price.fixed,
               .progress = price.progress};
}

absl::StatusOr<const std::vector<LinkLoads>*> ConcurrentGroups::LoadsOf(const Phase& phase) {
  const Operation operation = phase.footprint.operation;
  if (const std::int64_t ranks = RanksOf(groups_.front());
      operation == Operation::kAllToAll && ranks > kMostPairedRanks) {
    return absl::InvalidArgumentError(
        absl::StrCat("all-to-all of ", ranks, " GPUs; allowed where links are shared: up to ", kMostPairedRanks));
  }
  const auto [known, added] = loads_.try_emplace({operation, phase.footprint.variant.algorithm, phase.among});
  std::vector<LinkLoads>& loads = known->second;
  if (!added) return &loads;
  const NicUse nics = operation == Operation::kSendRecv ? NicUse::kOne : NicUse::kAll;
  for (const RanksByNode& group : groups_) {
    loads.push_back(collectives::LoadsOf(routes_, Flows(phase, routes_.topology(), group), nics));
  }
  return &loads;
}

absl::StatusOr<Time> ConcurrentGroups::LeastProgress(const Phase& phase) {
  ABSL_ASSIGN_OR_RETURN(const std::vector<LinkLoads>* const loads, LoadsOf(phase));
  double longest = 0;
  for (const LinkShare& share : loads->front().shares) {
    const auto capacity = static_cast<double>(routes_.topology().link(share.link).capacity);
    longest = std::max(longest, share.bytes / capacity);
  }
  return TimeFromSeconds(longest * MovedBy(phase.footprint, groups_.front()));
}

absl::StatusOr<ConcurrentTimes> ConcurrentGroups::Run(const std::vector<Phase>& phases) {
  const std::int64_t ranks = RanksOf(groups_.front());
  engine::World world = WorldOf(phases, groups_.size(), ranks);
  const topology::Topology& topology = routes_.topology();
  for (topology::LinkId link = 0; link < topology.links(); ++link) {
    world.link_capacities.push_back(topology.link(link).capacity);
  }
  for (std::size_t p = 0; p < phases.size(); ++p) {
    if (phases[p].progress == Time()) continue;
    ABSL_ASSIGN_OR_RETURN(const std::vector<LinkLoads>* const loads, LoadsOf(phases[p]));
    const double moved = MovedBy(phases[p].footprint, groups_.front());
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      world.group_routes[g][p] = static_cast<std::int32_t>(world.routes.size());
      world.routes.push_back(RouteOf((*loads)[g], moved, phases[p].progress, world.link_capacities));
    }
  }
  ABSL_ASSIGN_OR_RETURN(network::SharedTransfers transfers, network::SharedTransfers::Make(world));
  engine::ReplayOptions options;
  options.engine = engine::EngineKind::kEventQueue;
  options.iterations = 0;
  options.nothing_follows = true;
  options.transfers = &transfers;
  for (std::size_t g = 0; g < groups_.size(); ++g) options.traced_units.push_back(static_cast<std::int32_t>(g));
  ABSL_ASSIGN_OR_RETURN(const engine::Replay replay, engine::Run(world, options));
  std::vector<Time> ends(groups_.size());
  for (const engine::TracedSpan& span : replay.trace) {
    Time& end = ends[static_cast<std::size_t>(span.unit)];
    end = std::max(end, span.end);
  }
  ConcurrentTimes times;
  const auto [first, last] = std::minmax_element(ends.begin(), ends.end());
  times.first = *first;
  times.last = *last;
  for (const network::LinkUse& use : transfers.network().Busiest(1)) {
    if (use.activities == 0) continue;
    times.busiest = use.link;
    times.utilisation = use.utilisation;
  }
  return times;
}

}  // namespace orrery::collectives
