// Operators of a chunk with their prices: what a program is made of.
#ifndef ORRERY_SIM_TRAINING_PASS_PRICES_H_
#define ORRERY_SIM_TRAINING_PASS_PRICES_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "sim/collectives/collective_prices.h"
#include "sim/engine/program.h"
#include "sim/kernels/kernel_prices.h"
#include "sim/layout/layout.h"
#include "sim/memory/ledger.h"
#include "sim/training/by_action.h"
#include "sim/training/plan.h"
#include "workloads/operator.h"

namespace orrery::training {

// Kinds of kernels by what slows them down (engine::Load): whether multiprocessors or memory decide their time, and the
// pass, for which overlap rules differ. Backward passes are whatever is not forward.
enum KernelKind : std::uint8_t {
  kNotSlowed = 0,
  kForwardMatrix = 1,
  kForwardMemory = 2,
  kBackwardMatrix = 3,
  kBackwardMemory = 4,
  kUpdateMemory = 5,
};

// One operator, priced.
struct PricedOperator {
  std::string_view name;
  engine::TimeClass time_class = engine::TimeClass::kCompute;
  Time duration;
  // Tensor-parallel collectives: as of a Communication, and the expected wait for the slowest member.
  Time progress;
  collectives::Footprint footprint = {};
  Time lead;
  bool is_collective = false;
  int kernels = 1;
  std::int32_t layer = -1;
  KernelKind kind = kNotSlowed;
};

struct PricedPass {
  std::vector<PricedOperator> operators;
  memory::PassFootprint footprint;
  // Sum of the durations of kernels, collectives not counted.
  Time compute;
};

using PricedChunk = ByAction<PricedPass>;

// Prices of one run. Kernels take `slowness` times as long on a slow GPU.
class PassPricer {
 public:
  PassPricer(const Plan& plan, const kernels::KernelPrices& kernels, const collectives::CollectivePrices& collectives);

  PricedChunk Price(const workloads::ChunkWork& work, const layout::Placement& tp_group, double slowness) const;

  // Whether parameters are kept in fp32 and converted to the precision of the passes.
  bool converts() const;
  // Converts this many in so many kernels.
  double ConversionSeconds(std::int64_t parameters, int kernels) const;

 private:
  // Which operators of a list belong to the pass that is priced.
  enum class PassPart { kWhole, kInputGradient, kWeightGradient };
  static bool InPart(const workloads::Operator& op, PassPart part);

  PricedPass PricePass(const std::vector<workloads::Operator>& operators, PassPart part,
                       const layout::Placement& tp_group, double slowness) const;
  KernelKind KindOf(const workloads::Operator& op) const;
  double KernelSeconds(const workloads::Operator& op) const;
  bool NeedsConversion(const workloads::Operator& op, const workloads::Operator* before) const;
  PricedOperator Conversion(std::int32_t layer, double slowness, double* seconds) const;
  collectives::Price Exposed(const std::vector<workloads::Operator>& operators, std::size_t index, PassPart part,
                             const layout::Placement& tp_group) const;

  const Plan& plan_;
  const kernels::KernelPrices& kernels_;
  const collectives::CollectivePrices& collectives_;
};

}  // namespace orrery::training

#endif  // ORRERY_SIM_TRAINING_PASS_PRICES_H_
