#include "topology/node_paths.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <utility>

namespace orrery::topology {
namespace {

bool IsOf(LinkKind kind, Medium medium) {
  return medium == Medium::kNvlink ? kind == LinkKind::kNvlink : kind == LinkKind::kPcie || kind == LinkKind::kSocket;
}

bool IsEnd(DeviceKind kind) { return kind == DeviceKind::kGpu || kind == DeviceKind::kNic; }

}  // namespace

NodePaths::NodePaths(const Topology::Impl& impl) : impl_(impl), shapes_(Index(impl.parts.shapes)) {
  std::vector<bool> seen(shapes_.size(), false);
  for (const NodeSpan& span : impl.parts.nodes) {
    if (seen[Index(span.shape)]) continue;
    seen[Index(span.shape)] = true;
    Shape& shape = shapes_[Index(span.shape)];
    shape.span = span;
    shape.nvlink = std::make_unique<Fields[]>(Index(span.devices));
    shape.pcie = std::make_unique<Fields[]>(Index(span.devices));
    FindNics(&shape);
    ShareNics(span.shape);
  }
}

void NodePaths::FindNics(Shape* shape) const {
  for (std::int32_t place = 0; place < shape->span.devices; ++place) {
    const DeviceId id = shape->span.first_device + place;
    const Device& device = impl_.parts.devices[Index(id)];
    if (device.kind != DeviceKind::kNic) continue;
    const std::span<const LinkId> links = impl_.LinksFrom(id);
    const bool joined =
        std::any_of(links.begin(), links.end(), [&](LinkId link) { return IsNetwork(impl_.CableOf(link).kind); });
    shape->nic_of_rail.resize(Index(device.index) + 1, -1);
    if (!joined) continue;
    shape->nic_of_rail[Index(device.index)] = place;
    shape->nics.push_back(place);
  }
}

// Each GPU's nearest NICs, dealt evenly in order to the GPUs that have the same nearest ones.
void NodePaths::ShareNics(std::int32_t number) {
  Shape& shape = shapes_[Index(number)];
  std::map<std::vector<std::int32_t>, std::vector<std::int32_t>> gpus_near;
  for (std::int32_t gpu = 0; gpu < shape.span.devices; ++gpu) {
    if (impl_.parts.devices[Index(shape.span.first_device + gpu)].kind != DeviceKind::kGpu) continue;
    LocalCost least = LocalCost::Unreachable();
    std::vector<std::int32_t> nearest;
    for (const std::int32_t nic : shape.nics) {
      const LocalCost cost = To(number, Medium::kPcie, nic)[Index(gpu)];
      if (!cost.reachable() || cost > least) continue;
      if (cost < least) nearest.clear();
      least = cost;
      nearest.push_back(nic);
    }
    if (!nearest.empty()) gpus_near[nearest].push_back(gpu);
  }
  shape.nics_of_gpu.resize(Index(shape.span.devices));
  shape.users_of_nic.resize(Index(shape.span.devices));
  for (const auto& [nics, gpus] : gpus_near) {
    for (std::size_t k = 0; k < gpus.size(); ++k) {
      const std::size_t first = k * nics.size() / gpus.size();
      const std::size_t end = std::max(first + 1, (k + 1) * nics.size() / gpus.size());
      for (std::size_t i = first; i < end; ++i) {
        shape.nics_of_gpu[Index(gpus[k])].push_back(nics[i]);
        shape.users_of_nic[Index(nics[i])].push_back(gpus[k]);
      }
    }
  }
}

std::int32_t NodePaths::NicOnRail(std::int32_t shape, std::int32_t rail) const {
  const std::vector<std::int32_t>& nics = shapes_[Index(shape)].nic_of_rail;
  return Index(rail) < nics.size() ? nics[Index(rail)] : -1;
}

const std::vector<LocalCost>& NodePaths::To(std::int32_t shape, Medium medium, std::int32_t target) const {
  const Shape& of = shapes_[Index(shape)];
  Fields& fields = (medium == Medium::kNvlink ? of.nvlink : of.pcie)[Index(target)];
  std::call_once(fields.once, [&] { fields.costs = CostsTo(of, medium, target); });
  return fields.costs;
}

std::vector<LocalCost> NodePaths::CostsTo(const Shape& shape, Medium medium, std::int32_t target) const {
  std::vector<LocalCost> costs(Index(shape.span.devices), LocalCost::Unreachable());
  using Entry = std::pair<LocalCost, std::int32_t>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> reached;
  costs[Index(target)] = LocalCost();
  reached.emplace(LocalCost(), target);
  while (!reached.empty()) {
    const auto [cost, at] = reached.top();
    reached.pop();
    const DeviceId id = shape.span.first_device + at;
    if (cost > costs[Index(at)] || (at != target && IsEnd(impl_.parts.devices[Index(id)].kind))) continue;
    for (const LinkId link : impl_.LinksFrom(id)) {
      const Cable& cable = impl_.CableOf(link);
      if (!IsOf(cable.kind, medium)) continue;
      const std::int32_t to = impl_.To(link) - shape.span.first_device;
      const LocalCost further = cost + LocalCost::OfLink(cable.latency);
      if (further >= costs[Index(to)]) continue;
      costs[Index(to)] = further;
      reached.emplace(further, to);
    }
  }
  return costs;
}

}  // namespace orrery::topology
