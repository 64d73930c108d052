#include "cli/cluster.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "cli/environment.h"
#include "proto/loader.h"
#include "topology/problems.h"

namespace orrery::cli {

using topology::Topology;

absl::StatusOr<LoadedCluster> LoadClusterAndTopology(const ClusterArguments& arguments) {
  std::vector<std::string> overrides = arguments.overrides;
  if (arguments.nodes.has_value()) overrides.push_back(absl::StrCat("nodes=", *arguments.nodes));
  absl::StatusOr<Topology> topology = absl::UnknownError("not built");
  ABSL_ASSIGN_OR_RETURN(
      v1::Cluster cluster,
      spec::LoadCluster(arguments.name, LoadOptionsOf(arguments.spec_path, overrides), [&](const v1::Cluster& checked) {
        topology = Topology::Build(checked);
        return topology::ProblemsOf(topology.status());
      }));
  ABSL_RETURN_IF_ERROR(topology.status());
  if (arguments.nodes.has_value() && topology->is_free_form()) {
    return absl::InvalidArgumentError("--nodes: the cluster is given device by device; allowed: without it");
  }
  std::string name = cluster.name().empty() ? arguments.name : cluster.name();
  return LoadedCluster{std::move(name), std::move(cluster), *std::move(topology)};
}

}  // namespace orrery::cli
