// Which HCAs of a fabric are in one server. Nothing but their descriptions says so: "node018 mlx5_2", "node018 HCA-1".
#ifndef ORRERY_TOPOLOGY_IMPORT_HOSTS_H_
#define ORRERY_TOPOLOGY_IMPORT_HOSTS_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "topology/import/findings.h"
#include "topology/import/ib_fabric.h"

namespace orrery::topology {

// A port with a cable to a switch.
struct HostPort {
  std::string device;  // "mlx5_2"; the HCA's id where the description has no such name
  int cable = 0;       // of IbFabric::cables
};

struct Host {
  std::string name;
  std::vector<HostPort> ports;  // in natural order of device and port
};

// Host and device of a description; the host is empty where it names none.
std::pair<std::string, std::string> SplitDescription(std::string_view description);

// In natural order of names. An HCA whose description names no host is a host of its own. Aggregation nodes of switches
// (SHARP) are none.
std::vector<Host> GroupHosts(const IbFabric& fabric, Findings* findings);

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_IMPORT_HOSTS_H_
