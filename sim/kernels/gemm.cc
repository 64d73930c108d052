#include "sim/kernels/gemm.h"

#include <algorithm>
#include <limits>

namespace orrery::kernels {
namespace {

std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

double Product(std::int64_t a, std::int64_t b) { return static_cast<double>(a) * static_cast<double>(b); }

}  // namespace

GemmModel::GemmModel(const v1::Accelerator& accelerator, const v1::GemmProfile& profile, FlopsPerSecond peak,
                     std::int64_t element_bytes)
    : sms_(accelerator.sms()), element_bytes_(element_bytes) {
  sm_flops_ = peak.count() / static_cast<double>(sms_);
  memory_bandwidth_ = accelerator.memory_bandwidth() * profile.memory_efficiency().value();
  for (const v1::GemmTile& tile : profile.tile()) {
    tiles_.push_back({tile.m(), tile.n(), tile.efficiency().value()});
    if (tile.m() != tile.n()) tiles_.push_back({tile.n(), tile.m(), tile.efficiency().value()});
  }
  partial_wave_gain_ = profile.partial_wave_gain().value();
  peak_efficiency_ = profile.peak_efficiency().value();
  exposed_result_ = profile.exposed_result().value();
  max_split_k_ = static_cast<std::int64_t>(profile.max_split_k().value());
  alignment_ = static_cast<std::int64_t>(profile.alignment().value());
  misaligned_factor_ = profile.misaligned_factor().value();
  overhead_ = profile.overhead().value();
}

double GemmModel::Waves(std::int64_t tiles, double one, double efficiency) const {
  const std::int64_t full = tiles / sms_;
  const std::int64_t rest = tiles % sms_;
  double seconds = static_cast<double>(full) * one / efficiency;
  if (rest > 0) {
    const double idle = 1 - static_cast<double>(rest) / static_cast<double>(sms_);
    const double faster = std::min(efficiency * (1 + partial_wave_gain_ * idle), peak_efficiency_);
    seconds += one / std::max(efficiency, faster);
  }
  return seconds;
}

double GemmModel::Seconds(const workloads::Gemm& gemm) const {
  const bool aligned = gemm.n % alignment_ == 0 && gemm.k % alignment_ == 0;
  const auto batch = static_cast<double>(gemm.batch);
  const auto element = static_cast<double>(element_bytes_);
  const double result = batch * Product(gemm.m, gemm.n) * (gemm.accumulates_fp32 ? 8 : element) / memory_bandwidth_;
  const double operands = batch * (Product(gemm.m, gemm.k) + Product(gemm.k, gemm.n)) * element / memory_bandwidth_;
  const double partial_sums = batch * Product(gemm.m, gemm.n) * 8 / memory_bandwidth_;
  double best = std::numeric_limits<double>::infinity();
  for (const Tile& tile : tiles_) {
    const double efficiency = aligned ? tile.efficiency : tile.efficiency * misaligned_factor_;
    const std::int64_t tiles = gemm.batch * CeilDiv(gemm.m, tile.m) * CeilDiv(gemm.n, tile.n);
    for (std::int64_t split = 1; split <= max_split_k_; split *= 2) {
      // Libraries cut k only to fill multiprocessors that would idle.
      if (split > 1 && tiles * split > 2 * sms_) break;
      const double one = 2 * Product(tile.m, tile.n) * static_cast<double>(CeilDiv(gemm.k, split)) / sm_flops_;
      const double compute = Waves(tiles * split, one, efficiency) + exposed_result_ * result;
      double seconds = std::max(compute, operands + result);
      if (split > 1) seconds += static_cast<double>(split) * partial_sums;
      best = std::min(best, seconds);
    }
  }
  return best + overhead_;
}

}  // namespace orrery::kernels
