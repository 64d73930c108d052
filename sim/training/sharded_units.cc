#include "sim/training/sharded_units.h"

#include <algorithm>

#include "base/check.h"

namespace orrery::training {

using engine::kNoEvent;
using engine::Op;
using engine::TimeClass;
using schedules::ActionKind;

ShardedUnits::ShardedUnits(const Plan& plan, const RolePrices& prices, ProgramWriter& writer, GradientReducer& reducer)
    : plan_(plan),
      prices_(prices),
      writer_(writer),
      reducer_(reducer),
      ahead_(plan.run.software().gather_ahead()),
      holdings_(static_cast<std::size_t>(plan.Stage(prices.pipeline_rank, 0).layers) + 1) {
  ORRERY_CHECK(plan.pp == 1 && plan.chunks == 1);
}

// Operators of one unit in a row are one stretch.
std::vector<ShardedUnits::Use> ShardedUnits::UsesOf(const PricedPass& pass) {
  std::vector<Use> uses;
  std::int32_t layers = 0;
  for (std::size_t i = 0; i < pass.operators.size(); ++i) {
    const std::int32_t unit = std::max(kRoot, pass.operators[i].layer);
    if (uses.empty() || uses.back().unit != unit) {
      if (unit != kRoot) ++layers;
      uses.push_back({.unit = unit, .stretch = {i, i}, .layers = layers});
    }
    uses.back().stretch.end = i + 1;
  }
  return uses;
}

// What the gather for a use of a layer waits for.
std::int32_t ShardedUnits::LimitOf(std::size_t layer_use) const {
  if (ahead_ == 0) return last_end_ == kNoEvent ? begin_event_ : last_end_;
  const auto distance = static_cast<std::size_t>(ahead_) + 1;
  return layer_use < distance ? begin_event_ : layer_ends_[layer_use - distance];
}

void ShardedUnits::Gather(std::int32_t unit, std::int32_t waits, double factor) {
  const UnitPrices& prices = unit == kRoot ? prices_.root : prices_.layer;
  const std::int32_t tag = writer_.Label({.role = OpRole::kParameterGather, .chunk = 0, .layer = unit});
  if (prices.conversion > Time()) {
    Op convert = writer_.Local(kDataParallel, tag, TimeClass::kCompute, prices.conversion, 1);
    convert.waits[0] = waits;
    writer_.Add(convert);
  }
  Op gather = writer_.Collective(kDataParallel, tag, kDataGroup, Scaled(prices.gather, factor), TimeClass::kExposedDp,
                                 TimeClass::kWaitDp);
  gather.waits[0] = waits;
  Holding& holding = Of(unit);
  gather.records = holding.gathered = writer_.NewEvent();
  holding.held = true;
  writer_.Add(gather);
}

void ShardedUnits::Reduce(std::int32_t unit, std::int32_t ready, const ShardedPass& what) {
  const UnitPrices& prices = unit == kRoot ? prices_.root : prices_.layer;
  reducer_.Beside(prices.reduction, {.role = OpRole::kGradientReduction, .chunk = 0, .layer = unit}, ready,
                  what.communication_factor);
}

void ShardedUnits::RunPass(const PricedPass& pass, const ShardedPass& what, const PassEnds& ends) {
  const std::vector<Use> uses = UsesOf(pass);
  const bool forward = what.kind == ActionKind::kForward;
  const bool needs_parameters = what.kind != ActionKind::kWeightGradient;
  const bool makes_gradients = !forward && what.kind != ActionKind::kInputGradient;
  const bool keeps_layers = !plan_.run.software().reshard_after_forward();
  const bool drops_layers = forward ? !keeps_layers : what.reduces || !keeps_layers;
  if (needs_parameters && !Of(kRoot).held) {
    Gather(kRoot, last_end_ == kNoEvent ? begin_event_ : last_end_, what.communication_factor);
  }
  const std::size_t first_layer_use = layer_ends_.size();
  std::size_t next = 0;  // use whose parameters have not been seen to
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const Use& use = uses[i];
    for (; needs_parameters && next < uses.size() && (next <= i || uses[next].layers <= use.layers + ahead_); ++next) {
      if (uses[next].unit == kRoot || Of(uses[next].unit).held) continue;
      Gather(uses[next].unit, LimitOf(first_layer_use + static_cast<std::size_t>(uses[next].layers) - 1),
             what.communication_factor);
    }
    PassEnds piece;
    if (i == 0) piece = {.waits = ends.waits, .receives = ends.receives, .sends = {}};
    if (i + 1 == uses.size()) piece.sends = ends.sends;
    if (needs_parameters) {
      piece.AddWait(Of(use.unit).gathered);
      Of(use.unit).gathered = kNoEvent;
    }
    piece.records = last_end_ = writer_.NewEvent();
    writer_.AddPass(pass, use.stretch, what.tag, what.compute_factor, piece);
    if (use.unit == kRoot) continue;
    if (needs_parameters) {
      layer_ends_.push_back(last_end_);
      if (drops_layers) Of(use.unit).held = false;
    }
    if (makes_gradients && what.reduces) Reduce(use.unit, last_end_, what);
  }
  if (makes_gradients && what.reduces) Reduce(kRoot, last_end_, what);
  if (!forward && needs_parameters && (what.reduces || !keeps_layers)) Of(kRoot).held = false;
}

}  // namespace orrery::training
