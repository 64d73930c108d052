#include "topology/import/import.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "proto/defaults.h"
#include "topology/fabric_plan.h"
#include "topology/import/basis.h"
#include "topology/import/graph_builder.h"
#include "topology/import/ib_fabric.h"
#include "topology/import/nccl_graph.h"
#include "topology/import/nccl_topology.h"
#include "topology/import/node_links.h"
#include "topology/import/nvidia_smi.h"
#include "topology/import/placement.h"
#include "topology/import/regular_fabric.h"
#include "topology/import/server.h"
#include "topology/import/xml.h"
#include "topology/summary.h"
#include "topology/topology.h"

namespace orrery::topology {
namespace {

constexpr std::int64_t kMostNodes = 10'000'000;

class Importer {
 public:
  explicit Importer(const ImportOptions& options) : options_(options) {}

  absl::StatusOr<ImportResult> Run() {
    ABSL_RETURN_IF_ERROR(CheckOptions());
    ABSL_RETURN_IF_ERROR(ReadFiles());
    ABSL_RETURN_IF_ERROR(Place());
    DescribeNode();
    ABSL_RETURN_IF_ERROR(DescribeCluster());
    result_.cluster.mutable_accelerator()->set_preset(basis_.accelerator);
    return std::move(result_);
  }

 private:
  Findings* findings() { return &result_.findings; }
  bool has_server() const { return server_.has_value(); }
  bool has_fabric() const { return fabric_.has_value(); }

  absl::Status CheckOptions() const {
    if (options_.nccl_xml.has_value() && options_.nvidia_smi.has_value()) {
      return absl::InvalidArgumentError("--nccl-xml and --nvidia-smi both describe the node; allowed: one of the two");
    }
    if (options_.nccl_xml.has_value() || options_.nvidia_smi.has_value() || options_.ibnetdiscover.has_value()) {
      if (!options_.gpu_hosts.empty() && !options_.ibnetdiscover.has_value()) {
        return absl::InvalidArgumentError("--gpu-hosts names hosts of a fabric; allowed: with --ibnetdiscover");
      }
      for (const std::string& prefix : options_.gpu_hosts) {
        if (prefix.empty())
          return absl::InvalidArgumentError("--gpu-hosts must not be empty; allowed: how the names of hosts begin");
      }
      if (options_.nodes.has_value() && (*options_.nodes < 1 || *options_.nodes > kMostNodes)) {
        return absl::InvalidArgumentError(absl::StrCat("--nodes ", *options_.nodes, "; allowed: 1 to ", kMostNodes));
      }
      return absl::OkStatus();
    }
    const std::string allowed =
        "allowed: --nccl-xml or --nvidia-smi for the node, --ibnetdiscover for the fabric, or both";
    if (!options_.nccl_graph.has_value())
      return absl::InvalidArgumentError(absl::StrCat("nothing to import; ", allowed));
    ABSL_ASSIGN_OR_RETURN(const std::vector<std::string> graphs, ReadGraphs());
    return absl::InvalidArgumentError(
        absl::StrCat(options_.nccl_graph->name, ": channels that NCCL found (", absl::StrJoin(graphs, "; "),
                     "), but no devices and no links to make a cluster of; ", allowed, ", beside it"));
  }

  absl::StatusOr<std::vector<std::string>> ReadGraphs() const {
    std::vector<std::string> lines;
    if (!options_.nccl_graph.has_value()) return lines;
    ABSL_ASSIGN_OR_RETURN(const XmlElement root, ParseXml(options_.nccl_graph->text, options_.nccl_graph->name));
    ABSL_ASSIGN_OR_RETURN(const std::vector<NcclGraph> graphs, ReadNcclGraphs(root, options_.nccl_graph->name));
    for (const NcclGraph& graph : graphs) lines.push_back(Describe(graph));
    return lines;
  }

  absl::Status ReadFiles() {
    ABSL_ASSIGN_OR_RETURN(result_.graphs, ReadGraphs());
    if (options_.ibnetdiscover.has_value()) {
      ABSL_ASSIGN_OR_RETURN(fabric_,
                            ReadIbFabric(options_.ibnetdiscover->text, options_.ibnetdiscover->name, findings()));
    }
    BasisOptions basis{.accelerator = options_.accelerator, .like = options_.like};
    if (options_.nvidia_smi.has_value()) {
      // That there is a matrix at all is to be said before a missing option is.
      Findings ignored;
      ABSL_RETURN_IF_ERROR(ReadNvidiaSmi(options_.nvidia_smi->text, options_.nvidia_smi->name, {}, &ignored).status());
      ABSL_RETURN_IF_ERROR(FindBasisOf(options_.nvidia_smi->name, basis));
      NvidiaSmiOptions smi;
      if (StatesNvlinks(basis_.cluster.node())) smi.nvlinks_per_gpu = basis_.cluster.node().nvlinks();
      if (basis_.cluster.node().nvswitches() > 0) smi.nvswitches = basis_.cluster.node().nvswitches();
      ABSL_ASSIGN_OR_RETURN(server_,
                            ReadNvidiaSmi(options_.nvidia_smi->text, options_.nvidia_smi->name, smi, findings()));
      return absl::OkStatus();
    }
    if (options_.nccl_xml.has_value()) {
      ABSL_ASSIGN_OR_RETURN(const XmlElement root, ParseXml(options_.nccl_xml->text, options_.nccl_xml->name));
      ABSL_ASSIGN_OR_RETURN(server_, ReadNcclTopology(root, options_.nccl_xml->name, findings()));
      basis.compute_capability = server_->compute_capability;
      basis.gpus_per_node = static_cast<std::int64_t>(server_->gpus.size());
    }
    return FindBasisOf(has_server() ? server_->source : fabric_->source, basis);
  }

  // `file` is what does not say it all.
  absl::Status FindBasisOf(const std::string& file, const BasisOptions& options) {
    absl::StatusOr<Basis> found = FindBasis(options, options_.load, findings());
    if (!found.ok()) return absl::Status(found.status().code(), absl::StrCat(file, ": ", found.status().message()));
    basis_ = *std::move(found);
    return absl::OkStatus();
  }

  absl::Status Place() {
    if (!has_fabric()) return absl::OkStatus();
    ABSL_ASSIGN_OR_RETURN(placement_,
                          PlaceServers(*fabric_, has_server() ? &*server_ : nullptr, options_.gpu_hosts, findings()));
    const auto found = static_cast<std::int64_t>(placement_.servers.size());
    if (options_.nodes.has_value() && *options_.nodes != found) {
      return absl::InvalidArgumentError(absl::StrCat("--nodes ", *options_.nodes, ": ", fabric_->source, " has ", found,
                                                     " hosts that are such nodes; allowed: ", found,
                                                     ", or --gpu-hosts"));
    }
    for (const PlacedServer& other : placement_.others) result_.other_hosts.push_back(other.name);
    if (!has_server()) AssumeServers();
    ReconcileNics();
    return absl::OkStatus();
  }

  // The fabric knows how fast a port really is; a topology file may be made up.
  void ReconcileNics() {
    for (std::size_t nic = 0; nic < server_->nics.size(); ++nic) {
      double fastest = 0;
      for (const PlacedServer& server : placement_.servers) {
        if (nic >= server.cables.size()) continue;
        fastest = std::max(fastest, fabric_->cables[static_cast<std::size_t>(server.cables[nic])].bandwidth);
      }
      double& stated = server_->nics[nic].port_bandwidth;
      if (fastest == 0) continue;
      if (stated > 0 && stated != fastest) {
        findings()->Warn("speeds of NICs", absl::StrCat(server_->source, ": ", server_->nics[nic].name, " has ",
                                                        stated / 1e9, " GB/s there, ", fastest / 1e9, " in ",
                                                        fabric_->source, "; taken: the fabric's"));
      }
      stated = fastest;
    }
  }

  // Without a node's file: a GPU per port, and what the basis says of the rest.
  void AssumeServers() {
    std::size_t most = 0;
    for (const PlacedServer& server : placement_.servers) most = std::max(most, server.cables.size());
    findings()->Warn("nodes without a file", absl::StrCat(fabric_->source,
                                                          ": says nothing of GPUs; one GPU per HCA port is assumed. "
                                                          "Give --nccl-xml or --nvidia-smi with it"));
    server_ = PlainServer(most, fabric_->source);
  }

  void DescribeNode() {
    if (!server_->nvlink_known) AddNvlinksOf(basis_, &*server_, findings());
    node_ = NodeOf(*server_, basis_, findings());
  }

  std::int64_t Nodes() const {
    return has_fabric() ? static_cast<std::int64_t>(placement_.servers.size()) : options_.nodes.value_or(1);
  }

  absl::Status DescribeCluster() {
    v1::Cluster& cluster = result_.cluster;
    cluster.set_nodes(Nodes());
    *cluster.mutable_node() = node_;
    *cluster.mutable_fabric() = FabricFor(Nodes());
    std::string irregular = Irregularity(*server_);
    if (has_fabric()) {
      const RegularFabric regular = FindRegularFabric(*fabric_, placement_.servers);
      cluster.mutable_fabric()->Clear();
      *cluster.mutable_fabric() = regular.fabric;
      cluster.mutable_fabric()->set_hop_latency(basis_.cluster.fabric().hop_latency());
      if (irregular.empty()) irregular = DifferentSizes();
      if (irregular.empty()) irregular = regular.irregularity;
      if (irregular.empty()) placement_.servers = regular.servers;
      findings()->Assume(absl::StrCat("fabric: latency of a hop and routing as in preset ", basis_.name));
      if (basis_.cluster.fabric().has_routing())
        cluster.mutable_fabric()->set_routing(basis_.cluster.fabric().routing());
    } else if (Nodes() > 1) {
      if (!irregular.empty()) return NotRepeatable(irregular);
      ABSL_RETURN_IF_ERROR(CheckFabricHolds());
      findings()->Assume(absl::StrCat("fabric: all of it as in preset ", basis_.name, "; no file describes it"));
    }
    for (const PlacedServer& server : placement_.servers) result_.hosts.push_back(server.name);
    if (irregular.empty()) {
      ABSL_ASSIGN_OR_RETURN(irregular, DifferenceFromGraph());
    }
    result_.irregularity = irregular;
    if (irregular.empty()) return absl::OkStatus();
    if (!has_fabric() && Nodes() > 1) return NotRepeatable(irregular);  // the graph would be of one node
    *cluster.mutable_graph() = GraphOf(true);
    MakeShareable(cluster.graph(), Nodes(), cluster.mutable_node());
    return OfSource(Topology::Build(Resolved(cluster)).status());
  }

  // What is wrong with the cluster is wrong with the file that has its links.
  absl::Status OfSource(const absl::Status& status) const {
    if (status.ok()) return status;
    return absl::Status(status.code(),
                        absl::StrCat(has_fabric() ? fabric_->source : server_->source, ": ", status.message()));
  }

  absl::Status NotRepeatable(const std::string& irregularity) const {
    return absl::InvalidArgumentError(
        absl::StrCat(server_->source, ": a node that is not regular (", irregularity, "), and ", Nodes(),
                     " of them without a fabric; allowed: --nodes 1, or --ibnetdiscover"));
  }

  // The preset's. A few nodes take leaf switches of their number, not those of its many.
  v1::Fabric FabricFor(std::int64_t nodes) const {
    v1::Fabric fabric = basis_.cluster.fabric();
    if (nodes >= fabric.nodes_per_leaf()) return fabric;
    fabric.set_nodes_per_leaf(nodes);
    fabric.set_nodes_per_pod(0);
    return fabric;
  }

  absl::Status PlanFor(std::int64_t nodes) const {
    v1::Cluster cluster = result_.cluster;
    cluster.set_nodes(nodes);
    *cluster.mutable_fabric() = FabricFor(nodes);
    return PlanFabric(Resolved(std::move(cluster))).status();
  }

  // That the preset's fabric has the ports for the nodes asked for; a plan that fails does so for every larger number.
  absl::Status CheckFabricHolds() const {
    const absl::Status planned = PlanFor(Nodes());
    if (planned.ok()) return absl::OkStatus();
    std::int64_t held = 0;
    for (std::int64_t refused = Nodes(); refused - held > 1;) {
      const std::int64_t middle = held + (refused - held) / 2;
      (PlanFor(middle).ok() ? held : refused) = middle;
    }
    const std::string reason(planned.message());
    const std::string allowed = held == 0 ? "" : absl::StrCat("1 to ", held, " nodes, or ");
    return absl::InvalidArgumentError(absl::StrCat(
        "--nodes ", Nodes(), ": the fabric of preset ", basis_.name, " holds ", held, " nodes of ", server_->source,
        " (", reason.substr(0, reason.find("; allowed:")), "); allowed: ", allowed, "--like with a larger fabric"));
  }

  std::string DifferentSizes() const {
    for (const PlacedServer& server : placement_.servers) {
      if (server.cables.size() != server_->nics.size()) return "hosts with different numbers of HCA ports";
    }
    return "";
  }

  // The generated cluster must have the devices and cables that the files have.
  absl::StatusOr<std::string> DifferenceFromGraph() {
    v1::Cluster free_form = result_.cluster;
    *free_form.mutable_graph() = GraphOf(false);
    const absl::StatusOr<Topology> built = Topology::Build(Resolved(free_form));
    if (!built.ok()) return OfSource(built.status());
    const Topology& described = *built;
    const absl::StatusOr<Topology> generated = Topology::Build(Resolved(result_.cluster));
    if (absl::IsResourceExhausted(generated.status()) && !has_fabric()) {
      return absl::InvalidArgumentError(absl::StrCat("--nodes ", Nodes(), ": ", generated.status().message()));
    }
    if (!generated.ok()) return std::string(generated.status().message());
    if (!has_fabric()) return DifferenceInside(described, *generated);
    const auto differ = [](const char* what, std::int64_t there, std::int64_t here) {
      return absl::StrCat(there, " x ", what, " where a regular cluster has ", here);
    };
    for (std::size_t i = 0; i < kDeviceKinds; ++i) {
      const auto kind = static_cast<DeviceKind>(i);
      const std::int64_t there = described.Count(kind);
      if (there != generated->Count(kind)) return differ(topology::NameOf(kind), there, generated->Count(kind));
    }
    for (std::size_t i = 0; i < kLinkKinds; ++i) {
      const auto kind = static_cast<LinkKind>(i);
      const std::int64_t there = described.Cables(kind);
      if (there != generated->Cables(kind)) return differ(topology::NameOf(kind), there, generated->Cables(kind));
    }
    return DifferenceInside(described, *generated);
  }

  // PCIe and socket links of the first node, by kind and number of their ends.
  static std::vector<std::string> PcieLinks(const Topology& topology) {
    std::vector<std::string> links;
    for (DeviceId id = 0; id < topology.devices(); ++id) {
      if (topology.device(id).node != 0) continue;
      for (const LinkId number : topology.LinksFrom(id)) {
        const Link link = topology.link(number);
        if (link.kind != LinkKind::kPcie && link.kind != LinkKind::kSocket) continue;
        const Device& from = topology.device(link.from);
        const Device& to = topology.device(link.to);
        links.push_back(absl::StrCat(topology::NameOf(from.kind), " ", from.index, " - ", topology::NameOf(to.kind),
                                     " ", to.index));
      }
    }
    std::sort(links.begin(), links.end());
    return links;
  }

  static std::string DifferenceInside(const Topology& described, const Topology& generated) {
    const bool same = PcieLinks(described) == PcieLinks(generated);
    return same ? "" : "PCIe devices that are not joined as a regular node has it";
  }

  static v1::Cluster Resolved(v1::Cluster cluster) {
    spec::Diagnostics ignored;
    spec::FillClusterDefaults("cluster", &cluster, &ignored);
    return cluster;
  }

  // Beside a graph: what the checks of a spec ask of every node. Hosts that differ have as many GPUs as all of them
  // together have for each.
  static void MakeShareable(const v1::Graph& graph, std::int64_t nodes, v1::Node* node) {
    const std::int64_t gpus = std::count_if(graph.device().begin(), graph.device().end(),
                                            [](const v1::Device& one) { return one.kind() == v1::GPU; });
    const bool nic_for_each = node->nics() == node->gpus();
    node->set_gpus(std::min(node->gpus(), gpus / nodes));
    if (nic_for_each) node->set_nics(node->gpus());
    if (node->gpus() % node->nics() != 0 && node->nics() % node->gpus() != 0)
      node->set_nics(std::gcd(node->gpus(), node->nics()));
  }

  // `with_others`: with the NICs of hosts without GPUs.
  v1::Graph GraphOf(bool with_others) const {
    const LinkKinds kinds = LinkKindsOf(node_, basis_.cluster.fabric().hop_latency());
    v1::Graph graph;
    GraphBuilder builder(kinds, &graph);
    if (!has_fabric()) {
      builder.AddServer("node0", *server_);
      return graph;
    }
    std::vector<std::vector<std::string>> nics;
    for (const PlacedServer& placed : placement_.servers) {
      Server server = *server_;
      if (placed.cables.size() != server.nics.size()) {
        server = PlainServer(placed.cables.size(), fabric_->source);
        Findings ignored;
        AddNvlinksOf(basis_, &server, &ignored);
      }
      nics.push_back(builder.AddServer(placed.name, server));
    }
    std::vector<PlacedServer> placed = placement_.servers;
    if (with_others) {
      for (const PlacedServer& other : placement_.others) {
        placed.push_back(other);
        nics.push_back(builder.AddNics(other.name, other.cables.size()));
      }
    }
    builder.AddFabric(*fabric_, placed, nics);
    if (basis_.cluster.fabric().has_routing()) graph.set_routing(basis_.cluster.fabric().routing());
    return graph;
  }

  const ImportOptions& options_;
  ImportResult result_;
  Basis basis_;
  std::optional<Server> server_;
  std::optional<IbFabric> fabric_;
  Placement placement_;
  v1::Node node_;
};

}  // namespace

absl::StatusOr<ImportResult> Import(const ImportOptions& options) { return Importer(options).Run(); }

}  // namespace orrery::topology
