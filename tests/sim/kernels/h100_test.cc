// The H100 profile: staircase, bounds and single measured figures, named where they stand.
#include <cmath>

#include <gtest/gtest.h>

#include "sim/kernels/gemm.h"
#include "tests/sim/kernels/toy_accelerator.h"

namespace orrery::kernels {
namespace {

class H100Test : public testing::Test {
 protected:
  double Microseconds(std::int64_t m, std::int64_t n, std::int64_t k, std::int64_t batch = 1) const {
    return 1e6 * model_.Seconds({.batch = batch, .m = m, .n = n, .k = k});
  }

  v1::Accelerator h100_ = H100();
  GemmModel model_{h100_, h100_.profile().gemm(0), FlopsPerSecond(989.4e12), 2};
};

// n = k = 8,192 (vidur, fp16): 512 rows are 4 x 32 tiles of 128 x 256, a wave of 132 multiprocessors, and take 94 us;
// 520 rows are 160 tiles, two waves, and take 163 us.
TEST_F(H100Test, OneMoreWave) {
  EXPECT_NEAR(Microseconds(512, 8192, 8192), 94, 0.06 * 94);
  EXPECT_NEAR(Microseconds(520, 8192, 8192), 163, 0.06 * 163);
  // Within a wave hardly anything changes.
  EXPECT_NEAR(Microseconds(520, 8192, 8192), Microseconds(640, 8192, 8192), 5);
}

// Measured by vidur (fp16, us), within 15 %.
TEST_F(H100Test, MeasuredGemms) {
  struct Row {
    std::int64_t m, n, k;
    double us;
  };
  for (const Row& row : {Row{1, 28672, 8192, 156},
                         {128, 28672, 8192, 172},
                         {2048, 8192, 28672, 1280},
                         {4096, 57344, 8192, 5668},
                         {4096, 12288, 8192, 1130},
                         {3072, 27648, 5120, 1194},
                         {2048, 24576, 8192, 1131},
                         {4096, 4096, 1024, 49}}) {
    EXPECT_NEAR(Microseconds(row.m, row.n, row.k), row.us, 0.15 * row.us) << row.m << " " << row.n << " " << row.k;
  }
}

TEST_F(H100Test, NeverFasterForMoreWork) {
  for (const std::int64_t fixed : {256, 2048, 12288}) {
    double m_before = 0, n_before = 0, k_before = 0;
    for (std::int64_t size = 64; size <= 16384; size += 64) {
      const double m = Microseconds(size, fixed, fixed);
      const double n = Microseconds(fixed, size, fixed);
      const double k = Microseconds(fixed, fixed, size);
      EXPECT_GE(m, m_before) << size << " " << fixed;
      EXPECT_GE(n, n_before) << size << " " << fixed;
      EXPECT_GE(k, k_before) << size << " " << fixed;
      m_before = m;
      n_before = n;
      k_before = k;
    }
  }
}

// Nothing exceeds 0.95 of the peak or of the memory bandwidth, whatever the shape.
TEST_F(H100Test, Ceilings) {
  for (std::int64_t m = 1; m <= 65536; m *= 2) {
    for (const std::int64_t n : {1, 64, 1000, 4096, 50000}) {
      for (const std::int64_t k : {1, 64, 128, 2048, 12288}) {
        for (const std::int64_t batch : {1, 96}) {
          const double seconds = Microseconds(m, n, k, batch) * 1e-6;
          const auto md = static_cast<double>(m), nd = static_cast<double>(n), kd = static_cast<double>(k);
          EXPECT_LE(static_cast<double>(batch) * 2 * md * nd * kd / seconds, 0.95 * 989.4e12);
          EXPECT_LE(static_cast<double>(batch) * 2 * (md * nd + md * kd + nd * kd) / seconds, 0.95 * 3.35e12);
        }
      }
    }
  }
}

// ml-engineering: a SwiGLU MLP with h = 4,096 reaches 272.7 TFLOP/s at d_ff = 10,922, which is no multiple of 8, and
// 398.4 at 10,944.
TEST_F(H100Test, Misaligned) {
  const auto rate = [&](std::int64_t ffn) {
    return static_cast<double>(ffn) / (2 * Microseconds(8192, ffn, 4096) + Microseconds(8192, 4096, ffn));
  };
  EXPECT_NEAR(rate(10922) / rate(10944), 272.7 / 398.4, 0.05);
}

}  // namespace
}  // namespace orrery::kernels
