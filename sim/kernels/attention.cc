#include "sim/kernels/attention.h"

#include <algorithm>

#include "base/math.h"

namespace orrery::kernels {
namespace {

std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

AttentionModel::AttentionModel(const v1::AttentionProfile& profile, std::int64_t sms, FlopsPerSecond peak)
    : sms_(sms),
      peak_(peak.count()),
      forward_efficiency_(profile.forward_efficiency().value()),
      backward_efficiency_(profile.backward_efficiency().value()),
      half_length_(profile.half_length().value()),
      block_(static_cast<std::int64_t>(profile.block().value())) {
  const double full = profile.full_head_dim().value();
  for (const std::int64_t head_dim : profile.head_dims()) {
    const double ratio = std::min(static_cast<double>(head_dim), full) / full;
    dimensions_.push_back({head_dim, Pow(ratio, profile.head_dim_exponent().value())});
  }
  std::sort(dimensions_.begin(), dimensions_.end(),
            [](const Dimension& a, const Dimension& b) { return a.head_dim < b.head_dim; });
}

std::int64_t AttentionModel::VisibleBlocks(std::int64_t q, std::int64_t kv, std::int64_t window, std::int64_t block) {
  const std::int64_t rows = CeilDiv(q, block);
  const std::int64_t columns = CeilDiv(kv, block);
  const std::int64_t before = columns - rows;  // blocks of keys that precede the first query
  const std::int64_t reach = window == 0 ? columns : std::min(CeilDiv(window - 1, block), columns);
  // Row i sees min(before + i, reach) + 1 blocks: a ramp, then a band.
  const std::int64_t ramp = std::clamp<std::int64_t>(reach - before, 0, rows);
  return ramp * before + ramp * (ramp - 1) / 2 + (rows - ramp) * reach + rows;
}

double AttentionModel::Seconds(const workloads::Attention& attention) const {
  // Past the largest dimension with a kernel there is none to pad to: the largest one's rate is taken for the real
  // width.
  auto dimension =
      std::lower_bound(dimensions_.begin(), dimensions_.end(), attention.head_dim,
                       [](const Dimension& entry, std::int64_t head_dim) { return entry.head_dim < head_dim; });
  if (dimension == dimensions_.end()) --dimension;
  const auto width = static_cast<double>(std::max(dimension->head_dim, attention.head_dim));

  const double problems = static_cast<double>(attention.batch) * static_cast<double>(attention.heads);
  const auto rows = static_cast<double>(CeilDiv(attention.q, block_));
  const auto block = static_cast<double>(block_);
  const auto visible = static_cast<double>(VisibleBlocks(attention.q, attention.kv, attention.window, block_)) * block;
  const double keys = visible + rows * half_length_;  // over all rows of blocks, their starts included
  const double flops = problems * block * keys * width * (attention.backward ? 10 : 4);

  const double busy = std::min(1.0, problems * rows / static_cast<double>(sms_));
  const double efficiency = (attention.backward ? backward_efficiency_ : forward_efficiency_) * dimension->factor;
  return flops / (peak_ * efficiency * busy);
}

}  // namespace orrery::kernels
