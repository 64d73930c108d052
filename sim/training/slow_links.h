// The graph of a run's cluster, as perturbation.link leaves it.
#ifndef ORRERY_SIM_TRAINING_SLOW_LINKS_H_
#define ORRERY_SIM_TRAINING_SLOW_LINKS_H_

#include <optional>
#include <vector>

#include "orrery/v1/run.pb.h"
#include "proto/loader.h"
#include "topology/topology.h"

namespace orrery::training {

// [entry of perturbation.link]: its links, in both directions; none where they are dead.
using SlowedLinks = std::vector<std::vector<topology::LinkId>>;

struct PerturbedCluster {
  topology::Topology topology;  // without dead links
  SlowedLinks slowed;
  bool within_nodes = false;  // some entry names a link of a node other than a NIC's
};

// nullopt, and `problems` with their fields, where there is no such graph, an entry names what is not there, or dead
// links cut GPUs off. The run must be resolved.
std::optional<PerturbedCluster> Perturb(const v1::Run& run, std::vector<spec::FieldProblem>* problems);

// What is wrong with the links of a run that shares them. For spec::LoadOptions::check_sound.
std::vector<spec::FieldProblem> LinkProblems(const v1::Run& run);

}  // namespace orrery::training

#endif  // ORRERY_SIM_TRAINING_SLOW_LINKS_H_
