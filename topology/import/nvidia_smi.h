// What `nvidia-smi topo -m` prints: how every two GPUs and NICs of one server are joined. It has no speeds, no names of
// GPUs, and does not say whether NVLinks go through NVSwitches.
#ifndef ORRERY_TOPOLOGY_IMPORT_NVIDIA_SMI_H_
#define ORRERY_TOPOLOGY_IMPORT_NVIDIA_SMI_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "topology/import/findings.h"
#include "topology/import/server.h"

namespace orrery::topology {

struct NvidiaSmiOptions {
  // NVLinks that one GPU has: where the matrix has more, they go through NVSwitches. Of any GPU so far at most 18 (H100
  // to GB300, data sheets).
  std::int64_t nvlinks_per_gpu = 18;
  // Which the matrix does not count.
  std::int64_t nvswitches = 1;
};

// Normalised, without speeds. Rows of NICs, legends and affinities may be missing. INVALID_ARGUMENT "file:line: ...":
// no matrix, a row missing or twice, a cell that is none, more devices than a node can have.
absl::StatusOr<Server> ReadNvidiaSmi(std::string_view text, const std::string& file, const NvidiaSmiOptions& options,
                                     Findings* findings);

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_IMPORT_NVIDIA_SMI_H_
