#include "sim/kernels/gemm.h"

#include <gtest/gtest.h>

#include "tests/sim/kernels/toy_accelerator.h"

namespace orrery::kernels {
namespace {

constexpr FlopsPerSecond kToyPeak(4e9);

double Seconds(const v1::Accelerator& accelerator, const workloads::Gemm& gemm) {
  return GemmModel(accelerator, accelerator.profile().gemm(0), kToyPeak, 2).Seconds(gemm);
}

// One tile: 2 x 10 x 10 x 100 = 20,000 FLOPs at 0.5e9 FLOP/s = 40 us.
constexpr double kTile = 40e-6;

TEST(Gemm, WavesByHand) {
  const v1::Accelerator toy = ToyAccelerator();
  EXPECT_DOUBLE_EQ(Seconds(toy, {.m = 10, .n = 10, .k = 100}), kTile);
  EXPECT_DOUBLE_EQ(Seconds(toy, {.m = 20, .n = 20, .k = 100}), kTile);      // 4 tiles, 4 multiprocessors
  EXPECT_DOUBLE_EQ(Seconds(toy, {.m = 21, .n = 20, .k = 100}), 2 * kTile);  // 6 tiles
  EXPECT_DOUBLE_EQ(Seconds(toy, {.m = 40, .n = 20, .k = 100}), 2 * kTile);
  EXPECT_DOUBLE_EQ(Seconds(toy, {.m = 41, .n = 20, .k = 100}), 3 * kTile);
  EXPECT_DOUBLE_EQ(Seconds(toy, {.batch = 5, .m = 10, .n = 10, .k = 100}), 2 * kTile);
}

// One wave runs at 0.5 (1 + 0.4) = 0.7 of the peak, 1.5 waves, two of which are paid, at 0.5 (1 + 0.4 / 1.5) each, but
// none above 0.65.
TEST(Gemm, FewWavesRunFaster) {
  v1::Accelerator toy = ToyAccelerator();
  toy.mutable_profile()->mutable_gemm(0)->mutable_first_wave_gain()->set_value(0.4);
  EXPECT_DOUBLE_EQ(Seconds(toy, {.m = 20, .n = 20, .k = 100}), kTile * 0.5 / 0.7);
  EXPECT_DOUBLE_EQ(Seconds(toy, {.m = 10, .n = 10, .k = 100}), kTile * 0.5 / 0.7);
  EXPECT_DOUBLE_EQ(Seconds(toy, {.m = 30, .n = 20, .k = 100}), 2 * kTile / (1 + 0.4 / 1.5));
  toy.mutable_profile()->mutable_gemm(0)->mutable_peak_efficiency()->set_value(0.65);
  EXPECT_DOUBLE_EQ(Seconds(toy, {.m = 10, .n = 10, .k = 100}), kTile * 0.5 / 0.65);
}

// A quarter of the memory's time, (2 x 10 x 100 + 100) x 2 bytes at 0.5e12 bytes/s = 8.4 ns, is exposed; with fp32
// results (2000 x 2 + 100 x 8) bytes, 9.6 ns. Two waves of 1 us and a kernel of 3 us beside.
TEST(Gemm, ExposedTrafficAndOverheads) {
  v1::Accelerator toy = ToyAccelerator();
  toy.mutable_profile()->mutable_gemm(0)->mutable_exposed_share()->set_value(0.25);
  toy.mutable_profile()->mutable_gemm(0)->mutable_overhead()->set_value(3e-6);
  EXPECT_DOUBLE_EQ(Seconds(toy, {.m = 10, .n = 10, .k = 100}), kTile + 2.1e-9 + 3e-6);
  EXPECT_DOUBLE_EQ(Seconds(toy, {.m = 10, .n = 10, .k = 100, .accumulates_fp32 = true}), kTile + 2.4e-9 + 3e-6);
  toy = ToyAccelerator();
  toy.mutable_profile()->mutable_gemm(0)->mutable_wave_overhead()->set_value(1e-6);
  EXPECT_DOUBLE_EQ(Seconds(toy, {.m = 40, .n = 20, .k = 100}), 2 * (kTile + 1e-6));
}

// k is filled up to steps of 32: 100 counts as 128.
TEST(Gemm, DepthComesInSteps) {
  v1::Accelerator toy = ToyAccelerator();
  toy.mutable_profile()->mutable_gemm(0)->mutable_k_step()->set_value(32);
  EXPECT_DOUBLE_EQ(Seconds(toy, {.m = 10, .n = 10, .k = 100}), 1.28 * kTile);
}

// Operands of FP8 take one byte, results two: (1000 + 1000) x 1 + 1e6 x 2 bytes.
TEST(Gemm, BytesOfOperandsAndResults) {
  const v1::Accelerator toy = ToyAccelerator();
  const GemmModel fast(toy, toy.profile().gemm(0), FlopsPerSecond(4e12), OperandBytes(v1::FP8));
  EXPECT_DOUBLE_EQ(fast.Seconds({.m = 1000, .n = 1000, .k = 1}), 2.002e6 / 0.5e12);
  EXPECT_EQ(OperandBytes(v1::FP32), 4);
  EXPECT_EQ(OperandBytes(v1::BF16), 2);
}

// (1000 x 1 + 1 x 1000 + 1000 x 1000) x 2 bytes at 0.5e12 bytes/s = 4.008 us; its 10,000 tiles of 200 FLOPs take 1 ms
// on the toy, 1 us on a chip a thousand times faster. fp32 accumulation: 2000 x 2 + 1e6 x 8 bytes.
TEST(Gemm, MemoryRoofline) {
  const v1::Accelerator toy = ToyAccelerator();
  const GemmModel fast(toy, toy.profile().gemm(0), FlopsPerSecond(4e12), 2);
  EXPECT_DOUBLE_EQ(fast.Seconds({.m = 1000, .n = 1000, .k = 1}), 1.002e6 * 2 / 0.5e12);
  EXPECT_DOUBLE_EQ(fast.Seconds({.m = 1000, .n = 1000, .k = 1, .accumulates_fp32 = true}), 8.004e6 / 0.5e12);
  EXPECT_DOUBLE_EQ(Seconds(toy, {.m = 1000, .n = 1000, .k = 1}), 1e-3);
  EXPECT_TRUE(fast.IsMemoryBound({.m = 1000, .n = 1000, .k = 1}));
  EXPECT_FALSE(fast.IsMemoryBound({.m = 1000, .n = 1000, .k = 1000}));
}

// One tile of k = 100 in four parts: a quarter of 40 us, and 4 x 100 partial sums of 8 bytes at 0.5e12 bytes/s = 6.4
// ns.
TEST(Gemm, SplitKFillsTheChip) {
  v1::Accelerator toy = ToyAccelerator();
  toy.mutable_profile()->mutable_gemm(0)->mutable_max_split_k()->set_value(4);
  EXPECT_DOUBLE_EQ(Seconds(toy, {.m = 10, .n = 10, .k = 100}), kTile / 4 + 4 * 100 * 8 / 0.5e12);
  // Eight tiles fill two waves already.
  EXPECT_DOUBLE_EQ(Seconds(toy, {.m = 40, .n = 20, .k = 100}), 2 * kTile);
}

// With 5 elements of reload a 10 x 10 tile bears 1 + 5 (1/10 + 1/10) = 2 and the larger 40 x 10 one 1 + 5 (1/40 + 1/10)
// = 1.625: it runs at 0.5 of the peak, and the smaller at 0.5 x 1.625 / 2. 10 x 160 is four tiles of 10 x 40, one wave
// of 80,000 FLOPs at 0.5e9: 160 us; with 10 x 10 tiles four waves of 40 us x 2 / 1.625.
TEST(Gemm, TakesTheBetterTileInEitherOrientation) {
  v1::Accelerator toy = ToyAccelerator();
  toy.mutable_profile()->mutable_gemm(0)->mutable_operand_reload()->set_value(5);
  EXPECT_DOUBLE_EQ(Seconds(toy, {.m = 10, .n = 10, .k = 100}), kTile);
  v1::GemmTile& tile = *toy.mutable_profile()->mutable_gemm(0)->add_tile();
  tile.set_m(40);
  tile.set_n(10);
  EXPECT_DOUBLE_EQ(Seconds(toy, {.m = 10, .n = 160, .k = 100}), 160e-6);
  EXPECT_DOUBLE_EQ(Seconds(toy, {.m = 160, .n = 10, .k = 100}), 160e-6);
  EXPECT_DOUBLE_EQ(Seconds(toy, {.m = 10, .n = 10, .k = 100}), kTile * 2 / 1.625);
}

TEST(Gemm, MisalignedShapesAreSlower) {
  v1::Accelerator toy = ToyAccelerator();
  toy.mutable_profile()->mutable_gemm(0)->mutable_alignment()->set_value(8);
  EXPECT_DOUBLE_EQ(Seconds(toy, {.m = 7, .n = 8, .k = 104}), kTile * 1.04);
  EXPECT_DOUBLE_EQ(Seconds(toy, {.m = 7, .n = 9, .k = 104}), kTile * 1.04 * 4);
  EXPECT_DOUBLE_EQ(Seconds(toy, {.m = 7, .n = 8, .k = 100}), kTile * 4);
}

}  // namespace
}  // namespace orrery::kernels
