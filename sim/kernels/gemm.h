// Time of C[m, n] = A[m, k] B[k, n] (`batch` times) on matrix units, by tiles and waves.
//
// A library kernel cuts C into tiles of tm x tn, and k into s parts if there are few tiles; each of the S
// multiprocessors computes one at a time, so that T = batch ceil(m/tm) ceil(n/tn) s of them take ceil(T / S) waves.
// With P the peak and k' = k / s, filled up to a multiple of `k_step`, one tile takes
//   tile = 2 tm tn k' / (e P / S),   e = efficiency (1 + operand_reload r_least) / (1 + operand_reload r)
// with r = 1/tm + 1/tn and r_least that of the largest tile: a tile loads tm + tn elements for every tm tn
// multiplications, and a small one waits for the cache. A kernel of few waves ends before the power limit lowers the
// clock: with w = max(1, T / S) waves
//   e(w) = max(e, min(e (1 + first_wave_gain / w), peak_efficiency))
//   waves = ceil(T / S) (tile at e(w) + wave_overhead)
// That all of a wave is paid makes time a staircase in m and n (NVIDIA, "Matrix multiplication background user's
// guide": wave quantization). Memory: every operand and result crosses the memory bus once, in `bytes` = (operands +
// result) / W at the achieved bandwidth W; C that accumulates in fp32 is read and written in 4 bytes an element.
// Multiplications and traffic hide each other but for a share x, `exposed_share`. The library takes the tile and s that
// are fastest:
//   time = overhead + min over tiles, s of max(waves, bytes) + x min(waves, bytes) + (s > 1: partial sums, 8 s m n / W)
// Shapes whose n or k is not a multiple of `alignment` use narrower loads: e misaligned_factor; a batch of them leaves
// the matrix units: e misaligned_batch_factor.
//
// Range: fitted for kernels of 20 us to 20 ms (see the profile's sources). Ignored: operands that are still in the
// cache from the kernel before, which makes kernels of few us up to twice as fast; which operand a transposition
// misaligns; the wrong choices of a library, which cost single shapes up to half of their speed.
#ifndef ORRERY_SIM_KERNELS_GEMM_H_
#define ORRERY_SIM_KERNELS_GEMM_H_

#include <cstdint>
#include <vector>

#include "base/units.h"
#include "orrery/v1/cluster.pb.h"
#include "workloads/operator.h"

namespace orrery::kernels {

// Of one element: 4 for FP32, 2 for FP16 and BF16, 1 for FP8.
std::int64_t OperandBytes(v1::DataType type);

class GemmModel {
 public:
  // `peak` of the operands' type; `operand_bytes` of one of their elements. Results have at least 2 bytes.
  GemmModel(const v1::Accelerator& accelerator, const v1::GemmProfile& profile, FlopsPerSecond peak,
            std::int64_t operand_bytes);

  double Seconds(const workloads::Gemm& gemm) const { return Fastest(gemm).seconds; }
  // Whether traffic takes longer than multiplications.
  bool IsMemoryBound(const workloads::Gemm& gemm) const { return Fastest(gemm).is_memory_bound; }

 private:
  struct Cost {
    double seconds = 0;
    bool is_memory_bound = false;
  };

  struct Tile {
    std::int64_t m = 0;
    std::int64_t n = 0;
    double step = 0;   // seconds per element of k while waves follow each other
    double boost = 1;  // how much faster it can get
  };

  Cost Fastest(const workloads::Gemm& gemm) const;
  // Seconds of `tiles` tiles that take `one` second each while waves follow each other.
  double Waves(std::int64_t tiles, double one, double boost) const;

  std::int64_t sms_ = 1;
  double operand_bytes_ = 2;
  double result_bytes_ = 2;
  double memory_bandwidth_ = 0;  // achieved, bytes/s
  std::vector<Tile> tiles_;      // both orientations
  double first_wave_gain_ = 0;
  double exposed_share_ = 0;
  double wave_overhead_ = 0;  // seconds
  std::int64_t max_split_k_ = 1;
  std::int64_t k_step_ = 1;
  std::int64_t alignment_ = 1;
  double misaligned_factor_ = 1;
  double misaligned_batch_factor_ = 1;
  double overhead_ = 0;  // seconds
};

}  // namespace orrery::kernels

#endif  // ORRERY_SIM_KERNELS_GEMM_H_
