#include "reports/topology_report.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/format.h"
#include "base/text_table.h"
#include "orrery/v1/cluster.pb.h"

namespace orrery::reports {
namespace {

using Json = nlohmann::ordered_json;
using topology::DeviceKind;
using topology::Link;
using topology::LinkId;
using topology::LinkKind;
using topology::Topology;

constexpr std::size_t kMostSlower = 10;  // cables that are listed

std::string Rate(std::int64_t bytes_per_second) {
  const double rate = static_cast<double>(bytes_per_second);
  return rate >= 1e12 ? absl::StrCat(FormatFixed(rate / 1e12, 2), " TB/s")
                      : absl::StrCat(FormatFixed(rate / 1e9, 2), " GB/s");
}

std::string RoutingName(v1::Routing routing) { return absl::AsciiStrToLower(v1::Routing_Name(routing)); }

// The cables of one kind.
struct Cables {
  std::int64_t count = 0;
  std::int64_t slowest = 0;  // of one cable
  std::int64_t fastest = 0;
  Time shortest;
  Time longest;
};

std::array<Cables, topology::kLinkKinds> CablesByKind(const Topology& topology) {
  std::array<Cables, topology::kLinkKinds> all;
  for (LinkId id = 0; id < topology.links(); id += 2) {
    const Link link = topology.link(id);
    Cables& cables = all[static_cast<std::size_t>(link.kind)];
    const topology::CableSpeeds speeds = topology::SpeedsOf(topology, id);
    const bool first = cables.count == 0;
    cables.count += link.cables;
    cables.slowest = first ? speeds.slowest : std::min(cables.slowest, speeds.slowest);
    cables.fastest = std::max(cables.fastest, speeds.fastest);
    cables.shortest = first ? link.latency : std::min(cables.shortest, link.latency);
    cables.longest = std::max(cables.longest, link.latency);
  }
  return all;
}

// Rounding alone makes no cable slower.
bool IsSlower(const Topology& topology, LinkId id, const Cables& kind) {
  return topology::IsNetwork(topology.link(id).kind) && topology::SpeedsOf(topology, id).slowest + 1 < kind.fastest;
}

std::vector<LinkId> SlowerCables(const Topology& topology, const std::array<Cables, topology::kLinkKinds>& kinds) {
  std::vector<LinkId> slower;
  for (LinkId id = 0; id < topology.links(); id += 2) {
    if (IsSlower(topology, id, kinds[static_cast<std::size_t>(topology.link(id).kind)])) slower.push_back(id);
  }
  return slower;
}

void AppendDevices(const Topology& topology, std::string* text) {
  TextTable table({{"devices", TextTable::Align::kLeft}, {"count", TextTable::Align::kRight}});
  for (std::size_t i = 0; i < topology::kDeviceKinds; ++i) {
    const auto kind = static_cast<DeviceKind>(i);
    if (topology.Count(kind) > 0) table.AddRow({topology::NameOf(kind), FormatCount(topology.Count(kind))});
  }
  absl::StrAppend(text, table.Render(), "\n");
}

void AppendCables(const std::array<Cables, topology::kLinkKinds>& kinds, std::string* text) {
  using Align = TextTable::Align;
  TextTable table({{"cables", Align::kLeft},
                   {"count", Align::kRight},
                   {"achieved by one", Align::kRight},
                   {"latency", Align::kRight}});
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const Cables& cables = kinds[i];
    if (cables.count == 0) continue;
    const bool alike = cables.slowest + 1 >= cables.fastest;
    const std::string latency = FormatSeconds(SecondsFromTime(cables.longest));
    table.AddRow({topology::NameOf(static_cast<LinkKind>(i)), FormatCount(cables.count),
                  alike ? Rate(cables.fastest) : absl::StrCat(Rate(cables.slowest), " to ", Rate(cables.fastest)),
                  cables.shortest == cables.longest
                      ? latency
                      : absl::StrCat(FormatSeconds(SecondsFromTime(cables.shortest)), " to ", latency)});
  }
  absl::StrAppend(text, table.Render(), "\n");
}

void AppendLevels(const topology::Summary& summary, std::string* text) {
  using Align = TextTable::Align;
  if (summary.levels.empty()) return;
  TextTable table({{"level", Align::kLeft},
                   {"from below", Align::kRight},
                   {"upwards", Align::kRight},
                   {"oversubscription", Align::kRight}});
  for (const topology::LevelCapacity& level : summary.levels) {
    table.AddRow({topology::NameOf(level.kind), Rate(level.down), level.up > 0 ? Rate(level.up) : "-",
                  level.up > 0 ? absl::StrCat(FormatFixed(level.Oversubscription(), 2), " : 1") : "-"});
  }
  absl::StrAppend(text, table.Render(), "\n");
}

Json DevicesJson(const Topology& topology) {
  constexpr std::array<const char*, topology::kDeviceKinds> kKeys = {"gpu", "nvswitch", "pcie_switch", "cpu",
                                                                     "nic", "leaf",     "spine",       "core"};
  Json json = Json::object();
  for (std::size_t i = 0; i < kKeys.size(); ++i) json[kKeys[i]] = topology.Count(static_cast<DeviceKind>(i));
  return json;
}

Json CableJson(const Topology& topology, LinkId id) {
  const Link link = topology.link(id);
  return {{"a", topology.NameOf(link.from)},
          {"b", topology.NameOf(link.to)},
          {"cables", link.cables},
          {"capacity", link.capacity},
          {"slowest_cable", topology::SpeedsOf(topology, id).slowest}};
}

std::string Dump(const Json& json) { return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"; }

std::string Share(const topology::Route& route, const topology::LinkShare& share) {
  return FormatPercent(static_cast<double>(share.weight) / static_cast<double>(route.denominator));
}

// How many links from the first on differ in nothing but their ends, which are of the same kinds.
std::size_t CountAlike(const Topology& topology, std::span<const topology::LinkShare> shares) {
  const Link first = topology.link(shares.front().link);
  const auto kind = [&](topology::DeviceId device) { return topology.device(device).kind; };
  const auto alike = [&](const topology::LinkShare& share) {
    const Link link = topology.link(share.link);
    return kind(link.from) == kind(first.from) && kind(link.to) == kind(first.to) && link.kind == first.kind &&
           link.cables == first.cables && link.capacity == first.capacity && link.latency == first.latency &&
           share.weight == shares.front().weight;
  };
  return static_cast<std::size_t>(std::find_if_not(shares.begin(), shares.end(), alike) - shares.begin());
}

// Devices in the order of their links, each of which may have several: "spine0 to spine31" where they are all of these.
std::string NamesOf(const Topology& topology, std::vector<topology::DeviceId> devices) {
  std::sort(devices.begin(), devices.end());
  devices.erase(std::unique(devices.begin(), devices.end()), devices.end());
  if (devices.size() == 1) return topology.NameOf(devices.front());
  const std::string first = topology.NameOf(devices.front()), last = topology.NameOf(devices.back());
  if (devices.size() == 2) return absl::StrCat(first, ", ", last);
  const auto in_range = static_cast<std::size_t>(devices.back() - devices.front()) + 1;
  return absl::StrCat(devices.size() == in_range ? "" : absl::StrCat(devices.size(), " of "), first, " to ", last);
}

}  // namespace

std::string TopologyText(const std::string& name, const Topology& topology, const topology::Summary& summary) {
  const auto kinds = CablesByKind(topology);
  std::string text = absl::StrCat(
      name, ": ", FormatCount(topology.gpus()), topology.gpus() == 1 ? " GPU in " : " GPUs in ",
      FormatCount(topology.nodes()), topology.nodes() == 1 ? " node" : " nodes",
      topology.is_free_form() ? ", given device by device" : "", ", routing ", RoutingName(topology.routing()), "\n\n");
  AppendDevices(topology, &text);
  AppendCables(kinds, &text);
  AppendLevels(summary, &text);
  if (topology.nodes() > 1) {
    absl::StrAppend(&text, "bisection  ", Rate(summary.bisection), " in one direction, ",
                    FormatPercent(summary.bisection_share), " of what the NICs of one half can send\n");
  } else {
    absl::StrAppend(&text, "bisection  none: one node\n");
  }
  const std::vector<LinkId> slower = SlowerCables(topology, kinds);
  if (slower.empty()) return text;
  absl::StrAppend(&text, "\nslower than others of their kind:\n");
  for (std::size_t i = 0; i < std::min(slower.size(), kMostSlower); ++i) {
    const Link link = topology.link(slower[i]);
    const topology::CableSpeeds speeds = topology::SpeedsOf(topology, slower[i]);
    const std::int64_t usual = kinds[static_cast<std::size_t>(link.kind)].fastest * link.cables;
    absl::StrAppend(&text, "  ", topology.NameOf(link.from), " - ", topology.NameOf(link.to), "  ", link.cables,
                    link.cables == 1 ? " cable, " : " cables, ", Rate(link.capacity), " of ", Rate(usual),
                    speeds.slowest + 1 < speeds.fastest ? ", the slowest " + Rate(speeds.slowest) : "", "\n");
  }
  if (slower.size() > kMostSlower) absl::StrAppend(&text, "  and ", slower.size() - kMostSlower, " more\n");
  return text;
}

std::string TopologyJson(const std::string& name, const Topology& topology, const topology::Summary& summary) {
  const auto kinds = CablesByKind(topology);
  Json json = {{"name", name},
               {"gpus", topology.gpus()},
               {"nodes", topology.nodes()},
               {"free_form", topology.is_free_form()},
               {"routing", RoutingName(topology.routing())},
               {"devices", DevicesJson(topology)},
               {"cables", Json::array()},
               {"levels", Json::array()},
               {"bisection", summary.bisection},
               {"bisection_share", summary.bisection_share},
               {"slower_cables", Json::array()}};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    if (kinds[i].count == 0) continue;
    json["cables"].push_back({{"kind", topology::NameOf(static_cast<LinkKind>(i))},
                              {"count", kinds[i].count},
                              {"slowest", kinds[i].slowest},
                              {"fastest", kinds[i].fastest},
                              {"latency_s", SecondsFromTime(kinds[i].longest)}});
  }
  for (const topology::LevelCapacity& level : summary.levels) {
    Json entry = {{"kind", topology::NameOf(level.kind)}, {"down", level.down}};
    if (level.up > 0) {  // there is a level above
      entry["up"] = level.up;
      entry["oversubscription"] = level.Oversubscription();
    }
    json["levels"].push_back(std::move(entry));
  }
  for (const LinkId id : SlowerCables(topology, kinds)) json["slower_cables"].push_back(CableJson(topology, id));
  return Dump(json);
}

std::string RouteText(const topology::Routes& routes, const RouteQuestion& question) {
  using Align = TextTable::Align;
  const Topology& topology = routes.topology();
  const topology::Route route = routes.Between(question.from, question.to, question.flow);
  std::string text = absl::StrCat(question.cluster, ": ", topology.NameOf(topology.gpu(question.from)), " to ",
                                  topology.NameOf(topology.gpu(question.to)), ", flow ", question.flow, "\n\n");
  if (route.shares.empty()) return absl::StrCat(text, "one GPU: no link\n");
  TextTable table({{"from", Align::kLeft},
                   {"to", Align::kLeft},
                   {"link", Align::kLeft},
                   {"links", Align::kRight},
                   {"cables each", Align::kRight},
                   {"achieved", Align::kRight},
                   {"latency", Align::kRight},
                   {"bytes each", Align::kRight}});
  for (std::span<const topology::LinkShare> left = route.shares; !left.empty();) {
    const std::size_t alike = CountAlike(topology, left);
    const Link first = topology.link(left.front().link);
    std::vector<topology::DeviceId> from, to;
    for (const topology::LinkShare& share : left.first(alike)) {
      from.push_back(topology.link(share.link).from);
      to.push_back(topology.link(share.link).to);
    }
    table.AddRow({NamesOf(topology, std::move(from)), NamesOf(topology, std::move(to)), topology::NameOf(first.kind),
                  FormatCount(static_cast<std::int64_t>(alike)), absl::StrCat(first.cables), Rate(first.capacity),
                  FormatSeconds(SecondsFromTime(first.latency)), Share(route, left.front())});
    left = left.subspan(alike);
  }
  absl::StrAppend(&text, table.Render(), "\n", "links      ", route.links, " one after another, ", route.network_links,
                  " of them in the network\n");
  absl::StrAppend(&text, "latency    ", FormatSeconds(SecondsFromTime(route.latency)), ", software not included\n");
  absl::StrAppend(&text, "bandwidth  ", Rate(routes.Bottleneck(route)), " while nothing else runs\n");
  const std::int64_t ways = routes.Ways(question.from, question.to, question.flow);
  absl::StrAppend(&text, "ways       ", FormatCount(ways));
  if (ways > 1) absl::StrAppend(&text, " equally short; routing ", RoutingName(topology.routing()));
  absl::StrAppend(&text, "\n");
  if (route.from_nic != topology::kNoDevice) {
    absl::StrAppend(&text, "NICs       ", topology.NameOf(route.from_nic), ", ", topology.NameOf(route.to_nic), "\n");
  }
  if (route.forwarder != topology::kNoDevice) {
    absl::StrAppend(&text, "PXN        ", topology.NameOf(route.forwarder),
                    " forwards to its NIC, which is on the destination's rail\n");
  }
  return text;
}

std::string RouteJson(const topology::Routes& routes, const RouteQuestion& question) {
  const Topology& topology = routes.topology();
  const topology::Route route = routes.Between(question.from, question.to, question.flow);
  Json json = {{"cluster", question.cluster},
               {"from", topology.NameOf(topology.gpu(question.from))},
               {"to", topology.NameOf(topology.gpu(question.to))},
               {"flow", question.flow},
               {"routing", RoutingName(topology.routing())},
               {"hops", route.links},
               {"network_hops", route.network_links},
               {"latency_s", SecondsFromTime(route.latency)},
               {"ways", routes.Ways(question.from, question.to, question.flow)}};
  if (!route.shares.empty()) json["bandwidth"] = routes.Bottleneck(route);
  if (route.from_nic != topology::kNoDevice) {
    json["from_nic"] = topology.NameOf(route.from_nic);
    json["to_nic"] = topology.NameOf(route.to_nic);
  }
  if (route.forwarder != topology::kNoDevice) json["forwarder"] = topology.NameOf(route.forwarder);
  json["links"] = Json::array();
  for (const topology::LinkShare& share : route.shares) {
    const Link link = topology.link(share.link);
    json["links"].push_back({{"from", topology.NameOf(link.from)},
                             {"to", topology.NameOf(link.to)},
                             {"kind", topology::NameOf(link.kind)},
                             {"cables", link.cables},
                             {"capacity", link.capacity},
                             {"latency_s", SecondsFromTime(link.latency)},
                             {"share", static_cast<double>(share.weight) / static_cast<double>(route.denominator)}});
  }
  return Dump(json);
}

}  // namespace orrery::reports
