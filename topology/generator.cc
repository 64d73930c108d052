#include "topology/generator.h"

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "topology/fabric_plan.h"
#include "topology/node_design.h"

namespace orrery::topology {
namespace {

// Nodes of one design, and what joins one of their NICs to a leaf.
struct Kind {
  NodeDesign design;
  std::int64_t nodes = 0;
  std::int64_t gpus = 0;
  std::int64_t nics = 0;
  std::int64_t port_capacity = 0;
  Time port_latency;
};

class Generator {
 public:
  explicit Generator(const v1::Cluster& cluster) : cluster_(cluster), fabric_(cluster.fabric()) {}

  absl::StatusOr<Parts> Generate() {
    ABSL_RETURN_IF_ERROR(AddKind("cluster.node", cluster_.node(), cluster_.nodes()));
    for (int i = 0; i < cluster_.more_nodes_size(); ++i) {
      ABSL_RETURN_IF_ERROR(AddKind(absl::StrCat("cluster.more_nodes[", i, "].node"), cluster_.more_nodes(i).node(),
                                   cluster_.more_nodes(i).nodes()));
    }
    ABSL_ASSIGN_OR_RETURN(plan_, PlanFabric(cluster_));
    FindLeaves();
    ABSL_RETURN_IF_ERROR(Reserve());
    AddNodes();
    AddSwitches();
    JoinNics();
    JoinLeaves();
    JoinSpines();
    return std::move(parts_);
  }

 private:
  absl::Status AddKind(const std::string& path, const v1::Node& node, std::int64_t nodes) {
    Kind kind;
    ABSL_ASSIGN_OR_RETURN(kind.design, DesignNode(path, node));
    kind.nodes = nodes;
    kind.gpus = node.gpus();
    kind.nics = node.nics();
    ABSL_ASSIGN_OR_RETURN(kind.port_capacity,
                          Capacity(path + ".nic", node.nic(), 1 / static_cast<double>(fabric_.planes())));
    kind.port_latency = TimeFromSeconds(node.nic().latency() / 2) + TimeFromSeconds(fabric_.hop_latency() / 2);
    kinds_.push_back(std::move(kind));
    return absl::OkStatus();
  }

  // A group has a leaf in a column where one of its nodes has a NIC there.
  void FindLeaves() {
    columns_of_group_.assign(static_cast<std::size_t>(std::min(plan_.groups, kMostDevices)), 1);
    if (!fabric_.rail_optimised()) return;
    std::int64_t first = 0;
    for (const Kind& kind : kinds_) {
      const std::int64_t end = first + kind.nodes;
      for (std::int64_t group = first / fabric_.nodes_per_leaf();
           group * fabric_.nodes_per_leaf() < end && group < kMostDevices; ++group) {
        std::int64_t& columns = columns_of_group_[static_cast<std::size_t>(group)];
        columns = std::max(columns, kind.nics);
      }
      first = end;
    }
  }

  absl::Status Reserve() {
    const auto real = [](std::int64_t value) { return static_cast<double>(value); };
    double devices = 0;
    double cables = 0;
    for (const Kind& kind : kinds_) {
      devices += real(kind.nodes) * static_cast<double>(kind.design.devices.size());
      cables += real(kind.nodes) * (static_cast<double>(kind.design.cables.size()) + real(kind.nics * plan_.planes));
    }
    double leaves = 0;
    for (const std::int64_t columns : columns_of_group_) leaves += real(columns * plan_.planes);
    const double spines = real(plan_.networks * plan_.pods * plan_.spines);
    devices += leaves + spines + real(plan_.networks * plan_.spines * plan_.cores);
    const auto links_per_cable = [&](std::int64_t uplinks, std::int64_t above) { return Merges() ? above : uplinks; };
    if (plan_.spines > 0) cables += leaves * real(links_per_cable(plan_.leaf.cables, plan_.spines));
    if (plan_.cores > 0) cables += spines * real(links_per_cable(plan_.spine.cables, plan_.cores));
    if (devices > real(kMostDevices) || cables > real(kMostCables)) {
      return absl::ResourceExhaustedError(absl::StrCat("cluster: ", devices, " devices and ", cables,
                                                       " cables; allowed: up to ", kMostDevices, " and ", kMostCables));
    }
    parts_.devices.reserve(static_cast<std::size_t>(devices));
    parts_.cables.reserve(static_cast<std::size_t>(cables));
    return absl::OkStatus();
  }

  void AddNodes() {
    for (const Kind& kind : kinds_) {
      for (std::int64_t i = 0; i < kind.nodes; ++i) AddNode(kind);
      parts_.hosting.push_back(kind.design.hosting);
      ++parts_.shapes;
    }
    parts_.first_switch = static_cast<DeviceId>(parts_.devices.size());
    parts_.first_network_cable = static_cast<std::int32_t>(parts_.cables.size());
  }

  void AddNode(const Kind& kind) {
    const auto first = static_cast<DeviceId>(parts_.devices.size());
    const auto number = static_cast<std::int32_t>(parts_.nodes.size());
    parts_.nodes.push_back({first, static_cast<std::int32_t>(kind.design.devices.size()),
                            static_cast<std::int32_t>(parts_.cables.size()),
                            static_cast<std::int32_t>(kind.design.cables.size()), parts_.shapes});
    for (Device device : kind.design.devices) {
      device.node = number;
      parts_.devices.push_back(device);
    }
    for (Cable cable : kind.design.cables) {
      cable.a += first;
      cable.b += first;
      parts_.cables.push_back(cable);
    }
    for (std::int64_t gpu = 0; gpu < kind.gpus; ++gpu) parts_.gpus.push_back(first + static_cast<DeviceId>(gpu));
  }

  void AddSwitches() {
    const auto add = [&](DeviceKind kind, std::int64_t count) {
      const auto first = static_cast<DeviceId>(parts_.devices.size());
      for (std::int32_t i = 0; i < count; ++i) parts_.devices.push_back({kind, -1, i});
      return first;
    };
    // Leaves of a plane by group, then column.
    std::int64_t leaves = 0;
    for (const std::int64_t columns : columns_of_group_) {
      leaf_of_group_.push_back(leaves);
      leaves += columns;
    }
    leaves_of_plane_ = leaves;
    first_leaf_ = add(DeviceKind::kLeaf, leaves * plan_.planes);
    first_spine_ = add(DeviceKind::kSpine, plan_.networks * plan_.pods * plan_.spines);
    first_core_ = add(DeviceKind::kCore, plan_.networks * plan_.spines * plan_.cores);
  }

  DeviceId Leaf(std::int64_t plane, std::size_t group, std::int64_t column) const {
    return first_leaf_ + static_cast<DeviceId>(plane * leaves_of_plane_ + leaf_of_group_[group] + column);
  }

  void JoinNics() {
    std::int64_t number = 0;
    for (const Kind& kind : kinds_) {
      for (std::int64_t i = 0; i < kind.nodes; ++i, ++number) {
        const auto group = static_cast<std::size_t>(number / fabric_.nodes_per_leaf());
        const DeviceId first_nic = parts_.nodes[static_cast<std::size_t>(number)].first_device + kind.design.first_nic;
        for (std::int64_t nic = 0; nic < kind.nics; ++nic) {
          for (std::int64_t plane = 0; plane < plan_.planes; ++plane) {
            parts_.cables.push_back({first_nic + static_cast<DeviceId>(nic),
                                     Leaf(plane, group, fabric_.rail_optimised() ? nic : 0), LinkKind::kNicLeaf, 1,
                                     kind.port_capacity, kind.port_latency});
          }
        }
      }
    }
  }

  // A network of spreading traffic sees parallel cables as one link.
  bool Merges() const { return fabric_.routing() == v1::ADAPTIVE; }

  // `cables` from one switch, dealt evenly to `count` switches from `first`.
  void Join(LinkKind kind, DeviceId from, DeviceId first, std::int64_t count, const Uplinks& uplinks) {
    const std::int64_t each = uplinks.cables / count;
    const Time latency = TimeFromSeconds(fabric_.hop_latency());
    for (std::int64_t i = 0; i < count; ++i) {
      const DeviceId to = first + static_cast<DeviceId>(i);
      if (Merges()) {
        parts_.cables.push_back({from, to, kind, static_cast<std::int32_t>(each), each * uplinks.capacity, latency});
        continue;
      }
      for (std::int64_t k = 0; k < each; ++k) parts_.cables.push_back({from, to, kind, 1, uplinks.capacity, latency});
    }
  }

  void JoinLeaves() {
    if (plan_.spines == 0) return;
    for (std::int64_t plane = 0; plane < plan_.planes; ++plane) {
      for (std::size_t group = 0; group < columns_of_group_.size(); ++group) {
        const std::int64_t pod = static_cast<std::int64_t>(group) / plan_.groups_per_pod;
        for (std::int64_t column = 0; column < columns_of_group_[group]; ++column) {
          const std::int64_t network = fabric_.separate_rails() ? plane * plan_.columns + column : plane;
          Join(LinkKind::kLeafSpine, Leaf(plane, group, column), Spine(network, pod, 0), plan_.spines, plan_.leaf);
        }
      }
    }
  }

  DeviceId Spine(std::int64_t network, std::int64_t pod, std::int64_t i) const {
    return first_spine_ + static_cast<DeviceId>((network * plan_.pods + pod) * plan_.spines + i);
  }

  // Spine i of every pod to the cores of group i.
  void JoinSpines() {
    if (plan_.cores == 0) return;
    for (std::int64_t network = 0; network < plan_.networks; ++network) {
      for (std::int64_t pod = 0; pod < plan_.pods; ++pod) {
        for (std::int64_t i = 0; i < plan_.spines; ++i) {
          const DeviceId core = first_core_ + static_cast<DeviceId>((network * plan_.spines + i) * plan_.cores);
          Join(LinkKind::kSpineCore, Spine(network, pod, i), core, plan_.cores, plan_.spine);
        }
      }
    }
  }

  const v1::Cluster& cluster_;
  const v1::Fabric& fabric_;
  std::vector<Kind> kinds_;
  FabricPlan plan_;
  std::vector<std::int64_t> columns_of_group_;
  std::vector<std::int64_t> leaf_of_group_;
  std::int64_t leaves_of_plane_ = 0;
  DeviceId first_leaf_ = 0;
  DeviceId first_spine_ = 0;
  DeviceId first_core_ = 0;
  Parts parts_;
};

}  // namespace

absl::StatusOr<Parts> Generate(const v1::Cluster& cluster) { return Generator(cluster).Generate(); }

}  // namespace orrery::topology
