// Which links of the cluster's graph the transfers of a run use: routes for the engine's world.
//
// Rank r is GPU r of the cluster. A message goes from GPU to GPU over its NIC, or over NVLink inside a node, as
// topology/routes.h says. A collective is one coupled activity over the flows that its algorithm has between its ranks
// (sim/collectives/footprint.h), in the order of ranks.
#ifndef ORRERY_SIM_TRAINING_SHARED_LINKS_H_
#define ORRERY_SIM_TRAINING_SHARED_LINKS_H_

#include <string>
#include <vector>

#include "sim/training/plan.h"
#include "sim/training/slow_links.h"
#include "sim/training/world_builder.h"
#include "topology/routes.h"

namespace orrery::training {

// Whether tensor-parallel collectives meet other transfers on links, or links that are not as their price assumes: not
// where a group is one whole node that is sound.
bool TensorLinksShared(const Plan& plan, const PerturbedCluster& cluster);

// Adds links and routes to a world in which every rank is a unit. Links are those of the topology that are used, with
// the capacities that perturbation.link leaves them, whose entries name the links of `slowed`.
// Returns what of perturbation.link no transfer meets, in words.
std::vector<std::string> ShareLinks(const Plan& plan, const topology::Routes& routes, const SlowedLinks& slowed,
                                    TrainingWorld* built);

}  // namespace orrery::training

#endif  // ORRERY_SIM_TRAINING_SHARED_LINKS_H_
