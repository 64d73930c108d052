#include "topology/import/basis.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/suggest.h"

namespace orrery::topology {
namespace {

absl::Status CheckName(const char* option, const std::string& name, const std::vector<std::string>& names) {
  if (std::find(names.begin(), names.end(), name) != names.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      option, " ", name, ": no such preset; allowed: ", absl::StrJoin(names, ", "), DidYouMean(name, names)));
}

// The accelerators that have this compute capability.
absl::StatusOr<std::string> AcceleratorOf(int compute_capability, const std::vector<std::string>& names,
                                          const spec::LoadOptions& load) {
  std::vector<std::string> found;
  for (const std::string& name : names) {
    v1::Accelerator accelerator;
    ABSL_RETURN_IF_ERROR(spec::LoadPreset(name, load, &accelerator));
    if (compute_capability > 0 && accelerator.compute_capability() == compute_capability) found.push_back(name);
  }
  if (found.size() == 1) return found.front();
  const std::string what = compute_capability == 0
                               ? std::string("does not name the GPU")
                               : absl::StrCat("says only that the GPU has compute capability ", compute_capability);
  return absl::InvalidArgumentError(
      absl::StrCat(what, "; give --accelerator, one of ", absl::StrJoin(found.empty() ? names : found, ", ")));
}

// A graph may stand alone, and then has no links by kind that could be taken.
bool HasLinks(const v1::Cluster& cluster) { return cluster.has_node() && cluster.has_fabric(); }

// The preset that --like names.
absl::Status TakeLike(const std::string& name, const spec::LoadOptions& load, Basis* basis, Findings* findings) {
  ABSL_RETURN_IF_ERROR(spec::LoadPreset(name, load, &basis->cluster));
  if (!HasLinks(basis->cluster)) {
    return absl::InvalidArgumentError(absl::StrCat("--like ", name,
                                                   ": is given device by device, without node and fabric; allowed: a "
                                                   "cluster preset that has both"));
  }
  if (!basis->accelerator.empty()) return absl::OkStatus();
  basis->accelerator = basis->cluster.accelerator().name();
  if (basis->accelerator.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--like ", name, ": names no accelerator; allowed: --accelerator beside it"));
  }
  findings->Assume(absl::StrCat("accelerator ", basis->accelerator, ": that of --like ", name));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Basis> FindBasis(const BasisOptions& options, const spec::LoadOptions& load, Findings* findings) {
  ABSL_ASSIGN_OR_RETURN(const std::vector<std::string> accelerators, spec::ListPresets("accelerators", load));
  ABSL_ASSIGN_OR_RETURN(const std::vector<std::string> clusters, spec::ListPresets("clusters", load));
  Basis basis{.name = options.like, .cluster = {}, .accelerator = options.accelerator};
  if (!basis.accelerator.empty()) ABSL_RETURN_IF_ERROR(CheckName("--accelerator", basis.accelerator, accelerators));
  if (!basis.name.empty()) {
    ABSL_RETURN_IF_ERROR(CheckName("--like", basis.name, clusters));
    ABSL_RETURN_IF_ERROR(TakeLike(basis.name, load, &basis, findings));
    return basis;
  }
  if (basis.accelerator.empty()) {
    ABSL_ASSIGN_OR_RETURN(basis.accelerator, AcceleratorOf(options.compute_capability, accelerators, load));
    findings->Assume(absl::StrCat("accelerator ", basis.accelerator, ": the only preset of compute capability ",
                                  options.compute_capability));
  }
  // Better, in this order: as many GPUs per node, NICs that reach more of their bandwidth.
  const auto merit = [&](const v1::Cluster& cluster) {
    return std::pair(cluster.node().gpus() == options.gpus_per_node, cluster.node().nic().efficiency());
  };
  for (const std::string& name : clusters) {
    v1::Cluster cluster;
    ABSL_RETURN_IF_ERROR(spec::LoadPreset(name, load, &cluster));
    if (cluster.accelerator().name() != basis.accelerator || !HasLinks(cluster)) continue;
    if (!basis.name.empty() && merit(cluster) <= merit(basis.cluster)) continue;
    basis.name = name;
    basis.cluster = cluster;
  }
  if (!basis.name.empty()) return basis;
  return absl::InvalidArgumentError(
      absl::StrCat("no cluster preset has accelerator ", basis.accelerator,
                   ", from which NVLinks, efficiencies and latencies could be taken; give --like, one of ",
                   absl::StrJoin(clusters, ", ")));
}

}  // namespace orrery::topology
