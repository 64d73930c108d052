// CBC's optimum of a mixed-integer program (milp.h) against the search's. Skipped where cbc is not installed.
//
// ORRERY_CBC_SECONDS raises the time CBC gets per case and adds the larger cases, which it mostly does not close.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "sim/pipeline/optimizer/optimize.h"
#include "tests/sim/pipeline/optimizer/cases.h"
#include "tests/sim/pipeline/optimizer/milp.h"

namespace orrery::pipeline {
namespace {

using schedules::Placement;

struct Size {
  Placement placement;
  std::int32_t micro_batches;
};

TEST(OptimizeCbcTest, AgreesWhereCbcCloses) {
  if (!HasCbc()) GTEST_SKIP() << "cbc is not installed (Debian: coinor-cbc)";
  std::vector<Size> sizes = {{Placement::Loop(2, 1), 3}, {Placement::Loop(2, 1), 4}, {Placement::Wave(2, 2), 2}};
  int seconds = 2;
  if (const char* given = std::getenv("ORRERY_CBC_SECONDS")) {
    seconds = std::atoi(given);
    for (const auto& [p, m] : {std::pair{2, 8}, std::pair{3, 4}, std::pair{3, 6}, std::pair{4, 4}, std::pair{4, 8}}) {
      sizes.push_back({Placement::Loop(p, 1), m});
    }
  }
  int closed = 0;
  int cases = 0;
  for (const Size& size : sizes) {
    const std::int32_t p = size.placement.ranks();
    for (const CostVector& vector : CostVectors()) {
      for (const std::int64_t limit : {(p + 1) / 2, p, 2 * p}) {
        const std::int64_t chunks = size.placement.chunks();
        const OptimizeRequest request = Problem(size.placement, size.micro_batches, vector, chunks * limit);
        SCOPED_TRACE(Name(request, vector));
        const absl::StatusOr<Optimized> found = Optimize(request);
        ASSERT_TRUE(found.ok()) << found.status();
        EXPECT_TRUE(found->optimal());
        ++cases;
        const std::optional<CbcAnswer> answer = RunCbc(request, seconds, ::testing::TempDir());
        if (!answer.has_value()) continue;
        EXPECT_GE(answer->makespan, found->lower_bound);
        if (!answer->closed) continue;
        EXPECT_EQ(answer->makespan, found->value);
        ++closed;
      }
    }
  }
  std::cout << "CBC closes " << closed << " of " << cases << " cases in " << seconds << " s each\n";
  EXPECT_GE(closed, 20);
}

}  // namespace
}  // namespace orrery::pipeline
