#include "sim/kernels/attention.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"

namespace orrery::kernels {
namespace {

// Products of two FLOPs per score and element.
constexpr double kForwardFlops = 4;
constexpr double kBackwardFlops = 10;
// Widest head whose blocks fit a multiprocessor as the kernels' authors chose them for narrow ones.
constexpr std::int64_t kFullHeadDim = 128;

std::int64_t CeilDiv(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

AttentionModel::AttentionModel(const v1::AttentionProfile& profile, std::int64_t sms, FlopsPerSecond peak)
    : sms_(static_cast<double>(sms)),
      block_(static_cast<std::int64_t>(profile.block().value())),
      causal_efficiency_(profile.causal_efficiency().value()) {
  const double per_flop = static_cast<double>(block_) * sms_ / peak.count();
  const double width = profile.softmax_width().value();
  forward_ = {kForwardFlops * per_flop / profile.forward_efficiency().value(), width, profile.half_length().value()};
  backward_ = {kBackwardFlops * per_flop / profile.backward_efficiency().value(),
               width * (kForwardFlops / kBackwardFlops), profile.backward_half_length().value()};
  const double exponent = -Log(profile.wide_factor().value()) / Log(2);
  for (const std::int64_t head_dim : profile.head_dims()) {
    const double ratio = static_cast<double>(std::max(head_dim, kFullHeadDim)) / static_cast<double>(kFullHeadDim);
    dimensions_.push_back({head_dim, Pow(ratio, exponent)});
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
  const Direction& direction = attention.backward ? backward_ : forward_;
  const double width = static_cast<double>(std::max(dimension->head_dim, attention.head_dim)) + direction.softmax_width;
  const double key_seconds = direction.key_seconds * width * dimension->slowdown;

  const std::int64_t rows = CeilDiv(attention.q, block_);
  const std::int64_t columns = CeilDiv(attention.kv, block_);
  std::int64_t visible = rows * columns;  // blocks over all rows
  std::int64_t longest = columns;         // of one row
  double efficiency = 1;
  if (attention.causal) {
    visible = VisibleBlocks(attention.q, attention.kv, attention.window, block_);
    if (attention.window > 0) longest = std::min(columns, CeilDiv(attention.window - 1, block_) + 1);
    efficiency = causal_efficiency_;
  }
  const double block_keys = static_cast<double>(block_) / efficiency;
  const double problems = static_cast<double>(attention.batch) * static_cast<double>(attention.heads);
  const double all_keys = static_cast<double>(visible) * block_keys + static_cast<double>(rows) * direction.half_length;
  const double work = problems * all_keys * key_seconds / sms_;
  const double last = (static_cast<double>(longest) * block_keys + direction.half_length) * key_seconds;
  const double waves = std::ceil(problems * static_cast<double>(rows) / sms_);
  return std::max(last, std::min(work + last / 2, waves * last));
}

}  // namespace orrery::kernels
