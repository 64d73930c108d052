// NCCL's graph files (NCCL_GRAPH_FILE, NCCL_GRAPH_DUMP_FILE): the channels that its search found on one server. They
// name no device by more than its number, so they describe no cluster; beside one they say what NCCL made of it.
#ifndef ORRERY_TOPOLOGY_IMPORT_NCCL_GRAPH_H_
#define ORRERY_TOPOLOGY_IMPORT_NCCL_GRAPH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "topology/import/xml.h"

namespace orrery::topology {

struct NcclChannel {
  std::vector<std::int64_t> gpus;  // dev, in order
  std::vector<std::int64_t> nets;  // dev: where it enters and leaves the server; empty within one
};

struct NcclGraph {
  std::int64_t id = 0;
  std::string algorithm;  // of the id: ring, tree, ...
  std::int64_t pattern = 0;
  std::string pattern_name;
  double speed_intra = 0;  // GB/s of a channel
  double speed_inter = 0;
  std::string type_intra;  // NVL, PIX, ...
  std::string type_inter;
  std::int64_t stated_channels = 0;
  std::vector<NcclChannel> channels;
};

// INVALID_ARGUMENT "file:line: ...": no graph file, a number that is none.
absl::StatusOr<std::vector<NcclGraph>> ReadNcclGraphs(const XmlElement& root, const std::string& file);

// "ring: 2 channels of 12 GB/s over SYS (pattern ring)", one line a graph.
std::string Describe(const NcclGraph& graph);

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_IMPORT_NCCL_GRAPH_H_
