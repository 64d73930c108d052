// Prices of a role: from the spec, or from whoever else wants a training-shaped world (tests, tables of constant
// costs).
#ifndef ORRERY_SIM_TRAINING_ROLE_PRICER_H_
#define ORRERY_SIM_TRAINING_ROLE_PRICER_H_

#include <map>
#include <memory>
#include <tuple>
#include <vector>

#include "sim/collectives/collective_prices.h"
#include "sim/kernels/kernel_prices.h"
#include "sim/layout/layout.h"
#include "sim/training/overlap_loads.h"
#include "sim/training/pass_prices.h"
#include "sim/training/plan.h"
#include "sim/training/program_builder.h"
#include "sim/training/slowness.h"

namespace orrery::training {

class RolePricer {
 public:
  virtual ~RolePricer() = default;
  // Prices of the rank at these coordinates, but for members_differ. In a regular layout they depend on the pipeline
  // rank and on the GPU's slowness alone. The chunks they point to live as long as the pricer.
  virtual RolePrices PricesOf(const layout::Coordinates& at) = 0;
};

// Prices by the models of sim/kernels and sim/collectives.
class SpecPricer final : public RolePricer {
 public:
  SpecPricer(const Plan& plan, const kernels::KernelPrices& kernels, const collectives::CollectivePrices& collectives);

  RolePrices PricesOf(const layout::Coordinates& at) override;

  // By stage, on a GPU of nominal speed.
  const std::vector<const PricedChunk*>& nominal_stages() const { return nominal_stages_; }

 private:
  using ShapeKey = std::tuple<std::int64_t, bool, bool>;
  using ChunkKey = std::tuple<ShapeKey, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, double>;

  void PriceNominalStages();
  const PricedChunk& ChunkPrices(const workloads::ChunkShape& shape, const layout::Placement& tp_group,
                                 double slowness);
  void PriceMessages(const layout::Coordinates& at, RolePrices& prices) const;
  void PriceDataParallel(const layout::Coordinates& at, RolePrices& prices) const;
  UnitPrices PriceUnit(const layout::Coordinates& at, const workloads::ChunkShape& shape) const;
  ReductionPrices PriceReduction(const layout::Coordinates& at, std::int64_t bytes) const;
  Communication DataParallel(const layout::Coordinates& at, collectives::nccl::Operation operation, std::int64_t bytes,
                             layout::GroupAxis axis) const;
  void PriceCopiesReduction(const layout::Coordinates& at, RolePrices& prices) const;
  void PriceEmbeddingReduction(const layout::Coordinates& at, RolePrices& prices) const;
  void PriceUpdate(const layout::Coordinates& at, RolePrices& prices) const;

  const Plan& plan_;
  const kernels::KernelPrices& kernels_;
  const collectives::CollectivePrices& collectives_;
  PassPricer pricer_;
  OverlapPricer overlap_;
  Slowness slowness_;
  std::map<ShapeKey, workloads::ChunkWork> work_;
  std::map<ChunkKey, PricedChunk> chunks_;
  std::vector<const PricedChunk*> nominal_stages_;
  Time slowest_wait_;
};

}  // namespace orrery::training

#endif  // ORRERY_SIM_TRAINING_ROLE_PRICER_H_
