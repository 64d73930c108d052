#include "sim/kernels/gemm.h"

#include <algorithm>
#include <limits>

namespace orrery::kernels {
namespace {

std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

double Product(std::int64_t a, std::int64_t b) { return static_cast<double>(a) * static_cast<double>(b); }

}  // namespace

std::int64_t OperandBytes(v1::DataType type) {
  switch (type) {
    case v1::FP32:
      return 4;
    case v1::FP8:
      return 1;
    default:
      return 2;
  }
}

GemmModel::GemmModel(const v1::Accelerator& accelerator, const v1::GemmProfile& profile, FlopsPerSecond peak,
                     std::int64_t operand_bytes)
    : sms_(accelerator.sms()), operand_bytes_(static_cast<double>(operand_bytes)) {
  result_bytes_ = std::max(2.0, operand_bytes_);
  memory_bandwidth_ = accelerator.memory_bandwidth() * profile.memory_efficiency().value();
  const double sm_flops = peak.count() / static_cast<double>(sms_);
  const auto load = [&](std::int64_t m, std::int64_t n) {
    return 1 + profile.operand_reload().value() * (1 / static_cast<double>(m) + 1 / static_cast<double>(n));
  };
  double least = std::numeric_limits<double>::infinity();
  for (const v1::GemmTile& tile : profile.tile()) least = std::min(least, load(tile.m(), tile.n()));
  const auto add = [&](std::int64_t m, std::int64_t n) {
    const double efficiency = profile.efficiency().value() * least / load(m, n);
    const double boost = std::max(1.0, profile.peak_efficiency().value() / efficiency);
    tiles_.push_back({m, n, 2 * Product(m, n) / (sm_flops * efficiency), boost});
  };
  for (const v1::GemmTile& tile : profile.tile()) {
    add(tile.m(), tile.n());
    if (tile.m() != tile.n()) add(tile.n(), tile.m());
  }
  first_wave_gain_ = profile.first_wave_gain().value();
  exposed_share_ = profile.exposed_share().value();
  wave_overhead_ = profile.wave_overhead().value();
  max_split_k_ = static_cast<std::int64_t>(profile.max_split_k().value());
  k_step_ = static_cast<std::int64_t>(profile.k_step().value());
  alignment_ = static_cast<std::int64_t>(profile.alignment().value());
  misaligned_factor_ = profile.misaligned_factor().value();
  misaligned_batch_factor_ = profile.misaligned_batch_factor().value();
  overhead_ = profile.overhead().value();
}

double GemmModel::Waves(std::int64_t tiles, double one, double boost) const {
  const double waves = std::max(1.0, static_cast<double>(tiles) / static_cast<double>(sms_));
  const double faster = std::min(1 + first_wave_gain_ / waves, boost);
  return static_cast<double>(CeilDiv(tiles, sms_)) * (one / faster + wave_overhead_);
}

GemmModel::Cost GemmModel::Fastest(const workloads::Gemm& gemm) const {
  const bool aligned = gemm.n % alignment_ == 0 && gemm.k % alignment_ == 0;
  const double slower = aligned ? 1 : 1 / (gemm.batch > 1 ? misaligned_batch_factor_ : misaligned_factor_);
  const double results = static_cast<double>(gemm.batch) * Product(gemm.m, gemm.n);
  const double operands = static_cast<double>(gemm.batch) * (Product(gemm.m, gemm.k) + Product(gemm.k, gemm.n));
  const double memory =
      (results * (gemm.accumulates_fp32 ? 8 : result_bytes_) + operands * operand_bytes_) / memory_bandwidth_;
  const double partial_sums = results * 8 / memory_bandwidth_;
  Cost best{.seconds = std::numeric_limits<double>::infinity()};
  for (const Tile& tile : tiles_) {
    const std::int64_t tiles = gemm.batch * CeilDiv(gemm.m, tile.m) * CeilDiv(gemm.n, tile.n);
    for (std::int64_t split = 1; split <= max_split_k_; split *= 2) {
      // Libraries cut k only to fill multiprocessors that would idle.
      if (split > 1 && tiles * split > 2 * sms_) break;
      const std::int64_t depth = CeilDiv(CeilDiv(gemm.k, split), k_step_) * k_step_;
      const double compute = Waves(tiles * split, slower * tile.step * static_cast<double>(depth), tile.boost);
      double seconds = std::max(compute, memory) + exposed_share_ * std::min(compute, memory);
      if (split > 1) seconds += static_cast<double>(split) * partial_sums;
      if (seconds < best.seconds) best = {.seconds = seconds, .is_memory_bound = memory > compute};
    }
  }
  best.seconds += overhead_;
  return best;
}

}  // namespace orrery::kernels
