#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "cli/cluster.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/output.h"
#include "proto/overrides.h"
#include "reports/topology_picture.h"
#include "reports/topology_report.h"
#include "topology/import/import.h"
#include "topology/named_links.h"
#include "topology/problems.h"
#include "topology/routes.h"
#include "topology/summary.h"
#include "topology/topology.h"

namespace orrery::cli {
namespace {

using Json = nlohmann::ordered_json;
using topology::Topology;

constexpr std::int64_t kLargestImport = 64 << 20;  // bytes

// A cluster of which the topology alone is asked: what stands beside a graph says nothing of that.
absl::StatusOr<LoadedCluster> LoadDrawn(const ClusterArguments& arguments) {
  ABSL_ASSIGN_OR_RETURN(LoadedCluster loaded, LoadClusterAndTopology(arguments));
  if (!loaded.topology.is_free_form()) return loaded;
  for (const std::string& override : arguments.overrides) {
    const std::string path = spec::PathOfOverride(override);
    const std::string field = path.substr(0, path.find_first_of(".["));
    if (field != "nodes" && field != "node" && field != "fabric" && field != "more_nodes") continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--set ", override, ": the cluster is given device by device; allowed: fields of graph"));
  }
  return loaded;
}

absl::StatusOr<std::string> Shown(const TopologyShowArguments& arguments) {
  const std::vector<std::string> formats = {"text", "json", "dot", "svg"};
  if (std::find(formats.begin(), formats.end(), arguments.format) == formats.end()) {
    return absl::InvalidArgumentError(absl::StrCat("--format ", arguments.format,
                                                   ": no such format; allowed: ", absl::StrJoin(formats, ", "),
                                                   DidYouMean(arguments.format, formats)));
  }
  if (arguments.json && arguments.format != "text" && arguments.format != "json") {
    return absl::InvalidArgumentError(
        absl::StrCat("--json with --format ", arguments.format, "; allowed: one of the two"));
  }
  ABSL_ASSIGN_OR_RETURN(const LoadedCluster named, LoadDrawn(arguments.cluster));
  const auto& [name, cluster, topology] = named;
  if (arguments.format == "dot") return reports::TopologyDot(name, topology);
  if (arguments.format == "svg") return reports::TopologySvg(name, topology);
  const topology::Summary summary = topology::Summarise(topology);
  if (arguments.json || arguments.format == "json") return reports::TopologyJson(name, topology, summary);
  return absl::StrCat(reports::TopologyText(name, topology, summary), "\n", reports::TopologySketch(topology));
}

absl::StatusOr<std::int64_t> GpuNamed(const Topology& topology, const char* option, const std::string& name) {
  const absl::StatusOr<topology::DeviceId> device = topology.Find(name);
  if (!device.ok()) return absl::InvalidArgumentError(absl::StrCat(option, ": ", device.status().message()));
  if (topology.device(*device).kind != topology::DeviceKind::kGpu) {
    return absl::InvalidArgumentError(absl::StrCat(option, " ", name, ": a ",
                                                   topology::NameOf(topology.device(*device).kind),
                                                   "; allowed: a GPU, gpu:0 to gpu:", topology.gpus() - 1));
  }
  return topology.GpuNumber(*device);
}

// What is left of it without the links that --without names.
absl::StatusOr<Topology> WithoutNamed(Topology topology, const std::vector<std::string>& names) {
  if (names.empty()) return topology;
  std::vector<topology::LinkId> dead;
  for (const std::string& name : names) {
    const std::pair<std::string, std::string> ends = absl::StrSplit(name, absl::MaxSplits(',', 1));
    const absl::StatusOr<std::vector<topology::LinkId>> links = topology::LinksNamed(topology, ends.first, ends.second);
    if (!links.ok()) return absl::InvalidArgumentError(absl::StrCat("--without: ", links.status().message()));
    dead.insert(dead.end(), links->begin(), links->end());
  }
  absl::StatusOr<Topology> left = topology.Without(dead);
  if (left.ok()) return left;
  return absl::InvalidArgumentError(absl::StrCat("--without: ", topology::ProblemsOf(left.status()).front().message));
}

absl::StatusOr<std::string> Routed(const TopologyRouteArguments& arguments) {
  ABSL_ASSIGN_OR_RETURN(LoadedCluster named, LoadDrawn(arguments.cluster));
  ABSL_ASSIGN_OR_RETURN(const Topology topology, WithoutNamed(std::move(named.topology), arguments.without));
  reports::RouteQuestion question{.cluster = named.name, .from = 0, .to = 0, .flow = arguments.flow};
  ABSL_ASSIGN_OR_RETURN(question.from, GpuNamed(topology, "--from", arguments.from));
  ABSL_ASSIGN_OR_RETURN(question.to, GpuNamed(topology, "--to", arguments.to));
  topology::RouteOptions options;
  options.pxn = arguments.pxn;
  ABSL_ASSIGN_OR_RETURN(const topology::Routes routes, topology::Routes::Build(topology, options));
  return arguments.json ? reports::RouteJson(routes, question) : reports::RouteText(routes, question);
}

absl::Status ReadInto(const std::string& path, std::optional<topology::ImportFile>* file) {
  if (path.empty()) return absl::OkStatus();
  ABSL_ASSIGN_OR_RETURN(std::string text, ReadFile(path, kLargestImport));
  *file = topology::ImportFile{path, std::move(text)};
  return absl::OkStatus();
}

// The call that gives the same cluster.
std::string CommandOf(const TopologyImportArguments& arguments) {
  std::string command = "orrery topology import";
  const auto add = [&](const char* option, const std::string& value) {
    if (!value.empty()) absl::StrAppend(&command, " ", option, " ", value);
  };
  add("--nccl-xml", arguments.nccl_xml);
  add("--nvidia-smi", arguments.nvidia_smi);
  add("--ibnetdiscover", arguments.ibnetdiscover);
  add("--nccl-graph", arguments.nccl_graph);
  add("--accelerator", arguments.accelerator);
  add("--like", arguments.like);
  add("--nodes", arguments.nodes.has_value() ? absl::StrCat(*arguments.nodes) : "");
  for (const std::string& host : arguments.gpu_hosts) add("--gpu-hosts", host);
  add("-o", arguments.output);
  return command;
}

std::string ImportJson(const topology::ImportResult& result, const std::string& text) {
  Json json = {{"regular", result.irregularity.empty()},
               {"nodes", result.cluster.nodes()},
               {"hosts", result.hosts},
               {"other_hosts", result.other_hosts},
               {"assumptions", result.findings.assumptions()},
               {"warnings", result.findings.Warnings()},
               {"notes", result.findings.notes()},
               {"nccl_graphs", result.graphs},
               {"cluster", text}};
  if (!result.irregularity.empty()) json["irregularity"] = result.irregularity;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::Status ImportAndWrite(const TopologyImportArguments& arguments) {
  const std::vector<std::string> inputs = {arguments.nccl_xml, arguments.nvidia_smi, arguments.ibnetdiscover,
                                           arguments.nccl_graph};
  ABSL_RETURN_IF_ERROR(CheckNotRead("--output", arguments.output, inputs));
  topology::ImportOptions options;
  ABSL_RETURN_IF_ERROR(ReadInto(arguments.nccl_xml, &options.nccl_xml));
  ABSL_RETURN_IF_ERROR(ReadInto(arguments.nvidia_smi, &options.nvidia_smi));
  ABSL_RETURN_IF_ERROR(ReadInto(arguments.ibnetdiscover, &options.ibnetdiscover));
  ABSL_RETURN_IF_ERROR(ReadInto(arguments.nccl_graph, &options.nccl_graph));
  options.accelerator = arguments.accelerator;
  options.like = arguments.like;
  options.nodes = arguments.nodes;
  options.gpu_hosts = arguments.gpu_hosts;
  options.load = LoadOptionsOf(arguments.spec_path, {});
  options.command = CommandOf(arguments);
  ABSL_ASSIGN_OR_RETURN(const topology::ImportResult result, topology::Import(options));
  for (const std::string& warning : result.findings.Warnings()) Warn(warning);
  const std::string text = topology::ImportedText(options, result);
  ABSL_RETURN_IF_ERROR(
      topology::CheckLoads(options, text, arguments.output.empty() ? "standard output" : arguments.output));
  if (!arguments.json) return Write(text, arguments.output);
  // The report on standard output; the cluster in its file, where one is named.
  if (!arguments.output.empty()) ABSL_RETURN_IF_ERROR(Write(text, arguments.output));
  return Write(ImportJson(result, text), "");
}

}  // namespace

int TopologyShow(const TopologyShowArguments& arguments) {
  if (const absl::Status read = CheckNotRead("--output", arguments.output, {arguments.cluster.name}); !read.ok())
    return Fail(read);
  const absl::StatusOr<std::string> text = Shown(arguments);
  if (!text.ok()) return Fail(text.status());
  const absl::Status written = Write(*text, arguments.output);
  return written.ok() ? kDone : Fail(written);
}

int TopologyRoute(const TopologyRouteArguments& arguments) {
  if (const absl::Status read = CheckNotRead("--output", arguments.output, {arguments.cluster.name}); !read.ok())
    return Fail(read);
  const absl::StatusOr<std::string> text = Routed(arguments);
  if (!text.ok()) return Fail(text.status());
  const absl::Status written = Write(*text, arguments.output);
  return written.ok() ? kDone : Fail(written);
}

int TopologyImport(const TopologyImportArguments& arguments) {
  const absl::Status imported = ImportAndWrite(arguments);
  return imported.ok() ? kDone : Fail(imported);
}

}  // namespace orrery::cli
