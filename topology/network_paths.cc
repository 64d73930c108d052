#include "topology/network_paths.h"

#include <algorithm>
#include <unordered_map>

#include "base/random.h"

namespace orrery::topology {

NetworkPaths::NetworkPaths(const Topology::Impl& impl)
    : impl_(impl),
      inner_links_(impl.parts.devices.size() - Index(impl.parts.first_switch), 0),
      class_of_(inner_links_.size(), -1),
      place_(Index(impl.parts.first_switch), -1) {
  std::unordered_map<std::uint64_t, std::vector<std::int32_t>> by_hash;
  std::int32_t next_place = 0;
  for (std::size_t number = 0; number < inner_links_.size(); ++number) {
    const DeviceId id = impl.parts.first_switch + static_cast<DeviceId>(number);
    for (const LinkId link : impl.LinksFrom(id)) {
      const DeviceId to = impl.To(link);
      if (IsSwitch(to)) break;
      ++inner_links_[number];
      if (place_[Index(to)] < 0) place_[Index(to)] = next_place++;
    }
    if (inner_links_[number] == 0) continue;
    Neighbours neighbours = NeighboursOf(id);
    std::uint64_t hash = neighbours.size();
    for (const auto& [neighbour, latency] : neighbours) {
      hash = HashCombine(HashCombine(hash, static_cast<std::uint64_t>(neighbour)),
                         static_cast<std::uint64_t>(latency.count()));
    }
    std::vector<std::int32_t>& alike = by_hash[hash];
    for (const std::int32_t known : alike) {
      if (classes_[Index(known)].neighbours == neighbours) class_of_[number] = known;
    }
    if (class_of_[number] >= 0) continue;
    class_of_[number] = static_cast<std::int32_t>(classes_.size());
    alike.push_back(class_of_[number]);
    classes_.emplace_back().neighbours = std::move(neighbours);
  }
}

// Each once, with its least latency.
NetworkPaths::Neighbours NetworkPaths::NeighboursOf(DeviceId of_switch) const {
  Neighbours neighbours;
  for (const LinkId link : impl_.LinksFrom(of_switch).subspan(inner_links_[Number(of_switch)])) {
    const auto to = static_cast<std::int32_t>(Number(impl_.To(link)));
    const Time latency = impl_.CableOf(link).latency;
    if (neighbours.empty() || neighbours.back().first != to) neighbours.emplace_back(to, latency);
    neighbours.back().second = std::min(neighbours.back().second, latency);
  }
  return neighbours;
}

// By rings of equally many links.
void NetworkPaths::FindCosts(const Class& of) const {
  std::vector<NetworkCost>& costs = of.costs;
  costs.assign(inner_links_.size(), NetworkCost::Unreachable());
  std::vector<std::int32_t> ring;
  for (const auto& [neighbour, latency] : of.neighbours) {
    costs[Index(neighbour)] = NetworkCost::OfLink(latency);
    ring.push_back(neighbour);
  }
  std::vector<std::int32_t> next;
  while (!ring.empty()) {
    next.clear();
    for (const std::int32_t at : ring) {
      const NetworkCost cost = costs[Index(at)];
      const DeviceId id = impl_.parts.first_switch + at;
      for (const LinkId link : impl_.LinksFrom(id).subspan(inner_links_[Index(at)])) {
        NetworkCost& known = costs[Number(impl_.To(link))];
        const NetworkCost further = cost + NetworkCost::OfLink(impl_.CableOf(link).latency);
        if (!known.reachable()) next.push_back(static_cast<std::int32_t>(Number(impl_.To(link))));
        known = std::min(known, further);
      }
    }
    ring.swap(next);
  }
}

void NetworkPaths::FindNextLinks(const Class& of) const {
  of.first.reserve(inner_links_.size() + 1);
  of.first.push_back(0);
  for (std::size_t number = 0; number < inner_links_.size(); ++number) {
    const NetworkCost cost = of.costs[number];
    if (cost.reachable() && cost.links() > 1) {
      const DeviceId id = impl_.parts.first_switch + static_cast<DeviceId>(number);
      for (const LinkId link : impl_.LinksFrom(id).subspan(inner_links_[number])) {
        const NetworkCost rest = of.costs[Number(impl_.To(link))];
        if (rest + NetworkCost::OfLink(impl_.CableOf(link).latency) == cost) of.next.push_back(link);
      }
    }
    of.first.push_back(static_cast<std::uint32_t>(of.next.size()));
  }
}

const NetworkPaths::Class& NetworkPaths::ClassOf(DeviceId of_switch) const {
  const Class& of = classes_[Index(class_of_[Number(of_switch)])];
  std::call_once(of.once, [&] {
    FindCosts(of);
    FindNextLinks(of);
  });
  return of;
}

NetworkPaths::Target NetworkPaths::TargetOf(DeviceId nic) const {
  Target target;
  target.nic = nic;
  for (const LinkId link : impl_.LinksFrom(nic)) {
    const Cable& cable = impl_.CableOf(link);
    if (IsNetwork(cable.kind)) target.ports.push_back({impl_.To(link), NetworkCost::OfLink(cable.latency)});
  }
  return target;
}

NetworkCost NetworkPaths::ToPort(DeviceId from, const Target::Port& port) const {
  if (from == port.from) return port.cost;
  if (!IsSwitch(port.from)) return NetworkCost::Unreachable();
  const NetworkCost cost = ClassOf(port.from).costs[Number(from)];
  return cost.reachable() ? cost + port.cost : cost;
}

NetworkCost NetworkPaths::FromSwitch(DeviceId from, const Target& target) const {
  NetworkCost least = NetworkCost::Unreachable();
  for (const Target::Port& port : target.ports) least = std::min(least, ToPort(from, port));
  return least;
}

NetworkCost NetworkPaths::FromNic(DeviceId from, const Target& target) const {
  NetworkCost least = NetworkCost::Unreachable();
  for (const LinkId link : impl_.LinksFrom(from)) {
    const Cable& cable = impl_.CableOf(link);
    if (!IsNetwork(cable.kind)) continue;
    const NetworkCost first = NetworkCost::OfLink(cable.latency);
    const DeviceId to = impl_.To(link);
    if (to == target.nic) least = std::min(least, first);
    if (!IsSwitch(to)) continue;
    const NetworkCost rest = FromSwitch(to, target);
    if (rest.reachable()) least = std::min(least, first + rest);
  }
  return least;
}

void NetworkPaths::AddLinksTo(DeviceId at, DeviceId to, NetworkCost cost, std::vector<LinkId>* links) const {
  const std::span<const LinkId> all = impl_.LinksFrom(at);
  auto link = std::lower_bound(all.begin(), all.end(), to, [&](LinkId one, DeviceId id) { return impl_.To(one) < id; });
  for (; link != all.end() && impl_.To(*link) == to; ++link) {
    if (NetworkCost::OfLink(impl_.CableOf(*link).latency) == cost) links->push_back(*link);
  }
}

void NetworkPaths::AddLinksOfNic(DeviceId at, const Target& target, std::vector<LinkId>* links) const {
  const NetworkCost cost = FromNic(at, target);
  for (const LinkId link : impl_.LinksFrom(at)) {
    const Cable& cable = impl_.CableOf(link);
    const DeviceId to = impl_.To(link);
    if (!IsNetwork(cable.kind) || (!IsSwitch(to) && to != target.nic)) continue;
    const NetworkCost rest = to == target.nic ? NetworkCost() : FromSwitch(to, target);
    if (rest.reachable() && NetworkCost::OfLink(cable.latency) + rest == cost) links->push_back(link);
  }
}

void NetworkPaths::NextLinks(DeviceId at, const Target& target, std::vector<LinkId>* links) const {
  links->clear();
  if (!IsSwitch(at)) return AddLinksOfNic(at, target, links);
  const NetworkCost least = FromSwitch(at, target);
  int ports = 0;
  for (const Target::Port& port : target.ports) {
    if (ToPort(at, port) != least) continue;
    ++ports;
    if (at == port.from) {
      AddLinksTo(at, target.nic, port.cost, links);
      continue;
    }
    const Class& of = ClassOf(port.from);
    const NetworkCost cost = of.costs[Number(at)];
    if (cost.links() == 1) {
      AddLinksTo(at, port.from, cost, links);
    } else {
      links->insert(links->end(), of.next.begin() + of.first[Number(at)], of.next.begin() + of.first[Number(at) + 1]);
    }
  }
  if (ports < 2) return;
  // Ways to several ports may begin alike.
  std::sort(links->begin(), links->end(),
            [&](LinkId a, LinkId b) { return impl_.To(a) != impl_.To(b) ? impl_.To(a) < impl_.To(b) : a < b; });
  links->erase(std::unique(links->begin(), links->end()), links->end());
}

}  // namespace orrery::topology
