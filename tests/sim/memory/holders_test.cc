// Who holds what at a peak, counted by hand.
#include "sim/memory/holders.h"

#include <gtest/gtest.h>

namespace orrery::memory {
namespace {

using workloads::ActivationClass;
using workloads::Operator;

Operator Op(std::string_view name, std::int64_t allocates, std::int64_t workspace, std::int64_t frees,
            ActivationClass activation_class = ActivationClass::kActivations) {
  Operator op;
  op.name = name;
  op.allocates = Bytes(allocates);
  op.workspace = Bytes(workspace);
  op.frees = Bytes(frees);
  op.activation_class = activation_class;
  return op;
}

Holder Of(std::string_view name, std::int64_t bytes, bool workspace = false) {
  return {.operator_name = name,
          .activation_class = ActivationClass::kActivations,
          .workspace = workspace,
          .bytes = Bytes(bytes)};
}

// "sum" frees 6 that it did not allocate: the 4 of "b" and 2 of "a"; 10 - 2 and its own 3 stay. "c" is the peak with
// its workspace: 8 + 3 + 5 + 7 = 23.
TEST(HoldersAtPeak, FreesWhatWasAllocatedLast) {
  const std::vector<Operator> pass = {Op("a", 10, 0, 0), Op("b", 4, 0, 0), Op("sum", 3, 0, 6), Op("c", 5, 7, 5)};
  const std::vector<TracedPass> passes = {{pass, 0, 0}};
  EXPECT_EQ(HoldersAtPeak(passes), (std::vector<Holder>{Of("a", 8), Of("c", 7, true), Of("c", 5), Of("sum", 3)}));
}

// Two micro-batches in flight hold 6 of "keep" each; the backward pass of the second peaks while it still holds its
// own: 6 + 6 and "gradient" 2 with workspace 1. That of a third, finished before, holds nothing.
TEST(HoldersAtPeak, AddsUpMicroBatchesInFlight) {
  const std::vector<Operator> forward = {Op("keep", 6, 0, 0), Op("temporary", 1, 0, 0), Op("reader", 0, 0, 1)};
  const std::vector<Operator> backward = {Op("gradient", 2, 1, 0), Op("last", 0, 0, 8)};
  const std::vector<TracedPass> passes = {
      {forward, 0, 0}, {backward, 0, 0}, {forward, 0, 1}, {forward, 0, 2}, {backward, 0, 2}};
  EXPECT_EQ(HoldersAtPeak(passes), (std::vector<Holder>{Of("keep", 12), Of("gradient", 2), Of("gradient", 1, true)}));
}

// Logits are freed by the operator of their class, though an activation was allocated after them.
TEST(HoldersAtPeak, FreesItsOwnClassFirst) {
  const std::vector<Operator> pass = {Op("head", 9, 0, 0, ActivationClass::kLogits), Op("copy", 2, 0, 0),
                                      Op("loss", 0, 0, 9, ActivationClass::kLogits), Op("wide", 20, 0, 0)};
  const std::vector<TracedPass> passes = {{pass, 0, 0}};
  EXPECT_EQ(HoldersAtPeak(passes), (std::vector<Holder>{Of("wide", 20), Of("copy", 2)}));
}

TEST(HoldersAtPeak, NothingIsNothing) { EXPECT_TRUE(HoldersAtPeak({}).empty()); }

}  // namespace
}  // namespace orrery::memory
