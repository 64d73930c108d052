#include "topology/import/placement.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "topology/import/text.h"

namespace orrery::topology {
namespace {

// By NIC, the number of its name in natural order: among the server's NICs alone, or among all that it has.
std::vector<std::size_t> NaturalRanks(const Server& server, bool all) {
  std::vector<std::string> names;
  for (const Nic& nic : server.nics) names.push_back(nic.name);
  std::vector<std::string> sorted = names;
  if (all) sorted.insert(sorted.end(), server.other_nics.begin(), server.other_nics.end());
  std::sort(sorted.begin(), sorted.end(), NaturalLess);
  std::vector<std::size_t> ranks;
  for (const std::string& name : names) {
    ranks.push_back(static_cast<std::size_t>(std::find(sorted.begin(), sorted.end(), name) - sorted.begin()));
  }
  return ranks;
}

class Placer {
 public:
  Placer(const Server* server, Findings* findings) : server_(server), findings_(*findings) {}

  // By NIC; empty where the host is no such server.
  std::vector<int> CablesOf(const Host& host) {
    std::vector<int> cables;
    if (server_ == nullptr) {
      for (const HostPort& port : host.ports) cables.push_back(port.cable);
      return cables;
    }
    cables = CablesByName(host);
    if (!cables.empty()) return cables;
    const std::size_t nics = server_->nics.size();
    if (host.ports.size() != nics && host.ports.size() != nics + server_->other_nics.size()) return {};
    if (!assumed_) {
      findings_.Assume(
          "the HCAs of a host, in natural order of their names, are the NICs of the node in the same order: the files "
          "name them differently");
      assumed_ = true;
    }
    for (const std::size_t rank : NaturalRanks(*server_, host.ports.size() != nics))
      cables.push_back(host.ports[rank].cable);
    return cables;
  }

 private:
  std::vector<int> CablesByName(const Host& host) const {
    std::map<std::string, int> cable_of;
    for (const HostPort& port : host.ports) cable_of.emplace(port.device, port.cable);
    std::vector<int> cables;
    for (const Nic& nic : server_->nics) {
      const auto found = cable_of.find(nic.name);
      if (found == cable_of.end()) return {};
      cables.push_back(found->second);
    }
    return cables;
  }

  const Server* server_;
  Findings& findings_;
  bool assumed_ = false;
};

// "1 port: 92 hosts, 8 ports: 4 hosts".
std::string PortsOf(const std::vector<Host>& hosts) {
  std::map<std::size_t, int> count;
  for (const Host& host : hosts) ++count[host.ports.size()];
  std::vector<std::string> parts;
  for (const auto& [ports, number] : count) {
    parts.push_back(absl::StrCat(ports, ports == 1 ? " port: " : " ports: ", number, number == 1 ? " host" : " hosts"));
  }
  return absl::StrJoin(parts, ", ");
}

bool BeginsWithAny(const std::string& name, const std::vector<std::string>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](const std::string& prefix) { return name.starts_with(prefix); });
}

PlacedServer Other(const Host& host) {
  PlacedServer other{.name = host.name, .cables = {}};
  for (const HostPort& port : host.ports) other.cables.push_back(port.cable);
  return other;
}

void WarnOfOthers(const IbFabric& fabric, const Placement& placement, Findings* findings) {
  constexpr std::size_t kShown = 8;
  if (placement.others.empty()) return;
  std::vector<std::string> shown;
  for (std::size_t i = 0; i < std::min(kShown, placement.others.size()); ++i) shown.push_back(placement.others[i].name);
  if (shown.size() < placement.others.size()) shown.emplace_back("...");
  findings->Warn("hosts without GPUs", absl::StrCat(fabric.source, ": ", placement.others.size(),
                                                    " hosts without GPUs: ", absl::StrJoin(shown, ", ")));
}

}  // namespace

absl::StatusOr<Placement> PlaceServers(const IbFabric& fabric, const Server* server,
                                       const std::vector<std::string>& gpu_hosts, Findings* findings) {
  const std::vector<Host> hosts = GroupHosts(fabric, findings);
  Placement placement;
  Placer placer(server, findings);
  for (const Host& host : hosts) {
    if (!gpu_hosts.empty() && !BeginsWithAny(host.name, gpu_hosts)) {
      placement.others.push_back(Other(host));
      continue;
    }
    std::vector<int> cables = placer.CablesOf(host);
    if (!cables.empty()) {
      placement.servers.push_back({host.name, std::move(cables)});
    } else if (gpu_hosts.empty()) {
      placement.others.push_back(Other(host));
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          fabric.source, ": host ", host.name, " has ", host.ports.size(), " ports in the fabric, the node of ",
          server->source, " ", server->nics.size(), " NICs; allowed: --gpu-hosts of such nodes only"));
    }
  }
  if (placement.servers.empty()) {
    const std::string sought =
        !gpu_hosts.empty()  ? absl::StrCat("begins with ", absl::StrJoin(gpu_hosts, " or "))
        : server == nullptr ? std::string("is in it")
                            : absl::StrCat("has the ", server->nics.size(), " NICs of the node in ", server->source);
    return absl::InvalidArgumentError(
        absl::StrCat(fabric.source, ": no host ", sought, "; found: ", hosts.empty() ? "none" : PortsOf(hosts)));
  }
  if (gpu_hosts.empty() && (server == nullptr || server->nics.size() == 1)) {
    findings->Warn(
        "hosts with GPUs",
        absl::StrCat(fabric.source, ": all ", placement.servers.size(),
                     " hosts are taken for GPU servers, as the fabric does not tell; name them with --gpu-hosts"));
  }
  WarnOfOthers(fabric, placement, findings);
  return placement;
}

}  // namespace orrery::topology
