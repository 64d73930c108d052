// Time of a fused attention kernel (FlashAttention; Dao et al. 2022, Dao 2023, Shah et al. 2024), with or without a
// causal mask and a window.
//
// The kernel walks over blocks of B queries x B keys and skips those that the mask hides; blocks that it cuts are
// computed whole. A block of queries i sees min(i, ceil((w - 1) / B)) + 1 blocks of keys with a causal mask and a
// window of w, i + 1 without a window, all of them without a mask. On one of S multiprocessors a key takes a block of
// queries
//   tau = B (d + s) f / (P / S e g^log2(d / 128))      f = 4 forward, 10 backward; without g for d <= 128
// d being the head dimension padded to one that has a kernel: two products of 2 d FLOPs per score forward, five
// backward; g is wide_factor. s is what the softmax adds, counted in elements of the head dimension: its exponentials
// are bound by other units than the products and hide behind them only in part, which is why small heads are slower. A
// score needs one exponential in either direction, so backward, with five products for two, s weighs 2 / 5. A row of
// blocks that sees n keys takes
//   r = tau (n / c + h)
// where c < 1 with a causal mask only, and h (half_length, of its own for backward) is start and end of a row: rows
// that see n keys reach n / (n + h) of the rate. All rows, W seconds of them, are handed out one by one as
// multiprocessors become free; the last to finish is half a row late on average, and equal rows take whole waves at
// most:
//   time = max(r_max, min(W / S + r_max / 2, ceil(rows / S) r_max))
// Few rows leave multiprocessors idle. Time is monotone: neither a smaller window nor a shorter sequence is slower.
//
// Not modelled: cutting the keys of one row over multiprocessors (decoding), dropout, ALiBi, keys and values that
// several heads share (they come from the cache: time is that of as many heads of their own).
#ifndef ORRERY_SIM_KERNELS_ATTENTION_H_
#define ORRERY_SIM_KERNELS_ATTENTION_H_

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "orrery/v1/cluster.pb.h"
#include "workloads/operator.h"

namespace orrery::kernels {

// One kernel generation on one accelerator.
class AttentionModel {
 public:
  AttentionModel(const v1::AttentionProfile& profile, std::int64_t sms, FlopsPerSecond peak);

  // Without the launch floor.
  double Seconds(const workloads::Attention& attention) const;

  // Blocks of B x B that are computed for one batch and head, with a causal mask.
  static std::int64_t VisibleBlocks(std::int64_t q, std::int64_t kv, std::int64_t window, std::int64_t block);

 private:
  struct Direction {
    double key_seconds = 0;    // tau of one element of width: B f / (P / S e)
    double softmax_width = 0;  // elements
    double half_length = 0;    // tokens
  };
  struct Dimension {
    std::int64_t head_dim = 0;
    double slowdown = 1;  // 1 / g^log2(d / 128)
  };

  double sms_ = 1;
  std::int64_t block_ = 1;
  double causal_efficiency_ = 1;
  Direction forward_;
  Direction backward_;
  std::vector<Dimension> dimensions_;  // ascending
};

}  // namespace orrery::kernels

#endif  // ORRERY_SIM_KERNELS_ATTENTION_H_
