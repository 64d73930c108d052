// Links by what a user calls them.
#ifndef ORRERY_TOPOLOGY_NAMED_LINKS_H_
#define ORRERY_TOPOLOGY_NAMED_LINKS_H_

#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "topology/device.h"
#include "topology/topology.h"

namespace orrery::topology {

// In both directions: all links of a device, as Topology::Find takes it, or with `to` those that join it with that
// neighbour; "rail3": the links to the network of the NICs that are number 3 of their nodes, where no device has that
// name. INVALID_ARGUMENT or NOT_FOUND says what is allowed.
absl::StatusOr<std::vector<LinkId>> LinksNamed(const Topology& topology, std::string_view device,
                                               std::string_view to = {});

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_NAMED_LINKS_H_
