// Clusters built and routed. Hashed: from each GPU to the next of its rail, to the one half the cluster away and to a
// random one. Adaptive, with hundreds of links to a route: from each node's first GPU to a random one, which needs the
// distances to every class of leaves. The answers: the shares of every route leave the source once and arrive once.
#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>

#include "base/random.h"
#include "proto/loader.h"
#include "topology/routes.h"
#include "topology/summary.h"
#include "topology/topology.h"

namespace orrery::topology {
namespace {

// The MegaScale preset with so many nodes: rails, three levels, eight NICs per node.
v1::Cluster ClusterOf(std::int64_t nodes, v1::Routing routing) {
  v1::Cluster cluster =
      *spec::LoadCluster("megascale-clos", {.spec_path = {ORRERY_SOURCE_DIR "/specs"}, .overrides = {}});
  cluster.set_nodes(nodes);
  cluster.mutable_fabric()->set_routing(routing);
  return cluster;
}

bool Arrives(const Topology& topology, DeviceId from, DeviceId to, const Route& route) {
  std::int64_t left = 0;
  std::int64_t arrived = 0;
  for (const LinkShare& share : route.shares) {
    const Link link = topology.link(share.link);
    if (link.from == from) left += share.weight;
    if (link.to == to) arrived += share.weight;
  }
  return left == route.denominator && arrived == route.denominator;
}

std::int64_t RandomGpu(std::int64_t gpu, std::int64_t gpus) {
  return static_cast<std::int64_t>(HashCombine(1, static_cast<std::uint64_t>(gpu)) % static_cast<std::uint64_t>(gpus));
}

// From every `stride`-th GPU to those that `targets` says; the number of routes, 0 where one is none.
template <typename Targets>
std::int64_t RouteAll(const Topology& topology, std::int64_t stride, const Targets& targets) {
  const absl::StatusOr<Routes> routes = Routes::Build(topology);
  Route route;
  std::int64_t routed = 0;
  for (std::int64_t gpu = 0; gpu < topology.gpus(); gpu += stride) {
    for (const std::int64_t to : targets(gpu, topology.gpus())) {
      if (to == gpu) continue;
      routes->Between(gpu, to, 0, &route);
      if (!Arrives(topology, topology.gpu(gpu), topology.gpu(to), route)) return 0;
      ++routed;
    }
  }
  return routed;
}

template <typename Targets>
void BuildAndRoute(benchmark::State& state, v1::Routing routing, std::int64_t stride, const Targets& targets) {
  const v1::Cluster cluster = ClusterOf(state.range(0), routing);
  std::int64_t routed = 0;
  for (auto _ : state) {
    const absl::StatusOr<Topology> topology = Topology::Build(cluster);
    const std::int64_t routes = topology.ok() ? RouteAll(*topology, stride, targets) : 0;
    if (routes == 0) return state.SkipWithError("not the routes");
    routed += routes;
  }
  state.counters["routes/s"] = benchmark::Counter(static_cast<double>(routed), benchmark::Counter::kIsRate);
}

void BM_BuildAndRouteHashed(benchmark::State& state) {
  BuildAndRoute(state, v1::HASHED, 1, [](std::int64_t gpu, std::int64_t gpus) {
    return std::array{(gpu + 8) % gpus, (gpu + gpus / 2) % gpus, RandomGpu(gpu, gpus)};
  });
}
BENCHMARK(BM_BuildAndRouteHashed)->Arg(1536)->Arg(12500)->Unit(benchmark::kMillisecond);

void BM_BuildAndRouteAdaptive(benchmark::State& state) {
  BuildAndRoute(state, v1::ADAPTIVE, 8,
                [](std::int64_t gpu, std::int64_t gpus) { return std::array{RandomGpu(gpu, gpus)}; });
}
BENCHMARK(BM_BuildAndRouteAdaptive)->Arg(1536)->Arg(12500)->Unit(benchmark::kMillisecond);

void BM_Build(benchmark::State& state) {
  const v1::Cluster cluster = ClusterOf(state.range(0), v1::ADAPTIVE);
  for (auto _ : state) {
    const absl::StatusOr<Topology> topology = Topology::Build(cluster);
    if (!topology.ok() || topology->gpus() != 8 * state.range(0)) return state.SkipWithError("not the cluster");
  }
}
BENCHMARK(BM_Build)->Arg(1536)->Arg(12500)->Unit(benchmark::kMillisecond);

// Full bisection, found as a maximum flow.
void BM_Summarise(benchmark::State& state) {
  const Topology topology = *Topology::Build(ClusterOf(state.range(0), v1::ADAPTIVE));
  for (auto _ : state) {
    const double share = Summarise(topology).bisection_share;
    if (share < 0.999 || share > 1.001) return state.SkipWithError("not full bisection");
  }
}
BENCHMARK(BM_Summarise)->Arg(1536)->Arg(12500)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::topology
