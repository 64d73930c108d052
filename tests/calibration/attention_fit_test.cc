#include "calibration/attention_fit.h"

#include <cmath>

#include <gtest/gtest.h>

#include "calibration/measured_attention.h"

namespace orrery::calibration {
namespace {

// 100 multiprocessors of 1e13 FLOP/s and a floor of 1 us.
v1::Accelerator Chip() {
  v1::Accelerator chip;
  chip.set_name("chip");
  chip.set_sms(100);
  chip.set_memory_bandwidth(3e12);
  v1::PeakRate& peak = *chip.add_peak();
  peak.set_data_type(v1::FP16);
  peak.set_flops_per_second(1e15);
  chip.mutable_profile()->mutable_kernel_floor()->set_value(1e-6);
  return chip;
}

v1::AttentionProfile Entry(double forward, double backward, double half, double backward_half, double width,
                           double wide, double causal) {
  v1::AttentionProfile entry;
  entry.set_kernel(v1::FLASH_ATTENTION_2);
  entry.mutable_forward_efficiency()->set_value(forward);
  entry.mutable_backward_efficiency()->set_value(backward);
  entry.mutable_half_length()->set_value(half);
  entry.mutable_backward_half_length()->set_value(backward_half);
  entry.mutable_softmax_width()->set_value(width);
  entry.mutable_wide_factor()->set_value(wide);
  entry.mutable_causal_efficiency()->set_value(causal);
  entry.mutable_block()->set_value(128);
  for (const int head_dim : {64, 128, 256}) entry.add_head_dims(head_dim);
  entry.add_data_types(v1::FP16);
  return entry;
}

// What a chip whose true constants are `truth` would measure.
std::vector<MeasuredAttention> Measure(const v1::AttentionProfile& truth, bool backward, bool causal,
                                       const std::vector<std::int64_t>& head_dims) {
  v1::Accelerator chip = Chip();
  *chip.mutable_profile()->add_attention() = truth;
  std::vector<MeasuredAttention> rows;
  for (const std::int64_t head_dim : head_dims) {
    for (const std::int64_t length : {512, 1024, 2048, 4096, 8192, 16384}) {
      MeasuredAttention row;
      row.source = "made up";
      row.attention = {.kernel = truth.kernel(),
                       .batch = 16384 / length,
                       .heads = 2048 / head_dim,
                       .q = length,
                       .kv = length,
                       .head_dim = head_dim};
      row.attention.causal = causal;
      row.forward = !backward;
      row.backward = backward;
      row.seconds = *PredictAttention(chip, row);
      rows.push_back(row);
    }
  }
  return rows;
}

std::vector<MeasuredAttention> MeasureAll(const v1::AttentionProfile& truth) {
  std::vector<MeasuredAttention> rows;
  for (const bool backward : {false, true}) {
    for (const bool causal : {false, true}) {
      for (const MeasuredAttention& row : Measure(truth, backward, causal, {64, 128, 256})) rows.push_back(row);
    }
  }
  return rows;
}

const v1::AttentionProfile kBase = Entry(0.3, 0.2, 50, 100, 10, 1, 1);

// Measurements made with known constants are met, seen and held out, within 3 %, though the base is far away.
TEST(AttentionFit, FindsWhatMadeTheMeasurements) {
  const std::vector<MeasuredAttention> rows = MeasureAll(Entry(0.7, 0.55, 180, 420, 45, 0.85, 0.93));
  AttentionFit fit;
  const v1::AttentionProfile fitted = FitAttention(Chip(), kBase, rows, &fit);
  EXPECT_EQ(fit.name, "FLASH_ATTENTION_2 FP16");
  EXPECT_EQ(fit.fitted.rows + fit.held_out.rows, 72);
  EXPECT_GT(fit.held_out.rows, 0);
  EXPECT_TRUE(fit.undetermined.empty());
  EXPECT_LT(fit.fitted.median, 0.01);
  EXPECT_LT(fit.fitted.p90, 0.03);
  EXPECT_LT(fit.held_out.p90, 0.03);
  EXPECT_NE(fitted.forward_efficiency().source().find("attention fit"), std::string::npos);
}

// Another time on a held-out row changes nothing but the error; calibrating the result again changes nothing at all.
TEST(AttentionFit, HeldOutRowsAreNotSeenAndTheResultIsStable) {
  std::vector<MeasuredAttention> rows = MeasureAll(Entry(0.7, 0.55, 180, 420, 45, 0.85, 0.93));
  AttentionFit fit;
  const v1::AttentionProfile once = FitAttention(Chip(), kBase, rows, &fit);
  AttentionFit spoilt_fit;
  for (MeasuredAttention& row : rows) {
    if (IsHeldOut(row)) row.seconds *= 10;
  }
  const v1::AttentionProfile spoilt = FitAttention(Chip(), kBase, rows, &spoilt_fit);
  EXPECT_EQ(spoilt.forward_efficiency().value(), once.forward_efficiency().value());
  EXPECT_EQ(spoilt.softmax_width().value(), once.softmax_width().value());
  EXPECT_EQ(spoilt_fit.fitted.median, fit.fitted.median);
  EXPECT_GT(spoilt_fit.held_out.median, 0.5);
  AttentionFit again_fit;
  EXPECT_EQ(FitAttention(Chip(), spoilt, rows, &again_fit).ShortDebugString(), spoilt.ShortDebugString());
}

// Forward rows with a mask and one head dimension tell neither what a mask costs nor what the softmax does; the
// backward pass keeps its ratio to forward, 2 / 3 and 2.
TEST(AttentionFit, KeepsWhatRowsDoNotTell) {
  const std::vector<MeasuredAttention> rows =
      Measure(Entry(0.5, 0.55, 180, 420, 10, 1, 1), /*backward=*/false, /*causal=*/true, {128});
  AttentionFit fit;
  const v1::AttentionProfile fitted = FitAttention(Chip(), kBase, rows, &fit);
  EXPECT_EQ(fit.undetermined.size(), 5u);
  EXPECT_EQ(fitted.softmax_width().value(), 10);
  EXPECT_EQ(fitted.wide_factor().value(), 1);
  EXPECT_EQ(fitted.causal_efficiency().value(), 1);
  EXPECT_NEAR(fitted.forward_efficiency().value(), 0.5, 0.02);
  EXPECT_NEAR(fitted.backward_efficiency().value(), fitted.forward_efficiency().value() * 2 / 3, 0.001);
  EXPECT_NEAR(fitted.backward_half_length().value(), fitted.half_length().value() * 2, 1);
}

TEST(AttentionFit, FewRowsLeaveTheEntryAsItWas) {
  AttentionFit fit;
  EXPECT_EQ(FitAttention(Chip(), kBase, {}, &fit).ShortDebugString(), kBase.ShortDebugString());
  EXPECT_EQ(fit.undetermined.size(), 1u);
}

constexpr char kHeader[] =
    "source,gpu,kernel,pass,causal,head_dim,head_dim_v,batch,heads_q,heads_kv,seqlen,dtype,time_us,tflops\n";

absl::StatusOr<MeasuredAttention> ReadRow(const std::string& row) {
  const absl::StatusOr<CsvTable> table = CsvTable::Parse(kHeader + row + "\n", "t.csv");
  EXPECT_TRUE(table.ok() && CheckAttentionColumns(*table).ok());
  return ReadMeasuredAttention(*table, table->rows()[0]);
}

TEST(MeasuredAttention, ReadsARow) {
  const absl::StatusOr<MeasuredAttention> row = ReadRow("s,g,FA3,fwd+bwd,1,128,128,2,16,4,8192,bf16,1500,600");
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->attention.kernel, v1::FLASH_ATTENTION_3);
  EXPECT_EQ(row->data_type, v1::BF16);
  EXPECT_TRUE(row->forward && row->backward && row->attention.causal);
  EXPECT_EQ(row->attention.heads, 16);
  EXPECT_DOUBLE_EQ(row->seconds, 1.5e-3);
  EXPECT_TRUE(row->assumptions.empty());
}

// 4 x 8 x 4096^2 x 64 x 32 heads are 1.0995e12 FLOPs: 910 us at 1,213 TFLOP/s make 32.1 heads.
TEST(MeasuredAttention, BlankHeadsFollowFromTheRate) {
  const absl::StatusOr<MeasuredAttention> row = ReadRow("s,g,FA4,fwd,0,64,64,8,,,4096,bf16,910,1213");
  ASSERT_TRUE(row.ok()) << row.status();
  EXPECT_EQ(row->attention.heads, 32);
  EXPECT_EQ(row->assumptions, std::vector<std::string>{"heads_q = 32"});
}

TEST(MeasuredAttention, NamesWhatItDoesNotHave) {
  EXPECT_EQ(ReadRow("s,g,FA3 varlen,fwd,0,64,64,8,8,8,4096,bf16,910,").status().code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ReadRow("s,g,FA3,fwd,0,192,128,8,8,8,4096,bf16,910,").status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ReadRow("s,g,FA3,fwd,0,64,64,8,8,8,4096,int4,910,").status().code(), absl::StatusCode::kUnimplemented);
  for (const char* bad :
       {"s,g,FA3,fwd,2,64,64,8,8,8,4096,bf16,910,", "s,g,FA3,up,0,64,64,8,8,8,4096,bf16,910,",
        "s,g,FA3,fwd,0,64,64,8,8,8,4096,bf16,-1,", "s,g,FA3,fwd,0,64,64,0,8,8,4096,bf16,910,",
        "s,g,FA3,fwd,0,64,64,8,,8,4096,bf16,910,", "s,g,FA3,fwd,0,64,64,100000000,100000000,8,100000000,bf16,910,"}) {
    EXPECT_EQ(ReadRow(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

}  // namespace
}  // namespace orrery::calibration
