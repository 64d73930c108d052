// CBC's optimum of a mixed-integer program (milp.h) against the search's. Skipped where cbc is not installed.
//
// ORRERY_CBC_NODES=1000 lets CBC look at that many nodes per case and adds larger cases, some of which it does not
// close.
#include <algorithm>
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
  int closed = 0;  // by CBC
};

// Five cost vectors, limits of p/2, p and 2p M_B.
void Compare(const Size& size, int nodes, Counts& counts) {
  const std::int32_t p = size.placement.ranks();
  for (const CostVector& vector : CostVectors()) {
    for (const std::int64_t limit : {(p + 1) / 2, p, 2 * p}) {
      const std::int64_t chunks = size.placement.chunks();
      const OptimizeRequest request = Problem(size.placement, size.micro_batches, vector, chunks * limit);
      SCOPED_TRACE(Name(request, vector));
      const absl::StatusOr<Optimized> found = Optimize(request);
      ASSERT_TRUE(found.ok()) << found.status();
      EXPECT_TRUE(found->optimal());
      ++counts.cases;
      counts.proven += found->optimal() ? 1 : 0;
      const std::optional<CbcAnswer> answer = RunCbc(request, nodes, ::testing::TempDir());
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
  int nodes = 1000;
  if (const char* given = std::getenv("ORRERY_CBC_NODES")) {
    nodes = std::max(std::atoi(given), 1);
    for (const auto& [p, m] :
         {std::pair{2, 4}, std::pair{2, 8}, std::pair{3, 4}, std::pair{3, 6}, std::pair{4, 4}, std::pair{4, 8}}) {
      sizes.push_back({Placement::Loop(p, 1), m});
    }
  }
  Counts counts;
  for (const Size& size : sizes) Compare(size, nodes, counts);
  std::cout << "proven optimal: " << counts.proven << " of " << counts.cases << " cases; CBC closes " << counts.closed
            << " within " << nodes << " nodes each, with the same makespan\n";
  EXPECT_GE(counts.closed, 15);
}

}  // namespace
}  // namespace orrery::pipeline
