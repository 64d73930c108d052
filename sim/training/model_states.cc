#include "sim/training/model_states.h"

#include <algorithm>

#include "base/check.h"

namespace orrery::training {
namespace {

constexpr std::int64_t kMasterBytes = 4;  // fp32 master copy, and each of Adam's or LAMB's two moments
constexpr std::int64_t kMoments = 2;

std::int64_t DivideRoundingUp(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// How a parameter, its gradient and its optimizer states are stored and shared.
struct States {
  std::int64_t weight_bytes = 0;
  std::int64_t gradient_bytes = 0;
  std::int64_t optimizer_bytes = 0;
  bool fp32_parameters = false;
  // Ranks that share one copy of each.
  std::int64_t weight_shards = 1;
  std::int64_t gradient_shards = 1;
  std::int64_t optimizer_shards = 1;
};

States StatesOf(const Plan& plan) {
  const v1::Training& training = plan.run.training();
  const std::int64_t zero_stage = plan.run.parallelism().zero_stage();
  States states;
  states.fp32_parameters = plan.run.software().fp32_parameters() || training.precision() == v1::FP32;
  states.weight_bytes = states.fp32_parameters ? kMasterBytes : BytesOf(training.precision());
  // A gradient is kept in the type of its parameter where that is fp32, whatever it is reduced in.
  states.gradient_bytes = states.fp32_parameters ? kMasterBytes : BytesOf(training.gradient_type());
  states.optimizer_bytes = kMoments * kMasterBytes + (states.fp32_parameters ? 0 : kMasterBytes);
  states.weight_shards = zero_stage >= 3 ? plan.shard_ranks : 1;
  // Without a reduction in every micro-batch whole gradients add up under ZeRO-3.
  const bool whole_gradients = plan.gathers_units() && !plan.run.software().reduce_every_micro_batch();
  states.gradient_shards = zero_stage >= 2 && !whole_gradients ? plan.shard_ranks : 1;
  states.optimizer_shards = zero_stage >= 1 ? plan.shard_ranks : 1;
  return states;
}

std::int64_t ParametersOf(const Plan& plan, std::int32_t pipeline_rank) {
  std::int64_t sum = 0;
  for (std::int32_t chunk = 0; chunk < plan.ChunksOf(pipeline_rank); ++chunk) {
    sum += workloads::Parameters(plan.run, plan.Stage(pipeline_rank, chunk)).total();
  }
  return sum;
}

std::int64_t LayersOf(const Plan& plan, std::int32_t pipeline_rank) {
  std::int64_t layers = 0;
  for (std::int32_t chunk = 0; chunk < plan.ChunksOf(pipeline_rank); ++chunk)
    layers += plan.Stage(pipeline_rank, chunk).layers;
  return layers;
}

Bytes ActivationMessageBytes(const Plan& plan) {
  const v1::Training& training = plan.run.training();
  const std::int64_t whole =
      training.seq_len() * training.micro_batch() * plan.run.model().hidden() * BytesOf(training.precision());
  return Bytes(plan.run.parallelism().sequence_parallel() ? whole / plan.tp : whole);
}

std::int64_t LargestBucket(const Plan& plan, std::int32_t pipeline_rank) {
  std::int64_t largest = 0;
  for (std::int32_t chunk = 0; chunk < plan.ChunksOf(pipeline_rank); ++chunk) {
    const workloads::ChunkShape& shape = plan.Stage(pipeline_rank, chunk);
    const std::int64_t bytes =
        workloads::Parameters(plan.run, shape).total() * BytesOf(plan.run.training().gradient_type());
    largest = std::max(largest, bytes / BucketsOf(plan, shape));
  }
  return largest;
}

}  // namespace

std::int64_t BytesOf(v1::DataType type) {
  switch (type) {
    case v1::FP32:
      return 4;
    case v1::FP16:
    case v1::BF16:
      return 2;
    default:
      ORRERY_CHECK(false);
  }
}

std::int32_t BucketsOf(const Plan& plan, const workloads::ChunkShape& shape) {
  const std::int64_t bytes =
      workloads::Parameters(plan.run, shape).total() * BytesOf(plan.run.training().gradient_type());
  const std::int64_t wanted = DivideRoundingUp(bytes, plan.run.software().bucket_bytes());
  return static_cast<std::int32_t>(std::clamp<std::int64_t>(wanted, 1, std::max<std::int64_t>(1, shape.layers)));
}

Bytes UnitsInFlight(const Plan& plan, std::int32_t pipeline_rank) {
  if (!plan.gathers_units()) return Bytes(0);
  const v1::Software& software = plan.run.software();
  const std::int64_t all = ParametersOf(plan, pipeline_rank);
  const std::int64_t layers = LayersOf(plan, pipeline_rank);
  const std::int64_t layer = workloads::Parameters(plan.run, {.layers = 1, .embedding = false, .head = false}).total();
  const std::int64_t root = all - layers * layer;
  const std::int64_t gathered =
      software.reshard_after_forward() ? std::min(layers, 1 + software.gather_ahead()) : layers;
  const std::int64_t precision_bytes = BytesOf(plan.run.training().precision());
  const std::int64_t parameters = (root + gathered * layer) * precision_bytes;
  if (!software.reduce_every_micro_batch() || layers == 0) return Bytes(parameters);
  return Bytes(parameters + layer * (precision_bytes + BytesOf(plan.run.training().gradient_type())));
}

memory::Ledger StaticMemory(const Plan& plan, std::int32_t pipeline_rank) {
  const std::int64_t parameters = ParametersOf(plan, pipeline_rank);
  const States states = StatesOf(plan);
  const v1::Profile& profile = plan.run.cluster().accelerator().profile();
  memory::Ledger ledger;
  ledger.weights = Bytes(DivideRoundingUp(parameters, states.weight_shards) * states.weight_bytes);
  ledger.gradients = Bytes(DivideRoundingUp(parameters, states.gradient_shards) * states.gradient_bytes);
  ledger.optimizer = Bytes(DivideRoundingUp(parameters, states.optimizer_shards) * states.optimizer_bytes);
  ledger.buffers = UnitsInFlight(plan, pipeline_rank);
  if (states.gradient_shards > 1 && !plan.gathers_units()) {
    // The shard is a part of the bucket that holds it: never more than all gradients together.
    const Bytes others = Bytes(parameters * states.gradient_bytes) - ledger.gradients;
    ledger.buffers += std::min(Bytes(LargestBucket(plan, pipeline_rank)), others);
  }
  if (states.fp32_parameters && !plan.gathers_units()) {
    const std::int64_t copy =
        plan.run.training().precision() == v1::FP32 ? 0 : BytesOf(plan.run.training().precision());
    ledger.buffers += Bytes(parameters * copy);
  }
  // One message received in each direction.
  if (plan.pp > 1) ledger.buffers += 2 * ActivationMessageBytes(plan);
  ledger.workspaces = Bytes(static_cast<std::int64_t>(profile.workspace_memory().value()));
  ledger.runtime = Bytes(static_cast<std::int64_t>(profile.runtime_memory().value()));
  return ledger;
}

Bytes UpdateTemporaries(const Plan& plan, std::int32_t pipeline_rank) {
  const States states = StatesOf(plan);
  if (states.gradient_bytes >= kMasterBytes) return Bytes(0);
  return Bytes(DivideRoundingUp(ParametersOf(plan, pipeline_rank), states.optimizer_shards) * kMasterBytes);
}

OptimizerWork UpdateOf(const Plan& plan, std::int32_t pipeline_rank) {
  const v1::Training& training = plan.run.training();
  const States states = StatesOf(plan);
  const std::int64_t parameters = ParametersOf(plan, pipeline_rank);
  const std::int64_t owned = DivideRoundingUp(parameters, states.optimizer_shards);
  std::int64_t per_parameter = 0;
  if (states.gradient_bytes < kMasterBytes) per_parameter += states.gradient_bytes + kMasterBytes;  // to fp32
  if (training.precision() == v1::FP16) per_parameter += 2 * kMasterBytes;                          // unscale
  per_parameter += kMasterBytes;                                                                    // norm
  per_parameter += kMasterBytes + 2 * (1 + kMoments) * kMasterBytes;                                // update
  if (training.optimizer() == v1::LAMB) {
    // The first phase writes the update; norms read parameters and update; the second phase reads both and writes
    // parameters.
    per_parameter += kMasterBytes + 2 * kMasterBytes + 3 * kMasterBytes;
  }
  if (!states.fp32_parameters) per_parameter += kMasterBytes + states.weight_bytes;  // 16-bit copy
  OptimizerWork work;
  work.traffic = Bytes(owned * per_parameter +
                       DivideRoundingUp(parameters, states.gradient_shards) * states.gradient_bytes);  // clear
  // Tensors of a layer: two norms, and weight and bias of QKV, projection and both MLP matrices.
  constexpr std::int32_t kTensorsPerLayer = 12;
  constexpr std::int32_t kSteps = 6;  // convert, unscale, norm, update, copy, clear
  const auto layers = static_cast<std::int32_t>(std::max<std::int64_t>(1, LayersOf(plan, pipeline_rank)));
  work.kernels = plan.run.software().fused_optimizer() ? kSteps : kSteps * kTensorsPerLayer * layers;
  return work;
}

}  // namespace orrery::training
