// A cluster as commands read it: the spec, checked by building its graph.
#ifndef ORRERY_CLI_CLUSTER_H_
#define ORRERY_CLI_CLUSTER_H_

#include <string>

#include "absl/status/statusor.h"
#include "cli/commands.h"
#include "orrery/v1/cluster.pb.h"
#include "topology/topology.h"

namespace orrery::cli {

struct LoadedCluster {
  std::string name;
  v1::Cluster cluster;
  topology::Topology topology;
};

// Errors say where what is wrong was written.
absl::StatusOr<LoadedCluster> LoadClusterAndTopology(const ClusterArguments& arguments);

}  // namespace orrery::cli

#endif  // ORRERY_CLI_CLUSTER_H_
