#include "topology/routes.h"

#include <algorithm>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/random.h"
#include "topology/network_paths.h"
#include "topology/node_paths.h"
#include "topology/spread.h"
#include "topology/topology_impl.h"

namespace orrery::topology {
namespace {

std::size_t At(std::int64_t i) { return static_cast<std::size_t>(i); }

// A GPU in its node.
struct End {
  DeviceId gpu = kNoDevice;
  std::int32_t shape = 0;
  DeviceId first = 0;      // device of the node
  std::int32_t place = 0;  // gpu = first + place
};

// Both NICs of a way over the network, and the GPU that forwards to the first one.
struct Crossing {
  DeviceId from_nic = kNoDevice;
  DeviceId to_nic = kNoDevice;
  DeviceId forwarder = kNoDevice;
};

// What names a transfer to the switches.
struct Flow {
  std::uint64_t hash = 0;
  std::int64_t number = 0;
};

}  // namespace

struct Routes::Impl {
  Impl(const Topology& of, const RouteOptions& options)
      : topology(of),
        graph(of.impl()),
        routing(options.routing.value_or(of.routing())),
        hash_seed(options.hash_seed.value_or(of.hash_seed())),
        pxn(options.pxn),
        nodes(of.impl()),
        network(of.impl()) {}

  End EndOf(std::int64_t gpu) const {
    const DeviceId id = topology.gpu(gpu);
    const NodeSpan& span = graph.parts.nodes[At(graph.parts.devices[At(id)].node)];
    return {id, span.shape, span.first_device, id - span.first_device};
  }

  // Links inside the node of `end` that begin a shortest path to a device of it.
  auto WithinNode(const End& end, Medium medium, DeviceId to) const {
    const std::vector<LocalCost>* costs = &nodes.To(end.shape, medium, to - end.first);
    return [this, costs, medium, first = end.first, to](DeviceId at, std::vector<LinkId>* links) {
      links->clear();
      for (const LinkId link : graph.LinksFrom(at)) {
        const Cable& cable = graph.CableOf(link);
        if (IsNetwork(cable.kind) || (cable.kind == LinkKind::kNvlink) != (medium == Medium::kNvlink)) continue;
        const DeviceId next = graph.To(link);
        const DeviceKind kind = graph.parts.devices[At(next)].kind;
        if (next != to && (kind == DeviceKind::kGpu || kind == DeviceKind::kNic)) continue;
        const LocalCost rest = (*costs)[At(next - first)];
        if (rest.reachable() && rest + LocalCost::OfLink(cable.latency) == (*costs)[At(at - first)]) {
          links->push_back(link);
        }
      }
    };
  }

  bool Reaches(const End& end, Medium medium, DeviceId from, DeviceId to) const {
    return nodes.To(end.shape, medium, to - end.first)[At(from - end.first)].reachable();
  }

  Crossing FindCrossing(const End& from, const End& to, std::int64_t flow) const;
  Crossing FindAnyCrossing(const End& from, const End& to) const;
  DeviceId ForwarderTo(const End& from, std::int32_t nic) const;
  DeviceId AnyForwarderTo(const End& from, std::int32_t nic) const;
  void AddNetworkLeg(const Crossing& crossing, const Flow& flow, bool one_way, Spreader* spreader) const;
  bool Find(const End& from, const End& to, const Flow& flow, bool one_way, Route* route) const;

  const Topology& topology;
  const Topology::Impl& graph;
  const v1::Routing routing;
  const std::uint64_t hash_seed;
  const bool pxn;
  const NodePaths nodes;
  const NetworkPaths network;
};

// The first GPU that uses the NIC and that NVLink joins with the one that sends.
DeviceId Routes::Impl::ForwarderTo(const End& from, std::int32_t nic) const {
  for (const std::int32_t user : nodes.UsersOf(from.shape, nic)) {
    if (user != from.place && Reaches(from, Medium::kNvlink, from.gpu, from.first + user)) return from.first + user;
  }
  return kNoDevice;
}

// The same of GPUs that reach it over PCIe.
DeviceId Routes::Impl::AnyForwarderTo(const End& from, std::int32_t nic) const {
  const NodeSpan& span = graph.parts.nodes[At(graph.parts.devices[At(from.gpu)].node)];
  for (DeviceId id = span.first_device; id < span.first_device + span.devices; ++id) {
    const bool is_other = graph.parts.devices[At(id)].kind == DeviceKind::kGpu && id != from.gpu;
    if (is_other && Reaches(from, Medium::kNvlink, from.gpu, id) &&
        Reaches(from, Medium::kPcie, id, from.first + nic)) {
      return id;
    }
  }
  return kNoDevice;
}

Crossing Routes::Impl::FindCrossing(const End& from, const End& to, std::int64_t flow) const {
  const std::vector<std::int32_t>& own = nodes.NicsOf(from.shape, from.place);
  const std::vector<std::int32_t>& others = nodes.NicsOf(to.shape, to.place);
  if (own.empty() || others.empty()) return FindAnyCrossing(from, to);
  const auto rail = [&](const End& end, std::int32_t place) {
    return graph.parts.devices[At(end.first + place)].index;
  };
  // On one rail with own NICs, beginning with the flow's.
  for (std::size_t i = 0; i < own.size(); ++i) {
    const std::int32_t nic = own[(At(flow) + i) % own.size()];
    for (const std::int32_t other : others) {
      if (rail(from, nic) != rail(to, other)) continue;
      const Crossing crossing{from.first + nic, to.first + other, kNoDevice};
      if (network.FromNic(crossing.from_nic, network.TargetOf(crossing.to_nic)).reachable()) return crossing;
    }
  }
  const std::int32_t other = others[At(flow) % others.size()];
  const Crossing direct{from.first + own[At(flow) % own.size()], to.first + other, kNoDevice};
  const NetworkPaths::Target target = network.TargetOf(direct.to_nic);
  const NetworkCost direct_cost = network.FromNic(direct.from_nic, target);
  const std::int32_t railed = nodes.NicOnRail(from.shape, rail(to, other));
  if (pxn && railed >= 0) {
    const Crossing forwarded{from.first + railed, direct.to_nic, ForwarderTo(from, railed)};
    const NetworkCost cost = network.FromNic(forwarded.from_nic, target);
    if (forwarded.forwarder != kNoDevice && cost.reachable() &&
        (!direct_cost.reachable() || cost.links() <= direct_cost.links())) {
      return forwarded;
    }
  }
  return direct_cost.reachable() ? direct : FindAnyCrossing(from, to);
}

// The pair of NICs of both nodes with the fewest links between them, the first of several; with a forwarder only where
// there is none without.
Crossing Routes::Impl::FindAnyCrossing(const End& from, const End& to) const {
  Crossing best;
  NetworkCost least = NetworkCost::Unreachable();
  const auto consider = [&](DeviceId sender, DeviceId nic, const NetworkPaths::Target& target) {
    const NetworkCost cost = network.FromNic(nic, target);
    if (cost >= least || !Reaches(from, Medium::kPcie, sender, nic)) return;
    least = cost;
    best = {nic, target.nic, sender == from.gpu ? kNoDevice : sender};
  };
  for (const bool forwards : {false, true}) {
    for (const std::int32_t other : nodes.Nics(to.shape)) {
      if (!Reaches(to, Medium::kPcie, to.gpu, to.first + other)) continue;
      const NetworkPaths::Target target = network.TargetOf(to.first + other);
      for (const std::int32_t nic : nodes.Nics(from.shape)) {
        if (!forwards) consider(from.gpu, from.first + nic, target);
        const DeviceId forwarder = forwards ? AnyForwarderTo(from, nic) : kNoDevice;
        if (forwarder != kNoDevice) consider(forwarder, from.first + nic, target);
      }
    }
    if (least.reachable()) break;
  }
  return best;
}

void Routes::Impl::AddNetworkLeg(const Crossing& crossing, const Flow& flow, bool one_way, Spreader* spreader) const {
  const NetworkPaths::Target target = network.TargetOf(crossing.to_nic);
  const auto next = [&](DeviceId at, std::vector<LinkId>* links) { network.NextLinks(at, target, links); };
  if (routing == v1::ADAPTIVE && !one_way) return spreader->AddLeg(crossing.from_nic, crossing.to_nic, next, nullptr);
  const auto destination = static_cast<std::uint64_t>(network.PlaceOf(crossing.to_nic));
  std::uint64_t digits = destination;
  const auto pick = [&](DeviceId at, std::span<const LinkId> links) -> std::size_t {
    const std::uint64_t ways = links.size();
    if (routing == v1::HASHED) {
      // The upper half of the word scaled to the number of ways.
      return ((HashCombine(flow.hash, static_cast<std::uint64_t>(at)) >> 32) * ways) >> 32;
    }
    if (graph.To(links.front()) == graph.To(links.back())) return destination % ways;
    const std::uint64_t digit = digits % ways;
    digits /= ways;
    return digit;
  };
  const Spreader::Choose choose = pick;
  spreader->AddLeg(crossing.from_nic, crossing.to_nic, next, &choose);
}

bool Routes::Impl::Find(const End& from, const End& to, const Flow& flow, bool one_way, Route* route) const {
  Spreader spreader(graph, route);
  if (from.gpu == to.gpu) return true;
  const auto pick_first = [](DeviceId, std::span<const LinkId>) { return std::size_t{0}; };
  const Spreader::Choose first = pick_first;
  const Spreader::Choose* choose = one_way ? &first : nullptr;
  const auto add = [&](const End& end, Medium medium, DeviceId source, DeviceId target) {
    const auto next = WithinNode(end, medium, target);
    spreader.AddLeg(source, target, next, choose);
  };
  if (from.first == to.first) {
    for (const Medium medium : {Medium::kNvlink, Medium::kPcie}) {
      if (!Reaches(from, medium, from.gpu, to.gpu)) continue;
      add(from, medium, from.gpu, to.gpu);
      return spreader.Finish();
    }
  }
  const Crossing crossing = FindCrossing(from, to, flow.number);
  ORRERY_CHECK(crossing.from_nic != kNoDevice);  // Topology::Build has refused GPUs that cannot reach each other
  const bool forwards = crossing.forwarder != kNoDevice;
  if (forwards) add(from, Medium::kNvlink, from.gpu, crossing.forwarder);
  add(from, Medium::kPcie, forwards ? crossing.forwarder : from.gpu, crossing.from_nic);
  AddNetworkLeg(crossing, flow, one_way, &spreader);
  add(to, Medium::kPcie, crossing.to_nic, to.gpu);
  route->from_nic = crossing.from_nic;
  route->to_nic = crossing.to_nic;
  route->forwarder = crossing.forwarder;
  return spreader.Finish();
}

Routes::Routes(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Routes::~Routes() = default;
Routes::Routes(Routes&&) noexcept = default;
Routes& Routes::operator=(Routes&&) noexcept = default;

absl::StatusOr<Routes> Routes::Build(const Topology& topology, const RouteOptions& options) {
  if (options.routing == v1::ROUTING_UNSPECIFIED) {
    return absl::InvalidArgumentError("routing: found none; allowed: ADAPTIVE, HASHED, BY_DESTINATION");
  }
  return Routes(std::make_unique<Impl>(topology, options));
}

void Routes::Between(std::int64_t from_gpu, std::int64_t to_gpu, std::int64_t flow, Route* route) const {
  ORRERY_CHECK(from_gpu >= 0 && from_gpu < impl_->topology.gpus() && to_gpu >= 0 && to_gpu < impl_->topology.gpus());
  ORRERY_CHECK(flow >= 0);
  const auto word = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  const Flow named{HashCombine(HashCombine(HashCombine(impl_->hash_seed, word(from_gpu)), word(to_gpu)), word(flow)),
                   flow};
  const End from = impl_->EndOf(from_gpu);
  const End to = impl_->EndOf(to_gpu);
  // Ways whose shares have no common denominator in an int64 give way to one of them.
  if (!impl_->Find(from, to, named, /*one_way=*/false, route)) impl_->Find(from, to, named, /*one_way=*/true, route);
}

Route Routes::Between(std::int64_t from_gpu, std::int64_t to_gpu, std::int64_t flow) const {
  Route route;
  Between(from_gpu, to_gpu, flow, &route);
  return route;
}

std::int64_t Routes::Ways(std::int64_t from_gpu, std::int64_t to_gpu, std::int64_t flow) const {
  const Route route = Between(from_gpu, to_gpu, flow);
  if (route.from_nic == kNoDevice) return 1;
  const NetworkPaths::Target target = impl_->network.TargetOf(route.to_nic);
  return CountWays(impl_->graph, route.from_nic, route.to_nic,
                   [&](DeviceId at, std::vector<LinkId>* links) { impl_->network.NextLinks(at, target, links); });
}

std::vector<DeviceId> Routes::NicsOf(std::int64_t gpu) const {
  const End end = impl_->EndOf(gpu);
  std::vector<DeviceId> nics;
  for (const std::int32_t place : impl_->nodes.NicsOf(end.shape, end.place)) nics.push_back(end.first + place);
  return nics;
}

std::int64_t Routes::Bottleneck(const Route& route) const {
  Int128 least = std::numeric_limits<std::int64_t>::max();
  for (const LinkShare& share : route.shares) {
    least = std::min(least, Int128{impl_->graph.CableOf(share.link).capacity} * route.denominator / share.weight);
  }
  return static_cast<std::int64_t>(least);
}

const Topology& Routes::topology() const { return impl_->topology; }

}  // namespace orrery::topology
