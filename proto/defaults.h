// Fills in what the user left out, as the comments of the schema say.
#ifndef ORRERY_PROTO_DEFAULTS_H_
#define ORRERY_PROTO_DEFAULTS_H_

#include <cstdint>
#include <functional>
#include <string>

#include "orrery/v1/run.pb.h"
#include "proto/origins.h"

namespace orrery::spec {

// The cluster preset that the software level names for the accelerator of a run that names no cluster. Before
// the cluster is expanded, after the software is.
void FillCluster(v1::Run* run, const Origins& origins, Diagnostics* diagnostics);

// Of a model, or a cluster, that stands at `path`.
void FillModelDefaults(const std::string& path, v1::Model* model, const Origins& origins, Diagnostics* diagnostics);
void FillClusterDefaults(const std::string& path, v1::Cluster* cluster, Diagnostics* diagnostics);

// Everything else, after presets. Fields that cannot be derived stay empty, and the rules report them.
// `stages_per_rank`: see LoadOptions; may be empty.
void FillDefaults(const std::function<std::int64_t(const v1::Schedule&)>& stages_per_rank, v1::Run* run,
                  const Origins& origins, Diagnostics* diagnostics);

// After FillDefaults: the global batch that gives every pipeline so many micro-batches.
void FillGlobalBatch(std::int64_t micro_batches, v1::Run* run, Diagnostics* diagnostics);

}  // namespace orrery::spec

#endif  // ORRERY_PROTO_DEFAULTS_H_
