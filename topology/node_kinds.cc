#include "topology/node_kinds.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace orrery::topology {
namespace {

std::size_t At(std::int64_t i) { return static_cast<std::size_t>(i); }

// Cables of a device that serve one purpose, together.
struct Bundle {
  double bandwidth = 0;  // nominal, bytes/s
  double achieved = 0;
  double message = 0;  // what a single message achieves
  double latency = 0;  // the longest, seconds
  std::int64_t cables = 0;

  void Add(const v1::Cable& cable) {
    const double nominal = cable.link().bandwidth() * static_cast<double>(cable.count());
    bandwidth += nominal;
    achieved += nominal * cable.link().efficiency();
    message += nominal * cable.link().message_efficiency();
    latency = std::max(latency, cable.link().latency());
    cables += cable.count();
  }

  v1::Link AsLink() const {
    v1::Link link;
    link.set_bandwidth(bandwidth);
    link.set_efficiency(achieved / bandwidth);
    link.set_message_efficiency(message / bandwidth);
    link.set_latency(latency);
    return link;
  }
};

bool IsLess(const Bundle& a, const Bundle& b) { return a.achieved < b.achieved; }

class GraphReader {
 public:
  GraphReader(const v1::Graph& graph, const Topology& topology)
      : graph_(graph), topology_(topology), of_device_(At(topology.devices())), joined_(At(topology.devices())) {
    std::iota(joined_.begin(), joined_.end(), 0);
    for (const v1::Cable& cable : graph_.cable()) Read(cable);
  }

  absl::StatusOr<v1::Node> NodeOf(const std::vector<std::int64_t>& gpus, v1::CpuVendor cpu_vendor) {
    v1::Node node;
    node.set_gpus(static_cast<std::int64_t>(gpus.size()));
    node.set_hosts(1);
    node.set_cpus(1);
    node.set_pcie_switches(0);
    node.set_cpu_vendor(cpu_vendor);
    std::vector<DeviceId> devices;
    for (const std::int64_t gpu : gpus) devices.push_back(topology_.gpu(gpu));
    ABSL_RETURN_IF_ERROR(DescribeNvlink(devices, &node));
    DescribeNics(topology_.device(devices.front()).node, &node);
    ABSL_RETURN_IF_ERROR(DescribePcie(devices, &node));
    return node;
  }

 private:
  struct Links {
    Bundle nvlink;
    Bundle to_nvswitch;  // of nvlink
    Bundle network;
    Bundle pcie;
    std::map<DeviceId, std::int64_t> pairs;  // GPUs behind a cable, and the cables
  };

  void Read(const v1::Cable& cable) {
    const absl::StatusOr<DeviceId> a = topology_.Find(cable.a());
    const absl::StatusOr<DeviceId> b = topology_.Find(cable.b());
    ORRERY_CHECK(a.ok() && b.ok());  // the topology is that of the graph
    ReadEnd(cable, *a, *b);
    ReadEnd(cable, *b, *a);
  }

  void ReadEnd(const v1::Cable& cable, DeviceId at, DeviceId to) {
    const DeviceKind here = topology_.device(at).kind, there = topology_.device(to).kind;
    Links& links = of_device_[At(at)];
    if (there == DeviceKind::kNvSwitch) {
      joined_[At(Root(at))] = Root(to);
      links.nvlink.Add(cable);
      links.to_nvswitch.Add(cable);
    } else if (here == DeviceKind::kGpu && there == DeviceKind::kGpu) {
      links.nvlink.Add(cable);
      links.pairs[to] += cable.count();
    } else if (IsNetworkSwitch(there) || (here == DeviceKind::kNic && there == DeviceKind::kNic)) {
      links.network.Add(cable);
    } else if (here != DeviceKind::kNvSwitch) {
      links.pcie.Add(cable);
    }
  }

  // Over NVSwitches, GPUs not being on the way.
  DeviceId Root(DeviceId at) {
    while (joined_[At(at)] != at) at = joined_[At(at)] = joined_[At(joined_[At(at)])];
    return at;
  }

  absl::Status DescribeNvlink(const std::vector<DeviceId>& gpus, v1::Node* node) {
    const auto on_switch = [&](DeviceId gpu) { return of_device_[At(gpu)].to_nvswitch.cables > 0; };
    const auto first = std::find_if(gpus.begin(), gpus.end(), on_switch);
    const auto off = std::find_if_not(gpus.begin(), gpus.end(), on_switch);
    if (first != gpus.end() && off != gpus.end()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cluster.graph: \"", topology_.NameOf(*off), "\" hangs on no NVSwitch, \"", topology_.NameOf(*first),
          "\" of the same node does; allowed for collectives: all GPUs of a node, or none"));
    }
    const bool joined = first != gpus.end() && std::all_of(gpus.begin(), gpus.end(), [&](DeviceId gpu) {
                          return Root(gpu) == Root(gpus.front());
                        });
    node->set_nvswitches(joined ? 1 : 0);
    if (first == gpus.end()) DescribePairs(gpus, node);
    const auto bundle = [&](DeviceId gpu) {
      return joined ? of_device_[At(gpu)].to_nvswitch : of_device_[At(gpu)].nvlink;
    };
    const DeviceId least = *std::min_element(gpus.begin(), gpus.end(),
                                             [&](DeviceId a, DeviceId b) { return IsLess(bundle(a), bundle(b)); });
    node->set_nvlinks(bundle(least).cables);
    if (node->nvlinks() == 0) return absl::OkStatus();
    *node->mutable_nvlink() = bundle(least).AsLink();
    double longest = 0;
    for (const DeviceId gpu : gpus) longest = std::max(longest, bundle(gpu).latency);
    node->mutable_nvlink()->set_latency(joined ? 2 * longest : longest);
    return absl::OkStatus();
  }

  void DescribePairs(const std::vector<DeviceId>& gpus, v1::Node* node) const {
    for (std::size_t a = 0; a < gpus.size(); ++a) {
      const std::map<DeviceId, std::int64_t>& pairs = of_device_[At(gpus[a])].pairs;
      for (std::size_t b = a + 1; b < gpus.size(); ++b) {
        const auto found = pairs.find(gpus[b]);
        if (found == pairs.end()) continue;
        v1::NvlinkPair* const pair = node->add_nvlink_pair();
        pair->set_a(static_cast<std::int64_t>(a));
        pair->set_b(static_cast<std::int64_t>(b));
        pair->set_links(found->second);
      }
    }
  }

  void DescribeNics(std::int32_t number, v1::Node* node) {
    std::optional<Bundle> least;
    nic_pcie_ = std::nullopt;
    std::int64_t nics = 0;
    for (const DeviceId nic : NicsOf(number)) {
      const Links& links = of_device_[At(nic)];
      ++nics;
      if (!least.has_value() || IsLess(links.network, *least)) least = links.network;
      if (links.pcie.cables > 0 && (!nic_pcie_.has_value() || IsLess(links.pcie, *nic_pcie_))) nic_pcie_ = links.pcie;
    }
    node->set_nics(nics);
    if (least.has_value()) *node->mutable_nic() = least->AsLink();
  }

  // At a network.
  const std::vector<DeviceId>& NicsOf(std::int32_t node) {
    if (nics_of_node_.empty()) {
      nics_of_node_.resize(At(topology_.nodes()));
      for (DeviceId id = 0; id < topology_.devices(); ++id) {
        const Device& device = topology_.device(id);
        if (device.kind == DeviceKind::kNic && of_device_[At(id)].network.cables > 0) {
          nics_of_node_[At(device.node)].push_back(id);
        }
      }
    }
    return nics_of_node_[At(node)];
  }

  absl::Status DescribePcie(const std::vector<DeviceId>& gpus, v1::Node* node) const {
    std::optional<Bundle> least;
    for (const DeviceId gpu : gpus) {
      const Bundle& own = of_device_[At(gpu)].pcie;
      if (own.cables == 0 && node->nvlinks() == 0 && gpus.size() > 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("cluster.graph: \"", topology_.NameOf(gpu),
                         "\" has neither NVLink nor PCIe; allowed for collectives: either, to the GPUs of its node"));
      }
      if (own.cables > 0 && (!least.has_value() || IsLess(own, *least))) least = own;
    }
    const double nics = std::max(1.0, static_cast<double>(node->nics()) / static_cast<double>(gpus.size()));
    if (least.has_value()) *node->mutable_pcie() = least->AsLink();
    if (nic_pcie_.has_value() && (!least.has_value() || nic_pcie_->achieved * nics < least->achieved)) {
      *node->mutable_pcie() = nic_pcie_->AsLink();
      node->mutable_pcie()->set_bandwidth(nic_pcie_->bandwidth * nics);
    }
    return absl::OkStatus();
  }

  const v1::Graph& graph_;
  const Topology& topology_;
  std::vector<Links> of_device_;
  std::vector<DeviceId> joined_;  // by device, towards its root
  std::vector<std::vector<DeviceId>> nics_of_node_;
  std::optional<Bundle> nic_pcie_;  // of the node at hand, the least
};

// The place of a kind among those that are known; it is added to them if new.
std::size_t PlaceOf(const v1::Node& node, std::map<std::string, std::size_t>* known, std::vector<v1::Node>* kinds) {
  const auto [found, is_new] = known->emplace(node.SerializeAsString(), kinds->size());
  if (is_new) kinds->push_back(node);
  return found->second;
}

}  // namespace

absl::StatusOr<NodeKinds> FindNodeKinds(const v1::Cluster& cluster, const Topology& topology) {
  NodeKinds found;
  std::vector<std::vector<std::int64_t>> gpus(At(topology.nodes()));
  for (std::int64_t gpu = 0; gpu < topology.gpus(); ++gpu) {
    gpus[At(topology.device(topology.gpu(gpu)).node)].push_back(gpu);
  }
  std::map<std::string, std::size_t> known;
  if (topology.is_free_form()) {
    GraphReader reader(cluster.graph(), topology);
    const v1::CpuVendor cpu_vendor = cluster.has_node() ? cluster.node().cpu_vendor() : v1::INTEL;
    for (std::vector<std::int64_t>& of_node : gpus) {
      if (of_node.empty()) continue;
      ABSL_ASSIGN_OR_RETURN(const v1::Node node, reader.NodeOf(of_node, cpu_vendor));
      found.kind_of.push_back(PlaceOf(node, &known, &found.kinds));
      found.gpus.push_back(std::move(of_node));
    }
    return found;
  }
  found.gpus = std::move(gpus);
  found.kind_of.assign(At(cluster.nodes()), PlaceOf(cluster.node(), &known, &found.kinds));
  for (const v1::NodeGroup& group : cluster.more_nodes()) {
    found.kind_of.insert(found.kind_of.end(), At(group.nodes()), PlaceOf(group.node(), &known, &found.kinds));
  }
  return found;
}

}  // namespace orrery::topology
