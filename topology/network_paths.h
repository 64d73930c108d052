// Shortest paths over network switches to NICs. Leaves with the same neighbours are equally far from every other
// switch, so distances are computed once for all of them.
#ifndef ORRERY_TOPOLOGY_NETWORK_PATHS_H_
#define ORRERY_TOPOLOGY_NETWORK_PATHS_H_

#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>
#include <vector>

#include "topology/path_cost.h"
#include "topology/topology_impl.h"

namespace orrery::topology {

// Threads may share one.
class NetworkPaths {
 public:
  explicit NetworkPaths(const Topology::Impl& impl);

  // A NIC as a destination, and what reaches it in one link.
  struct Target {
    struct Port {
      DeviceId from;
      NetworkCost cost;
    };
    DeviceId nic = kNoDevice;
    std::vector<Port> ports;
  };
  Target TargetOf(DeviceId nic) const;

  // From a switch, and from a NIC by its own ports.
  NetworkCost FromSwitch(DeviceId from, const Target& target) const;
  NetworkCost FromNic(DeviceId from, const Target& target) const;

  // Links from a switch or NIC `at`, which reaches the target, that begin a shortest path, by the device that they lead
  // to. Clears `links`.
  void NextLinks(DeviceId at, const Target& target, std::vector<LinkId>* links) const;

  // NICs numbered in the order of the leaves that they hang on.
  std::int64_t PlaceOf(DeviceId nic) const { return place_[Index(nic)]; }

 private:
  using Neighbours = std::vector<std::pair<std::int32_t, Time>>;  // switches, by number
  struct Class {
    Neighbours neighbours;
    // To a switch with these neighbours, that one itself not being an end.
    mutable std::once_flag once;
    mutable std::vector<NetworkCost> costs;  // by switch
    // Links to switches that begin a shortest path of two or more, by switch: from first[number] to first[number + 1].
    mutable std::vector<std::uint32_t> first;
    mutable std::vector<LinkId> next;
  };
  static std::size_t Index(std::int64_t i) { return static_cast<std::size_t>(i); }
  std::size_t Number(DeviceId of_switch) const { return Index(of_switch - impl_.parts.first_switch); }
  bool IsSwitch(DeviceId id) const { return id >= impl_.parts.first_switch; }

  Neighbours NeighboursOf(DeviceId of_switch) const;
  void FindCosts(const Class& of) const;
  void FindNextLinks(const Class& of) const;
  const Class& ClassOf(DeviceId of_switch) const;  // its distances known
  NetworkCost ToPort(DeviceId from, const Target::Port& port) const;
  void AddLinksTo(DeviceId at, DeviceId to, NetworkCost cost, std::vector<LinkId>* links) const;
  void AddLinksOfNic(DeviceId at, const Target& target, std::vector<LinkId>* links) const;

  const Topology::Impl& impl_;
  std::vector<std::uint32_t> inner_links_;  // of a switch, by number: where its links to switches begin
  std::vector<std::int32_t> class_of_;      // of a switch, by number; -1: no NIC hangs on it
  std::deque<Class> classes_;
  std::vector<std::int32_t> place_;  // by device
};

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_NETWORK_PATHS_H_
