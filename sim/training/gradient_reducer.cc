#include "sim/training/gradient_reducer.h"

namespace orrery::training {

using engine::Op;
using engine::TimeClass;

Op GradientReducer::ShardStep(Stream stream, std::int32_t label, const Communication& price, double factor) {
  return writer_.Collective(stream, label, kDataGroup, Scaled(price, factor), TimeClass::kExposedDp,
                            TimeClass::kWaitDp);
}

Op GradientReducer::ReplicaStep(Stream stream, std::int32_t label, const Communication& price, double factor) {
  return writer_.Collective(stream, label, kReplicaGroup, Scaled(price, factor), TimeClass::kExposedDp,
                            TimeClass::kWaitDp);
}

void GradientReducer::OnItsOwn(const ReductionPrices& prices, OpLabel label) {
  if (plan_.shard_ranks > 1) writer_.Add(ShardStep(kCompute, writer_.Label(label), prices.shards, 1));
  if (plan_.replicas() > 1) writer_.Add(ReplicaStep(kCompute, writer_.Label(label), prices.replicas, 1));
}

void GradientReducer::Beside(const ReductionPrices& prices, OpLabel label, std::int32_t ready, double factor) {
  last_event_ = ready;
  const auto add = [&](Op op) {
    op.waits[0] = last_event_;
    op.records = last_event_ = writer_.NewEvent();
    writer_.Add(op);
  };
  if (plan_.shard_ranks > 1) add(ShardStep(kDataParallel, writer_.Label(label), prices.shards, factor));
  if (plan_.replicas() > 1) add(ReplicaStep(kReplicas, writer_.Label(label), prices.replicas, factor));
}

// Streams run in order, and the last step of a reduction follows all its others.
void GradientReducer::Wait() {
  Op wait = writer_.Mark(writer_.Label({.role = OpRole::kGradientWait}));
  wait.waits[0] = last_event_;
  writer_.Add(wait);
}

}  // namespace orrery::training
