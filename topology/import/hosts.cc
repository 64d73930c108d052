#include "topology/import/hosts.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "topology/import/text.h"

namespace orrery::topology {
namespace {

// Prefixes of what Linux drivers, and firmware before them, call an RDMA device.
constexpr std::string_view kDevicePrefixes[] = {"HCA-",  "mlx4_", "mlx5_", "mthca", "hfi1_", "qib",
                                                "bnxt_", "ib",    "roce",  "irdma", "efa_",  "cxgb"};

bool IsDeviceName(std::string_view word) {
  if (word.find_first_of("0123456789") == std::string_view::npos) return false;
  for (const std::string_view prefix : kDevicePrefixes) {
    if (word.starts_with(prefix)) return true;
  }
  return false;
}

}  // namespace

std::pair<std::string, std::string> SplitDescription(std::string_view description) {
  const std::vector<std::string_view> words = Words(description);
  if (words.size() < 2 || !IsDeviceName(words.back())) return {"", ""};
  std::string host;
  for (std::size_t i = 0; i + 1 < words.size(); ++i) absl::StrAppend(&host, i == 0 ? "" : " ", std::string(words[i]));
  if (host.size() > 2 && host.front() == '\'' && host.back() == '\'') host = host.substr(1, host.size() - 2);
  return {host, std::string(words.back())};
}

std::vector<Host> GroupHosts(const IbFabric& fabric, Findings* findings) {
  struct Port {
    std::string device;
    std::int64_t number = 0;
    int cable = 0;
  };
  std::map<std::string, std::vector<Port>> ports;
  for (std::size_t i = 0; i < fabric.cables.size(); ++i) {
    const IbCable& cable = fabric.cables[i];
    for (const bool is_a : {true, false}) {
      const IbDevice& device = fabric.devices[static_cast<std::size_t>(is_a ? cable.a : cable.b)];
      const IbDevice& other = fabric.devices[static_cast<std::size_t>(is_a ? cable.b : cable.a)];
      if (device.is_switch || device.description.find("Aggregation Node") != std::string::npos) continue;
      if (!other.is_switch) {
        findings->Warn("HCAs back to back", absl::StrCat(Place(fabric.source, cable.line), ": ", device.id,
                                                         " is cabled to an HCA; left out"));
        continue;
      }
      auto [host, name] = SplitDescription(device.description);
      if (host.empty() && device.description.empty()) {  // ibsim: its name is all there is
        host = device.id;
        name = device.id;
      }
      if (host.empty()) {
        findings->Warn("HCAs without a host's name",
                       absl::StrCat(Place(fabric.source, device.line), ": ", device.id, " (", Quote(device.description),
                                    ") names no host; taken as a host of its own"));
        host = device.id;
        name = device.id;
      }
      ports[host].push_back({name, is_a ? cable.port_a : cable.port_b, static_cast<int>(i)});
    }
  }
  std::vector<Host> hosts;
  for (auto& [name, list] : ports) {
    std::sort(list.begin(), list.end(), [](const Port& a, const Port& b) {
      if (a.device != b.device) return NaturalLess(a.device, b.device);
      return std::tie(a.number, a.cable) < std::tie(b.number, b.cable);
    });
    Host host{.name = name, .ports = {}};
    for (const Port& port : list) host.ports.push_back({port.device, port.cable});
    hosts.push_back(std::move(host));
  }
  std::sort(hosts.begin(), hosts.end(), [](const Host& a, const Host& b) { return NaturalLess(a.name, b.name); });
  return hosts;
}

}  // namespace orrery::topology
