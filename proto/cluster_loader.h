// What is particular to clusters: a free-form graph stands in place of nodes, node and fabric. Used inside the loader
// only.
#ifndef ORRERY_PROTO_CLUSTER_LOADER_H_
#define ORRERY_PROTO_CLUSTER_LOADER_H_

#include "orrery/v1/run.pb.h"
#include "proto/origins.h"
#include "proto/presets.h"

namespace orrery::spec {

// Presets of a cluster by itself, whose graph needs nothing beside it.
void ExpandCluster(PresetExpander* expander, v1::Cluster* cluster, Diagnostics* diagnostics);

// A training run places its ranks by node and fabric, and takes prices from them. Before the rules are checked.
void RefuseBareGraph(const v1::Run& run, const Origins& origins, Diagnostics* diagnostics);

}  // namespace orrery::spec

#endif  // ORRERY_PROTO_CLUSTER_LOADER_H_
