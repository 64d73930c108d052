#include "sim/memory/ledger.h"

namespace orrery::memory {
namespace {

Bytes& ClassOf(Live& live, workloads::ActivationClass activation_class) {
  return activation_class == workloads::ActivationClass::kLogits ? live.logits : live.activations;
}

}  // namespace

PassFootprint FootprintOf(std::span<const workloads::Operator> pass) {
  PassFootprint footprint;
  Live& live = footprint.left;
  for (const workloads::Operator& op : pass) {
    ClassOf(live, op.activation_class) += op.allocates;
    Live now = live;
    now.activations += op.workspace;
    if (now.total() > footprint.peak.total()) {
      footprint.peak = now;
      footprint.peak_operator = op.name;
      footprint.peak_layer = op.layer;
    }
    ClassOf(live, op.activation_class) -= op.frees;
  }
  return footprint;
}

Peak PeakOf(std::span<const PassFootprint* const> passes) {
  Peak peak;
  Live live;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const Live highest = live + passes[i]->peak;
    if (highest.total() > peak.live.total()) peak = {highest, i};
    live = live + passes[i]->left;
  }
  return peak;
}

}  // namespace orrery::memory
