// Which links of the cluster's graph the transfers of a run use: routes for the engine's world.
//
// Rank r is GPU r of the cluster. A message goes from GPU to GPU over its NIC, or over NVLink inside a node, as
// topology/routes.h says. A collective is one coupled activity over the flows that its algorithm has between its ranks
// (sim/collectives/footprint.h), in the order of ranks.
#ifndef ORRERY_SIM_TRAINING_SHARED_LINKS_H_
#define ORRERY_SIM_TRAINING_SHARED_LINKS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "sim/training/plan.h"
#include "sim/training/world_builder.h"
#include "topology/routes.h"

namespace orrery::training {

// What is left of it where perturbation.link kills links. INVALID_ARGUMENT where that names what does not exist, or
// cuts GPUs off.
absl::StatusOr<topology::Topology> WithoutDeadLinks(topology::Topology topology, const v1::Perturbation& perturbation);

// Adds links and routes to a world in which every rank is a unit. Links are those of the topology that are used, with
// the capacities that perturbation.link leaves them. INVALID_ARGUMENT where that names a device or link that does not
// exist.
// Returns what of perturbation.link no transfer meets, in words.
absl::StatusOr<std::vector<std::string>> ShareLinks(const Plan& plan, const topology::Routes& routes,
                                                    TrainingWorld* built);

}  // namespace orrery::training

#endif  // ORRERY_SIM_TRAINING_SHARED_LINKS_H_
