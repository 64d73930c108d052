// Folding gives the coarsest stable partition.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/sim/engine/pipeline_world.h"
#include "sim/engine/replay.h"
#include "sim/engine/world.h"
#include "tests/sim/engine/program_builder.h"
#include "tests/sim/engine/random_world.h"

namespace orrery::engine::testing {
namespace {

bool UsesChannel(const Program& program, std::int32_t channel) {
  return std::any_of(program.parts.begin(), program.parts.end(),
                     [&](const Part& part) { return part.channel == channel; });
}
bool UsesGroup(const Program& program, std::int32_t slot) {
  return std::any_of(program.ops.begin(), program.ops.end(),
                     [&](const Op& op) { return op.kind == OpKind::kCollective && op.group == slot; });
}

// The definition, without any cleverness: split all classes by all they see until their number stays.
std::vector<int> NaivePartition(const World& world) {
  const auto program_of = [&](std::size_t u) -> const Program& {
    return world.programs[static_cast<std::size_t>(world.units[u].program)];
  };
  std::vector<int> class_of(world.units.size());
  for (std::size_t u = 0; u < class_of.size(); ++u) {
    std::size_t first = 0;
    while (!(program_of(first) == program_of(u))) ++first;
    class_of[u] = static_cast<int>(first);
  }
  using Seen = std::tuple<int, std::vector<std::pair<int, int>>, std::vector<std::set<std::pair<int, int>>>>;
  for (std::size_t classes = 0;;) {
    std::map<Seen, int> numbers;
    std::vector<int> next;
    for (std::size_t u = 0; u < class_of.size(); ++u) {
      const Unit& unit = world.units[u];
      Seen seen;
      std::get<0>(seen) = class_of[u];
      for (std::size_t c = 0; c < unit.peers.size(); ++c) {
        if (!UsesChannel(program_of(u), static_cast<std::int32_t>(c))) continue;
        std::get<1>(seen).emplace_back(class_of[static_cast<std::size_t>(unit.peers[c].unit)], unit.peers[c].channel);
      }
      for (std::size_t slot = 0; slot < unit.groups.size(); ++slot) {
        if (!UsesGroup(program_of(u), static_cast<std::int32_t>(slot))) continue;
        auto& members = std::get<2>(seen).emplace_back();
        for (std::int32_t member : world.groups[static_cast<std::size_t>(unit.groups[slot])]) {
          const auto& groups = world.units[static_cast<std::size_t>(member)].groups;
          for (std::size_t s = 0; s < groups.size(); ++s) {
            if (groups[s] == unit.groups[slot]) {
              members.emplace(class_of[static_cast<std::size_t>(member)], static_cast<int>(s));
            }
          }
        }
      }
      next.push_back(numbers.emplace(std::move(seen), static_cast<int>(numbers.size())).first->second);
    }
    if (numbers.size() == classes) return next;
    classes = numbers.size();
    class_of = next;
  }
}

TEST(FoldTest, EqualsTheNaivePartitionOnRandomWorlds) {
  for (std::uint64_t seed = 0; seed < 1000 && !HasFailure(); ++seed) {
    const World world = RandomWorld(seed);
    const std::vector<int> naive = NaivePartition(world);
    const Folding folding = Fold(world);
    std::set<std::pair<int, int>> pairs;
    for (std::size_t u = 0; u < naive.size(); ++u) pairs.emplace(naive[u], folding.class_of[u]);
    ASSERT_EQ(pairs.size(), folding.world.units.size()) << "seed " << seed;  // one to one
    ASSERT_EQ(std::set<int>(naive.begin(), naive.end()).size(), folding.world.units.size()) << "seed " << seed;
  }
}

TEST(FoldTest, MultiplicitiesAddUpAndClassesAreOrderedByRank) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const World world = RandomWorld(seed);
    const Folding folding = Fold(world);
    std::int64_t ranks = 0;
    for (const Unit& unit : world.units) ranks += unit.multiplicity;
    for (const Unit& unit : folding.world.units) ranks -= unit.multiplicity;
    EXPECT_EQ(ranks, 0);
    for (std::size_t c = 0; c + 1 < folding.world.units.size(); ++c) {
      EXPECT_LT(folding.world.units[c].first_rank, folding.world.units[c + 1].first_rank);
    }
    // Folding what is folded changes nothing.
    EXPECT_EQ(Fold(folding.world).world.units.size(), folding.world.units.size());
  }
}

// 8 equal pipelines of 5 stages are one pipeline of multiplicity 8. One slow rank makes its pipeline a second class.
TEST(FoldTest, EqualPipelinesAreOne) {
  World world = MakePipelineWorld({8, 5, 7, Time(1), Time(2), false});
  Folding folding = Fold(world);
  ASSERT_EQ(folding.world.units.size(), 5u);
  for (const Unit& unit : folding.world.units) EXPECT_EQ(unit.multiplicity, 8);
  for (std::size_t u = 0; u < world.units.size(); ++u) EXPECT_EQ(folding.class_of[u], static_cast<std::int32_t>(u % 5));

  Program slow = world.programs[3];
  slow.segments[0].duration += Time(1);
  world.units[2 * 5 + 3].program = static_cast<std::int32_t>(world.programs.size());
  world.programs.push_back(slow);
  folding = Fold(world);
  ASSERT_EQ(folding.world.units.size(), 10u);
  EXPECT_EQ(folding.world.units[0].multiplicity, 7);
  EXPECT_EQ(folding.world.units[5].multiplicity, 1);
  EXPECT_EQ(folding.world.units[5].first_rank, 10);
}

// Programs of equal content are one program, whoever lists them how often.
TEST(FoldTest, EqualProgramsAreMerged) {
  ProgramBuilder builder;
  builder.Update(5);
  WorldBuilder world;
  for (int i = 0; i < 4; ++i) world.Add(builder.program(), 3);
  const Folding folding = Fold(world.world());
  ASSERT_EQ(folding.world.units.size(), 1u);
  EXPECT_EQ(folding.world.programs.size(), 1u);
  EXPECT_EQ(folding.world.units[0].multiplicity, 12);
}

// Groups of different size with members of the same classes are one class: a start is a maximum, so that only the set
// of classes counts. Units 0..2 in one group, 3..4 in another; 0 and 3 run program A, the others program B.
TEST(FoldTest, GroupsAreSetsOfClasses) {
  ProgramBuilder a;
  a.Compute(9);
  a.Collective(0, TimeClass::kExposedDp, TimeClass::kWaitDp, 0, 4);
  a.Update(1);
  ProgramBuilder b;
  b.Compute(2);
  b.Collective(0, TimeClass::kExposedDp, TimeClass::kWaitDp, 0, 4);
  b.Update(1);
  WorldBuilder world;
  for (int i = 0; i < 5; ++i) world.Add(i % 3 == 0 ? a.program() : b.program());
  world.Join({0, 1, 2});
  world.Join({3, 4});
  const Folding folding = Fold(world.world());
  EXPECT_EQ(folding.class_of, (std::vector<std::int32_t>{0, 1, 1, 0, 1}));
  ASSERT_EQ(folding.world.groups.size(), 1u);
  EXPECT_EQ(folding.world.groups[0], (std::vector<std::int32_t>{0, 1}));
}

// A ring of three equal units, where each group holds one of them in slot 0 and the next in slot 1, and the two uses
// are on different streams: one unit that is a member of one group twice. Slot 0 is ready at 5 and slot 1 at 8, so that
// every collective starts at 8.
TEST(FoldTest, UnitInOneGroupThroughTwoSlots) {
  ProgramBuilder builder;
  builder.Compute(5);
  builder.Collective(0, TimeClass::kExposedTp, TimeClass::kWaitTp, 0, 2);
  builder.Local({Seg(TimeClass::kCompute, 8)}, 1);
  builder.Collective(1, TimeClass::kExposedTp, TimeClass::kWaitTp, 0, 2, 1);
  builder.Update(1);
  WorldBuilder world;
  for (int i = 0; i < 3; ++i) world.Add(builder.program());
  world.world().groups = {{0, 1}, {1, 2}, {0, 2}};
  world.world().units[0].groups = {0, 2};
  world.world().units[1].groups = {1, 0};
  world.world().units[2].groups = {2, 1};
  ASSERT_TRUE(CheckWorld(world.world()).ok()) << CheckWorld(world.world());
  const Folding folding = Fold(world.world());
  ASSERT_EQ(folding.world.units.size(), 1u);
  EXPECT_EQ(folding.world.units[0].groups, (std::vector<std::int32_t>{0, 0}));
  ASSERT_TRUE(CheckWorld(folding.world).ok()) << CheckWorld(folding.world);
  for (EngineKind engine : {EngineKind::kWorklist, EngineKind::kEventQueue}) {
    ReplayOptions options;
    options.engine = engine;
    options.iterations = 0;
    const auto unfolded = engine::Run(world.world(), options);
    const auto folded = engine::Run(folding.world, options);
    ASSERT_TRUE(unfolded.ok() && folded.ok()) << unfolded.status() << folded.status();
    EXPECT_EQ(folded->window_end, Time(11));
    EXPECT_EQ(folded->timeline_hash, unfolded->timeline_hash);
  }
}

}  // namespace
}  // namespace orrery::engine::testing
