// The parts list that generators write and a Topology is built from.
#ifndef ORRERY_TOPOLOGY_PARTS_H_
#define ORRERY_TOPOLOGY_PARTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "topology/device.h"

namespace orrery::topology {

// Bounds on what is allocated: a gigabyte or two.
inline constexpr std::int64_t kMostDevices = 1 << 24;
inline constexpr std::int64_t kMostCables = 1 << 25;

// One link, both directions.
struct Cable {
  DeviceId a = kNoDevice;
  DeviceId b = kNoDevice;
  LinkKind kind = LinkKind::kNvlink;
  std::int32_t cables = 1;
  std::int64_t capacity = 0;  // of all of them, each direction
  Time latency;
  bool dead = false;  // there, and part of no way
  // Of one cable where those that are one link differ; 0: they do not.
  std::int64_t slowest = 0;
  std::int64_t fastest = 0;
};

// The devices and inner cables of a node: `devices` from first_device, `cables` from first_cable. Nodes of one shape
// are equal but for where they begin.
struct NodeSpan {
  DeviceId first_device = 0;
  std::int32_t devices = 0;
  std::int32_t first_cable = 0;
  std::int32_t cables = 0;
  std::int32_t shape = 0;
};

// Hosts of the nodes of one shape among which devices of a kind are divided evenly in order; 0: they belong to none.
struct Hosting {
  std::int64_t hosts = 1;
  std::int64_t gpus = 0;
  std::int64_t nvswitches = 0;
  std::int64_t pcie_switches = 0;
  std::int64_t cpus = 0;
  std::int64_t nics = 0;
};

// Devices of nodes in the order of nodes, then network switches; inner cables of nodes likewise, then those of the
// network.
struct Parts {
  std::vector<Device> devices;
  std::vector<Cable> cables;
  std::vector<NodeSpan> nodes;
  std::vector<DeviceId> gpus;  // by number
  DeviceId first_switch = 0;
  std::int32_t first_network_cable = 0;
  std::int32_t shapes = 0;
  // Of generated nodes, by shape.
  std::vector<Hosting> hosting;
  // Of free-form graphs, by device.
  std::vector<std::string> names;
  std::vector<std::string> hosts;
};

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_PARTS_H_
