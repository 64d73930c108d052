// The inside of one server as a file describes it, before it becomes a v1::Node or devices of a v1::Graph.
#ifndef ORRERY_TOPOLOGY_IMPORT_SERVER_H_
#define ORRERY_TOPOLOGY_IMPORT_SERVER_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "orrery/v1/cluster.pb.h"
#include "topology/import/findings.h"

namespace orrery::topology {

inline constexpr int kMostServerDevices = 1024;  // of a kind, as in v1::Node

// Of a PCIe link in one direction, less its line code (8b/10b, 128b/130b, flits of 242 of 256 bytes); 0 where
// `speed` ("16.0 GT/s PCIe") is of no generation.
double PcieBandwidth(std::string_view speed, std::int64_t width);

// What hangs below a PCIe switch or a CPU.
struct PcieDevice {
  std::string name;
  int pcie_switch = -1;  // -1: attached to the CPU
  int cpu = 0;
  double bandwidth = 0;  // bytes/s, nominal, per direction, of its PCIe link; 0: not known
};

struct Nic : PcieDevice {
  double port_bandwidth = 0;  // bytes/s, nominal, per direction; 0: not known
};

struct PcieSwitch {
  std::string name;
  int parent = -1;  // a PCIe switch; -1: attached to the CPU
  int cpu = 0;
  double bandwidth = 0;  // upwards
};

struct Server {
  std::string source;  // its file
  std::vector<std::string> cpus;
  v1::CpuVendor cpu_vendor = v1::CPU_VENDOR_UNSPECIFIED;
  std::vector<PcieSwitch> pcie_switches;
  std::vector<PcieDevice> gpus;
  std::vector<Nic> nics;
  // Names of NICs that no GPU is near to while others have one: management and storage.
  std::vector<std::string> other_nics;
  bool nvlink_known = false;  // whether the file says anything of NVLink
  std::vector<v1::NvlinkPair> pairs;
  // NVLinks by GPU and NVSwitch; empty: no NVSwitch.
  std::vector<std::vector<int>> nvswitch_links;
  int compute_capability = 0;  // 0: not known

  int nvswitches() const { return nvswitch_links.empty() ? 0 : static_cast<int>(nvswitch_links.front().size()); }
  // The most that any GPU has.
  int nvlinks() const;
};

// Puts devices in the order in which the simulator numbers them: PCIe switches and CPUs by their first GPU, NICs by the
// GPU that they are nearest to, so that NIC i is on rail i. Moves NICs that no GPU shares a PCIe switch with to
// other_nics where other NICs have such a GPU, and drops switches that hold one device.
void Normalise(Server* server, Findings* findings);

// What keeps the server from being a v1::Node, one reason after another; empty: nothing.
std::string Irregularity(const Server& server);

// The structural fields of a v1::Node: counts and pairs, no bandwidths. What is irregular about the server is lost.
void FillNodeShape(const Server& server, v1::Node* node);

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_IMPORT_SERVER_H_
