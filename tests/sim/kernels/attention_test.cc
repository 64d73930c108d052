#include "sim/kernels/attention.h"

#include <gtest/gtest.h>

#include "tests/sim/kernels/toy_accelerator.h"

namespace orrery::kernels {
namespace {

AttentionModel Toy(const v1::Accelerator& accelerator) {
  return AttentionModel(accelerator.profile().attention(0), accelerator.sms(), FlopsPerSecond(4e9));
}

workloads::Attention Problem(std::int64_t seq, std::int64_t head_dim) {
  return {.kernel = v1::FLASH_ATTENTION_2, .batch = 1, .heads = 4, .q = seq, .kv = seq, .head_dim = head_dim};
}

TEST(Attention, VisibleBlocksByHand) {
  // Four rows of blocks: 1 + 2 + 3 + 4.
  EXPECT_EQ(AttentionModel::VisibleBlocks(32, 32, 0, 8), 10);
  EXPECT_EQ(AttentionModel::VisibleBlocks(25, 25, 0, 8), 10);
  // A window of 9 reaches 8 keys back, one block: 1 + 2 + 2 + 2. Of 10, two blocks: 1 + 2 + 3 + 3. Of 1, the diagonal.
  EXPECT_EQ(AttentionModel::VisibleBlocks(32, 32, 9, 8), 7);
  EXPECT_EQ(AttentionModel::VisibleBlocks(32, 32, 10, 8), 9);
  EXPECT_EQ(AttentionModel::VisibleBlocks(32, 32, 1, 8), 4);
  EXPECT_EQ(AttentionModel::VisibleBlocks(32, 32, 1000, 8), 10);
  // Two rows that follow two blocks: 3 + 4.
  EXPECT_EQ(AttentionModel::VisibleBlocks(16, 32, 0, 8), 7);
  EXPECT_EQ(AttentionModel::VisibleBlocks(16, 32, 9, 8), 4);
}

// 4 heads x 10 blocks x 64 pairs x 4 x 16 FLOPs = 163,840 at 0.5 x 4e9 FLOP/s, and half of the longest row, 4 blocks or
// 16,384 FLOPs on one of four multiprocessors. Backward 2.5 times as many at 0.25.
TEST(Attention, ForwardAndBackwardByHand) {
  const v1::Accelerator toy = ToyAccelerator();
  workloads::Attention attention = Problem(32, 16);
  const double forward = 163840 / 2e9 + 0.5 * 16384 / 0.5e9;
  EXPECT_DOUBLE_EQ(Toy(toy).Seconds(attention), forward);
  attention.backward = true;
  EXPECT_DOUBLE_EQ(Toy(toy).Seconds(attention), forward * 2.5 * 2);
}

// Without a mask all 16 blocks of a head are computed. 16 equal rows are 4 waves: 4 x 16,384 FLOPs at 0.5e9.
TEST(Attention, WithoutAMask) {
  const v1::Accelerator toy = ToyAccelerator();
  workloads::Attention attention = Problem(32, 16);
  attention.causal = false;
  EXPECT_DOUBLE_EQ(Toy(toy).Seconds(attention), 4 * 16384 / 0.5e9);
  // 5 heads: 20 rows, 5 waves. With a batch of 3 x 3 heads of one row each, 9 rows are 2.25 waves and half a row.
  attention.heads = 5;
  EXPECT_DOUBLE_EQ(Toy(toy).Seconds(attention), 5 * 16384 / 0.5e9);
  attention = Problem(8, 16);
  attention.causal = false;
  attention.batch = 3;
  attention.heads = 3;
  EXPECT_DOUBLE_EQ(Toy(toy).Seconds(attention), 2.75 * 4096 / 0.5e9);
}

// What a causal mask costs beyond the blocks that it leaves counts on their keys only.
TEST(Attention, CausalEfficiency) {
  v1::Accelerator toy = ToyAccelerator();
  workloads::Attention attention = Problem(32, 16);
  workloads::Attention full = attention;
  full.causal = false;
  const double causal_before = Toy(toy).Seconds(attention);
  const double full_before = Toy(toy).Seconds(full);
  toy.mutable_profile()->mutable_attention(0)->mutable_causal_efficiency()->set_value(0.8);
  EXPECT_DOUBLE_EQ(Toy(toy).Seconds(attention), causal_before / 0.8);
  EXPECT_DOUBLE_EQ(Toy(toy).Seconds(full), full_before);
}

// Head dimension 5 runs as 16, 4 and 32 have kernels of their own. At 512, two doublings above 128, half and half of
// the efficiency is left. Beyond there is no kernel.
TEST(Attention, HeadDimensions) {
  const v1::Accelerator toy = ToyAccelerator();
  const double at16 = Toy(toy).Seconds(Problem(32, 16));
  EXPECT_DOUBLE_EQ(Toy(toy).Seconds(Problem(32, 5)), at16);
  EXPECT_DOUBLE_EQ(Toy(toy).Seconds(Problem(32, 4)), at16 / 4);
  EXPECT_DOUBLE_EQ(Toy(toy).Seconds(Problem(32, 32)), at16 * 2);
  EXPECT_NEAR(Toy(toy).Seconds(Problem(32, 512)), at16 * 32 * 4, 1e-12 * at16);
  EXPECT_NEAR(Toy(toy).Seconds(Problem(32, 1024)), at16 * 64 * 4, 1e-12 * at16);
}

// A softmax as expensive as 48 elements: 16 elements cost as 64 forward, and 16 + 0.4 x 48 = 35.2 backward.
TEST(Attention, SoftmaxCostsLessBackward) {
  v1::Accelerator toy = ToyAccelerator();
  workloads::Attention attention = Problem(32, 16);
  const double forward = Toy(toy).Seconds(attention);
  attention.backward = true;
  const double backward = Toy(toy).Seconds(attention);
  toy.mutable_profile()->mutable_attention(0)->mutable_softmax_width()->set_value(48);
  EXPECT_NEAR(Toy(toy).Seconds(attention), backward * 35.2 / 16, 1e-12 * backward);
  attention.backward = false;
  EXPECT_DOUBLE_EQ(Toy(toy).Seconds(attention), forward * 4);
}

// 32 tokens without a mask are four rows of 32 keys: with a half length of 32 they take twice as long. With a window of
// 1 rows see 8 keys and take 40 / 8 as long. The other direction has its own.
TEST(Attention, RowsWithFewKeysAreLessEfficient) {
  v1::Accelerator toy = ToyAccelerator();
  workloads::Attention full = Problem(32, 16);
  full.causal = false;
  workloads::Attention narrow = Problem(32, 16);
  narrow.window = 1;
  workloads::Attention backward = full;
  backward.backward = true;
  const double fast = Toy(toy).Seconds(full);
  const double fast_narrow = Toy(toy).Seconds(narrow);
  const double fast_backward = Toy(toy).Seconds(backward);
  toy.mutable_profile()->mutable_attention(0)->mutable_half_length()->set_value(32);
  EXPECT_DOUBLE_EQ(Toy(toy).Seconds(full), fast * 2);
  EXPECT_DOUBLE_EQ(Toy(toy).Seconds(narrow), fast_narrow * 5);
  EXPECT_DOUBLE_EQ(Toy(toy).Seconds(backward), fast_backward);
  toy.mutable_profile()->mutable_attention(0)->mutable_backward_half_length()->set_value(64);
  EXPECT_DOUBLE_EQ(Toy(toy).Seconds(backward), fast_backward * 3);
}

// One head of one block of queries occupies one of four multiprocessors: as long as four heads.
TEST(Attention, FewBlocksLeaveMultiprocessorsIdle) {
  const v1::Accelerator toy = ToyAccelerator();
  workloads::Attention attention = Problem(8, 16);
  const double four = Toy(toy).Seconds(attention);
  attention.heads = 1;
  EXPECT_DOUBLE_EQ(Toy(toy).Seconds(attention), four);
}

TEST(Attention, AWindowSavesTime) {
  const v1::Accelerator toy = ToyAccelerator();
  workloads::Attention attention = Problem(1024, 16);
  double before = 0;
  for (const std::int64_t window : {8, 64, 256, 512, 1024}) {
    attention.window = window;
    const double seconds = Toy(toy).Seconds(attention);
    EXPECT_GT(seconds, before) << window;
    before = seconds;
  }
  attention.window = 0;
  EXPECT_DOUBLE_EQ(Toy(toy).Seconds(attention), before);
}

}  // namespace
}  // namespace orrery::kernels
