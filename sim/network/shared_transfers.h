// The transfers of a replay on a network of shared links: engine::Transfers by FlowNetwork.
#ifndef ORRERY_SIM_NETWORK_SHARED_TRANSFERS_H_
#define ORRERY_SIM_NETWORK_SHARED_TRANSFERS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sim/engine/transfers.h"
#include "sim/engine/world.h"
#include "sim/network/flow_network.h"

namespace orrery::network {

// Units and links that are alike, by class (engine::Folding): one name for all of a class.
struct AlikeClasses {
  std::vector<std::int32_t> of_unit;
  std::vector<std::int32_t> of_link;
};

class SharedTransfers final : public engine::Transfers {
 public:
  // `world` must outlive it. INVALID_ARGUMENT for a capacity that FlowNetwork refuses, and for a route without a rate
  // or with a load below 1 or on no link.
  // With `alike`, delays are attributed (FlowNetworkOptions), in the same words whether the world is folded or not:
  // keys are those of the first of the units that a transfer is of, of links that are alike the same one is blamed.
  static absl::StatusOr<SharedTransfers> Make(const engine::World& world, std::optional<AlikeClasses> alike = {});

  void Expect(std::int32_t route) const override { network_.Fetch(loads_[static_cast<std::size_t>(route)]); }
  absl::Status Begin(Time now, const engine::SharedTransfer& transfer) override;
  Time NextEnd() override;
  void End(Time now, std::vector<std::int64_t>* ids) override;
  std::vector<engine::TransferProgress> Progress(Time now) override;

  // Links are those of the world but with `alike`; keys are (with `alike`: class of the) unit x 2^32 + operation.
  const FlowNetwork& network() const { return network_; }
  // Of a link of the world.
  LinkUse UseOf(std::int32_t link) const { return *network_.UseOf(link_of_[static_cast<std::size_t>(link)]); }
  // Of every route's transfers: units of progress so far.
  std::vector<Work> UnitsByRoute();

 private:
  SharedTransfers(const engine::World& world, std::optional<AlikeClasses> alike);

  absl::Status AddLinks();
  void NameCollectives();
  std::uint64_t KeyOf(const engine::SharedTransfer& transfer) const;

  const engine::World* world_;
  std::optional<AlikeClasses> alike_;
  std::vector<LinkId> link_of_;                   // [the world's link]
  std::vector<std::vector<std::uint64_t>> keys_;  // [group][use], with `alike`
  FlowNetwork network_;
  std::vector<std::vector<LinkLoad>> loads_;  // [route]
  struct UnderWay {
    std::int64_t id = 0;
    std::size_t route = 0;
  };
  std::vector<UnderWay> under_way_;  // [slot of a handle]
  std::vector<Work> begun_;          // [route]
};

}  // namespace orrery::network

#endif  // ORRERY_SIM_NETWORK_SHARED_TRANSFERS_H_
