// InfiniBand fabrics as `ibnetdiscover` prints them, and the .net files of ibsim, which have the same records without
// GUIDs, LIDs and speeds. Grammar: rdma-core, infiniband-diags/man/ibnetdiscover.8; ibsim, net-examples.
#ifndef ORRERY_TOPOLOGY_IMPORT_IB_FABRIC_H_
#define ORRERY_TOPOLOGY_IMPORT_IB_FABRIC_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "topology/import/findings.h"

namespace orrery::topology {

struct IbDevice {
  std::string id;  // "S-ec0d9a0300ec8240"; of ibsim its name
  bool is_switch = false;
  std::string description;
  std::int64_t line = 0;   // of its record, or where it is first named
  bool is_listed = false;  // has a record of its own
};

struct IbCable {
  int a = 0;  // of IbFabric::devices
  int b = 0;
  std::int64_t port_a = 0;
  std::int64_t port_b = 0;
  double bandwidth = 0;  // bytes/s per direction, less the line code; 0: the file has no speeds
  std::string rate;      // "4xEDR"
  std::int64_t line = 0;
  bool is_degraded = false;  // trained below what its ends run elsewhere
};

struct IbFabric {
  std::string source;
  std::vector<IbDevice> devices;  // in the order of the file
  std::vector<IbCable> cables;    // each once, in the order of the file
};

// INVALID_ARGUMENT "file:line: ...": a record or port line that does not follow the grammar, a GUID or a port described
// twice, nothing at all. Ends that disagree, devices without a record and degraded cables are warnings.
absl::StatusOr<IbFabric> ReadIbFabric(std::string_view text, const std::string& file, Findings* findings);

// Bytes/s of "4xEDR"; 0 where it is no such word.
double IbBandwidth(std::string_view rate);

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_IMPORT_IB_FABRIC_H_
