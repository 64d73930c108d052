#include "topology/named_links.h"

#include <cstdint>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/status_macros.h"

namespace orrery::topology {
namespace {

void AddBothWays(LinkId link, std::vector<LinkId>* links) {
  links->push_back(link);
  links->push_back(Opposite(link));
}

std::vector<LinkId> LinksOfRail(const Topology& topology, std::int64_t rail) {
  std::vector<LinkId> links;
  for (DeviceId id = 0; id < topology.devices(); ++id) {
    const Device& device = topology.device(id);
    if (device.kind != DeviceKind::kNic || device.index != rail) continue;
    for (const LinkId link : topology.LinksFrom(id)) {
      if (IsNetwork(topology.link(link).kind)) AddBothWays(link, &links);
    }
  }
  return links;
}

}  // namespace

absl::StatusOr<std::vector<LinkId>> LinksNamed(const Topology& topology, std::string_view device, std::string_view to) {
  const std::string name(device);
  const absl::StatusOr<DeviceId> from = topology.Find(device);
  std::int64_t rail = 0;
  absl::string_view number = name;
  if (!from.ok() && absl::ConsumePrefix(&number, "rail") && absl::SimpleAtoi(number, &rail)) {
    std::vector<LinkId> links = LinksOfRail(topology, rail);
    if (!links.empty() && to.empty()) return links;
    return absl::InvalidArgumentError(
        absl::StrCat("found ", name, to.empty() ? "" : " with a device at the other end",
                     "; allowed: the number of a NIC in its node, with no device at the other end"));
  }
  ABSL_RETURN_IF_ERROR(from.status());
  DeviceId other = kNoDevice;
  if (!to.empty()) {
    ABSL_ASSIGN_OR_RETURN(other, topology.Find(to));
  }
  std::vector<LinkId> links;
  for (const LinkId link : topology.LinksFrom(*from)) {
    if (other == kNoDevice || topology.link(link).to == other) AddBothWays(link, &links);
  }
  if (!links.empty()) return links;
  if (to.empty())
    return absl::InvalidArgumentError(absl::StrCat("found no link of ", name, "; allowed: a device with links"));
  return absl::InvalidArgumentError(absl::StrCat("found no link between ", name, " and ", std::string(to),
                                                 "; allowed: neighbours, as `orrery topology route` shows them"));
}

}  // namespace orrery::topology
