// Whether a fabric is one that v1::Fabric can say: one or two levels, every group of nodes under its leaves, all leaves
// alike.
#ifndef ORRERY_TOPOLOGY_IMPORT_REGULAR_FABRIC_H_
#define ORRERY_TOPOLOGY_IMPORT_REGULAR_FABRIC_H_

#include <string>
#include <vector>

#include "orrery/v1/cluster.pb.h"
#include "topology/import/ib_fabric.h"
#include "topology/import/placement.h"

namespace orrery::topology {

struct RegularFabric {
  // Empty: `fabric` and `servers` say the whole. Else why not, and `fabric` comes near it.
  std::string irregularity;
  v1::Fabric fabric;                  // without latency and routing
  std::vector<PlacedServer> servers;  // in an order in which those under the same leaves follow each other
};

RegularFabric FindRegularFabric(const IbFabric& fabric, const std::vector<PlacedServer>& servers);

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_IMPORT_REGULAR_FABRIC_H_
