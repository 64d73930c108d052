#include "topology/free_form.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "topology/node_design.h"

namespace orrery::topology {
namespace {

std::size_t At(std::int64_t i) { return static_cast<std::size_t>(i); }

// What a cable between devices of these kinds is; false where there is no such cable.
bool FindLinkKind(v1::DeviceKind a, v1::DeviceKind b, LinkKind* kind) {
  if (a > b) std::swap(a, b);
  const auto nvlink = [](v1::DeviceKind one) { return one == v1::GPU || one == v1::NVSWITCH; };
  if (b == v1::NETWORK_SWITCH || (a == v1::NIC && b == v1::NIC)) {
    *kind = LinkKind::kSwitches;  // until levels are known
    return a == v1::NIC || a == v1::NETWORK_SWITCH;
  }
  if (nvlink(a) && nvlink(b)) {
    *kind = LinkKind::kNvlink;
    return true;
  }
  *kind = a == v1::CPU && b == v1::CPU ? LinkKind::kSocket : LinkKind::kPcie;
  return a != v1::NVSWITCH && b != v1::NVSWITCH;
}

class Importer {
 public:
  explicit Importer(const v1::Graph& graph) : graph_(graph) {}

  absl::StatusOr<Parts> Import() {
    ABSL_RETURN_IF_ERROR(ReadDevices());
    ABSL_RETURN_IF_ERROR(ReadCables());
    FindNodes();
    FindLevels();
    OrderDevices();
    OrderCables();
    FindShapes();
    return std::move(parts_);
  }

 private:
  const v1::Device& device(std::int64_t i) const { return graph_.device(static_cast<int>(i)); }

  absl::Status ReadDevices() {
    if (graph_.device_size() > kMostDevices) {
      return absl::ResourceExhaustedError(absl::StrCat("cluster.graph.device: found ", graph_.device_size(),
                                                       " devices; allowed: up to ", kMostDevices));
    }
    bool has_gpu = false;
    for (int i = 0; i < graph_.device_size(); ++i) {
      const v1::Device& read = graph_.device(i);
      const auto [it, is_new] = by_id_.emplace(read.id(), i);
      if (!is_new) {
        return absl::InvalidArgumentError(absl::StrCat("cluster.graph.device[", i, "].id: \"", read.id(),
                                                       "\" is the id of device[", it->second,
                                                       "]; allowed: each id once"));
      }
      if (read.kind() == v1::DEVICE_KIND_UNSPECIFIED) {
        return absl::InvalidArgumentError(
            absl::StrCat("cluster.graph.device[", i, "].kind: \"", read.id(), "\" has none"));
      }
      has_gpu = has_gpu || read.kind() == v1::GPU;
    }
    if (has_gpu) return absl::OkStatus();
    return absl::InvalidArgumentError("cluster.graph.device: has no GPU; allowed: one or more");
  }

  absl::Status ReadCables() {
    for (int i = 0; i < graph_.cable_size(); ++i) ABSL_RETURN_IF_ERROR(ReadCable(i));
    if (static_cast<std::int64_t>(cables_.size()) <= kMostCables) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat("cluster.graph.cable: found ", cables_.size(), " links; allowed: up to ", kMostCables));
  }

  absl::Status ReadCable(int i) {
    const v1::Cable& read = graph_.cable(i);
    const std::string path = absl::StrCat("cluster.graph.cable[", i, "]");
    const std::string ends = absl::StrCat(path, " (\"", read.a(), "\" - \"", read.b(), "\")");
    for (const std::string& id : {read.a(), read.b()}) {
      if (by_id_.contains(id)) continue;
      return absl::InvalidArgumentError(
          absl::StrCat(ends, ": there is no device \"", id, "\"; allowed: the id of a device"));
    }
    const std::int32_t a = by_id_.at(read.a());
    const std::int32_t b = by_id_.at(read.b());
    if (a == b) return absl::InvalidArgumentError(ends + ": joins a device to itself; allowed: two devices");
    LinkKind kind = LinkKind::kPcie;
    if (!FindLinkKind(device(a).kind(), device(b).kind(), &kind)) {
      return absl::InvalidArgumentError(absl::StrCat(
          ends, ": joins ", v1::DeviceKind_Name(device(a).kind()), " and ", v1::DeviceKind_Name(device(b).kind()),
          "; allowed: a NETWORK_SWITCH with NIC or NETWORK_SWITCH, an NVSWITCH with GPU or NVSWITCH"));
    }
    ABSL_ASSIGN_OR_RETURN(const std::int64_t capacity, Capacity(ends, read.link()));
    const std::int64_t count = std::max<std::int64_t>(read.count(), 1);
    if (count > kMostCables || capacity > std::int64_t{1'000'000'000'000'000'000} / count) {
      return absl::InvalidArgumentError(
          absl::StrCat(ends, ": ", count, " cables of ", capacity, " bytes/s; allowed: 1e18 bytes/s together"));
    }
    AddCable({std::min(a, b), std::max(a, b), kind, static_cast<std::int32_t>(count), capacity * count,
              TimeFromSeconds(read.link().latency())});
    return absl::OkStatus();
  }

  // Parallel cables are one link, or one each where a flow keeps to one: topology.h.
  void AddCable(const Cable& cable) {
    if (IsNetwork(cable.kind) && graph_.routing() != v1::ADAPTIVE) {
      for (std::int32_t k = 0; k < cable.cables && static_cast<std::int64_t>(cables_.size()) <= kMostCables; ++k) {
        cables_.push_back({cable.a, cable.b, cable.kind, 1, cable.capacity / cable.cables, cable.latency});
      }
      return;
    }
    const auto [it, is_new] = merged_.emplace(std::tuple(cable.a, cable.b, cable.latency), cables_.size());
    if (is_new) {
      cables_.push_back(cable);
      return;
    }
    Cable& one = cables_[it->second];
    const std::int64_t known = one.capacity / one.cables;
    const std::int64_t added = cable.capacity / cable.cables;
    if (one.fastest > 0 || known != added) {
      one.slowest = std::min(one.slowest > 0 ? one.slowest : known, added);
      one.fastest = std::max(one.fastest > 0 ? one.fastest : known, added);
    }
    one.cables += cable.cables;
    one.capacity += cable.capacity;
  }

  std::int32_t Root(std::int32_t i) {
    while (parent_[At(i)] != i) i = parent_[At(i)] = parent_[At(parent_[At(i)])];
    return i;
  }

  // Nodes are numbered by their first device.
  void FindNodes() {
    parent_.resize(At(graph_.device_size()));
    std::iota(parent_.begin(), parent_.end(), 0);
    for (const Cable& cable : cables_) {
      if (IsNetwork(cable.kind)) continue;
      const std::int32_t a = Root(cable.a);
      const std::int32_t b = Root(cable.b);
      parent_[At(std::max(a, b))] = std::min(a, b);
    }
    node_.assign(parent_.size(), -1);
    for (std::int32_t i = 0; i < graph_.device_size(); ++i) {
      if (device(i).kind() == v1::NETWORK_SWITCH) continue;
      const std::int32_t root = Root(i);
      if (root == i) {
        node_[At(i)] = static_cast<std::int32_t>(parts_.nodes.size());
        parts_.nodes.emplace_back();
      }
      node_[At(i)] = node_[At(root)];
    }
  }

  // Distance of each network switch from the nearest NIC, in links; the top for those that have none.
  void FindLevels() {
    std::vector<std::vector<std::int32_t>> neighbours(At(graph_.device_size()));
    std::vector<std::int32_t> reached;
    for (const Cable& cable : cables_) {
      if (!IsNetwork(cable.kind)) continue;
      neighbours[At(cable.a)].push_back(cable.b);
      neighbours[At(cable.b)].push_back(cable.a);
    }
    level_.assign(neighbours.size(), -1);
    for (std::int32_t i = 0; i < graph_.device_size(); ++i) {
      if (device(i).kind() != v1::NIC) continue;
      level_[At(i)] = 0;
      reached.push_back(i);
    }
    for (std::size_t next = 0; next < reached.size(); ++next) {
      const std::int32_t at = reached[next];
      for (const std::int32_t to : neighbours[At(at)]) {
        if (level_[At(to)] >= 0) continue;
        level_[At(to)] = level_[At(at)] + 1;
        reached.push_back(to);
      }
    }
  }

  DeviceKind KindOf(std::int32_t i) const {
    switch (device(i).kind()) {
      case v1::GPU:
        return DeviceKind::kGpu;
      case v1::NVSWITCH:
        return DeviceKind::kNvSwitch;
      case v1::PCIE_SWITCH:
        return DeviceKind::kPcieSwitch;
      case v1::CPU:
        return DeviceKind::kCpu;
      case v1::NIC:
        return DeviceKind::kNic;
      default:
        return level_[At(i)] == 1 ? DeviceKind::kLeaf : level_[At(i)] == 2 ? DeviceKind::kSpine : DeviceKind::kCore;
    }
  }

  // Those of a node stand together, in the order of the graph; network switches come last.
  void OrderDevices() {
    std::vector<std::int32_t> order(At(graph_.device_size()));
    std::iota(order.begin(), order.end(), 0);
    const auto key = [&](std::int32_t i) {
      const std::int32_t node = node_[At(i)];
      return std::tuple(node < 0, node, i);
    };
    std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) { return key(a) < key(b); });
    number_.resize(order.size());
    std::array<std::int32_t, kDeviceKinds> counts{};
    parts_.first_switch = static_cast<DeviceId>(order.size());
    std::int32_t node = 0;
    for (std::size_t k = 0; k < order.size(); ++k) {
      const std::int32_t i = order[k];
      if (node_[At(i)] != node) {
        node = node_[At(i)];
        counts = {};
      }
      const DeviceKind kind = KindOf(i);
      const auto id = static_cast<DeviceId>(k);
      if (node < 0) {
        parts_.first_switch = std::min(parts_.first_switch, id);
      } else {
        NodeSpan& span = parts_.nodes[At(node)];
        if (span.devices++ == 0) span.first_device = id;
      }
      number_[At(i)] = id;
      parts_.devices.push_back({kind, node, counts[static_cast<std::size_t>(kind)]++});
      parts_.names.push_back(device(i).id());
      parts_.hosts.push_back(device(i).host());
    }
    for (std::int32_t i = 0; i < graph_.device_size(); ++i) {
      if (device(i).kind() == v1::GPU) parts_.gpus.push_back(number_[At(i)]);
    }
  }

  LinkKind NetworkKind(const Cable& cable) const {
    const DeviceKind a = parts_.devices[At(cable.a)].kind;
    const DeviceKind b = parts_.devices[At(cable.b)].kind;
    const auto joins = [&](DeviceKind one, DeviceKind other) {
      return (a == one && b == other) || (a == other && b == one);
    };
    if (joins(DeviceKind::kNic, DeviceKind::kLeaf)) return LinkKind::kNicLeaf;
    if (joins(DeviceKind::kLeaf, DeviceKind::kSpine)) return LinkKind::kLeafSpine;
    if (joins(DeviceKind::kSpine, DeviceKind::kCore)) return LinkKind::kSpineCore;
    return LinkKind::kSwitches;
  }

  void OrderCables() {
    for (Cable& cable : cables_) {
      cable.a = number_[At(cable.a)];
      cable.b = number_[At(cable.b)];
      if (cable.a > cable.b) std::swap(cable.a, cable.b);
      if (IsNetwork(cable.kind)) cable.kind = NetworkKind(cable);
    }
    const auto key = [&](const Cable& cable) {
      return std::tuple(IsNetwork(cable.kind), IsNetwork(cable.kind) ? 0 : parts_.devices[At(cable.a)].node, cable.a,
                        cable.b, cable.latency, cable.capacity);
    };
    std::sort(cables_.begin(), cables_.end(), [&](const Cable& a, const Cable& b) { return key(a) < key(b); });
    for (const Cable& cable : cables_) {
      if (IsNetwork(cable.kind)) break;
      NodeSpan& span = parts_.nodes[At(parts_.devices[At(cable.a)].node)];
      if (span.cables++ == 0) span.first_cable = parts_.first_network_cable;
      ++parts_.first_network_cable;
    }
    parts_.cables = std::move(cables_);
  }

  // Nodes of one shape have the same devices and cables in the same order, and NICs at a network in the same places.
  void FindShapes() {
    std::vector<bool> networked(parts_.devices.size(), false);
    for (std::size_t i = At(parts_.first_network_cable); i < parts_.cables.size(); ++i) {
      networked[At(parts_.cables[i].a)] = networked[At(parts_.cables[i].b)] = true;
    }
    std::map<std::vector<std::int64_t>, std::int32_t> shapes;
    for (NodeSpan& span : parts_.nodes) {
      std::vector<std::int64_t> key = {span.devices, span.cables};
      for (DeviceId id = span.first_device; id < span.first_device + span.devices; ++id) {
        key.push_back(static_cast<std::int64_t>(parts_.devices[At(id)].kind) * 2 + (networked[At(id)] ? 1 : 0));
      }
      for (std::int32_t i = span.first_cable; i < span.first_cable + span.cables; ++i) {
        const Cable& cable = parts_.cables[At(i)];
        key.insert(key.end(), {cable.a - span.first_device, cable.b - span.first_device, cable.cables, cable.capacity,
                               cable.latency.count()});
      }
      const auto [it, is_new] = shapes.emplace(std::move(key), parts_.shapes);
      if (is_new) ++parts_.shapes;
      span.shape = it->second;
    }
  }

  const v1::Graph& graph_;
  std::unordered_map<std::string, std::int32_t> by_id_;
  std::map<std::tuple<std::int32_t, std::int32_t, Time>, std::size_t> merged_;
  std::vector<Cable> cables_;  // with places in the graph, then in the topology
  std::vector<std::int32_t> parent_;
  std::vector<std::int32_t> node_;  // by place in the graph, as the rest
  std::vector<std::int32_t> level_;
  std::vector<DeviceId> number_;
  Parts parts_;
};

}  // namespace

absl::StatusOr<Parts> FromGraph(const v1::Graph& graph) { return Importer(graph).Import(); }

}  // namespace orrery::topology
