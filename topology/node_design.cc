#include "topology/node_design.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace orrery::topology {
namespace {

// Item i of `items` dealt evenly, in order, to `holders`.
constexpr std::int64_t HolderOf(std::int64_t i, std::int64_t items, std::int64_t holders) {
  return i * holders / items;
}

class Designer {
 public:
  Designer(const std::string& path, const v1::Node& node) : path_(path), node_(node) {}

  absl::StatusOr<NodeDesign> Design() {
    ABSL_RETURN_IF_ERROR(CheckSharing(path_, node_));
    ABSL_RETURN_IF_ERROR(CheckNvlinks());
    ABSL_RETURN_IF_ERROR(CheckHosts());
    ABSL_RETURN_IF_ERROR(CheckSize());
    gpu_ = AddDevices(DeviceKind::kGpu, node_.gpus());
    nvswitch_ = AddDevices(DeviceKind::kNvSwitch, node_.nvswitches());
    pcie_switch_ = AddDevices(DeviceKind::kPcieSwitch, node_.pcie_switches());
    cpu_ = AddDevices(DeviceKind::kCpu, node_.cpus());
    nic_ = AddDevices(DeviceKind::kNic, node_.nics());
    ABSL_RETURN_IF_ERROR(AddNvlinks());
    ABSL_RETURN_IF_ERROR(AddPcie());
    ABSL_RETURN_IF_ERROR(AddSockets());
    design_.first_nic = nic_;
    // The switches of a rack with several hosts belong to none of them.
    design_.hosting = {.hosts = node_.hosts(),
                       .gpus = node_.gpus(),
                       .nvswitches = node_.hosts() == 1 ? node_.nvswitches() : 0,
                       .pcie_switches = node_.pcie_switches(),
                       .cpus = node_.cpus(),
                       .nics = node_.nics()};
    return std::move(design_);
  }

 private:
  absl::Status Fail(const char* field, const std::string& what) const {
    return absl::InvalidArgumentError(absl::StrCat(path_, ".", field, ": ", what));
  }

  absl::Status CheckNvlinks() const {
    if (node_.nvswitches() > 0 && node_.nvlink_pair_size() > 0) {
      return Fail("nvlink_pair",
                  absl::StrCat("stands beside nvswitches = ", node_.nvswitches(), "; allowed: one of them"));
    }
    if (node_.nvlinks() < node_.nvswitches()) {
      return Fail("nvlinks", absl::StrCat("found ", node_.nvlinks(), "; allowed: at least one per NVSwitch, ",
                                          node_.nvswitches()));
    }
    return CheckPairs();
  }

  absl::Status CheckPairs() const {
    std::map<std::int64_t, std::int64_t> links;
    std::map<std::pair<std::int64_t, std::int64_t>, int> first;
    for (int i = 0; i < node_.nvlink_pair_size(); ++i) {
      const v1::NvlinkPair& pair = node_.nvlink_pair(i);
      const std::string field = absl::StrCat("nvlink_pair[", i, "]");
      if (pair.a() < 0 || pair.a() >= pair.b() || pair.b() >= node_.gpus()) {
        return Fail(field.c_str(), absl::StrCat("found GPUs ", pair.a(), " and ", pair.b(), "; allowed: two of ",
                                                node_.gpus(), " from 0, a < b"));
      }
      const auto [it, is_new] = first.emplace(std::pair(pair.a(), pair.b()), i);
      if (!is_new) return Fail(field.c_str(), absl::StrCat("joins the GPUs of nvlink_pair[", it->second, "]"));
      for (const std::int64_t gpu : {pair.a(), pair.b()}) {
        if ((links[gpu] += pair.links()) > node_.nvlinks()) {
          return Fail(field.c_str(), absl::StrCat("GPU ", gpu, " gets ", links[gpu],
                                                  " NVLinks; allowed: up to nvlinks = ", node_.nvlinks()));
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status CheckHosts() const {
    const std::int64_t hosts = node_.hosts();
    if (hosts <= 1) return absl::OkStatus();
    const auto divides = [&](const char* field, std::int64_t count) {
      if (count % hosts == 0) return absl::OkStatus();
      return Fail(field, absl::StrCat("found ", count, "; allowed: a multiple of hosts = ", hosts));
    };
    ABSL_RETURN_IF_ERROR(divides("gpus", node_.gpus()));
    ABSL_RETURN_IF_ERROR(divides("nics", node_.nics()));
    ABSL_RETURN_IF_ERROR(divides("pcie_switches", node_.pcie_switches()));
    return divides("cpus", node_.cpus());
  }

  absl::Status CheckSize() const {
    const auto real = [](std::int64_t value) { return static_cast<double>(value); };
    const double cables = real(node_.gpus()) * (real(node_.nvswitches()) + 1) + real(node_.nics()) +
                          real(node_.pcie_switches()) + real(node_.cpus()) * real(node_.cpus());
    if (cables <= static_cast<double>(kMostCables)) return absl::OkStatus();
    return absl::ResourceExhaustedError(
        absl::StrCat(path_, ": a node of ", cables, " cables; allowed: up to ", kMostCables));
  }

  DeviceId AddDevices(DeviceKind kind, std::int64_t count) {
    const auto first = static_cast<DeviceId>(design_.devices.size());
    for (std::int32_t i = 0; i < count; ++i) design_.devices.push_back({kind, 0, i});
    return first;
  }

  void AddCable(LinkKind kind, std::int64_t a, std::int64_t b, std::int64_t capacity, Time latency,
                std::int64_t cables = 1) {
    design_.cables.push_back({static_cast<DeviceId>(a), static_cast<DeviceId>(b), kind,
                              static_cast<std::int32_t>(cables), capacity, latency});
  }

  absl::Status AddNvlinks() {
    const std::int64_t switches = node_.nvswitches();
    const std::string field = path_ + ".nvlink";
    const double half_latency = node_.nvlink().latency() / 2;
    const auto share = [&](std::int64_t links) {
      return static_cast<double>(links) / static_cast<double>(std::max<std::int64_t>(node_.nvlinks(), 1));
    };
    for (std::int64_t i = 0; i < switches; ++i) {
      const std::int64_t links = node_.nvlinks() / switches + (i < node_.nvlinks() % switches ? 1 : 0);
      ABSL_ASSIGN_OR_RETURN(const std::int64_t capacity, Capacity(field, node_.nvlink(), share(links)));
      for (std::int64_t gpu = 0; gpu < node_.gpus(); ++gpu) {
        AddCable(LinkKind::kNvlink, gpu_ + gpu, nvswitch_ + i, capacity, TimeFromSeconds(half_latency), links);
      }
    }
    for (const v1::NvlinkPair& pair : node_.nvlink_pair()) {
      ABSL_ASSIGN_OR_RETURN(const std::int64_t capacity, Capacity(field, node_.nvlink(), share(pair.links())));
      AddCable(LinkKind::kNvlink, gpu_ + pair.a(), gpu_ + pair.b(), capacity, TimeFromSeconds(2 * half_latency),
               pair.links());
    }
    return absl::OkStatus();
  }

  absl::Status AddPcie() {
    const std::int64_t gpus = node_.gpus();
    const std::int64_t nics = node_.nics();
    if (node_.cpus() == 0) return AddDirectNics();
    ABSL_ASSIGN_OR_RETURN(const std::int64_t capacity, Capacity(path_ + ".pcie", node_.pcie()));
    const Time latency = TimeFromSeconds(node_.pcie().latency());
    const std::int64_t switches = node_.pcie_switches();
    const DeviceId holder = switches > 0 ? pcie_switch_ : cpu_;
    const std::int64_t holders = switches > 0 ? switches : node_.cpus();
    for (std::int64_t i = 0; i < gpus; ++i) {
      AddCable(LinkKind::kPcie, gpu_ + i, holder + HolderOf(i, gpus, holders), capacity, latency);
    }
    for (std::int64_t i = 0; i < nics; ++i) {
      AddCable(LinkKind::kPcie, nic_ + i, holder + HolderOf(i, nics, holders), capacity, latency);
    }
    for (std::int64_t i = 0; i < switches; ++i) {
      AddCable(LinkKind::kPcie, pcie_switch_ + i, cpu_ + HolderOf(i, switches, node_.cpus()), capacity, latency);
    }
    return absl::OkStatus();
  }

  // Each NIC at the GPUs that share it, or at the one GPU of which it is one of several.
  absl::Status AddDirectNics() {
    const std::int64_t gpus = node_.gpus();
    const std::int64_t nics = node_.nics();
    ABSL_ASSIGN_OR_RETURN(const std::int64_t capacity, Capacity(path_ + ".nic", node_.nic()));
    for (std::int64_t nic = 0; nic < nics; ++nic) {
      const std::int64_t first = nic * gpus / nics;
      for (std::int64_t gpu = first; gpu < std::max(first + 1, (nic + 1) * gpus / nics); ++gpu) {
        AddCable(LinkKind::kPcie, gpu_ + gpu, nic_ + nic, capacity, Time());
      }
    }
    return absl::OkStatus();
  }

  absl::Status AddSockets() {
    const std::int64_t per_host = node_.cpus() / std::max<std::int64_t>(node_.hosts(), 1);
    if (per_host < 2) return absl::OkStatus();
    ABSL_ASSIGN_OR_RETURN(const std::int64_t capacity, Capacity(path_ + ".cpu_link", node_.cpu_link()));
    for (std::int64_t a = 0; a < node_.cpus(); ++a) {
      for (std::int64_t b = a + 1; b < node_.cpus() && b / per_host == a / per_host; ++b) {
        AddCable(LinkKind::kSocket, cpu_ + a, cpu_ + b, capacity, TimeFromSeconds(node_.cpu_link().latency()));
      }
    }
    return absl::OkStatus();
  }

  const std::string path_;
  const v1::Node& node_;
  NodeDesign design_;
  DeviceId gpu_ = 0;
  DeviceId nvswitch_ = 0;
  DeviceId pcie_switch_ = 0;
  DeviceId cpu_ = 0;
  DeviceId nic_ = 0;
};

}  // namespace

absl::Status CheckSharing(const std::string& path, const v1::Node& node) {
  const std::int64_t gpus = node.gpus();
  const std::int64_t nics = node.nics();
  if (gpus >= 1 && nics >= 1 && (gpus % nics == 0 || nics % gpus == 0)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(path, ".nics: found ", nics, "; allowed: a divisor or a multiple of node.gpus = ", gpus));
}

absl::StatusOr<std::int64_t> Capacity(const std::string& path, const v1::Link& link, double share) {
  const double achieved = link.bandwidth() * link.efficiency() * share;
  constexpr double kMost = 1e18;
  if (!(achieved >= 0.5) || achieved > kMost) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": a capacity of ", achieved, " bytes/s; allowed: from 1 to ", kMost));
  }
  return std::llround(achieved);
}

absl::StatusOr<NodeDesign> DesignNode(const std::string& path, const v1::Node& node) {
  return Designer(path, node).Design();
}

}  // namespace orrery::topology
