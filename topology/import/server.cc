#include "topology/import/server.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace orrery::topology {
namespace {

std::size_t Index(int i) { return static_cast<std::size_t>(i); }

constexpr int kNone = std::numeric_limits<int>::max();

// Drops a switch below which hangs one device, or one switch: it is a longer wire.
void DropPassThroughs(Server* server) {
  while (true) {
    std::vector<int> below(server->pcie_switches.size(), 0);
    const auto count = [&](int pcie_switch) {
      if (pcie_switch >= 0) ++below[Index(pcie_switch)];
    };
    for (const PcieDevice& gpu : server->gpus) count(gpu.pcie_switch);
    for (const Nic& nic : server->nics) count(nic.pcie_switch);
    for (const PcieSwitch& pcie_switch : server->pcie_switches) count(pcie_switch.parent);
    int gone = -1;
    for (std::size_t i = 0; i < below.size() && gone < 0; ++i) {
      if (below[i] <= 1) gone = static_cast<int>(i);
    }
    if (gone < 0) return;
    const int above = server->pcie_switches[Index(gone)].parent;
    const auto move = [&](int* pcie_switch) {
      if (*pcie_switch == gone) *pcie_switch = above;
      if (*pcie_switch > gone) --*pcie_switch;
    };
    server->pcie_switches.erase(server->pcie_switches.begin() + gone);
    for (PcieDevice& gpu : server->gpus) move(&gpu.pcie_switch);
    for (Nic& nic : server->nics) move(&nic.pcie_switch);
    for (PcieSwitch& pcie_switch : server->pcie_switches) move(&pcie_switch.parent);
  }
}

// Where some devices have a switch, the others get one each: a longer wire, too.
void AddPassThroughs(Server* server) {
  if (server->pcie_switches.empty()) return;
  const auto add = [&](PcieDevice* device) {
    if (device->pcie_switch >= 0) return;
    device->pcie_switch = static_cast<int>(server->pcie_switches.size());
    server->pcie_switches.push_back({device->name, -1, device->cpu, device->bandwidth});
  };
  for (PcieDevice& gpu : server->gpus) add(&gpu);
  for (Nic& nic : server->nics) add(&nic);
}

// The PCIe switch directly below the CPU that something hangs below; -1: none.
int TopSwitch(const Server& server, int pcie_switch) {
  while (pcie_switch >= 0 && server.pcie_switches[Index(pcie_switch)].parent >= 0) {
    pcie_switch = server.pcie_switches[Index(pcie_switch)].parent;
  }
  return pcie_switch;
}

// The first GPU below the same PCIe switch (of any level), or else below the same CPU.
struct Nearness {
  int by_switch = kNone;
  int by_top = kNone;
  int by_cpu = kNone;
};
Nearness NearestGpu(const Server& server, const PcieDevice& device) {
  Nearness nearness;
  for (std::size_t i = 0; i < server.gpus.size(); ++i) {
    const PcieDevice& gpu = server.gpus[i];
    const int index = static_cast<int>(i);
    if (device.pcie_switch >= 0) {
      if (gpu.pcie_switch == device.pcie_switch) nearness.by_switch = std::min(nearness.by_switch, index);
      if (TopSwitch(server, gpu.pcie_switch) == TopSwitch(server, device.pcie_switch)) {
        nearness.by_top = std::min(nearness.by_top, index);
      }
    }
    if (gpu.cpu == device.cpu) nearness.by_cpu = std::min(nearness.by_cpu, index);
  }
  return nearness;
}

void SetApartOtherNics(Server* server, Findings* findings) {
  const auto is_near = [&](const Nic& nic) { return NearestGpu(*server, nic).by_top != kNone; };
  if (std::none_of(server->nics.begin(), server->nics.end(), is_near)) return;
  std::vector<Nic> kept;
  for (Nic& nic : server->nics) {
    if (is_near(nic)) {
      kept.push_back(std::move(nic));
    } else {
      server->other_nics.push_back(nic.name);
    }
  }
  server->nics = std::move(kept);
  if (server->other_nics.empty()) return;
  findings->Warn("NICs without a GPU",
                 absl::StrCat(server->source, ": ", absl::StrJoin(server->other_nics, ", "),
                              ": no GPU shares a PCIe switch with them, as with other NICs; taken for management or "
                              "storage and left out"));
}

// New numbers by first GPU, then first NIC, then the old order. rank[i]: what to sort item i by.
std::vector<int> NewNumbers(const std::vector<std::pair<int, int>>& rank) {
  std::vector<int> order(rank.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int>(i);
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return std::tie(rank[Index(a)], a) < std::tie(rank[Index(b)], b); });
  std::vector<int> number(rank.size());
  for (std::size_t i = 0; i < order.size(); ++i) number[Index(order[i])] = static_cast<int>(i);
  return number;
}

template <typename Item>
void Permute(const std::vector<int>& number, std::vector<Item>* items) {
  std::vector<Item> moved(items->size());
  for (std::size_t i = 0; i < number.size(); ++i) moved[Index(number[i])] = std::move((*items)[i]);
  *items = std::move(moved);
}

// NICs that share a switch, or a CPU, with the same GPUs keep their order; the j-th of them serves the j-th GPU.
void OrderNics(Server* server, Findings* findings) {
  std::vector<std::pair<int, int>> rank;
  for (const Nic& nic : server->nics) {
    const Nearness near = NearestGpu(*server, nic);
    rank.emplace_back(near.by_switch != kNone ? near.by_switch : near.by_top != kNone ? near.by_top : near.by_cpu, 0);
  }
  const std::vector<int> number = NewNumbers(rank);
  const bool moved = !std::is_sorted(number.begin(), number.end());
  Permute(number, &server->nics);
  if (!moved) return;
  std::vector<std::string> names;
  for (const Nic& nic : server->nics) names.push_back(nic.name);
  findings->Warn(
      "order of NICs",
      absl::StrCat(server->source, ": the number of a NIC is not that of its rail; rails in the order of the GPUs: ",
                   absl::StrJoin(names, ", ")));
}

void OrderSwitchesAndCpus(Server* server) {
  std::vector<std::pair<int, int>> switch_rank(server->pcie_switches.size(), {kNone, kNone});
  std::vector<std::pair<int, int>> cpu_rank(server->cpus.size(), {kNone, kNone});
  const auto rank = [&](const PcieDevice& device, int index, int std::pair<int, int>::*field) {
    for (int at = device.pcie_switch; at >= 0; at = server->pcie_switches[Index(at)].parent) {
      switch_rank[Index(at)].*field = std::min(switch_rank[Index(at)].*field, index);
    }
    cpu_rank[Index(device.cpu)].*field = std::min(cpu_rank[Index(device.cpu)].*field, index);
  };
  for (std::size_t i = 0; i < server->gpus.size(); ++i)
    rank(server->gpus[i], static_cast<int>(i), &std::pair<int, int>::first);
  for (std::size_t i = 0; i < server->nics.size(); ++i)
    rank(server->nics[i], static_cast<int>(i), &std::pair<int, int>::second);
  const std::vector<int> new_switch = NewNumbers(switch_rank);
  const std::vector<int> new_cpu = NewNumbers(cpu_rank);
  const auto renumber = [&](int* pcie_switch, int* cpu) {
    if (*pcie_switch >= 0) *pcie_switch = new_switch[Index(*pcie_switch)];
    *cpu = new_cpu[Index(*cpu)];
  };
  for (PcieDevice& gpu : server->gpus) renumber(&gpu.pcie_switch, &gpu.cpu);
  for (Nic& nic : server->nics) renumber(&nic.pcie_switch, &nic.cpu);
  for (PcieSwitch& pcie_switch : server->pcie_switches) renumber(&pcie_switch.parent, &pcie_switch.cpu);
  Permute(new_switch, &server->pcie_switches);
  Permute(new_cpu, &server->cpus);
}

// CPUs that hold nothing do not count.
void DropIdleCpus(Server* server) {
  std::set<int> used;
  for (const PcieDevice& gpu : server->gpus) used.insert(gpu.cpu);
  for (const Nic& nic : server->nics) used.insert(nic.cpu);
  // They are sorted: those in use come first.
  server->cpus.resize(std::max<std::size_t>(used.size(), 1));
}

// Whether `items` are dealt evenly and in order to `holders`: item i to holder i holders / items.
bool DealtEvenly(const std::vector<int>& items, std::size_t holders) {
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (items[i] != static_cast<int>(i * holders / items.size())) return false;
  }
  return true;
}

std::string IrregularPcie(const Server& server) {
  std::vector<int> gpus;
  std::vector<int> nics;
  std::vector<int> cpus;
  const std::size_t switches = server.pcie_switches.size();
  for (const PcieSwitch& pcie_switch : server.pcie_switches) {
    if (pcie_switch.parent >= 0) return "PCIe switches below PCIe switches";
    cpus.push_back(pcie_switch.cpu);
  }
  if (switches > 0) {
    for (const PcieDevice& gpu : server.gpus) gpus.push_back(gpu.pcie_switch);
    for (const Nic& nic : server.nics) nics.push_back(nic.pcie_switch);
    if (!DealtEvenly(gpus, switches) || !DealtEvenly(nics, switches)) {
      return absl::StrCat("GPUs or NICs not dealt evenly to ", switches, " PCIe switches");
    }
    return DealtEvenly(cpus, server.cpus.size()) ? "" : "PCIe switches not dealt evenly to CPUs";
  }
  for (const PcieDevice& gpu : server.gpus) gpus.push_back(gpu.cpu);
  for (const Nic& nic : server.nics) nics.push_back(nic.cpu);
  return DealtEvenly(gpus, server.cpus.size()) && DealtEvenly(nics, server.cpus.size())
             ? ""
             : absl::StrCat("GPUs or NICs not dealt evenly to ", server.cpus.size(), " CPUs");
}

std::string IrregularLinks(const Server& server) {
  for (const std::vector<int>& links : server.nvswitch_links) {
    int all = 0;
    for (const int count : links) all += count;
    if (all != server.nvlinks()) return "GPUs with different numbers of NVLinks";
    if (std::find(links.begin(), links.end(), 0) != links.end()) return "GPUs without a link to some NVSwitch";
  }
  if (!server.nvswitch_links.empty() && !server.pairs.empty()) return "NVLinks to NVSwitches and between GPUs";
  for (const PcieDevice& gpu : server.gpus) {
    if (gpu.bandwidth != server.gpus.front().bandwidth) return "GPUs with different PCIe links";
  }
  for (const Nic& nic : server.nics) {
    if (nic.port_bandwidth != server.nics.front().port_bandwidth) return "NICs of different speeds";
    const double gpu = server.gpus.front().bandwidth;
    if (nic.bandwidth > 0 && gpu > 0 && nic.bandwidth != gpu) return "NICs with other PCIe links than GPUs";
  }
  return "";
}

}  // namespace

double PcieBandwidth(std::string_view speed, std::int64_t width) {
  struct Generation {
    double transfers;  // 1e9 per second and lane, one bit each
    double code_rate;  // bits of data per bit on the wire
  };
  constexpr Generation kGenerations[] = {{2.5, 0.8},        {5, 0.8},          {8, 128.0 / 130},
                                         {16, 128.0 / 130}, {32, 128.0 / 130}, {64, 242.0 / 256}};
  const std::string_view number = speed.substr(0, speed.find_first_not_of("0123456789."));
  double transfers = 0;
  if (!absl::SimpleAtod(absl::string_view(number.data(), number.size()), &transfers)) return 0;
  for (const Generation& generation : kGenerations) {
    if (transfers == generation.transfers)
      return transfers * 1e9 * generation.code_rate / 8 * static_cast<double>(width);
  }
  return 0;
}

int Server::nvlinks() const {
  std::vector<int> of_gpu(gpus.size(), 0);
  for (const v1::NvlinkPair& pair : pairs) {
    of_gpu[static_cast<std::size_t>(pair.a())] += static_cast<int>(pair.links());
    of_gpu[static_cast<std::size_t>(pair.b())] += static_cast<int>(pair.links());
  }
  for (std::size_t i = 0; i < nvswitch_links.size(); ++i) {
    for (const int count : nvswitch_links[i]) of_gpu[i] += count;
  }
  return of_gpu.empty() ? 0 : *std::max_element(of_gpu.begin(), of_gpu.end());
}

void Normalise(Server* server, Findings* findings) {
  SetApartOtherNics(server, findings);
  DropPassThroughs(server);
  AddPassThroughs(server);
  OrderNics(server, findings);
  OrderSwitchesAndCpus(server);
  DropIdleCpus(server);
}

std::string Irregularity(const Server& server) {
  const std::size_t gpus = server.gpus.size();
  const std::size_t nics = server.nics.size();
  std::vector<std::string> reasons;
  if (nics == 0) reasons.emplace_back("no NIC");
  if (nics > 0 && gpus % nics != 0 && nics % gpus != 0) {
    reasons.push_back(absl::StrCat(nics, " NICs cannot be shared evenly by ", gpus, " GPUs"));
  }
  for (std::string reason : {IrregularPcie(server), IrregularLinks(server)}) {
    if (!reason.empty()) reasons.push_back(std::move(reason));
  }
  return absl::StrJoin(reasons, "; ");
}

void FillNodeShape(const Server& server, v1::Node* node) {
  node->set_gpus(static_cast<std::int64_t>(server.gpus.size()));
  node->set_nics(std::max<std::int64_t>(1, static_cast<std::int64_t>(server.nics.size())));
  node->set_pcie_switches(static_cast<std::int64_t>(server.pcie_switches.size()));
  node->set_cpus(static_cast<std::int64_t>(server.cpus.size()));
  if (server.cpu_vendor != v1::CPU_VENDOR_UNSPECIFIED) node->set_cpu_vendor(server.cpu_vendor);
  if (!server.nvlink_known) return;
  node->set_nvswitches(server.nvswitches());
  node->set_nvlinks(server.nvlinks());
  for (const v1::NvlinkPair& pair : server.pairs) *node->add_nvlink_pair() = pair;
}

}  // namespace orrery::topology
