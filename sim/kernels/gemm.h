// Time of C[m, n] = A[m, k] B[k, n] (`batch` times) on matrix units, by tiles and waves.
//
// A library kernel cuts C into tiles of tm x tn, and k into s parts if there are few tiles; each of the S
// multiprocessors computes one at a time, so that batch ceil(m/tm) ceil(n/tn) s of them take ceil(. / S) waves. With P
// the peak, one tile takes
//   tile = 2 tm tn (k / s) / (e P / S)
// at the tile's efficiency e. In the last wave a fraction u < 1 of the multiprocessors works, each faster (the chip is
// limited by power and by cache bandwidth):
//   e(u) = max(e, min(e (1 + gain (1 - u)), peak_efficiency))
// This is what makes time a staircase in m and n (NVIDIA, "Matrix multiplication background user's guide": wave
// quantization). Memory: every operand and result crosses the memory bus once, 2-byte elements; C that accumulates in
// fp32 is read and written in 4. A multiprocessor that stores its tile multiplies nothing meanwhile, so that a share x
// of the result's traffic R is exposed. With bandwidth W the kernel takes the longer of both sides; the library the
// tile and s for which that is shortest:
//   time = overhead + min over tiles, s of max(waves + x R / W, bytes / W) + (s > 1: partial sums, 8 s m n bytes / W)
// Shapes whose n or k is not a multiple of `alignment` use narrower loads: e misaligned_factor.
//
// Range: fitted for 16-bit operands (see the profile's sources). Ignored: operand re-reads that miss the cache, clocks
// over time.
#ifndef ORRERY_SIM_KERNELS_GEMM_H_
#define ORRERY_SIM_KERNELS_GEMM_H_

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "orrery/v1/cluster.pb.h"
#include "workloads/operator.h"

namespace orrery::kernels {

class GemmModel {
 public:
  // `peak` of the operands' type.
  GemmModel(const v1::Accelerator& accelerator, const v1::GemmProfile& profile, FlopsPerSecond peak,
            std::int64_t element_bytes);

  double Seconds(const workloads::Gemm& gemm) const;

 private:
  struct Tile {
    std::int64_t m = 0;
    std::int64_t n = 0;
    double efficiency = 0;
  };

  // Seconds of `tiles` tiles that take `one` second each at full rate.
  double Waves(std::int64_t tiles, double one, double efficiency) const;

  std::int64_t sms_ = 1;
  std::int64_t element_bytes_ = 2;
  double sm_flops_ = 0;          // peak of one multiprocessor, FLOP/s
  double memory_bandwidth_ = 0;  // achieved, bytes/s
  std::vector<Tile> tiles_;      // both orientations
  double partial_wave_gain_ = 0;
  double peak_efficiency_ = 1;
  double exposed_result_ = 0;
  std::int64_t max_split_k_ = 1;
  std::int64_t alignment_ = 1;
  double misaligned_factor_ = 1;
  double overhead_ = 0;  // seconds
};

}  // namespace orrery::kernels

#endif  // ORRERY_SIM_KERNELS_GEMM_H_
