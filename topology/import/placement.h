// Which hosts of a fabric are the cluster's servers, and to which cable each of their NICs is joined.
#ifndef ORRERY_TOPOLOGY_IMPORT_PLACEMENT_H_
#define ORRERY_TOPOLOGY_IMPORT_PLACEMENT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "topology/import/findings.h"
#include "topology/import/hosts.h"
#include "topology/import/ib_fabric.h"
#include "topology/import/server.h"

namespace orrery::topology {

struct PlacedServer {
  std::string name;
  std::vector<int> cables;  // of IbFabric::cables, by NIC
};

struct Placement {
  std::vector<PlacedServer> servers;
  std::vector<PlacedServer> others;  // hosts without GPUs, with all their ports
};

// `server` null: every host is one, with a NIC per port. `gpu_hosts`: see ImportOptions. INVALID_ARGUMENT where no host
// fits, or one that `gpu_hosts` names does not.
absl::StatusOr<Placement> PlaceServers(const IbFabric& fabric, const Server* server,
                                       const std::vector<std::string>& gpu_hosts, Findings* findings);

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_IMPORT_PLACEMENT_H_
