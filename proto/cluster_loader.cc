#include "proto/cluster_loader.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "proto/defaults.h"
#include "proto/limits.h"
#include "proto/loader.h"
#include "proto/overrides.h"
#include "proto/rules.h"
#include "proto/spec_file.h"
#include "proto/text_reader.h"

namespace orrery::spec {
namespace {

// What a graph stands for need not be there.
void ExcuseReplaced(const v1::Cluster& cluster, Diagnostics* diagnostics) {
  if (!cluster.has_graph()) return;
  if (!cluster.has_nodes()) diagnostics->MarkBad("nodes");
  if (!cluster.has_node()) diagnostics->MarkBad("node");
  if (!cluster.has_fabric()) diagnostics->MarkBad("fabric");
  if (!cluster.has_accelerator()) diagnostics->MarkBad("accelerator");
}

bool IsFile(const std::string& name) {
  std::error_code error;
  return name.find('/') != std::string::npos || name.ends_with(".txtpb") ||
         std::filesystem::is_regular_file(name, error);
}

// The preset that a user means: exactly that name, or with "-" for "_", or the only one that begins with it and "-".
std::string PresetMeant(const std::string& name, const std::vector<std::string>& presets) {
  const auto is_preset = [&](const std::string& one) {
    return std::find(presets.begin(), presets.end(), one) != presets.end();
  };
  std::string dashed = name;
  std::replace(dashed.begin(), dashed.end(), '_', '-');
  if (is_preset(name) || is_preset(dashed)) return is_preset(name) ? name : dashed;
  std::vector<std::string> longer;
  for (const std::string& preset : presets) {
    if (preset.starts_with(dashed + "-")) longer.push_back(preset);
  }
  return longer.size() == 1 ? longer.front() : name;
}

void ReadOverrides(const LoadOptions& options, PresetExpander* expander, v1::Cluster* cluster, Origins* origins,
                   Diagnostics* diagnostics) {
  const std::vector<Override> overrides = ParseOverrides(options.overrides, diagnostics);
  for (const Override& parsed : overrides) {
    if (!parsed.has_index()) ApplyOverride(parsed, cluster, origins, diagnostics);
  }
  ExpandCluster(expander, cluster, diagnostics);
  for (const Override& parsed : overrides) {
    if (parsed.has_index()) ApplyOverride(parsed, cluster, origins, diagnostics);
  }
}

// The graph has the GPUs that ranks are placed on.
void CheckGpus(const v1::Cluster& cluster, const std::string& path, const Origins& origins, Diagnostics* diagnostics) {
  const std::vector<std::string> paths = {JoinPath(path, "nodes"), JoinPath(path, "node.gpus"),
                                          JoinPath(path, "graph")};
  const auto& devices = cluster.graph().device();
  const std::int64_t has =
      std::count_if(devices.begin(), devices.end(), [](const v1::Device& one) { return one.kind() == v1::GPU; });
  const bool known =
      std::none_of(paths.begin(), paths.end(), [&](const std::string& one) { return diagnostics->IsBad(one); });
  if (!known) return;
  const std::int64_t needed = cluster.nodes() * cluster.node().gpus();
  if (needed <= has) return;
  diagnostics->ErrorAtWriter(
      origins, paths,
      absl::StrCat(paths[0], " x ", paths[1], " = ", cluster.nodes(), " x ", cluster.node().gpus(), " = ", needed,
                   " GPUs, of which ", paths[2], " has ", has, "; allowed: up to ", has));
}

// Of fabric, what the cables and the routing of a graph say in its place: nothing reads it.
constexpr const char* kReplaced[] = {"separate_rails", "planes",        "uplink_bandwidth",     "switch_ports",
                                     "routing",        "nodes_per_pod", "pod_oversubscription", "hash_seed"};

// A file may state it, as a resolved one does.
void RefuseReplaced(const std::string& path, const std::vector<std::string>& overrides, const Origins& origins,
                    Diagnostics* diagnostics) {
  for (const char* name : kReplaced) {
    const std::string field = JoinPath(path, absl::StrCat("fabric.", name));
    if (diagnostics->IsBad(field)) continue;
    const bool inside_block =
        origins.Has(field) && diagnostics->AuthorOf(origins.Nearest(field)) == Diagnostics::Author::kOverride;
    const bool by_itself = std::any_of(overrides.begin(), overrides.end(),
                                       [&](const std::string& one) { return PathOfOverride(one) == field; });
    if (!inside_block && !by_itself) continue;
    const bool is_of_graph = v1::Graph::descriptor()->FindFieldByName(name) != nullptr;
    diagnostics->Error(
        origins.Nearest(field), field,
        absl::StrCat("plays no part beside a graph; allowed: ",
                     JoinPath(path, absl::StrCat("graph.", is_of_graph ? name : "cable")), " in its place"));
  }
}

// What was read: presets and overrides, defaults, rules, checks.
absl::StatusOr<v1::Cluster> Resolve(v1::Cluster cluster, const LoadOptions& options, const ClusterCheck& check,
                                    Origins* origins, Diagnostics* diagnostics, std::vector<SpecError>* errors) {
  PresetExpander expander(options.spec_path, origins, diagnostics);
  ReadOverrides(options, &expander, &cluster, origins, diagnostics);
  FillClusterDefaults("", &cluster, diagnostics);
  CheckRules(cluster, "", *origins, diagnostics);
  CheckGraph(cluster, "", options.overrides, *origins, diagnostics);
  if (check && diagnostics->ok()) ReportProblems(check(cluster), *origins, diagnostics);
  ABSL_RETURN_IF_ERROR(StatusOf(*diagnostics, errors));
  return cluster;
}

}  // namespace

void ExpandCluster(PresetExpander* expander, v1::Cluster* cluster, Diagnostics* diagnostics) {
  // Twice: only the cluster's own preset tells whether there is a graph, and with one the accelerator may be missing.
  if (cluster->has_preset()) expander->PutUnderneath("", cluster);
  if (diagnostics->IsBad("preset")) {
    for (const char* field : {"nodes", "node", "fabric", "accelerator"}) diagnostics->MarkBad(field);
    return;
  }
  ExcuseReplaced(*cluster, diagnostics);
  expander->Expand("", cluster);
}

void RefuseBareGraph(const v1::Run& run, const Origins& origins, Diagnostics* diagnostics) {
  const v1::Cluster& cluster = run.cluster();
  if (!cluster.has_graph() || (cluster.has_node() && cluster.has_fabric()) || diagnostics->IsBad("cluster.graph"))
    return;
  diagnostics->Error(origins.Nearest("cluster.graph"), "cluster.graph",
                     "stands alone, and a training run places its ranks by node and fabric; allowed: nodes, node and "
                     "fabric beside it, or a cluster without graph");
  for (const char* field : {"cluster.graph", "cluster.nodes", "cluster.node", "cluster.fabric"}) {
    diagnostics->MarkBad(field);
  }
}

void CheckGraph(const v1::Cluster& cluster, const std::string& path, const std::vector<std::string>& overrides,
                const Origins& origins, Diagnostics* diagnostics) {
  if (!cluster.has_graph()) return;
  CheckGpus(cluster, path, origins, diagnostics);
  RefuseReplaced(path, overrides, origins, diagnostics);
}

absl::StatusOr<v1::Cluster> LoadCluster(const std::string& name, const LoadOptions& options, const ClusterCheck& check,
                                        std::vector<SpecError>* errors) {
  ABSL_RETURN_IF_ERROR(CheckSpecPath(options, errors));
  if (IsFile(name)) {
    ABSL_ASSIGN_OR_RETURN(const std::string text, ReadSpecFile(name, errors));
    return LoadClusterFromText(text, name, options, check, errors);
  }
  const std::vector<std::string> presets = PresetNames("clusters", options.spec_path);
  const std::string meant = PresetMeant(name, presets);
  if (std::find(presets.begin(), presets.end(), meant) == presets.end()) {
    return FileError(absl::StrCat("cluster \"", name, "\""),
                     absl::StrCat("is no file and no preset; allowed: a file, or one of ", absl::StrJoin(presets, ", "),
                                  orrery::DidYouMean(name, presets)),
                     errors);
  }
  v1::Cluster cluster;
  cluster.set_preset(meant);
  Origins origins;
  Diagnostics diagnostics;
  return Resolve(std::move(cluster), options, check, &origins, &diagnostics, errors);
}

absl::StatusOr<v1::Cluster> LoadClusterFromText(std::string_view text, const std::string& filename,
                                                const LoadOptions& options, const ClusterCheck& check,
                                                std::vector<SpecError>* errors) {
  ABSL_RETURN_IF_ERROR(CheckSpecPath(options, errors));
  if (static_cast<std::int64_t>(text.size()) > limits::kFileBytes) {
    return FileError(filename, absl::StrCat("is larger than the limit of ", limits::kFileBytes, " bytes"), errors);
  }
  if (const std::string problem = NotText(text); !problem.empty()) return FileError(filename, problem, errors);
  v1::Cluster cluster;
  Origins origins;
  Diagnostics diagnostics;
  ReadText(text, diagnostics.AddSource(filename, Diagnostics::Author::kFile), "", &cluster, &origins, &diagnostics);
  return Resolve(std::move(cluster), options, check, &origins, &diagnostics, errors);
}

}  // namespace orrery::spec
