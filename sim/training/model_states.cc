#include "sim/training/model_states.h"

#include <algorithm>

#include "base/check.h"

namespace orrery::training {
namespace {

constexpr std::int64_t kParameterBytes = 2;  // 16-bit copy used by the passes
constexpr std::int64_t kMasterBytes = 4;     // fp32 master copy, and each of Adam's or LAMB's two moments
constexpr std::int64_t kMoments = 2;

std::int64_t DivideRoundingUp(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t ParametersOf(const Plan& plan, std::int32_t pipeline_rank) {
  std::int64_t sum = 0;
  for (std::int32_t chunk = 0; chunk < plan.chunks; ++chunk) {
    sum += workloads::Parameters(plan.run, plan.Stage(pipeline_rank, chunk)).total();
  }
  return sum;
}

Bytes ActivationMessageBytes(const Plan& plan) {
  const std::int64_t whole =
      plan.run.training().seq_len() * plan.run.training().micro_batch() * plan.run.model().hidden() * kParameterBytes;
  return Bytes(plan.run.parallelism().sequence_parallel() ? whole / plan.tp : whole);
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

memory::Ledger StaticMemory(const Plan& plan, std::int32_t pipeline_rank) {
  const std::int64_t parameters = ParametersOf(plan, pipeline_rank);
  const std::int64_t gradient_bytes = BytesOf(plan.run.training().gradient_type());
  const std::int64_t zero_stage = plan.run.parallelism().zero_stage();
  memory::Ledger ledger;
  ledger.weights = Bytes(parameters * kParameterBytes);
  ledger.optimizer = Bytes(DivideRoundingUp(parameters, zero_stage >= 1 ? plan.dp : 1) * (1 + kMoments) * kMasterBytes);
  ledger.gradients = Bytes(DivideRoundingUp(parameters, zero_stage >= 2 ? plan.dp : 1) * gradient_bytes);
  if (zero_stage >= 2 && plan.dp > 1) {
    std::int64_t largest_bucket = 0;
    for (std::int32_t chunk = 0; chunk < plan.chunks; ++chunk) {
      const workloads::ChunkShape& shape = plan.Stage(pipeline_rank, chunk);
      largest_bucket = std::max(
          largest_bucket, workloads::Parameters(plan.run, shape).total() * gradient_bytes / BucketsOf(plan, shape));
    }
    ledger.buffers += Bytes(largest_bucket);
  }
  // One message received in each direction.
  if (plan.pp > 1) ledger.buffers += 2 * ActivationMessageBytes(plan);
  ledger.runtime =
      Bytes(static_cast<std::int64_t>(plan.run.cluster().accelerator().profile().runtime_memory().value()));
  return ledger;
}

OptimizerWork UpdateOf(const Plan& plan, std::int32_t pipeline_rank) {
  const v1::Training& training = plan.run.training();
  const std::int64_t parameters = ParametersOf(plan, pipeline_rank);
  const std::int64_t owned = DivideRoundingUp(parameters, plan.run.parallelism().zero_stage() >= 1 ? plan.dp : 1);
  const std::int64_t gradient_bytes = BytesOf(training.gradient_type());
  std::int64_t per_parameter = 0;
  if (gradient_bytes < kMasterBytes) per_parameter += gradient_bytes + kMasterBytes;  // to fp32
  if (training.precision() == v1::FP16) per_parameter += 2 * kMasterBytes;            // unscale
  per_parameter += kMasterBytes;                                                      // norm
  per_parameter += kMasterBytes + 2 * (1 + kMoments) * kMasterBytes;                  // update
  if (training.optimizer() == v1::LAMB) {
    // The first phase writes the update; norms read parameters and update; the second phase reads both and writes
    // parameters.
    per_parameter += kMasterBytes + 2 * kMasterBytes + 3 * kMasterBytes;
  }
  per_parameter += kMasterBytes + kParameterBytes;  // 16-bit copy
  OptimizerWork work;
  work.traffic = Bytes(owned * per_parameter + parameters * gradient_bytes);
  // Tensors of a layer: two norms, and weight and bias of QKV, projection and both MLP matrices.
  constexpr std::int32_t kTensorsPerLayer = 12;
  constexpr std::int32_t kSteps = 6;  // convert, unscale, norm, update, copy, clear
  const auto layers = static_cast<std::int32_t>(plan.run.model().layers() / plan.pp);
  work.kernels = plan.run.software().fused_optimizer() ? kSteps : kSteps * kTensorsPerLayer * layers;
  return work;
}

}  // namespace orrery::training
