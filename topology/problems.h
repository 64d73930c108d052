// What is wrong with a cluster, for the loader to say where it was written.
#ifndef ORRERY_TOPOLOGY_PROBLEMS_H_
#define ORRERY_TOPOLOGY_PROBLEMS_H_

#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "proto/loader.h"

namespace orrery::topology {

// The error of Topology::Build for spec::LoadCluster, with its field, which is one of `parent` where that is given;
// none where it is OK.
//
//   spec::LoadCluster(name, options, [&](const v1::Cluster& cluster) {
//     topology = Topology::Build(cluster);
//     return ProblemsOf(topology.status());
//   });
std::vector<spec::FieldProblem> ProblemsOf(const absl::Status& status, std::string_view parent = {});

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_PROBLEMS_H_
