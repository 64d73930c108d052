// CBC's optimum of a mixed-integer program (milp.h) against the search's. Skipped where cbc is not installed.
//
// ORRERY_CBC_SECONDS=10 gives CBC that much time per case and adds the larger cases, most of which it does not close.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <optional>
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

struct Counts {
  int cases = 0;
  int proven = 0;
  double slowest = 0;  // search, seconds
  int closed = 0;      // by CBC
};

// Five cost vectors, limits of p/2, p and 2p M_B.
void Compare(const Size& size, int seconds, Counts& counts) {
  const std::int32_t p = size.placement.ranks();
  for (const CostVector& vector : CostVectors()) {
    for (const std::int64_t limit : {(p + 1) / 2, p, 2 * p}) {
      const std::int64_t chunks = size.placement.chunks();
      const OptimizeRequest request = Problem(size.placement, size.micro_batches, vector, chunks * limit);
      SCOPED_TRACE(Name(request, vector));
      const auto start = std::chrono::steady_clock::now();
      const absl::StatusOr<Optimized> found = Optimize(request);
      ASSERT_TRUE(found.ok()) << found.status();
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      EXPECT_TRUE(found->optimal());
      ++counts.cases;
      counts.proven += found->optimal() ? 1 : 0;
      counts.slowest = std::max(counts.slowest, took.count());
      const std::optional<CbcAnswer> answer = RunCbc(request, seconds, ::testing::TempDir());
      if (!answer.has_value()) continue;
      EXPECT_GE(answer->makespan, found->lower_bound);
      if (!answer->closed) continue;
      EXPECT_EQ(answer->makespan, found->value);
      ++counts.closed;
    }
  }
}

TEST(OptimizeCbcTest, AgreesWhereCbcCloses) {
  if (!HasCbc()) GTEST_SKIP() << "cbc is not installed (Debian: coinor-cbc)";
  std::vector<Size> sizes = {{Placement::Loop(2, 1), 2}, {Placement::Wave(2, 2), 2}};
  int seconds = 1;
  if (const char* given = std::getenv("ORRERY_CBC_SECONDS")) {
    seconds = std::max(std::atoi(given), 1);
    for (const auto& [p, m] :
         {std::pair{2, 4}, std::pair{2, 8}, std::pair{3, 4}, std::pair{3, 6}, std::pair{4, 4}, std::pair{4, 8}}) {
      sizes.push_back({Placement::Loop(p, 1), m});
    }
  }
  Counts counts;
  for (const Size& size : sizes) Compare(size, seconds, counts);
  std::cout << "proven optimal: " << counts.proven << " of " << counts.cases << " cases, the slowest in "
            << counts.slowest << " s; CBC closes " << counts.closed << " in " << seconds
            << " s each, with the same makespan\n";
  EXPECT_GE(counts.closed, 15);
}

}  // namespace
}  // namespace orrery::pipeline
