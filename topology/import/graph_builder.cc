#include "topology/import/graph_builder.h"

#include <algorithm>
#include <string_view>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace orrery::topology {
namespace {

// Between the parts of what managed switches call themselves, "MF0;leaf01:MQM9700/U1"; empty where it is another form.
std::string SwitchName(std::string_view description) {
  const std::size_t begin = description.find(';');
  const std::size_t end = begin == std::string_view::npos ? begin : description.find(':', begin);
  return end == std::string_view::npos ? "" : std::string(description.substr(begin + 1, end - begin - 1));
}

}  // namespace

std::string GraphBuilder::AddDevice(std::string id, v1::DeviceKind kind, const std::string& host) {
  const std::string wanted = id;
  for (int copy = 2; !ids_.insert(id).second; ++copy) id = absl::StrCat(wanted, "#", copy);
  v1::Device* device = graph_.add_device();
  device->set_id(id);
  device->set_kind(kind);
  if (!host.empty()) device->set_host(host);
  return id;
}

void GraphBuilder::AddCable(const std::string& a, const std::string& b, const v1::Link& like, double bandwidth,
                            double latency, std::int64_t count) {
  v1::Cable* cable = graph_.add_cable();
  cable->set_a(a);
  cable->set_b(b);
  *cable->mutable_link() = like;
  cable->mutable_link()->clear_source();  // the node's, once, is enough
  if (bandwidth > 0) cable->mutable_link()->set_bandwidth(bandwidth);
  cable->mutable_link()->set_latency(latency);
  if (count != 1) cable->set_count(count);
}

void GraphBuilder::AddPcie(const std::string& id, const PcieDevice& device, const std::vector<std::string>& switches,
                           const std::vector<std::string>& cpus) {
  const std::string& above = device.pcie_switch >= 0 ? switches[static_cast<std::size_t>(device.pcie_switch)]
                                                     : cpus[static_cast<std::size_t>(device.cpu)];
  AddCable(id, above, kinds_.pcie, device.bandwidth, kinds_.pcie.latency(), 1);
}

std::vector<std::string> GraphBuilder::AddServer(const std::string& name, const Server& server) {
  std::vector<std::string> gpus;
  std::vector<std::string> nics;
  std::vector<std::string> switches;
  std::vector<std::string> cpus;
  std::vector<std::string> nvswitches;
  const auto add = [&](std::vector<std::string>* ids, const char* what, std::size_t count, v1::DeviceKind kind) {
    for (std::size_t i = 0; i < count; ++i) ids->push_back(AddDevice(absl::StrCat(name, "/", what, i), kind, name));
  };
  add(&gpus, "gpu", server.gpus.size(), v1::GPU);
  add(&nvswitches, "nvswitch", static_cast<std::size_t>(server.nvswitches()), v1::NVSWITCH);
  add(&switches, "pcie", server.pcie_switches.size(), v1::PCIE_SWITCH);
  add(&cpus, "cpu", server.cpus.size(), v1::CPU);
  add(&nics, "nic", server.nics.size(), v1::NIC);
  for (std::size_t i = 0; i < server.nvswitch_links.size(); ++i) {
    for (std::size_t j = 0; j < nvswitches.size(); ++j) {
      const int count = server.nvswitch_links[i][j];
      if (count > 0) AddCable(gpus[i], nvswitches[j], kinds_.nvlink, 0, kinds_.nvlink.latency() / 2, count);
    }
  }
  for (const v1::NvlinkPair& pair : server.pairs) {
    AddCable(gpus[static_cast<std::size_t>(pair.a())], gpus[static_cast<std::size_t>(pair.b())], kinds_.nvlink, 0,
             kinds_.nvlink.latency(), pair.links());
  }
  for (std::size_t i = 0; i < gpus.size(); ++i) AddPcie(gpus[i], server.gpus[i], switches, cpus);
  for (std::size_t i = 0; i < nics.size(); ++i) AddPcie(nics[i], server.nics[i], switches, cpus);
  for (std::size_t i = 0; i < switches.size(); ++i) {
    const PcieSwitch& pcie_switch = server.pcie_switches[i];
    AddPcie(switches[i],
            {.name = "", .pcie_switch = pcie_switch.parent, .cpu = pcie_switch.cpu, .bandwidth = pcie_switch.bandwidth},
            switches, cpus);
  }
  for (std::size_t a = 0; a < cpus.size(); ++a) {
    for (std::size_t b = a + 1; b < cpus.size(); ++b)
      AddCable(cpus[a], cpus[b], kinds_.cpu_link, 0, kinds_.cpu_link.latency(), 1);
  }
  return nics;
}

std::vector<std::string> GraphBuilder::AddNics(const std::string& name, std::size_t nics) {
  std::vector<std::string> ids;
  for (std::size_t i = 0; i < nics; ++i) ids.push_back(AddDevice(absl::StrCat(name, "/nic", i), v1::NIC, name));
  return ids;
}

std::vector<std::string> GraphBuilder::SwitchIds(const IbFabric& fabric) {
  std::map<std::string, int> uses;
  for (const IbDevice& device : fabric.devices) ++uses[SwitchName(device.description)];
  std::vector<std::string> ids;
  for (const IbDevice& device : fabric.devices) {
    const std::string name = SwitchName(device.description);
    const std::string id = name.empty() || uses[name] > 1 ? device.id : name;
    ids.push_back(device.is_switch ? AddDevice(id, v1::NETWORK_SWITCH, "") : "");
  }
  return ids;
}

void GraphBuilder::AddFabric(const IbFabric& fabric, const std::vector<PlacedServer>& servers,
                             const std::vector<std::vector<std::string>>& nics) {
  const std::vector<std::string> ids = SwitchIds(fabric);
  for (std::size_t i = 0; i < servers.size(); ++i) {
    for (std::size_t nic = 0; nic < servers[i].cables.size(); ++nic) {
      const IbCable& cable = fabric.cables[static_cast<std::size_t>(servers[i].cables[nic])];
      const int end = fabric.devices[static_cast<std::size_t>(cable.a)].is_switch ? cable.a : cable.b;
      AddCable(nics[i][nic], ids[static_cast<std::size_t>(end)], kinds_.nic, cable.bandwidth,
               (kinds_.nic.latency() + kinds_.hop_latency) / 2, 1);
    }
  }
  // Parallel cables of one speed are one entry.
  std::map<std::tuple<int, int, double>, std::int64_t> between;
  for (const IbCable& cable : fabric.cables) {
    const bool switches = fabric.devices[static_cast<std::size_t>(cable.a)].is_switch &&
                          fabric.devices[static_cast<std::size_t>(cable.b)].is_switch;
    if (switches) ++between[{std::min(cable.a, cable.b), std::max(cable.a, cable.b), cable.bandwidth}];
  }
  for (const auto& [key, count] : between) {
    const auto& [a, b, bandwidth] = key;
    AddCable(ids[static_cast<std::size_t>(a)], ids[static_cast<std::size_t>(b)], kinds_.nic, bandwidth,
             kinds_.hop_latency, count);
  }
}

}  // namespace orrery::topology
