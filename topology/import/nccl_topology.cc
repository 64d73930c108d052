#include "topology/import/nccl_topology.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"
#include "topology/import/text.h"

namespace orrery::topology {
namespace {

constexpr std::int64_t kFullWidth = 16;  // lanes
constexpr double kBytesPerMegabit = 1e6 / 8;
constexpr std::int64_t kMostMegabits = 100'000'000;  // 100 Tb/s
constexpr std::int64_t kMostLinks = 1024;

// One PCI device of the file; `children` of bridges only.
enum class PciKind { kBridge, kGpu, kNic, kOther };

// Of the NVLinks of one GPU, before targets are known.
struct FileLink {
  std::string target;
  std::string target_class;
  std::int64_t count = 0;
  const XmlElement* element = nullptr;
};
struct FileGpu {
  PcieDevice device;
  std::string busid;
  std::optional<std::int64_t> dev;
  std::vector<FileLink> links;
};
struct FileNic {
  Nic nic;
  std::optional<std::int64_t> dev;
};

class Reader {
 public:
  Reader(const std::string& file, Findings* findings) : file_(file), findings_(*findings) {}

  absl::StatusOr<Server> Read(const XmlElement& root) {
    if (root.name == "graphs") {
      return XmlError(file_, root,
                      "a graph file, which names channels, not devices; allowed: a topology file (<system>)");
    }
    if (root.name != "system") return XmlError(file_, root, "not a topology file of NCCL; allowed: <system>");
    server_.source = file_;
    for (const XmlElement& element : root.children) {
      if (element.name != "cpu") {
        IgnoreElement(element);
        continue;
      }
      ABSL_RETURN_IF_ERROR(ReadCpu(element));
    }
    if (gpus_.empty()) return XmlError(file_, root, "no GPU below any <cpu>");
    OrderGpus();
    OrderNics();
    ABSL_RETURN_IF_ERROR(ConnectNvlinks());
    WarnOfVirtualMachine();
    Normalise(&server_, &findings_);
    return std::move(server_);
  }

 private:
  absl::Status Error(const XmlElement& element, const std::string& message) const {
    return XmlError(file_, element, message);
  }
  void Warn(std::string_view kind, const XmlElement& element, const std::string& message) {
    findings_.Warn(kind, absl::StrCat(Place(file_, element.line), ": ", message));
  }
  void IgnoreElement(const XmlElement& element) {
    Warn("elements that are not read", element, absl::StrCat("<", Printable(element.name), "> is not read"));
  }

  // Nothing where the attribute is missing.
  absl::StatusOr<std::optional<std::int64_t>> Integer(const XmlElement& element, std::string_view attribute,
                                                      std::int64_t most) const {
    const std::string* text = element.Find(attribute);
    if (text == nullptr) return std::optional<std::int64_t>();
    const std::optional<std::int64_t> value = ParseCount(*text, most);
    if (!value.has_value()) {
      return Error(element,
                   absl::StrCat(std::string(attribute), " = ", Quote(*text), "; allowed: an integer from 0 to ", most));
    }
    return value;
  }

  absl::Status ReadCpu(const XmlElement& element) {
    const std::string* host = element.Find("host_hash");
    if (host != nullptr && !host_.empty() && *host != host_) {
      return Error(element, absl::StrCat("host_hash ", Quote(*host), " behind ", Quote(host_),
                                         ": several hosts; allowed: the file of one host"));
    }
    if (host != nullptr) host_ = *host;
    if (server_.cpus.size() >= kMostServerDevices) return Error(element, "more CPUs than a node can have");
    const std::string* numa = element.Find("numaid");
    server_.cpus.push_back(absl::StrCat("cpu ", numa == nullptr ? "?" : Printable(*numa)));
    const std::string* vendor = element.Find("vendor");
    const std::string* arch = element.Find("arch");
    if (vendor != nullptr && *vendor == "GenuineIntel") server_.cpu_vendor = v1::INTEL;
    if (vendor != nullptr && *vendor == "AuthenticAMD") server_.cpu_vendor = v1::AMD;
    if (arch != nullptr && *arch == "arm64") server_.cpu_vendor = v1::ARM;
    const int cpu = static_cast<int>(server_.cpus.size()) - 1;
    for (const XmlElement& child : element.children) {
      if (child.name == "pci") {
        ABSL_RETURN_IF_ERROR(ReadPci(child, cpu, -1));
      } else if (child.name == "nic") {
        ABSL_RETURN_IF_ERROR(ReadNic(child, PcieDevice{.name = "", .pcie_switch = -1, .cpu = cpu}));
      } else {
        IgnoreElement(child);
      }
    }
    return absl::OkStatus();
  }

  static PciKind KindOf(const XmlElement& pci) {
    const std::string* type = pci.Find("class");
    const std::string text = type == nullptr ? "" : *type;
    for (const XmlElement& child : pci.children) {
      if (child.name == "gpu") return PciKind::kGpu;
      if (child.name == "nic") return PciKind::kNic;
    }
    if (text.starts_with("0x0604")) return PciKind::kBridge;
    if (text == "0x030200" || text == "0x030000") return PciKind::kGpu;
    if (text == "0x020000" || text == "0x020700") return PciKind::kNic;
    return pci.children.empty() ? PciKind::kOther : PciKind::kBridge;
  }

  // Nominal, 0 where it is not known; width 0 counts as 16, as NCCL has it.
  absl::StatusOr<double> LinkOf(const XmlElement& pci) {
    ABSL_ASSIGN_OR_RETURN(const std::optional<std::int64_t> width, Integer(pci, "link_width", 64));
    const std::string* speed = pci.Find("link_speed");
    if (width.has_value() && *width == 0) ++zero_widths_;
    if (speed == nullptr || speed->empty()) return 0.0;
    const double bandwidth = PcieBandwidth(*speed, width.value_or(0) == 0 ? kFullWidth : *width);
    if (bandwidth == 0) {
      Warn("PCIe speeds", pci,
           absl::StrCat("link_speed ", Quote(*speed), " is of no PCIe generation; taken as not known"));
    }
    return bandwidth;
  }

  absl::Status ReadPci(const XmlElement& pci, int cpu, int above) {
    const std::string* busid = pci.Find("busid");
    if (busid == nullptr || busid->empty()) return Error(pci, "no busid");
    const std::string id = absl::AsciiStrToLower(Printable(*busid));
    const auto [known, is_new] = lines_.emplace(id, pci.line);
    if (!is_new) return Error(pci, absl::StrCat("busid ", Quote(id), " stands in line ", known->second, " too"));
    ABSL_ASSIGN_OR_RETURN(const double bandwidth, LinkOf(pci));
    const PcieDevice device{.name = id, .pcie_switch = above, .cpu = cpu, .bandwidth = bandwidth};
    switch (KindOf(pci)) {
      case PciKind::kGpu:
        return ReadGpu(pci, device);
      case PciKind::kNic:
        return ReadNic(pci, device);
      case PciKind::kOther:
        Warn("other PCI devices", pci, absl::StrCat("PCI device ", id, " is neither GPU, NIC nor bridge; left out"));
        return absl::OkStatus();
      case PciKind::kBridge:
        break;
    }
    if (server_.pcie_switches.size() >= kMostServerDevices)
      return Error(pci, "more PCIe switches than a node can have");
    server_.pcie_switches.push_back({id, above, cpu, bandwidth});
    const int self = static_cast<int>(server_.pcie_switches.size()) - 1;
    for (const XmlElement& child : pci.children) {
      if (child.name == "pci") {
        ABSL_RETURN_IF_ERROR(ReadPci(child, cpu, self));
      } else {
        IgnoreElement(child);
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReadGpu(const XmlElement& pci, const PcieDevice& device) {
    if (gpus_.size() >= kMostServerDevices) return Error(pci, "more GPUs than a node can have");
    FileGpu gpu{.device = device, .busid = device.name, .dev = std::nullopt, .links = {}};
    for (const XmlElement& child : pci.children) {
      if (child.name != "gpu") {
        IgnoreElement(child);
        continue;
      }
      has_gpu_elements_ = true;
      ABSL_ASSIGN_OR_RETURN(gpu.dev, Integer(child, "dev", kMostServerDevices));
      ABSL_ASSIGN_OR_RETURN(const std::optional<std::int64_t> sm, Integer(child, "sm", 999));
      if (sm.has_value()) server_.compute_capability = static_cast<int>(*sm);
      if (gpu.dev.has_value() && !devs_.insert(*gpu.dev).second) {
        return Error(child, absl::StrCat("dev ", *gpu.dev, " is that of another GPU too"));
      }
      for (const XmlElement& link : child.children) {
        if (link.name == "nvlink") {
          ABSL_RETURN_IF_ERROR(ReadNvlink(link, &gpu));
        } else if (link.name != "c2c") {  // a GPU's way to its own CPU; v1::Node has PCIe there
          IgnoreElement(link);
        }
      }
    }
    gpus_.push_back(std::move(gpu));
    return absl::OkStatus();
  }

  absl::Status ReadNvlink(const XmlElement& link, FileGpu* gpu) {
    const std::string* target = link.Find("target");
    const std::string* target_class = link.Find("tclass");
    if (target == nullptr) return Error(link, "no target");
    ABSL_ASSIGN_OR_RETURN(const std::optional<std::int64_t> count, Integer(link, "count", kMostLinks));
    if (count.value_or(1) == 0) return absl::OkStatus();
    gpu->links.push_back({absl::AsciiStrToLower(Printable(*target)), target_class == nullptr ? "" : *target_class,
                          count.value_or(1), &link});
    return absl::OkStatus();
  }

  // A PCI device of a NIC, or a <nic> without one. Its ports are one NIC of their speeds together.
  absl::Status ReadNic(const XmlElement& element, const PcieDevice& device) {
    if (nics_.size() >= kMostServerDevices) return Error(element, "more NICs than a node can have");
    FileNic nic;
    static_cast<PcieDevice&>(nic.nic) = device;
    int ports = 0;
    std::vector<const XmlElement*> holders;
    if (element.name == "nic") holders.push_back(&element);
    for (const XmlElement& child : element.children) {
      if (child.name == "nic") holders.push_back(&child);
    }
    for (const XmlElement* holder : holders) {
      for (const XmlElement& net : holder->children) {
        if (net.name != "net") continue;
        ABSL_RETURN_IF_ERROR(ReadNet(net, &ports, &nic));
      }
    }
    if (nic.nic.name.empty()) {
      if (ports == 0) return absl::OkStatus();  // an empty <nic/>
      nic.nic.name = absl::StrCat("nic ", nics_.size());
    }
    if (ports > 1) {
      Warn("NICs with several ports", element,
           absl::StrCat(nic.nic.name, " has ", ports, " ports; taken as one NIC of their speeds together"));
    }
    nics_.push_back(std::move(nic));
    return absl::OkStatus();
  }

  absl::Status ReadNet(const XmlElement& net, int* ports, FileNic* nic) {
    ABSL_ASSIGN_OR_RETURN(const std::optional<std::int64_t> speed, Integer(net, "speed", kMostMegabits));
    ABSL_ASSIGN_OR_RETURN(const std::optional<std::int64_t> dev, Integer(net, "dev", kMostMegabits));
    if (speed.value_or(0) == 0) Warn("speeds of NICs", net, "a port without a speed; taken as not known");
    nic->nic.port_bandwidth += static_cast<double>(speed.value_or(0)) * kBytesPerMegabit;
    const std::string* name = net.Find("name");
    if (++*ports > 1) return absl::OkStatus();
    nic->dev = dev;
    if (name != nullptr && !name->empty()) nic->nic.name = Printable(*name);
    has_nets_ = true;
    return absl::OkStatus();
  }

  void OrderGpus() {
    const bool by_dev = devs_.size() == gpus_.size();
    std::sort(gpus_.begin(), gpus_.end(), [&](const FileGpu& a, const FileGpu& b) {
      if (by_dev && a.dev != b.dev) return a.dev < b.dev;
      return a.busid < b.busid;
    });
    if (!by_dev) {
      findings_.Assume(absl::StrCat(file_, " does not number its GPUs: they stand in the order of their bus ids"));
    }
    for (const FileGpu& gpu : gpus_) server_.gpus.push_back(gpu.device);
    ReplaceSlowerBridges();
  }

  // A virtual machine's bridge may claim a link that is narrower than the device behind it.
  void ReplaceSlowerBridges() {
    for (const PcieDevice& gpu : server_.gpus) {
      for (int at = gpu.pcie_switch; at >= 0;) {
        PcieSwitch& bridge = server_.pcie_switches[static_cast<std::size_t>(at)];
        at = bridge.parent;
        if (bridge.bandwidth == 0 || bridge.bandwidth >= gpu.bandwidth) continue;
        findings_.Warn(
            "bridges slower than their GPU",
            absl::StrCat(Place(file_, lines_[bridge.name]), ": bridge ", bridge.name, " claims ",
                         bridge.bandwidth / 1e9, " GB/s, its GPU ", gpu.bandwidth / 1e9, ": taken as fast as the GPU"));
        bridge.bandwidth = gpu.bandwidth;
        ++made_up_;
      }
    }
  }

  void OrderNics() {
    std::sort(nics_.begin(), nics_.end(), [](const FileNic& a, const FileNic& b) {
      if (a.dev != b.dev) return a.dev.value_or(kMostMegabits) < b.dev.value_or(kMostMegabits);
      return a.nic.name < b.nic.name;
    });
    for (FileNic& nic : nics_) server_.nics.push_back(std::move(nic.nic));
  }

  absl::Status ConnectNvlinks() {
    std::map<std::string, int> gpu_of;
    std::map<std::string, int> nvswitch_of;
    for (std::size_t i = 0; i < gpus_.size(); ++i) gpu_of[gpus_[i].busid] = static_cast<int>(i);
    for (const FileGpu& gpu : gpus_) {
      for (const FileLink& link : gpu.links) {
        if (IsNvswitch(link, gpu_of)) nvswitch_of.emplace(link.target, 0);
      }
    }
    if (nvswitch_of.size() > kMostServerDevices)
      return absl::InvalidArgumentError(absl::StrCat(file_, ": more NVSwitches than a node can have"));
    int next = 0;
    for (auto& [target, index] : nvswitch_of) index = next++;
    if (!nvswitch_of.empty()) server_.nvswitch_links.assign(gpus_.size(), std::vector<int>(nvswitch_of.size(), 0));
    std::map<std::pair<int, int>, std::int64_t> links;
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      for (const FileLink& link : gpus_[i].links) {
        server_.nvlink_known = true;
        if (const auto found = nvswitch_of.find(link.target); found != nvswitch_of.end()) {
          server_.nvswitch_links[i][static_cast<std::size_t>(found->second)] += static_cast<int>(link.count);
        } else if (const auto peer = gpu_of.find(link.target);
                   peer != gpu_of.end() && peer->second != static_cast<int>(i)) {
          links[{static_cast<int>(i), peer->second}] += link.count;
        } else {
          Warn("NVLinks that lead nowhere", *link.element,
               absl::StrCat("NVLink to ", Quote(link.target),
                            ", which is no other GPU of the file and no NVSwitch; left out"));
        }
      }
    }
    AddPairs(links);
    // A dump lists what there is; a file written by hand leaves it to NCCL.
    if (has_gpu_elements_) server_.nvlink_known = true;
    return absl::OkStatus();
  }

  static bool IsNvswitch(const FileLink& link, const std::map<std::string, int>& gpu_of) {
    if (gpu_of.contains(link.target)) return false;
    return link.target_class.starts_with("0x0680");
  }

  void AddPairs(const std::map<std::pair<int, int>, std::int64_t>& links) {
    for (const auto& [ends, count] : links) {
      const auto& [a, b] = ends;
      const auto back = links.find({b, a});
      const std::int64_t back_count = back == links.end() ? 0 : back->second;
      if (a > b && back_count > 0) continue;  // its other direction has it
      const std::int64_t both = back_count == 0 ? count : std::min(count, back_count);
      if (count != back_count) {
        findings_.Warn("NVLinks that differ by direction",
                       absl::StrCat(file_, ": ", count, " NVLinks from GPU ", a, " to ", b, " and ", back_count,
                                    " back; taken: ", both));
      }
      v1::NvlinkPair pair;
      pair.set_a(std::min(a, b));
      pair.set_b(std::max(a, b));
      pair.set_links(both);
      server_.pairs.push_back(pair);
    }
  }

  void WarnOfVirtualMachine() {
    if (zero_widths_ > 0) {
      findings_.Warn("PCIe widths of 0", absl::StrCat(file_, ": link_width 0 of ", zero_widths_,
                                                      " PCI devices; taken as 16 lanes, as NCCL takes it"));
    }
    if (zero_widths_ + made_up_ > 0 && has_nets_) {
      findings_.Warn(
          "speeds in a virtual machine",
          absl::StrCat(file_,
                       ": PCIe links that a virtual machine made up; the speeds of its NICs may be made up too (a port "
                       "of a bonded NIC shows its own speed): compare them with ibnetdiscover or the NIC's model"));
    }
  }

  const std::string& file_;
  Findings& findings_;
  Server server_;
  std::string host_;
  std::vector<FileGpu> gpus_;
  std::vector<FileNic> nics_;
  std::map<std::string, std::int64_t> lines_;  // by bus id
  std::set<std::int64_t> devs_;
  std::int64_t zero_widths_ = 0;
  std::int64_t made_up_ = 0;
  bool has_gpu_elements_ = false;
  bool has_nets_ = false;
};

}  // namespace

absl::StatusOr<Server> ReadNcclTopology(const XmlElement& root, const std::string& file, Findings* findings) {
  return Reader(file, findings).Read(root);
}

}  // namespace orrery::topology
