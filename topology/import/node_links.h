// The links of an imported node: bandwidths from its file, the rest from a cluster preset.
#ifndef ORRERY_TOPOLOGY_IMPORT_NODE_LINKS_H_
#define ORRERY_TOPOLOGY_IMPORT_NODE_LINKS_H_

#include <cstddef>
#include <string>

#include "orrery/v1/cluster.pb.h"
#include "topology/import/basis.h"
#include "topology/import/findings.h"
#include "topology/import/graph_builder.h"
#include "topology/import/server.h"

namespace orrery::topology {

// Whether a preset's node says how many NVLinks a GPU has; where it does not, they are as many as NVSwitches.
bool StatesNvlinks(const v1::Node& node);

// A server of which nothing is known but its HCA ports: as many GPUs, each beside its NIC.
Server PlainServer(std::size_t ports, const std::string& source);

// NVLinks of the basis, for a server whose file says nothing of them.
void AddNvlinksOf(const Basis& basis, Server* server, Findings* findings);

v1::Node NodeOf(const Server& server, const Basis& basis, Findings* findings);

LinkKinds LinkKindsOf(const v1::Node& node, double hop_latency);

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_IMPORT_NODE_LINKS_H_
