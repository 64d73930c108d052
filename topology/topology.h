// A cluster device by device: GPUs, NVSwitches, PCIe switches, CPUs, NICs, leaf, spine and core switches, and the links
// between them, as a graph of Boost.Graph. It is generated from what a spec says of node and fabric, or taken from its
// free-form graph.
//
// A node, of `node.gpus` GPUs:
//
//   GPU -- NVSwitch        node.nvlink / nvlinks per cable; s switches get nvlinks / s cables each, the first ones one
//   GPU -- GPU             more; nvlink_pair joins GPUs directly. Half of nvlink's latency to a switch, all of it to a
//   GPU GPU, NIC -- PCIe switch -- CPU     node.pcie; without PCIe switches GPU, NIC -- CPU CPU -- CPU node.cpu_link,
//   within a host
//
// The fabric, for each plane (and for each rail, where rails are separate) a network of its own:
//
//   NIC -- leaf            node.nic / planes; half of its latency and half of a hop. Rail-optimised: NIC i of
//                          nodes_per_leaf nodes; else all their NICs
//   leaf -- spine          as many cables of uplink_bandwidth as carry what comes from below a full leaf, divided by
//                          oversubscription; where that is no whole number one more, each a bit thinner. One hop
//   spine -- core          in every pod; the same with pod_oversubscription
//
// A leaf's U uplinks are dealt evenly to its spines, of which there are as few as have the ports, and as divide U. In a
// pod a spine keeps ports for its uplinks (1 / (1 + pod_oversubscription) of them), and spine i of every pod is joined
// to the same group of cores, chosen in the same way. One switch costs one hop_latency, half of it on either side.
//
// Parallel cables are one link, with their number, where traffic spreads over them: NVLink, and a network of routing
// ADAPTIVE. Else a flow keeps to one cable, and each is a link.
//
// Size: 12,288 GPUs in tens of milliseconds and megabytes. Not changed once built; threads may share it.
#ifndef ORRERY_TOPOLOGY_TOPOLOGY_H_
#define ORRERY_TOPOLOGY_TOPOLOGY_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "orrery/v1/cluster.pb.h"
#include "topology/device.h"

namespace orrery::topology {

class Topology {
 public:
  // `cluster` must be resolved and its fields in their ranges; only nodes, node, fabric and more_nodes, or graph, are
  // read. INVALID_ARGUMENT names the field or device where GPUs cannot share what they must share evenly, the switches
  // have too few ports, an id is given twice or unknown, a cable joins a device to itself or a capacity is zero, or two
  // GPUs cannot reach each other; RESOURCE_EXHAUSTED where it is too large.
  static absl::StatusOr<Topology> Build(const v1::Cluster& cluster);
  // The same devices and links by the same numbers; no way uses these links or the opposite ones. INVALID_ARGUMENT
  // names two GPUs that then cannot reach each other.
  absl::StatusOr<Topology> Without(std::span<const LinkId> dead) const;
  ~Topology();
  Topology(Topology&&) noexcept;
  Topology& operator=(Topology&&) noexcept;

  std::int64_t gpus() const;
  std::int64_t nodes() const;
  std::int32_t devices() const;
  std::int32_t links() const;  // directed

  // GPU of the whole cluster by its number, the order of ranks: node by node, or that of the graph.
  DeviceId gpu(std::int64_t number) const;
  // Of a GPU.
  std::int64_t GpuNumber(DeviceId gpu) const;

  const Device& device(DeviceId id) const;
  Link link(LinkId id) const;
  // Directed links that leave a device, by the device that they lead to.
  std::span<const LinkId> LinksFrom(DeviceId id) const;

  // "node3/gpu5", "leaf12", or the id of a free-form graph.
  std::string NameOf(DeviceId id) const;
  // By such a name, or as "gpu:29", "nic:3", "leaf:12": the number among those of its kind in the cluster. An id of a
  // free-form graph that reads like that goes before the number. NOT_FOUND says what there is.
  absl::StatusOr<DeviceId> Find(std::string_view name) const;
  // Name of the operating system's host of a device inside a node; empty where the graph names none.
  std::string HostOf(DeviceId id) const;

  std::int64_t Count(DeviceKind kind) const;
  std::int64_t Cables(LinkKind kind) const;  // parallel ones counted

  v1::Routing routing() const;
  std::uint64_t hash_seed() const;
  bool is_free_form() const;

  struct Impl;
  // For code of this folder.
  const Impl& impl() const { return *impl_; }

 private:
  explicit Topology(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_TOPOLOGY_H_
