// The transfers of a replay on a network of shared links: engine::Transfers by FlowNetwork.
#ifndef ORRERY_SIM_NETWORK_SHARED_TRANSFERS_H_
#define ORRERY_SIM_NETWORK_SHARED_TRANSFERS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sim/engine/transfers.h"
#include "sim/engine/world.h"
#include "sim/network/flow_network.h"

namespace orrery::network {

class SharedTransfers final : public engine::Transfers {
 public:
  // `world` must outlive it. INVALID_ARGUMENT for a capacity that FlowNetwork refuses, and for a route without a rate
  // or with a load below 1 or on no link.
  static absl::StatusOr<SharedTransfers> Make(const engine::World& world);

  void Expect(std::int32_t route) const override { network_.Fetch(loads_[static_cast<std::size_t>(route)]); }
  absl::Status Begin(Time now, const engine::SharedTransfer& transfer) override;
  Time NextEnd() override;
  void End(Time now, std::vector<std::int64_t>* ids) override;

  // Links are those of the world; keys are unit x 2^32 + operation.
  const FlowNetwork& network() const { return network_; }
  // Of a route's transfers: units of progress that began.
  double UnitsOf(std::int32_t route) const { return units_[static_cast<std::size_t>(route)]; }

 private:
  explicit SharedTransfers(const engine::World& world) : world_(&world) {}

  const engine::World* world_;
  FlowNetwork network_;
  std::vector<std::vector<LinkLoad>> loads_;  // [route]
  std::vector<std::int64_t> ids_;             // [slot of a handle]
  std::vector<double> units_;                 // [route]
};

}  // namespace orrery::network

#endif  // ORRERY_SIM_NETWORK_SHARED_TRANSFERS_H_
