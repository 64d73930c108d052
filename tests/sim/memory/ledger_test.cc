// Live memory counted by hand.
#include "sim/memory/ledger.h"

#include <gtest/gtest.h>

namespace orrery::memory {
namespace {

using workloads::ActivationClass;
using workloads::Operator;

Operator Op(std::int64_t allocates, std::int64_t workspace, std::int64_t frees,
            ActivationClass activation_class = ActivationClass::kActivations) {
  Operator op;
  op.allocates = Bytes(allocates);
  op.workspace = Bytes(workspace);
  op.frees = Bytes(frees);
  op.activation_class = activation_class;
  return op;
}

Live Of(std::int64_t activations, std::int64_t logits) {
  return {.activations = Bytes(activations), .logits = Bytes(logits)};
}
Live Activations(std::int64_t bytes) { return Of(bytes, 0); }

PassFootprint Footprint(std::int64_t peak, std::int64_t left) {
  return {.peak = Activations(peak), .left = Activations(left)};
}

TEST(FootprintOf, NothingIsNothing) {
  const PassFootprint footprint = FootprintOf({});
  EXPECT_EQ(footprint.peak, Live());
  EXPECT_EQ(footprint.left, Live());
}

// Live after allocation + workspace: 10; 10 + 5 + 7 = 22; then 15 - 8 = 7; 7 + 1 + 2 = 10. What is left: 7 + 1 - 0 = 8.
TEST(FootprintOf, WorkspaceExistsBesideWhatIsAllocatedBeforeFrees) {
  const std::vector<Operator> pass = {Op(10, 0, 0), Op(5, 7, 8), Op(1, 2, 0)};
  const PassFootprint footprint = FootprintOf(pass);
  EXPECT_EQ(footprint.peak, Activations(22));
  EXPECT_EQ(footprint.left, Activations(8));
}

// The first operator at the highest point is named: "b" and "c" both stand beside 22.
TEST(FootprintOf, NamesTheOperatorOfThePeak) {
  std::vector<Operator> pass = {Op(10, 0, 0), Op(5, 7, 8), Op(15, 0, 0)};
  pass[0].name = "a";
  pass[1].name = "b";
  pass[1].layer = 3;
  pass[2].name = "c";
  const PassFootprint footprint = FootprintOf(pass);
  EXPECT_EQ(footprint.peak, Activations(22));
  EXPECT_EQ(footprint.peak_operator, "b");
  EXPECT_EQ(footprint.peak_layer, 3);
  EXPECT_TRUE(FootprintOf({}).peak_operator.empty());
}

// An operator that frees as much as it allocates holds both while it runs: 4, then 4 + 6 = 10, then 0 + 6.
TEST(FootprintOf, FreesComeAfterTheOperator) {
  const std::vector<Operator> pass = {Op(4, 0, 0), Op(6, 0, 4)};
  EXPECT_EQ(FootprintOf(pass).peak, Activations(10));
  EXPECT_EQ(FootprintOf(pass).left, Activations(6));
}

// A backward pass frees what the forward pass kept: below where it started, never a peak below zero.
TEST(FootprintOf, BackwardLeavesLessThanItFound) {
  const std::vector<Operator> pass = {Op(0, 3, 5), Op(2, 0, 7)};
  // 3; then -5 + 2 = -3; left -5 + 2 - 7.
  EXPECT_EQ(FootprintOf(pass).peak, Activations(3));
  EXPECT_EQ(FootprintOf(pass).left, Activations(-10));
  const std::vector<Operator> only_frees = {Op(0, 0, 5)};
  EXPECT_EQ(FootprintOf(only_frees).peak, Live());
}

// Logits are counted apart, the peak is that of the sum, and workspace counts as activations.
//   activations 8: 8 | logits 20, workspace 4: 8 + 4 and 20 = 32 | activations 15: 8 + 15 and 20 = 43 | logits freed.
TEST(FootprintOf, LogitsAreTheirOwnClass) {
  const std::vector<Operator> pass = {Op(8, 0, 0), Op(20, 4, 0, ActivationClass::kLogits), Op(15, 0, 15),
                                      Op(0, 0, 20, ActivationClass::kLogits)};
  const PassFootprint footprint = FootprintOf(pass);
  EXPECT_EQ(footprint.peak, Of(23, 20));
  EXPECT_EQ(footprint.peak.total(), Bytes(43));
  EXPECT_EQ(footprint.left, Activations(8));
}

TEST(PeakOf, NothingIsNothing) {
  EXPECT_EQ(PeakOf({}).live, Live());
  EXPECT_EQ(PeakOf({}).pass, 0u);
}

// The first of several equal peaks is the one named.
TEST(PeakOf, NamesTheFirstPassThatReachesIt) {
  const PassFootprint forward = Footprint(5, 4);
  const PassFootprint backward = Footprint(1, -4);
  const std::vector<const PassFootprint*> order = {&forward, &backward, &forward, &backward};
  EXPECT_EQ(PeakOf(order).live, Activations(5));
  EXPECT_EQ(PeakOf(order).pass, 0u);
}

// An order that no schedule family has, of two chunks: a (F holds 4 with a peak of 5, B rises by 3), b (F holds 10 with
// a peak of 12, B rises by 2). Order, live before, highest, live after:
//
//   F0a   0   5   4
//   F1b   4  16  14
//   B0a  14  17  10
//   F2a  10  15  14
//   F3b  14  26  24
//   B2a  24  27  20     the peak, in a backward pass
//   B3b  20  22  10
//   B1b  10  12   0
TEST(PeakOf, HandMadeOrderOfTwoChunks) {
  const PassFootprint fa = Footprint(5, 4);
  const PassFootprint ba = Footprint(3, -4);
  const PassFootprint fb = Footprint(12, 10);
  const PassFootprint bb = Footprint(2, -10);
  const std::vector<const PassFootprint*> order = {&fa, &fb, &ba, &fa, &fb, &ba, &bb, &bb};
  EXPECT_EQ(PeakOf(order).live, Activations(27));
  EXPECT_EQ(PeakOf(order).pass, 5u);
}

// A split backward pass, in a hand-made order of one stage: F holds 6 (peak 7); I frees 4 and keeps 2 for W, with a
// peak of 3 above; W frees those 2, with a peak of 1 above. Logits of 5 live from F to I. W is put off twice.
//
//          activations: before, highest, after   logits after   highest sum
//   F0      0   7   6                              5             7 + 5 = 12
//   I0      6   9   2                              0             9 + 5 = 14
//   F1      2   9   8                              5             9 + 5 = 14
//   F2      8  15  14                             10            15 + 10 = 25
//   I1     14  17  10                              5            17 + 10 = 27    the peak
//   W0     10  11   8                              5            11 + 5 = 16
//   I2      8  11   4                              0            11 + 5 = 16
//   W1      4   5   2
//   W2      2   3   0
TEST(PeakOf, HandMadeOrderWithSplitBackward) {
  const PassFootprint forward = {.peak = Of(7, 5), .left = Of(6, 5)};
  const PassFootprint input = {.peak = Activations(3), .left = Of(-4, -5)};
  const PassFootprint weight = Footprint(1, -2);
  const std::vector<const PassFootprint*> order = {&forward, &input, &forward, &forward, &input,
                                                   &weight,  &input, &weight,  &weight};
  const Peak peak = PeakOf(order);
  EXPECT_EQ(peak.live, Of(17, 10));
  EXPECT_EQ(peak.pass, 4u);
}

TEST(Ledger, PeaksAreSums) {
  const Ledger ledger = {.weights = Bytes(1),
                         .gradients = Bytes(20),
                         .optimizer = Bytes(300),
                         .activations = Bytes(4000),
                         .logits = Bytes(50000),
                         .buffers = Bytes(600000),
                         .workspaces = Bytes(7000000),
                         .update = Bytes(80000000),
                         .runtime = Bytes(900000000)};
  EXPECT_EQ(ledger.AllocatorPeak(), Bytes(87654321));
  EXPECT_EQ(ledger.DevicePeak(), Bytes(987654321));
}

}  // namespace
}  // namespace orrery::memory
