#include "sim/network/shared_transfers.h"

#include <cstddef>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace orrery::network {

absl::StatusOr<SharedTransfers> SharedTransfers::Make(const engine::World& world) {
  SharedTransfers transfers(world);
  transfers.units_.resize(world.routes.size());
  for (const std::int64_t capacity : world.link_capacities) {
    ABSL_RETURN_IF_ERROR(transfers.network_.AddLink(BytesPerSecondInteger(capacity)).status());
  }
  for (std::size_t r = 0; r < world.routes.size(); ++r) {
    const engine::Route& route = world.routes[r];
    if (route.rate < 1 || route.rate > kMaxCapacity.count()) {
      return absl::InvalidArgumentError(absl::StrCat("route ", r, " has a rate of ", route.rate, " bytes/s"));
    }
    std::vector<LinkLoad>& loads = transfers.loads_.emplace_back();
    for (const engine::LinkLoad& load : route.loads) {
      if (load.link < 0 || static_cast<std::size_t>(load.link) >= world.link_capacities.size() || load.bytes < 1) {
        return absl::InvalidArgumentError(
            absl::StrCat("route ", r, " puts ", load.bytes, " bytes on link ", load.link));
      }
      loads.push_back({load.link, load.bytes});
    }
  }
  return transfers;
}

absl::Status SharedTransfers::Begin(Time now, const engine::SharedTransfer& transfer) {
  const auto route = static_cast<std::size_t>(transfer.route);
  const Rate rate(world_->routes[route].rate * kRatePerUnit);
  Activity activity;
  activity.loads = loads_[route];
  activity.work = Work(Int128{rate.count()} * transfer.alone.count());
  activity.rate_cap = rate;
  activity.min_duration = transfer.alone;
  activity.key = static_cast<std::uint64_t>(transfer.unit) << 32 | static_cast<std::uint32_t>(transfer.op);
  const absl::StatusOr<Handle> handle = network_.Start(now, activity);
  if (!handle.ok()) return absl::ResourceExhaustedError(absl::StrCat("transfer: ", handle.status().message()));
  const auto slot = static_cast<std::size_t>(handle->slot);
  if (slot >= ids_.size()) ids_.resize(slot + 1);
  ids_[slot] = transfer.id;
  units_[route] += static_cast<double>(world_->routes[route].rate) * SecondsFromTime(transfer.alone);
  return absl::OkStatus();
}

Time SharedTransfers::NextEnd() { return network_.NextEvent(); }

void SharedTransfers::End(Time now, std::vector<std::int64_t>* ids) {
  const auto completions = network_.AdvanceTo(now);
  ORRERY_CHECK(completions.ok());
  for (const Completion& completion : *completions) {
    ids->push_back(ids_[static_cast<std::size_t>(completion.activity.slot)]);
  }
}

}  // namespace orrery::network
