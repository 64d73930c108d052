#include "sim/training/pass_prices.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/check.h"
#include "sim/training/communication.h"
#include "sim/training/slowness.h"

namespace orrery::training {
namespace {

using workloads::Operator;
using workloads::OperatorKind;
using workloads::Pass;

collectives::nccl::Operation OperationOf(workloads::CollectiveType type) {
  switch (type) {
    case workloads::CollectiveType::kAllReduce:
      return collectives::nccl::Operation::kAllReduce;
    case workloads::CollectiveType::kReduceScatter:
      return collectives::nccl::Operation::kReduceScatter;
    case workloads::CollectiveType::kAllGather:
      return collectives::nccl::Operation::kAllGather;
    case workloads::CollectiveType::kBroadcast:
      return collectives::nccl::Operation::kBroadcast;
  }
  ORRERY_CHECK(false);
}

}  // namespace

PassPricer::PassPricer(const Plan& plan, const kernels::KernelPrices& kernels,
                       const collectives::CollectivePrices& collectives)
    : plan_(plan), kernels_(kernels), collectives_(collectives) {}

PricedChunk PassPricer::Price(const workloads::ChunkWork& work, const layout::Placement& tp_group,
                              double slowness) const {
  PricedChunk chunk;
  chunk.forward = PricePass(work.forward, PassPart::kWhole, tp_group, slowness);
  chunk.backward = PricePass(work.backward, PassPart::kWhole, tp_group, slowness);
  chunk.input_gradient = PricePass(work.backward, PassPart::kInputGradient, tp_group, slowness);
  chunk.weight_gradient = PricePass(work.backward, PassPart::kWeightGradient, tp_group, slowness);
  return chunk;
}

bool PassPricer::InPart(const Operator& op, PassPart part) {
  return part == PassPart::kWhole || (op.pass == Pass::kWeightGradient) == (part == PassPart::kWeightGradient);
}

PricedPass PassPricer::PricePass(const std::vector<Operator>& operators, PassPart part,
                                 const layout::Placement& tp_group, double slowness) const {
  PricedPass pass;
  std::vector<Operator> selected;
  std::copy_if(operators.begin(), operators.end(), std::back_inserter(selected),
               [&](const Operator& op) { return InPart(op, part); });
  pass.footprint = memory::FootprintOf(selected);
  pass.operators.reserve(operators.size());
  const double expected_slowness = ExpectedSlowness(plan_, tp_group.ranks);
  double unsynchronised = 0;  // nominal compute since the group last met: all members expect the same wait
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const Operator& op = operators[i];
    if (!InPart(op, part)) continue;
    if (op.pass == Pass::kRecompute && plan_.Without(v1::CAUSE_RECOMPUTE)) continue;
    if (NeedsConversion(op, i == 0 ? nullptr : &operators[i - 1])) {
      double seconds = 0;
      pass.operators.push_back(Conversion(op.layer, slowness, &seconds));
      pass.operators.back().kind = op.pass == Pass::kForward ? kForwardMemory : kBackwardMemory;
      pass.compute += pass.operators.back().duration;
      unsynchronised += seconds;
    }
    PricedOperator priced;
    priced.name = op.name;
    priced.kernels = op.kernels;
    priced.layer = op.layer;
    if (op.kind == OperatorKind::kCollective) {
      if (tp_group.ranks <= 1) continue;
      priced.is_collective = true;
      priced.time_class = engine::TimeClass::kExposedTp;
      const Communication exposed = CommunicationOf(plan_, Exposed(operators, i, part, tp_group));
      priced.duration = exposed.duration;
      priced.progress = exposed.progress;
      priced.footprint = exposed.footprint;
      priced.lead = TimeFromSeconds(unsynchronised * expected_slowness);
      unsynchronised = 0;
    } else {
      const double seconds = KernelSeconds(op);
      priced.duration = TimeFromSeconds(seconds * slowness);
      priced.kind = KindOf(op);
      pass.compute += priced.duration;
      unsynchronised += seconds;
    }
    pass.operators.push_back(priced);
  }
  return pass;
}

KernelKind PassPricer::KindOf(const Operator& op) const {
  if (!plan_.overlaps_dynamically()) return kNotSlowed;
  const bool memory = kernels_.IsMemoryBound(op);
  if (op.pass == Pass::kForward) return memory ? kForwardMemory : kForwardMatrix;
  return memory ? kBackwardMemory : kBackwardMatrix;
}

bool PassPricer::converts() const {
  return plan_.run.software().fp32_parameters() && plan_.run.training().precision() != v1::FP32;
}

double PassPricer::ConversionSeconds(std::int64_t parameters, int kernels) const {
  constexpr std::int64_t kReadAndWritten = 4 + 2;  // bytes of a parameter
  Operator op;
  op.kind = OperatorKind::kMemoryBound;
  op.kernels = kernels;
  // Like an update: nothing of it is in a cache.
  op.memory_bound = {.memory_class = workloads::MemoryBoundClass::kOptimizer,
                     .traffic = Bytes(parameters * kReadAndWritten)};
  return KernelSeconds(op);
}

// Autocast: a micro-batch's forward pass converts every matrix before its first use and keeps it for the backward pass;
// layers that are computed again convert again. ZeRO-3 converts shards instead (sharded_units.h). A lookup in the
// embedding table converts nothing, the head's product its matrix.
bool PassPricer::NeedsConversion(const Operator& op, const Operator* before) const {
  if (!converts() || plan_.gathers_units()) return false;
  const bool again = op.pass == Pass::kRecompute && plan_.run.training().recompute() == v1::FULL;
  if (op.pass != Pass::kForward && !again) return false;
  if (op.layer < 0) return op.kind == OperatorKind::kGemm;
  return before == nullptr || before->layer != op.layer;
}

PricedOperator PassPricer::Conversion(std::int32_t layer, double slowness, double* seconds) const {
  const v1::Model& model = plan_.run.model();
  std::int64_t parameters = workloads::PaddedVocabulary(plan_.run) / plan_.tp * model.hidden();
  int kernels = 1;
  if (layer >= 0) {
    const workloads::ChunkShape one_layer = {.layers = 1, .embedding = false, .head = false};
    parameters = workloads::Parameters(plan_.run, one_layer).total();
    const int matrices = model.gated_mlp() ? 5 : 4;  // QKV, projection, MLP up, MLP gate, MLP down
    kernels = model.biases() ? 2 * matrices : matrices;
  }
  *seconds = ConversionSeconds(parameters, kernels);
  PricedOperator priced;
  priced.name = "convert weights";
  priced.duration = TimeFromSeconds(*seconds * slowness);
  priced.kernels = kernels;
  priced.layer = layer;
  return priced;
}

double PassPricer::KernelSeconds(const Operator& op) const {
  return plan_.Without(v1::CAUSE_KERNEL_EFFICIENCY) ? kernels_.SecondsAtPeak(op) : kernels_.Seconds(op);
}

// A collective that runs beside a GEMM shows only what that GEMM does not cover. Cut into n chunks, the first of which
// cannot start before its data exist, the pair takes max + min / n; beside an independent kernel it takes max.
collectives::Price PassPricer::Exposed(const std::vector<Operator>& operators, std::size_t index, PassPart part,
                                       const layout::Placement& tp_group) const {
  if (plan_.Without(v1::CAUSE_EXPOSED_TP)) return {};
  const Operator& op = operators[index];
  const collectives::Price transfer =
      collectives_.PriceOf(OperationOf(op.collective.type), op.collective.bytes, tp_group);
  if (op.collective.overlaps == 0) return transfer;
  const std::int64_t beside = static_cast<std::int64_t>(index) + op.collective.overlaps;
  ORRERY_CHECK(beside >= 0 && beside < static_cast<std::int64_t>(operators.size()));
  const Operator& neighbour = operators[static_cast<std::size_t>(beside)];
  if (!InPart(neighbour, part)) return transfer;
  const double compute = KernelSeconds(neighbour);
  double together = std::max(transfer.seconds, compute);
  if (plan_.run.software().tp_overlap()) {
    together += std::min(transfer.seconds, compute) / static_cast<double>(plan_.run.software().tp_overlap_chunks());
  }
  // What hides loads nothing: its bytes go with its time.
  collectives::Price exposed = transfer;
  exposed.seconds = together - compute;
  exposed.progress = std::min(transfer.progress, exposed.seconds);
  if (transfer.progress > 0) {
    exposed.footprint.bytes =
        std::llround(static_cast<double>(transfer.footprint.bytes) * exposed.progress / transfer.progress);
  }
  return exposed;
}

}  // namespace orrery::training
