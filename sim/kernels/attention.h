// Time of a fused attention kernel (FlashAttention; Dao et al. 2022, Dao 2023), causal, with or without a window.
//
// The kernel walks over blocks of B queries x B keys and skips those that the mask hides; blocks that it cuts are
// computed whole. A block of queries i sees min(i, ceil((w - 1) / B)) + 1 blocks of keys with a window of w, i + 1
// without. Per pair, batch and head: 4 d FLOPs forward, 10 d backward (five products instead of two), d being the head
// dimension padded to one that has a kernel.
//   time = FLOPs / (P e busy) + floor
//   e = efficiency (forward or backward) (min(d, D) / D)^x
// with D the head dimension of full efficiency, and busy = min(1, thread blocks / multiprocessors), one thread block
// per batch, head and block of queries. Loading the queries, filling the pipeline and writing the result cost a block
// of queries as much as half_length further keys, which count among its FLOPs: rows that see n keys on average reach n
// / (n + half_length) of e. A fixed cost per row keeps time monotone: neither a smaller window nor a shorter sequence
// is ever slower.
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

  // Blocks of B x B that are computed for one batch and head.
  static std::int64_t VisibleBlocks(std::int64_t q, std::int64_t kv, std::int64_t window, std::int64_t block);

 private:
  struct Dimension {
    std::int64_t head_dim = 0;
    double factor = 1;  // (min(d, D) / D)^x
  };

  std::int64_t sms_ = 1;
  double peak_ = 0;
  double forward_efficiency_ = 0;
  double backward_efficiency_ = 0;
  double half_length_ = 0;
  std::int64_t block_ = 1;
  std::vector<Dimension> dimensions_;  // ascending
};

}  // namespace orrery::kernels

#endif  // ORRERY_SIM_KERNELS_ATTENTION_H_
