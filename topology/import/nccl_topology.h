// NCCL's topology files (NCCL_TOPO_FILE, NCCL_TOPO_DUMP_FILE): one server as a tree of CPUs, PCI devices, GPUs and
// NICs. Dumps have NVLinks and the speeds of NICs; files written by hand for clouds hold CPUs and PCI devices alone,
// and NCCL adds the rest as it starts. The network between servers is in neither. Format: the reader and writer of
// NCCL, src/graph/xml.cc.
#ifndef ORRERY_TOPOLOGY_IMPORT_NCCL_TOPOLOGY_H_
#define ORRERY_TOPOLOGY_IMPORT_NCCL_TOPOLOGY_H_

#include <string>

#include "absl/status/statusor.h"
#include "topology/import/findings.h"
#include "topology/import/server.h"
#include "topology/import/xml.h"

namespace orrery::topology {

// Normalised. GPUs are in the order of `dev`, or of their bus ids where that is missing, as CUDA numbers them.
// INVALID_ARGUMENT "file:line: ...": no such file, several hosts, no GPU, a device listed twice, a number that is none.
// Values that virtual machines make up are corrected, with a warning.
absl::StatusOr<Server> ReadNcclTopology(const XmlElement& root, const std::string& file, Findings* findings);

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_IMPORT_NCCL_TOPOLOGY_H_
