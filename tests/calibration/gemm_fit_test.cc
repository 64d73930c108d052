// The fit finds the constants that made its data, and never sees what the split holds out.
#include "calibration/gemm_fit.h"

#include <cmath>

#include <gtest/gtest.h>

#include "sim/kernels/gemm.h"
#include "tests/sim/kernels/toy_accelerator.h"

namespace orrery::calibration {
namespace {

constexpr FlopsPerSecond kPeak(312e12);

// The A100 with constants that no profile has.
v1::Accelerator Machine() {
  v1::Accelerator machine = kernels::A100();
  v1::GemmProfile& gemm = *machine.mutable_profile()->mutable_gemm(0);
  gemm.mutable_efficiency()->set_value(0.62);
  gemm.mutable_operand_reload()->set_value(8);
  gemm.mutable_first_wave_gain()->set_value(0.1);
  gemm.mutable_exposed_share()->set_value(0.3);
  gemm.mutable_wave_overhead()->set_value(1e-6);
  gemm.mutable_memory_efficiency()->set_value(0.7);
  gemm.mutable_overhead()->set_value(8e-6);
  return machine;
}

// 12 x 14 shapes, from memory-bound to many waves, timed by the model itself.
std::vector<MeasuredGemm> Timed(const v1::Accelerator& machine) {
  const kernels::GemmModel model(machine, machine.profile().gemm(0), kPeak, 2);
  std::vector<MeasuredGemm> rows;
  for (const std::int64_t n : {1024, 2560, 4096, 6144, 8192, 12288, 20480, 28672, 3072, 5120, 7168, 16384}) {
    for (const std::int64_t m : {8, 64, 128, 200, 256, 384, 512, 640, 1024, 1600, 2048, 3072, 4096, 8192}) {
      MeasuredGemm row;
      row.source = "synthetic";
      row.gpu = "toy";
      row.dtype = "fp16";
      row.library = "none";
      row.type = v1::FP16;
      row.gemm = {.m = m, .n = n, .k = 4096};
      row.microseconds = 1e6 * model.Seconds(row.gemm);
      rows.push_back(row);
    }
  }
  return rows;
}

TEST(GemmFit, RecoversTheConstantsOfItsData) {
  const v1::Accelerator machine = Machine();
  const GemmFit fit = FitGemm(kernels::A100(), kernels::A100().profile().gemm(0), Timed(machine));
  ASSERT_EQ(fit.constants.size(), 7u);
  EXPECT_LT(fit.fitted.median, 0.01);
  EXPECT_LT(fit.held_out.median, 0.01);
  EXPECT_GT(fit.held_out.rows, 0);
  const v1::GemmProfile& truth = machine.profile().gemm(0);
  EXPECT_NEAR(fit.profile.efficiency().value(), truth.efficiency().value(), 0.03);
  EXPECT_NEAR(fit.profile.memory_efficiency().value(), truth.memory_efficiency().value(), 0.03);
  EXPECT_NEAR(fit.profile.exposed_share().value(), truth.exposed_share().value(), 0.1);
  EXPECT_NEAR(fit.profile.overhead().value(), truth.overhead().value(), 1.5e-6);
}

// The answer is a function of the rows: neither the base's fitted values nor a second pass changes it.
TEST(GemmFit, DoesNotDependOnTheBase) {
  const std::vector<MeasuredGemm> rows = Timed(Machine());
  const GemmFit once = FitGemm(kernels::A100(), kernels::A100().profile().gemm(0), rows);
  const GemmFit twice = FitGemm(kernels::A100(), once.profile, rows);
  EXPECT_EQ(once.profile.SerializeAsString(), twice.profile.SerializeAsString());
}

// Rows that are held out are ten times too slow; nothing moves.
TEST(GemmFit, HeldOutRowsCannotBeSeen) {
  std::vector<MeasuredGemm> rows = Timed(Machine());
  const GemmFit before = FitGemm(kernels::A100(), kernels::A100().profile().gemm(0), rows);
  const Split split(static_cast<int>(rows.size()));
  for (MeasuredGemm& row : rows) {
    if (split.IsHeldOut(row)) row.microseconds *= 10;
  }
  const GemmFit after = FitGemm(kernels::A100(), kernels::A100().profile().gemm(0), rows);
  EXPECT_EQ(before.profile.SerializeAsString(), after.profile.SerializeAsString());
  EXPECT_GT(after.held_out.median, 0.85);
}

// Three compute-bound rows determine one constant; the others keep value and source.
TEST(GemmFit, FewRowsFitOneConstant) {
  std::vector<MeasuredGemm> rows;
  for (const MeasuredGemm& row : Timed(Machine())) {
    if (row.gemm.m == 8192 && row.gemm.n >= 16384) rows.push_back(row);
  }
  ASSERT_EQ(rows.size(), 3u);
  const v1::GemmProfile base = kernels::A100().profile().gemm(0);
  const GemmFit fit = FitGemm(kernels::A100(), base, rows);
  ASSERT_EQ(fit.constants.size(), 1u);
  EXPECT_EQ(fit.constants[0].constant, "efficiency");
  EXPECT_LT(fit.fitted.median, 0.02);
  EXPECT_EQ(fit.profile.overhead().SerializeAsString(), base.overhead().SerializeAsString());
  EXPECT_TRUE(FitGemm(kernels::A100(), base, {}).constants.empty());
}

// SHA-256 of "8192,8192" begins with the number that Python's hashlib gives; a fifth of the names is held out.
TEST(Split, IsFixed) {
  EXPECT_TRUE(HeldOut("Azure/AI-benchmarking-guide"));
  EXPECT_FALSE(HeldOut("microsoft/vidur data/profiling/compute"));
  int held_out = 0;
  for (int n = 0; n < 1000; ++n) held_out += HeldOut(std::to_string(n) + ",4096") ? 1 : 0;
  EXPECT_GT(held_out, 160);
  EXPECT_LT(held_out, 240);
  MeasuredGemm row;
  row.source = "Azure/AI-benchmarking-guide";
  EXPECT_TRUE(Split(Split::kFewRows).IsHeldOut(row));
  EXPECT_FALSE(Split(Split::kFewRows - 1).IsHeldOut(row));
}

}  // namespace
}  // namespace orrery::calibration
