// Which links a transfer between two GPUs uses, and with what share of its bytes.
//
//   same node        over NVLink where the two GPUs are joined by it, else over PCIe; never through another GPU
//   across nodes     GPU -> its NIC -> network -> NIC of the other GPU -> that GPU
//
// NICs: a GPU uses those nearest to it over PCIe, which it shares evenly with GPUs that are as near to them; flow f
// takes the f-th of them, and of the other side the one on the same rail. Where the two GPUs' NICs are on different
// rails and PXN is on, the bytes first cross NVLink to a GPU of the node that has a NIC on the destination's rail,
// unless that way has more network links. Where no NIC of the two reaches the other at all, any pair of NICs of the two
// nodes that does may serve, with a forwarder even without PXN if need be.
//
// In the network: the ways with the fewest links, of these the ones with the least latency. Routing says which of them:
//
//   ADAPTIVE         all, in proportion to the capacity of the next links at each switch
//   HASHED           one: at each switch a hash of seed, both GPUs, flow and switch chooses the next link
//   BY_DESTINATION   one: the destination NIC's number in the order of the leaves, written in base of the number of
//                    next links at each switch on the way, least digit first; of parallel cables to one switch the
//                    number modulo theirs
//
// Bytes over several NVSwitches, or over parallel NVLinks, spread in proportion to capacity whatever the routing.
//
// Distances are computed once for all NICs whose leaves have the same neighbours, and once for all nodes of one kind,
// when they are first needed: a cluster has few such classes. Threads may share a Routes.
#ifndef ORRERY_TOPOLOGY_ROUTES_H_
#define ORRERY_TOPOLOGY_ROUTES_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "orrery/v1/cluster.pb.h"
#include "topology/device.h"
#include "topology/topology.h"

namespace orrery::topology {

struct RouteOptions {
  // Default: those of the topology. A topology whose parallel cables are one link stays so.
  std::optional<v1::Routing> routing = std::nullopt;
  std::optional<std::uint64_t> hash_seed = std::nullopt;
  bool pxn = true;
};

// A share of the bytes, weight / denominator of the route's, on a link.
struct LinkShare {
  LinkId link = 0;
  std::int64_t weight = 0;

  friend bool operator==(const LinkShare&, const LinkShare&) = default;
};

struct Route {
  // From source to destination; each link once. Empty where both are one GPU.
  std::vector<LinkShare> shares;
  std::int64_t denominator = 1;
  Time latency;           // of each of the ways taken
  int links = 0;          // of each way
  int network_links = 0;  // of these
  // NICs at both ends; kNoDevice inside a node.
  DeviceId from_nic = kNoDevice;
  DeviceId to_nic = kNoDevice;
  // The GPU that forwards the bytes to from_nic (PXN); kNoDevice: none.
  DeviceId forwarder = kNoDevice;
};

class Routes {
 public:
  // `topology` must outlive it and stay where it is.
  static absl::StatusOr<Routes> Build(const Topology& topology, const RouteOptions& options = {});
  ~Routes();
  Routes(Routes&&) noexcept;
  Routes& operator=(Routes&&) noexcept;

  // GPUs by number, as Topology::gpu counts; both must exist. `flow` tells apart transfers between two GPUs: channels,
  // queue pairs; from 0.
  Route Between(std::int64_t from_gpu, std::int64_t to_gpu, std::int64_t flow = 0) const;
  // The same into a Route whose memory is used again.
  void Between(std::int64_t from_gpu, std::int64_t to_gpu, std::int64_t flow, Route* route) const;

  // Equally short ways between the NICs of that route, of which the routing takes all or one; parallel cables that are
  // one link count once. At most 2^62.
  std::int64_t Ways(std::int64_t from_gpu, std::int64_t to_gpu, std::int64_t flow = 0) const;

  // NICs of a GPU: those nearest to it, in order.
  std::vector<DeviceId> NicsOf(std::int64_t gpu) const;

  // Bytes per second that the route carries while nothing else does: floor(min of capacity x denominator / weight).
  // INT64_MAX for a GPU to itself.
  std::int64_t Bottleneck(const Route& route) const;

  const Topology& topology() const;

 private:
  struct Impl;
  explicit Routes(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_ROUTES_H_
