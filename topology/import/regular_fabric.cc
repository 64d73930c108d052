#include "topology/import/regular_fabric.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"

namespace orrery::topology {
namespace {

class Finder {
 public:
  Finder(const IbFabric& fabric, std::vector<PlacedServer> servers) : fabric_(fabric) {
    result_.servers = std::move(servers);
  }

  RegularFabric Find() {
    CollectLeaves();
    CollectUplinks();
    Describe();
    result_.irregularity = Irregularity();
    if (result_.irregularity.empty()) OrderServers();
    return std::move(result_);
  }

 private:
  using Leaves = std::vector<int>;  // of a server, by NIC

  const IbCable& CableOf(int index) const { return fabric_.cables[static_cast<std::size_t>(index)]; }
  bool IsSwitch(int device) const { return fabric_.devices[static_cast<std::size_t>(device)].is_switch; }
  int LeafOf(int cable) const { return IsSwitch(CableOf(cable).a) ? CableOf(cable).a : CableOf(cable).b; }

  void CollectLeaves() {
    for (const PlacedServer& server : result_.servers) {
      Leaves leaves;
      for (const int cable : server.cables) {
        leaves.push_back(LeafOf(cable));
        below_[LeafOf(cable)] += CableOf(cable).bandwidth;
        rates_.insert(CableOf(cable).bandwidth);
        degraded_ |= CableOf(cable).is_degraded;
      }
      if (groups_.emplace(leaves, 0).second) group_order_.push_back(leaves);
      ++groups_[leaves];
    }
  }

  void CollectUplinks() {
    for (const IbCable& cable : fabric_.cables) {
      if (!IsSwitch(cable.a) || !IsSwitch(cable.b)) continue;
      degraded_ |= cable.is_degraded;
      uplink_rates_.insert(cable.bandwidth);
      const bool a = below_.contains(cable.a);
      const bool b = below_.contains(cable.b);
      if (a == b) {
        other_cables_ = true;
        continue;
      }
      ++uplinks_[a ? cable.a : cable.b][a ? cable.b : cable.a];
    }
  }

  // Of the first leaf.
  std::int64_t Uplinks() const {
    std::int64_t count = 0;
    if (uplinks_.empty()) return 0;
    for (const auto& [spine, cables] : uplinks_.begin()->second) count += cables;
    return count;
  }

  bool RailOptimised() const {
    const Leaves& leaves = group_order_.front();
    return std::set<int>(leaves.begin(), leaves.end()).size() == leaves.size();
  }

  // What comes near, whether or not it is all.
  void Describe() {
    std::int64_t most = 1;
    for (const auto& [leaves, nodes] : groups_) most = std::max(most, nodes);
    double down = 0;
    double up = 0;
    std::set<int> spines;
    for (const auto& [leaf, bandwidth] : below_) down = std::max(down, bandwidth);
    for (const auto& [spine, cables] : uplinks_.empty() ? std::map<int, std::int64_t>() : uplinks_.begin()->second) {
      up += static_cast<double>(cables) * (uplink_rates_.empty() ? 0 : *uplink_rates_.rbegin());
      spines.insert(spine);
    }
    v1::Fabric& fabric = result_.fabric;
    fabric.set_nodes_per_leaf(most);
    fabric.set_rail_optimised(RailOptimised());
    fabric.set_oversubscription(up > 0 ? std::clamp(down / up, 1.0, 1000.0) : 1);
    if (!uplink_rates_.empty() && *uplink_rates_.rbegin() > 0) fabric.set_uplink_bandwidth(*uplink_rates_.rbegin());
    // As many ports as it takes for as many spines.
    std::int64_t ports = 0;
    for (const int spine : spines) ports = std::max(ports, CablesOf(spine));
    if (ports >= 2) fabric.set_switch_ports(ports);
  }

  std::int64_t CablesOf(int spine) const {
    std::int64_t count = 0;
    for (const auto& [leaf, spines] : uplinks_) {
      if (const auto found = spines.find(spine); found != spines.end()) count += found->second;
    }
    return count;
  }

  std::string Irregularity() const {
    if (degraded_) return "degraded cables";
    if (rates_.size() > 1) return "NICs of different speeds";
    if (uplink_rates_.size() > 1) return "cables of different speeds between switches";
    if (other_cables_) return "cables between two leaf switches, or between two switches without hosts: no two levels";
    for (const Leaves& leaves : group_order_) {
      const std::set<int> distinct(leaves.begin(), leaves.end());
      if (distinct.size() != (RailOptimised() ? leaves.size() : 1))
        return "hosts whose NICs are neither all on one leaf switch nor each on its own";
    }
    if (std::string reason = IrregularGroups(); !reason.empty()) return reason;
    return IrregularUplinks();
  }

  std::string IrregularGroups() const {
    std::map<int, std::set<std::size_t>> groups_of_leaf;
    for (std::size_t i = 0; i < group_order_.size(); ++i) {
      for (const int leaf : group_order_[i]) groups_of_leaf[leaf].insert(i);
    }
    for (const auto& [leaf, groups] : groups_of_leaf) {
      if (groups.size() > 1) return "leaf switches that hosts of several groups share";
    }
    std::int64_t smaller = 0;
    for (const auto& [leaves, nodes] : groups_) {
      if (nodes != result_.fabric.nodes_per_leaf()) ++smaller;
    }
    return smaller > 1 ? "leaf switches with different numbers of hosts" : "";
  }

  std::string IrregularUplinks() const {
    if (below_.size() > 1 && uplinks_.empty()) return "leaf switches that no other switch joins";
    std::set<int> spines;
    for (const auto& [leaf, cables] : uplinks_) {
      for (const auto& [spine, count] : cables) spines.insert(spine);
    }
    for (const auto& [leaf, bandwidth] : below_) {
      const auto found = uplinks_.find(leaf);
      if (uplinks_.empty()) break;
      if (found == uplinks_.end() || found->second.size() != spines.size())
        return "leaf switches that do not reach every spine switch";
      for (const auto& [spine, count] : found->second) {
        if (count * static_cast<std::int64_t>(spines.size()) != Uplinks())
          return "uplinks not dealt evenly to the spine switches";
      }
    }
    if (!uplinks_.empty() && result_.fabric.oversubscription() * UpCapacity() != DownCapacity()) {
      return "more capacity above the leaf switches than below them";
    }
    return "";
  }

  double UpCapacity() const { return static_cast<double>(Uplinks()) * *uplink_rates_.begin(); }
  double DownCapacity() const {
    double down = 0;
    for (const auto& [leaf, bandwidth] : below_) down = std::max(down, bandwidth);
    return down;
  }

  void OrderServers() {
    std::map<Leaves, std::vector<PlacedServer>> servers;
    for (PlacedServer& server : result_.servers) {
      Leaves leaves;
      for (const int cable : server.cables) leaves.push_back(LeafOf(cable));
      servers[leaves].push_back(std::move(server));
    }
    result_.servers.clear();
    // The group that is not full comes last.
    for (const bool full : {true, false}) {
      for (const Leaves& leaves : group_order_) {
        if ((groups_.find(leaves)->second == result_.fabric.nodes_per_leaf()) != full) continue;
        for (PlacedServer& server : servers[leaves]) result_.servers.push_back(std::move(server));
      }
    }
  }

  const IbFabric& fabric_;
  RegularFabric result_;
  std::map<Leaves, std::int64_t> groups_;               // hosts by their leaves
  std::vector<Leaves> group_order_;                     // by first host
  std::map<int, double> below_;                         // bytes/s by leaf
  std::map<int, std::map<int, std::int64_t>> uplinks_;  // cables by leaf and spine
  std::set<double> rates_;
  std::set<double> uplink_rates_;
  bool degraded_ = false;
  bool other_cables_ = false;
};

}  // namespace

RegularFabric FindRegularFabric(const IbFabric& fabric, const std::vector<PlacedServer>& servers) {
  return Finder(fabric, servers).Find();
}

}  // namespace orrery::topology
