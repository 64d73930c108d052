#include "topology/topology.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "topology/free_form.h"
#include "topology/generator.h"
#include "topology/reachability.h"
#include "topology/topology_impl.h"

namespace orrery::topology {
namespace {

std::size_t At(std::int64_t i) { return static_cast<std::size_t>(i); }

// Prefixes of generated names.
constexpr std::array<const char*, kDeviceKinds> kWords = {"gpu", "nvswitch", "pcie",  "cpu",
                                                          "nic", "leaf",     "spine", "core"};

// Fills graph and link_of_edge from the parts: a counting sort by source, then each vertex by target.
void MakeGraph(Topology::Impl* impl) {
  const std::vector<Cable>& cables = impl->parts.cables;
  const std::size_t devices = impl->parts.devices.size();
  std::vector<std::uint32_t> first(devices + 1, 0);
  std::size_t living = 0;
  for (const Cable& cable : cables) {
    if (cable.dead) continue;
    ++living;
    ++first[At(cable.a) + 1];
    ++first[At(cable.b) + 1];
  }
  for (std::size_t i = 0; i < devices; ++i) first[i + 1] += first[i];
  struct Edge {
    DeviceId to;
    LinkId link;
    bool operator<(const Edge& other) const { return to != other.to ? to < other.to : link < other.link; }
  };
  std::vector<Edge> edges(2 * living);
  std::vector<std::uint32_t> next(first.begin(), first.end() - 1);
  for (std::size_t i = 0; i < cables.size(); ++i) {
    if (cables[i].dead) continue;
    const auto link = static_cast<LinkId>(2 * i);
    edges[next[At(cables[i].a)]++] = {cables[i].b, link};
    edges[next[At(cables[i].b)]++] = {cables[i].a, Opposite(link)};
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ends;
  ends.reserve(edges.size());
  impl->link_of_edge.clear();
  impl->link_of_edge.reserve(edges.size());
  for (std::size_t from = 0; from < devices; ++from) {
    std::sort(edges.begin() + first[from], edges.begin() + first[from + 1]);
    for (std::uint32_t k = first[from]; k < first[from + 1]; ++k) {
      ends.emplace_back(static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(edges[k].to));
      impl->link_of_edge.push_back(edges[k].link);
    }
  }
  impl->graph = DirectedGraph(boost::edges_are_sorted, ends.begin(), ends.end(), static_cast<std::uint32_t>(devices),
                              static_cast<std::uint32_t>(ends.size()));
}

void CountDevices(Topology::Impl* impl) {
  for (const Device& device : impl->parts.devices) ++impl->counts[static_cast<std::size_t>(device.kind)];
  for (const Cable& cable : impl->parts.cables) impl->cables[static_cast<std::size_t>(cable.kind)] += cable.cables;
  for (std::size_t i = 0; i < impl->parts.names.size(); ++i) {
    impl->by_name.emplace(impl->parts.names[i], static_cast<DeviceId>(i));
  }
  impl->number_of_gpu.assign(impl->parts.devices.size(), -1);
  for (std::size_t i = 0; i < impl->parts.gpus.size(); ++i) {
    impl->number_of_gpu[At(impl->parts.gpus[i])] = static_cast<std::int32_t>(i);
  }
}

// "12" -> 12; -1: no number.
std::int64_t Number(std::string_view text) {
  std::int64_t number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && !text.starts_with('-') ? number : -1;
}

// The device that is number `number` of its kind, which exists.
DeviceId Nth(const std::vector<Device>& devices, DeviceKind kind, std::int64_t number) {
  DeviceId id = 0;
  for (;; ++id) {
    if (devices[At(id)].kind == kind && number-- == 0) return id;
  }
}

// "leaf12" among network switches, "gpu5" of a node.
DeviceId FindAmong(const std::vector<Device>& devices, DeviceId first, DeviceId end, std::string_view name) {
  for (std::size_t kind = 0; kind < kDeviceKinds; ++kind) {
    if (!name.starts_with(kWords[kind])) continue;
    const std::int64_t number = Number(name.substr(std::string_view(kWords[kind]).size()));
    for (DeviceId id = first; id < end && number >= 0; ++id) {
      const Device& device = devices[At(id)];
      if (device.index == number && device.kind == static_cast<DeviceKind>(kind)) return id;
    }
  }
  return kNoDevice;
}

// By its generated name.
DeviceId FindGenerated(const Parts& parts, std::string_view name) {
  if (!name.starts_with("node")) {
    return FindAmong(parts.devices, parts.first_switch, static_cast<DeviceId>(parts.devices.size()), name);
  }
  const std::size_t slash = name.find('/');
  if (slash == std::string_view::npos) return kNoDevice;
  const std::int64_t node = Number(name.substr(4, slash - 4));
  if (node < 0 || node >= static_cast<std::int64_t>(parts.nodes.size())) return kNoDevice;
  const NodeSpan& span = parts.nodes[At(node)];
  return FindAmong(parts.devices, span.first_device, span.first_device + span.devices, name.substr(slash + 1));
}

// Of the hosts of a node of one shape, the one of device `index` of its kind; -1: none.
std::int64_t HostOfDevice(const Hosting& hosting, const Device& device) {
  std::int64_t count = 0;
  switch (device.kind) {
    case DeviceKind::kGpu:
      count = hosting.gpus;
      break;
    case DeviceKind::kNvSwitch:
      count = hosting.nvswitches;
      break;
    case DeviceKind::kPcieSwitch:
      count = hosting.pcie_switches;
      break;
    case DeviceKind::kCpu:
      count = hosting.cpus;
      break;
    case DeviceKind::kNic:
      count = hosting.nics;
      break;
    default:
      break;
  }
  return count == 0 ? -1 : device.index * hosting.hosts / count;
}

// Nodes of one shape are equal: those with the same damage become a shape of their own.
void ReshapeDamaged(Parts* parts) {
  std::map<std::int32_t, std::vector<std::int32_t>> damage;  // by node: cables of it, NICs below zero; both by place
  for (std::size_t i = 0; i < parts->cables.size(); ++i) {
    const Cable& cable = parts->cables[i];
    if (!cable.dead) continue;
    const bool is_inner = static_cast<std::int32_t>(i) < parts->first_network_cable;
    for (const DeviceId end : {cable.a, cable.b}) {
      const std::int32_t node = parts->devices[At(end)].node;
      if (node < 0) continue;
      const NodeSpan& span = parts->nodes[At(node)];
      damage[node].push_back(is_inner ? static_cast<std::int32_t>(i) - span.first_cable
                                      : -1 - (end - span.first_device));
    }
  }
  std::map<std::pair<std::int32_t, std::vector<std::int32_t>>, std::int32_t> shapes;
  for (auto& [node, places] : damage) {
    std::sort(places.begin(), places.end());
    std::int32_t& shape = parts->nodes[At(node)].shape;
    const auto [known, added] = shapes.try_emplace({shape, places}, parts->shapes);
    if (added) {
      ++parts->shapes;
      if (!parts->hosting.empty()) parts->hosting.push_back(Hosting(parts->hosting[At(shape)]));
    }
    shape = known->second;
  }
}

}  // namespace

Topology::Topology(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Topology::~Topology() = default;
Topology::Topology(Topology&&) noexcept = default;
Topology& Topology::operator=(Topology&&) noexcept = default;

absl::StatusOr<Topology> Topology::Build(const v1::Cluster& cluster) {
  auto impl = std::make_unique<Impl>();
  impl->is_free_form = cluster.has_graph();
  if (cluster.has_graph()) {
    ABSL_ASSIGN_OR_RETURN(impl->parts, FromGraph(cluster.graph()));
    impl->routing = cluster.graph().routing();
    impl->hash_seed = static_cast<std::uint64_t>(cluster.graph().hash_seed());
  } else {
    ABSL_ASSIGN_OR_RETURN(impl->parts, Generate(cluster));
    impl->routing = cluster.fabric().routing();
    impl->hash_seed = static_cast<std::uint64_t>(cluster.fabric().hash_seed());
  }
  MakeGraph(impl.get());
  CountDevices(impl.get());
  Topology topology(std::move(impl));
  ABSL_RETURN_IF_ERROR(CheckReachability(topology));
  return topology;
}

absl::StatusOr<Topology> Topology::Without(std::span<const LinkId> dead) const {
  auto impl = std::make_unique<Impl>(*impl_);
  for (const LinkId link : dead) impl->parts.cables[At(link >> 1)].dead = true;
  ReshapeDamaged(&impl->parts);
  MakeGraph(impl.get());
  Topology topology(std::move(impl));
  ABSL_RETURN_IF_ERROR(CheckReachability(topology));
  return topology;
}

std::int64_t Topology::gpus() const { return static_cast<std::int64_t>(impl_->parts.gpus.size()); }
std::int64_t Topology::nodes() const { return static_cast<std::int64_t>(impl_->parts.nodes.size()); }
std::int32_t Topology::devices() const { return static_cast<std::int32_t>(impl_->parts.devices.size()); }
std::int32_t Topology::links() const { return static_cast<std::int32_t>(2 * impl_->parts.cables.size()); }

DeviceId Topology::gpu(std::int64_t number) const { return impl_->parts.gpus[At(number)]; }

std::int64_t Topology::GpuNumber(DeviceId gpu) const { return impl_->number_of_gpu[At(gpu)]; }

const Device& Topology::device(DeviceId id) const { return impl_->parts.devices[At(id)]; }

Link Topology::link(LinkId id) const {
  const Cable& cable = impl_->CableOf(id);
  return {.from = (id & 1) == 0 ? cable.a : cable.b,
          .to = impl_->To(id),
          .kind = cable.kind,
          .cables = cable.cables,
          .capacity = cable.capacity,
          .latency = cable.latency};
}

std::span<const LinkId> Topology::LinksFrom(DeviceId id) const { return impl_->LinksFrom(id); }

std::string Topology::NameOf(DeviceId id) const {
  if (impl_->is_free_form) return impl_->parts.names[At(id)];
  const Device& device = impl_->parts.devices[At(id)];
  const std::string name = absl::StrCat(kWords[static_cast<std::size_t>(device.kind)], device.index);
  return device.node < 0 ? name : absl::StrCat("node", device.node, "/", name);
}

absl::StatusOr<DeviceId> Topology::Find(std::string_view name) const {
  if (const auto found = impl_->by_name.find(std::string(name)); found != impl_->by_name.end()) return found->second;
  // kind:number counts in the order of devices, GPUs in that of ranks.
  const std::size_t colon = name.find(':');
  for (std::size_t kind = 0; kind < kDeviceKinds && colon != std::string_view::npos; ++kind) {
    if (name.substr(0, colon) != kWords[kind]) continue;
    const std::int64_t number = Number(name.substr(colon + 1));
    if (number < 0 || number >= impl_->counts[kind]) {
      return absl::NotFoundError(absl::StrCat("no device \"", std::string(name), "\"; allowed: ", kWords[kind],
                                              ":0 to ", kWords[kind], ":", impl_->counts[kind] - 1));
    }
    if (kind == 0) return gpu(number);
    return Nth(impl_->parts.devices, static_cast<DeviceKind>(kind), number);
  }
  if (!impl_->is_free_form) {
    const DeviceId found = FindGenerated(impl_->parts, name);
    if (found != kNoDevice) return found;
  }
  return absl::NotFoundError(absl::StrCat("no device \"", std::string(name), "\"; allowed: as gpu:", gpus() - 1, ", ",
                                          NameOf(gpu(gpus() - 1)), ", ", NameOf(devices() - 1)));
}

std::string Topology::HostOf(DeviceId id) const {
  if (impl_->is_free_form) return impl_->parts.hosts[At(id)];
  const Device& device = impl_->parts.devices[At(id)];
  if (device.node < 0) return "";
  const Hosting& hosting = impl_->parts.hosting[At(impl_->parts.nodes[At(device.node)].shape)];
  const std::int64_t host = HostOfDevice(hosting, device);
  if (host < 0) return "";
  return hosting.hosts == 1 ? absl::StrCat("node", device.node) : absl::StrCat("node", device.node, "/host", host);
}

std::int64_t Topology::Count(DeviceKind kind) const { return impl_->counts[static_cast<std::size_t>(kind)]; }
std::int64_t Topology::Cables(LinkKind kind) const { return impl_->cables[static_cast<std::size_t>(kind)]; }
v1::Routing Topology::routing() const { return impl_->routing; }
std::uint64_t Topology::hash_seed() const { return impl_->hash_seed; }
bool Topology::is_free_form() const { return impl_->is_free_form; }

}  // namespace orrery::topology
