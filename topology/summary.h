// What a topology has: devices and cables by kind, capacity by level, bisection bandwidth.
#ifndef ORRERY_TOPOLOGY_SUMMARY_H_
#define ORRERY_TOPOLOGY_SUMMARY_H_

#include <array>
#include <cstdint>
#include <vector>

#include "topology/device.h"
#include "topology/topology.h"

namespace orrery::topology {

// A level of network switches: what reaches it from below and leaves it upwards, all switches together, bytes/s in one
// direction.
struct LevelCapacity {
  DeviceKind kind = DeviceKind::kLeaf;
  std::int64_t down = 0;
  std::int64_t up = 0;  // 0: the top
  // down / up; 0 at the top.
  double Oversubscription() const { return up > 0 ? static_cast<double>(down) / static_cast<double>(up) : 0; }
};

struct Summary {
  std::array<std::int64_t, kDeviceKinds> devices{};  // by DeviceKind
  std::array<std::int64_t, kLinkKinds> cables{};     // by LinkKind
  std::vector<LevelCapacity> levels;                 // leaf first, those that exist
  // Bytes/s in one direction that the first half of the nodes with GPUs (rounded down) can send to the others over the
  // network, all together: the maximum flow. 0 with one node.
  std::int64_t bisection = 0;
  // The same divided by what the NICs of the smaller half could send: 1 is full bisection.
  double bisection_share = 0;
};

Summary Summarise(const Topology& topology);

// What one of a link's parallel cables achieves, bytes/s in one direction.
struct CableSpeeds {
  std::int64_t slowest = 0;
  std::int64_t fastest = 0;
};
CableSpeeds SpeedsOf(const Topology& topology, LinkId link);

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_SUMMARY_H_
