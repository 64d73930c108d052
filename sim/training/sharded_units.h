// ZeRO-3 (FSDP full sharding): parameters are gathered unit by unit while passes run, and gradients reduced likewise.
//
// A unit is one layer; embedding, final norm and head together are the root unit. Before a pass uses a unit whose
// parameters this rank does not hold, they are gathered; after the pass has left it they are dropped: a layer after its
// forward pass where the software reshards and always after its backward pass, the root after a whole backward pass.
// Without reduction in every micro-batch whole gradients stay until the last one, and layers that are not resharded
// after forward stay gathered likewise (FSDP's no_sync).
//
//   data-parallel stream   G0 G1 |  G2  | ...          G3 G2 |  R3 G1  |  R2 G0 | ...
//   compute stream          F0   |  F1  | F2 ...         B3  |   B2    |   B1   | ...
//
// Gathers run in the order of use, the k-th of them once the compute stream has left the layer that it passed
// gather_ahead + 1 layers before: so many units are in flight beside the one that computes (FSDP's limit of two
// all-gathers is gather_ahead 1). Gathers never reach into the next pass: the framework's host has not come to it. The
// reduction of a unit follows its backward pass. Gathers and reductions share one stream, since kernels of one
// communicator run in order; frameworks issue the gather of the next unit first, so that reductions stand behind it.
#ifndef ORRERY_SIM_TRAINING_SHARDED_UNITS_H_
#define ORRERY_SIM_TRAINING_SHARDED_UNITS_H_

#include <cstdint>
#include <vector>

#include "sim/training/gradient_reducer.h"
#include "sim/training/plan.h"
#include "sim/training/program_builder.h"
#include "sim/training/program_writer.h"

namespace orrery::training {

// What a pass asks for.
struct ShardedPass {
  schedules::ActionKind kind = schedules::ActionKind::kForward;
  std::int32_t tag = -1;
  // Of static overlap.
  double compute_factor = 1;
  double communication_factor = 1;
  // Its gradients are reduced; else they stay with the rank.
  bool reduces = false;
};

class ShardedUnits {
 public:
  ShardedUnits(const Plan& plan, const RolePrices& prices, ProgramWriter& writer, GradientReducer& reducer);

  // Gathers wait for this event if for nothing else.
  void Begin(std::int32_t begin_event) { begin_event_ = begin_event; }
  // A pass in stretches, one a unit. `ends` of the whole pass.
  void RunPass(const PricedPass& pass, const ShardedPass& what, const PassEnds& ends);

 private:
  static constexpr std::int32_t kRoot = -1;
  struct Use {
    std::int32_t unit = kRoot;
    Stretch stretch;
    // Layers that the pass has entered up to here, this one included.
    std::int32_t layers = 0;
  };
  struct Holding {
    bool held = false;
    std::int32_t gathered = engine::kNoEvent;  // by the gather that the next use has to wait for
  };

  static std::vector<Use> UsesOf(const PricedPass& pass);
  Holding& Of(std::int32_t unit) { return holdings_[static_cast<std::size_t>(unit + 1)]; }
  void Gather(std::int32_t unit, std::int32_t waits, double factor);
  std::int32_t LimitOf(std::size_t layer_use) const;
  void Reduce(std::int32_t unit, std::int32_t ready, const ShardedPass& what);

  const Plan& plan_;
  const RolePrices& prices_;
  ProgramWriter& writer_;
  GradientReducer& reducer_;
  const std::int64_t ahead_;
  std::vector<Holding> holdings_;             // the root, then layers
  std::vector<std::int32_t> layer_ends_;      // event by use of a layer, over all passes
  std::int32_t last_end_ = engine::kNoEvent;  // event of the last stretch
  std::int32_t begin_event_ = engine::kNoEvent;
};

}  // namespace orrery::training

#endif  // ORRERY_SIM_TRAINING_SHARDED_UNITS_H_
