#include "topology/device.h"

#include <array>

namespace orrery::topology {

const char* NameOf(DeviceKind kind) {
  static constexpr std::array<const char*, kDeviceKinds> kNames = {"GPU", "NVSwitch",    "PCIe switch",  "CPU",
                                                                   "NIC", "leaf switch", "spine switch", "core switch"};
  return kNames[static_cast<std::size_t>(kind)];
}

const char* NameOf(LinkKind kind) {
  static constexpr std::array<const char*, kLinkKinds> kNames = {
      "NVLink", "PCIe", "CPU - CPU", "NIC - leaf", "leaf - spine", "spine - core", "switch - switch"};
  return kNames[static_cast<std::size_t>(kind)];
}

}  // namespace orrery::topology
