#include "topology/fabric_plan.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "topology/parts.h"

namespace orrery::topology {
namespace {

constexpr std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// `amount` bytes/s over cables of `nominal` each: their number, and what one of them then achieves.
absl::StatusOr<Uplinks> Divide(double amount, double nominal, double efficiency, const char* field) {
  const double ratio = amount / nominal;
  if (!(ratio > 0) || ratio > static_cast<double>(kMostCables)) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": ", amount, " bytes/s leave a switch over cables of ",
                                                   nominal, "; allowed: up to ", kMostCables, " cables"));
  }
  // A ratio that is whole but for rounding.
  constexpr double kNoise = 1e-9;
  Uplinks uplinks;
  uplinks.cables = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(ratio * (1 - kNoise))));
  uplinks.capacity = std::llround(amount * efficiency / static_cast<double>(uplinks.cables));
  if (uplinks.capacity < 1) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": a cable has zero capacity; allowed: 1 byte/s or more"));
  }
  return uplinks;
}

// The smallest divisor of `uplinks` that is at least `needed`; 0: there is none.
std::int64_t SmallestDivisor(std::int64_t uplinks, std::int64_t needed) {
  for (std::int64_t divisor = std::max<std::int64_t>(needed, 1); divisor <= uplinks; ++divisor) {
    if (uplinks % divisor == 0) return divisor;
  }
  return 0;
}

absl::StatusOr<std::int64_t> SwitchesAbove(const char* kind, const char* below, std::int64_t cables, std::int64_t ports,
                                           std::int64_t uplinks) {
  const std::int64_t needed = CeilDiv(cables, ports);
  const std::int64_t found = SmallestDivisor(uplinks, needed);
  if (found > 0) return found;
  return absl::InvalidArgumentError(absl::StrCat(
      "cluster.fabric: ", cables, " cables need ", needed, " ", kind, " switches with ", ports,
      " ports for them, and a ", below, " switch reaches only ", uplinks,
      ", one per uplink; allowed: more switch_ports, fewer nodes or nodes_per_pod, or another nodes_per_leaf"));
}

// Nominal bytes/s below a full leaf, and its columns: the most of any kind of node.
struct Below {
  double leaf = 0;
  std::int64_t columns = 1;
  std::int64_t nodes = 0;
};

Below WhatHangsBelow(const v1::Cluster& cluster) {
  const v1::Fabric& fabric = cluster.fabric();
  Below below;
  const auto add = [&](const v1::Node& node, std::int64_t nodes) {
    const double port = node.nic().bandwidth() / static_cast<double>(fabric.planes());
    const auto nics = fabric.rail_optimised() ? 1.0 : static_cast<double>(node.nics());
    below.leaf = std::max(below.leaf, port * nics * static_cast<double>(fabric.nodes_per_leaf()));
    if (fabric.rail_optimised()) below.columns = std::max(below.columns, node.nics());
    below.nodes += nodes;
  };
  add(cluster.node(), cluster.nodes());
  for (const v1::NodeGroup& group : cluster.more_nodes()) add(group.node(), group.nodes());
  return below;
}

absl::Status PlanLevels(const v1::Fabric& fabric, double below_leaf, double efficiency, FabricPlan* plan) {
  ABSL_ASSIGN_OR_RETURN(plan->leaf, Divide(below_leaf / fabric.oversubscription(), fabric.uplink_bandwidth(),
                                           efficiency, "cluster.fabric.uplink_bandwidth"));
  const std::int64_t pod_leaves = plan->groups_per_pod * plan->network_columns;
  if (plan->groups * plan->network_columns == 1) return absl::OkStatus();
  const double over = fabric.pod_oversubscription();
  const auto ports = static_cast<double>(fabric.switch_ports());
  // A spine's ports are down : up = over : 1.
  const std::int64_t down_ports = plan->pods == 1
                                      ? fabric.switch_ports()
                                      : std::max<std::int64_t>(1, static_cast<std::int64_t>(ports * over / (1 + over)));
  const std::int64_t pod_cables = pod_leaves * plan->leaf.cables;
  ABSL_ASSIGN_OR_RETURN(plan->spines, SwitchesAbove("spine", "leaf", pod_cables, down_ports, plan->leaf.cables));
  if (plan->pods == 1) return absl::OkStatus();
  const std::int64_t spine_cables = pod_cables / plan->spines;  // divides: the spines divide a leaf's uplinks
  const double below_spine = static_cast<double>(spine_cables) * static_cast<double>(plan->leaf.capacity);
  ABSL_ASSIGN_OR_RETURN(plan->spine, Divide(below_spine / over, static_cast<double>(plan->leaf.capacity), 1,
                                            "cluster.fabric.pod_oversubscription"));
  ABSL_ASSIGN_OR_RETURN(plan->cores, SwitchesAbove("core", "spine", plan->pods * plan->spine.cables,
                                                   fabric.switch_ports(), plan->spine.cables));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FabricPlan> PlanFabric(const v1::Cluster& cluster) {
  const v1::Fabric& fabric = cluster.fabric();
  if (fabric.separate_rails() && !fabric.rail_optimised()) {
    return absl::InvalidArgumentError(
        "cluster.fabric.separate_rails: found true with rail_optimised false; allowed: rails that exist");
  }
  if (fabric.nodes_per_pod() % fabric.nodes_per_leaf() != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("cluster.fabric.nodes_per_pod: found ", fabric.nodes_per_pod(),
                     "; allowed: 0, or a multiple of nodes_per_leaf = ", fabric.nodes_per_leaf()));
  }
  const Below below = WhatHangsBelow(cluster);
  FabricPlan plan;
  plan.planes = fabric.planes();
  plan.columns = below.columns;
  plan.networks = plan.planes * (fabric.separate_rails() ? plan.columns : 1);
  plan.network_columns = fabric.separate_rails() ? 1 : plan.columns;
  plan.groups = CeilDiv(below.nodes, fabric.nodes_per_leaf());
  plan.groups_per_pod = plan.groups;
  const std::int64_t pod_groups = fabric.nodes_per_pod() / fabric.nodes_per_leaf();
  if (pod_groups > 0 && pod_groups < plan.groups) {
    plan.groups_per_pod = pod_groups;
    plan.pods = CeilDiv(plan.groups, pod_groups);
  }
  ABSL_RETURN_IF_ERROR(PlanLevels(fabric, below.leaf, cluster.node().nic().efficiency(), &plan));
  return plan;
}

}  // namespace orrery::topology
