// What a cluster is made of: devices, and directed links between them.
#ifndef ORRERY_TOPOLOGY_DEVICE_H_
#define ORRERY_TOPOLOGY_DEVICE_H_

#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace orrery::topology {

// Network switches are leaves where NICs hang on them, spines one switch further away, cores beyond.
enum class DeviceKind : std::uint8_t { kGpu, kNvSwitch, kPcieSwitch, kCpu, kNic, kLeaf, kSpine, kCore };
inline constexpr std::size_t kDeviceKinds = 8;

// "GPU", "NVSwitch", "PCIe switch", "CPU", "NIC", "leaf switch", "spine switch", "core switch".
const char* NameOf(DeviceKind kind);

constexpr bool IsNetworkSwitch(DeviceKind kind) { return kind >= DeviceKind::kLeaf; }

using DeviceId = std::int32_t;
inline constexpr DeviceId kNoDevice = -1;

struct Device {
  DeviceKind kind = DeviceKind::kGpu;
  // The server or rack, all devices that hang together without network switches, from 0; -1: a network switch.
  std::int32_t node = -1;
  // Among those of its kind in its node, or in the cluster for a network switch, from 0. A NIC's is its rail.
  std::int32_t index = 0;
};

// By what it joins. PCIe: GPUs, NICs, PCIe switches and CPUs with each other; socket: two CPUs; the rest carries
// network traffic, kSwitches between other switches than leaf and spine or spine and core, or two NICs back to back.
enum class LinkKind : std::uint8_t { kNvlink, kPcie, kSocket, kNicLeaf, kLeafSpine, kSpineCore, kSwitches };
inline constexpr std::size_t kLinkKinds = 7;

// "NVLink", "PCIe", "CPU - CPU", "NIC - leaf", "leaf - spine", "spine - core", "switch - switch".
const char* NameOf(LinkKind kind);

constexpr bool IsNetwork(LinkKind kind) { return kind >= LinkKind::kNicLeaf; }

// Directed. Links 2 k and 2 k + 1 are the two directions of one cable, or of `cables` parallel ones.
using LinkId = std::int32_t;

constexpr LinkId Opposite(LinkId link) { return link ^ 1; }

struct Link {
  DeviceId from = kNoDevice;
  DeviceId to = kNoDevice;
  LinkKind kind = LinkKind::kNvlink;
  std::int32_t cables = 1;
  // Achieved (bandwidth x efficiency), bytes per second in this direction, all cables together; at least 1.
  std::int64_t capacity = 0;
  // One way, software not included.
  Time latency;
};

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_DEVICE_H_
