#include "sim/training/pass_prices.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "sim/training/slowness.h"

namespace orrery::training {
namespace {

using workloads::Operator;
using workloads::OperatorKind;
using workloads::Pass;

collectives::CollectiveType TypeOf(workloads::CollectiveType type) {
  switch (type) {
    case workloads::CollectiveType::kAllReduce:
      return collectives::CollectiveType::kAllReduce;
    case workloads::CollectiveType::kReduceScatter:
      return collectives::CollectiveType::kReduceScatter;
    case workloads::CollectiveType::kAllGather:
      return collectives::CollectiveType::kAllGather;
    case workloads::CollectiveType::kBroadcast:
      return collectives::CollectiveType::kBroadcast;
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
    PricedOperator priced;
    priced.name = op.name;
    priced.kernels = op.kernels;
    priced.layer = op.layer;
    if (op.kind == OperatorKind::kCollective) {
      if (tp_group.ranks <= 1) continue;
      priced.is_collective = true;
      priced.time_class = engine::TimeClass::kExposedTp;
      priced.duration = TimeFromSeconds(ExposedSeconds(operators, i, part, tp_group));
      priced.lead = TimeFromSeconds(unsynchronised * expected_slowness);
      unsynchronised = 0;
    } else {
      const double seconds = KernelSeconds(op);
      priced.duration = TimeFromSeconds(seconds * slowness);
      pass.compute += priced.duration;
      unsynchronised += seconds;
    }
    pass.operators.push_back(priced);
  }
  return pass;
}

double PassPricer::KernelSeconds(const Operator& op) const {
  return plan_.Without(v1::CAUSE_KERNEL_EFFICIENCY) ? kernels_.SecondsAtPeak(op) : kernels_.Seconds(op);
}

// A collective that runs beside a GEMM shows only what that GEMM does not cover. Cut into n chunks, the first of which
// cannot start before its data exist, the pair takes max + min / n; beside an independent kernel it takes max.
double PassPricer::ExposedSeconds(const std::vector<Operator>& operators, std::size_t index, PassPart part,
                                  const layout::Placement& tp_group) const {
  if (plan_.Without(v1::CAUSE_EXPOSED_TP)) return 0;
  const Operator& op = operators[index];
  const double transfer = collectives_.Seconds(TypeOf(op.collective.type), op.collective.bytes, tp_group);
  if (op.collective.overlaps == 0) return transfer;
  const std::int64_t beside = static_cast<std::int64_t>(index) + op.collective.overlaps;
  ORRERY_CHECK(beside >= 0 && beside < static_cast<std::int64_t>(operators.size()));
  const Operator& neighbour = operators[static_cast<std::size_t>(beside)];
  if (!InPart(neighbour, part)) return transfer;
  const double compute = KernelSeconds(neighbour);
  double together = std::max(transfer, compute);
  if (plan_.run.software().tp_overlap()) {
    together += std::min(transfer, compute) / static_cast<double>(plan_.run.software().tp_overlap_chunks());
  }
  return together - compute;
}

}  // namespace orrery::training
