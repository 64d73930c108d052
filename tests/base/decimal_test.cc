#include "base/decimal.h"

#include <gtest/gtest.h>

#include <limits>

namespace orrery {
namespace {

TEST(DecimalTest, Exact) {
  EXPECT_EQ(*ParseDecimal("0"), 0);
  EXPECT_EQ(*ParseDecimal("0.1"), 100'000'000);
  EXPECT_EQ(*ParseDecimal("12.500"), 12'500'000'000);
  EXPECT_EQ(*ParseDecimal("0.000000001"), 1);
  EXPECT_EQ(*ParseDecimal("9000000000"), 9'000'000'000'000'000'000);
  EXPECT_EQ(FormatDecimal(0), "0");
  EXPECT_EQ(FormatDecimal(1), "0.000000001");
  EXPECT_EQ(FormatDecimal(100'000'000), "0.1");
  EXPECT_EQ(FormatDecimal(12'500'000'000), "12.5");
  EXPECT_EQ(FormatDecimal(-250'000'000), "-0.25");
  EXPECT_EQ(FormatDecimal(30'000'000'000), "30");
  EXPECT_EQ(FormatDecimal(std::numeric_limits<std::int64_t>::min()), "-9223372036.854775808");
}

TEST(DecimalTest, WhatItRefuses) {
  for (const char* const text : {"", ".", ".5", "1.", "-1", "+1", "1e3", "1,5", " 1", "0x10", "0.0000000001",
                                 "9000000001", "99999999999999999999", "nan", "1.2.3"}) {
    EXPECT_EQ(ParseDecimal(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

}  // namespace
}  // namespace orrery
