// Reductions of gradients over data-parallel ranks: over the ranks that share one copy of what ZeRO shards, then, each
// rank its shard, over the replicas of that group (hybrid sharding).
//
// The second step has a communicator of its own, and so a stream of its own: it runs beside the first step of the next
// gradients.
#ifndef ORRERY_SIM_TRAINING_GRADIENT_REDUCER_H_
#define ORRERY_SIM_TRAINING_GRADIENT_REDUCER_H_

#include <cstdint>

#include "sim/training/plan.h"
#include "sim/training/program_builder.h"
#include "sim/training/program_writer.h"

namespace orrery::training {

class GradientReducer {
 public:
  GradientReducer(const Plan& plan, ProgramWriter& writer) : plan_(plan), writer_(writer) {}

  // On the compute stream, where it stands.
  void OnItsOwn(const ReductionPrices& prices, OpLabel label);
  // Beside compute, once the event `ready` has happened; takes `factor` times as long.
  void Beside(const ReductionPrices& prices, OpLabel label, std::int32_t ready, double factor);
  // The compute stream waits for everything that runs beside it.
  void Wait();

 private:
  engine::Op ShardStep(Stream stream, std::int32_t label, const Communication& price, double factor);
  engine::Op ReplicaStep(Stream stream, std::int32_t label, const Communication& price, double factor);

  const Plan& plan_;
  ProgramWriter& writer_;
  std::int32_t last_event_ = engine::kNoEvent;
};

}  // namespace orrery::training

#endif  // ORRERY_SIM_TRAINING_GRADIENT_REDUCER_H_
