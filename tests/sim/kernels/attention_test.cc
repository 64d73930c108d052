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

// 4 heads x 10 blocks x 64 pairs x 4 x 16 FLOPs = 163,840 at 0.5 x 4e9.
TEST(Attention, ForwardAndBackwardByHand) {
  const v1::Accelerator toy = ToyAccelerator();
  workloads::Attention attention = Problem(32, 16);
  EXPECT_DOUBLE_EQ(Toy(toy).Seconds(attention), 163840 / 2e9);
  attention.backward = true;
  EXPECT_DOUBLE_EQ(Toy(toy).Seconds(attention), 163840 * 2.5 / 1e9);
}

// Head dimension 5 runs as 16; 4 has a kernel, at sqrt(4 / 16) of the efficiency; 32 is no better than 16; 64 has no
// kernel.
TEST(Attention, HeadDimensions) {
  const v1::Accelerator toy = ToyAccelerator();
  const double at16 = Toy(toy).Seconds(Problem(32, 16));
  EXPECT_DOUBLE_EQ(Toy(toy).Seconds(Problem(32, 5)), at16);
  EXPECT_DOUBLE_EQ(Toy(toy).Seconds(Problem(32, 4)), at16 / 4 * 2);
  EXPECT_DOUBLE_EQ(Toy(toy).Seconds(Problem(32, 32)), at16 * 2);
  EXPECT_DOUBLE_EQ(Toy(toy).Seconds(Problem(32, 64)), at16 * 4);
}

// 32 tokens are four rows that see (1 + 2 + 3 + 4) x 8 / 4 = 20 keys on average: with a half length of 20 they reach
// half, and with a window of 1, which leaves 8 keys a row, 8 / 28.
TEST(Attention, RowsWithFewKeysAreLessEfficient) {
  v1::Accelerator toy = ToyAccelerator();
  workloads::Attention narrow = Problem(32, 16);
  narrow.window = 1;
  const double fast = Toy(toy).Seconds(Problem(32, 16));
  const double fast_narrow = Toy(toy).Seconds(narrow);
  toy.mutable_profile()->mutable_attention(0)->mutable_half_length()->set_value(20);
  EXPECT_DOUBLE_EQ(Toy(toy).Seconds(Problem(32, 16)), fast * 2);
  EXPECT_DOUBLE_EQ(Toy(toy).Seconds(narrow), fast_narrow * 28 / 8);
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
