// What is particular to clusters: a free-form graph stands in place of nodes, node and fabric.
#ifndef ORRERY_PROTO_CLUSTER_LOADER_H_
#define ORRERY_PROTO_CLUSTER_LOADER_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "orrery/v1/run.pb.h"
#include "proto/loader.h"
#include "proto/origins.h"
#include "proto/presets.h"

namespace orrery::spec {

// As LoadCluster of a file with this text; `filename` stands in messages only.
absl::StatusOr<v1::Cluster> LoadClusterFromText(std::string_view text, const std::string& filename,
                                                const LoadOptions& options, const ClusterCheck& check = nullptr,
                                                std::vector<SpecError>* errors = nullptr);

// Inside the loader: presets of a cluster by itself, whose graph needs nothing beside it.
void ExpandCluster(PresetExpander* expander, v1::Cluster* cluster, Diagnostics* diagnostics);

// Inside the loader: a training run places its ranks by node and fabric, and takes prices from them. Before the rules
// are checked.
void RefuseBareGraph(const v1::Run& run, const Origins& origins, Diagnostics* diagnostics);

// Inside the loader: what nodes, node and fabric say beside the graph of the cluster at `path`, once rules are checked.
// The graph must have the GPUs of `nodes`; what it stands in place of must not be set by one of the `overrides`.
void CheckGraph(const v1::Cluster& cluster, const std::string& path, const std::vector<std::string>& overrides,
                const Origins& origins, Diagnostics* diagnostics);

}  // namespace orrery::spec

#endif  // ORRERY_PROTO_CLUSTER_LOADER_H_
