// Units of progress that routes share links by.
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "sim/collectives/link_loads.h"

namespace orrery::collectives {
namespace {

using engine::Route;

// Links of 120 and 1200 bytes/s. A unit of the routes takes their narrowest links 1 / 120, 3 / 120 and 3 / 1200 s: the
// first becomes three of its units, the last ten.
TEST(EqualiseUnits, TheLongestCounts) {
  std::vector<Route> routes = {{.rate = 120, .loads = {{0, 1}}},
                               {.rate = 40, .loads = {{0, 3}, {1, 1}}},
                               {.rate = 400, .loads = {{1, 3}}},
                               {.rate = 7, .loads = {}}};
  EqualiseUnits(std::vector<std::int64_t>{120, 1200}, &routes);
  EXPECT_EQ(routes[0], (Route{.rate = 40, .loads = {{0, 3}}}));
  EXPECT_EQ(routes[1], (Route{.rate = 40, .loads = {{0, 3}, {1, 1}}}));
  EXPECT_EQ(routes[2], (Route{.rate = 40, .loads = {{1, 30}}}));
  EXPECT_EQ(routes[3], (Route{.rate = 7, .loads = {}}));
}

// Two and three bytes meet at six.
TEST(EqualiseUnits, CommonMultiple) {
  std::vector<Route> routes = {{.rate = 60, .loads = {{0, 2}}}, {.rate = 40, .loads = {{0, 3}}}};
  EqualiseUnits(std::vector<std::int64_t>{120}, &routes);
  EXPECT_EQ(routes[0], (Route{.rate = 20, .loads = {{0, 6}}}));
  EXPECT_EQ(routes[1], (Route{.rate = 20, .loads = {{0, 6}}}));
}

}  // namespace
}  // namespace orrery::collectives
