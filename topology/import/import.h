// From the files that users have to a cluster: a node from NCCL's topology file or nvidia-smi, the fabric from
// ibnetdiscover. Where all of it is as regular as v1::Node and v1::Fabric can say, it becomes that; else a v1::Graph,
// device by device, with node and fabric beside it that come nearest.
#ifndef ORRERY_TOPOLOGY_IMPORT_IMPORT_H_
#define ORRERY_TOPOLOGY_IMPORT_IMPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "orrery/v1/cluster.pb.h"
#include "proto/loader.h"
#include "topology/import/findings.h"

namespace orrery::topology {

struct ImportFile {
  std::string name;  // stands in messages
  std::string text;
};

struct ImportOptions {
  // At least one of the first three, not both of the first two.
  std::optional<ImportFile> nccl_xml = std::nullopt;
  std::optional<ImportFile> nvidia_smi = std::nullopt;
  std::optional<ImportFile> ibnetdiscover = std::nullopt;  // or a .net file of ibsim
  std::optional<ImportFile> nccl_graph = std::nullopt;
  std::string accelerator = {};  // see BasisOptions
  std::string like = {};
  // Without a fabric: nodes of the cluster, default 1.
  std::optional<std::int64_t> nodes = std::nullopt;
  // Hosts of the fabric that have GPUs, by the beginnings of their names. Default: those with as many ports as the node
  // has NICs.
  std::vector<std::string> gpu_hosts = {};
  spec::LoadOptions load = {};
  std::string command = {};  // that does the same; stands in the result
};

struct ImportResult {
  v1::Cluster cluster;  // names its accelerator as a preset
  Findings findings;
  std::vector<std::string> hosts;        // with GPUs, in the order of the nodes; empty without a fabric
  std::vector<std::string> other_hosts;  // without
  std::vector<std::string> graphs;       // of nccl_graph, a line each
  // Why the cluster is a graph; empty: it is regular.
  std::string irregularity;
};

// INVALID_ARGUMENT: a file that cannot be read ("file:line: ..."), or what is missing to make a cluster of them.
absl::StatusOr<ImportResult> Import(const ImportOptions& options);

// The cluster's file. Its head says from what it was made and what was assumed; it loads as it is.
std::string ImportedText(const ImportOptions& options, const ImportResult& result);

// That `text`, which is to become `file`, loads as a cluster and builds as a topology. INVALID_ARGUMENT: the first
// thing that is wrong with it, on one line.
absl::Status CheckLoads(const ImportOptions& options, const std::string& text, const std::string& file);

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_IMPORT_IMPORT_H_
