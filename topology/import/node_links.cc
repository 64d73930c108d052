#include "topology/import/node_links.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/format.h"
#include "proto/defaults.h"

namespace orrery::topology {
namespace {

std::string GigabytesPerSecond(double bandwidth) { return absl::StrCat(FormatDouble(bandwidth / 1e9), " GB/s"); }

// Copies over PCIe 5.0 x16 between host and GPU reach 55.4 of 63 GB/s (bandwidth tests of H100 servers).
constexpr double kPcieEfficiency = 0.88;

void SetNvlink(const Server& server, const Basis& basis, v1::Node* node, Findings* findings) {
  const v1::Node& like = basis.cluster.node();
  v1::Link* link = node->mutable_nvlink();
  *link = like.nvlink();
  if (server.nvlinks() == 0) {
    findings->Note("the GPUs have no NVLink; node.nvlink stands there because every node has the field");
    return;
  }
  if (StatesNvlinks(like)) {
    link->set_bandwidth(like.nvlink().bandwidth() * server.nvlinks() / static_cast<double>(like.nvlinks()));
  }
  const std::string from = absl::StrCat(
      GigabytesPerSecond(link->bandwidth()), " of a GPU",
      StatesNvlinks(like) ? absl::StrCat(" for ", server.nvlinks(), " NVLinks, by those of preset ") : " as in preset ",
      basis.name);
  link->set_source(absl::StrCat(from, ", also efficiency and latency: ", like.nvlink().source()));
  findings->Assume(absl::StrCat("node.nvlink: ", from));
}

void SetNic(const Server& server, const Basis& basis, v1::Node* node, Findings* findings) {
  v1::Link* link = node->mutable_nic();
  *link = basis.cluster.node().nic();
  double stated = 0;
  for (const Nic& nic : server.nics) stated = std::max(stated, nic.port_bandwidth);
  if (stated > 0) {
    link->set_bandwidth(stated);
    link->set_source(absl::StrCat("bandwidth: ", server.source, "; efficiency and latency as in preset ", basis.name,
                                  ": ", basis.cluster.node().nic().source()));
    findings->Assume(absl::StrCat("node.nic: efficiency and latency as in preset ", basis.name));
  } else {
    findings->Assume(absl::StrCat("node.nic: ", GigabytesPerSecond(link->bandwidth()), " and all else as in preset ",
                                  basis.name, "; ", server.source, " has no speeds of NICs"));
  }
}

void SetPcie(const Server& server, const Basis& basis, v1::Node* node, Findings* findings) {
  const v1::Link& like = basis.cluster.node().pcie();
  const double stated = server.gpus.empty() ? 0 : server.gpus.front().bandwidth;
  if (stated == 0) {
    if (like.has_source()) *node->mutable_pcie() = like;
    findings->Assume(absl::StrCat(
        "node.pcie: ", like.has_source() ? absl::StrCat("as in preset ", basis.name) : std::string("no bottleneck"),
        "; ", server.source, " has no speeds of PCIe links"));
    return;
  }
  v1::Link* link = node->mutable_pcie();
  if (like.has_source()) *link = like;
  link->set_bandwidth(stated);
  if (!like.has_source()) {
    link->set_efficiency(kPcieEfficiency);
    link->set_latency(0);
  }
  link->set_source(absl::StrCat(
      "bandwidth: ", server.source, "; efficiency ",
      like.has_source() ? absl::StrCat("as in preset ", basis.name)
                        : std::string("of copies over PCIe 5.0 x16, 55.4 of 63 GB/s; latency is in that of the NIC")));
}

}  // namespace

bool StatesNvlinks(const v1::Node& node) { return node.nvlinks() > std::max<std::int64_t>(1, node.nvswitches()); }

Server PlainServer(std::size_t ports, const std::string& source) {
  Server server;
  server.source = source;
  server.cpus = {"cpu"};
  for (std::size_t i = 0; i < ports; ++i) {
    server.gpus.push_back({.name = absl::StrCat("gpu", i)});
    Nic nic;
    nic.name = absl::StrCat("nic", i);
    server.nics.push_back(nic);
  }
  return server;
}

void AddNvlinksOf(const Basis& basis, Server* server, Findings* findings) {
  const v1::Node& like = basis.cluster.node();
  const auto gpus = static_cast<std::int64_t>(server->gpus.size());
  server->nvlink_known = true;
  if (gpus < 2) return;
  if (like.nvswitches() > 0) {
    std::vector<int> links;
    for (std::int64_t i = 0; i < like.nvswitches(); ++i) {
      links.push_back(
          static_cast<int>(like.nvlinks() / like.nvswitches() + (i < like.nvlinks() % like.nvswitches() ? 1 : 0)));
    }
    server->nvswitch_links.assign(static_cast<std::size_t>(gpus), links);
  } else if (gpus == like.gpus()) {
    server->pairs.assign(like.nvlink_pair().begin(), like.nvlink_pair().end());
  }
  findings->Warn("NVLinks that the file leaves out",
                 absl::StrCat(server->source, ": says nothing of NVLinks; filled in as in preset ", basis.name));
}

v1::Node NodeOf(const Server& server, const Basis& basis, Findings* findings) {
  v1::Node node;
  FillNodeShape(server, &node);
  SetNvlink(server, basis, &node, findings);
  SetNic(server, basis, &node, findings);
  SetPcie(server, basis, &node, findings);
  for (v1::Link* link : {node.mutable_nvlink(), node.mutable_nic()}) {
    if (link->message_efficiency() == link->efficiency()) link->clear_message_efficiency();  // the default
  }
  return node;
}

LinkKinds LinkKindsOf(const v1::Node& node, double hop_latency) {
  v1::Cluster cluster;
  *cluster.mutable_node() = node;
  spec::Diagnostics ignored;
  spec::FillClusterDefaults("cluster", &cluster, &ignored);
  const v1::Node& full = cluster.node();
  LinkKinds kinds{.nvlink = full.nvlink(),
                  .pcie = full.pcie(),
                  .cpu_link = full.cpu_link(),
                  .nic = full.nic(),
                  .hop_latency = hop_latency};
  if (full.nvlinks() > 0) kinds.nvlink.set_bandwidth(full.nvlink().bandwidth() / static_cast<double>(full.nvlinks()));
  return kinds;
}

}  // namespace orrery::topology
