// One case, every engine, one answer: generated runs of constant costs go through the closed form (where one exists),
// the longest path, the worklist and the event queue, folded and unfolded, with ties reversed, in both granularities.
//
// Cases are seeded by their index; a failing one prints the shape that reproduces it. ORRERY_CASES overrides how many
// run.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <string>

#include "base/random.h"
#include "schedules/closed_form.h"
#include "schedules/family.h"
#include "sim/engine/replay.h"
#include "sim/training/world_builder.h"
#include "tests/sim/engine/longest_path.h"
#include "tests/sim/training/constant_pricer.h"

namespace orrery::training::testing {
namespace {

constexpr int kIterations = 2;

int NumberOfCases() {
  const char* const given = std::getenv("ORRERY_CASES");
  if (given != nullptr) return std::atoi(given);
  return std::getenv("ORRERY_SANITIZER") == nullptr ? 1200 : 150;
}

// Numbers of one case: a counter-based stream.
class Draws {
 public:
  explicit Draws(std::uint64_t seed) : seed_(seed) {}
  // Uniform in [low, high].
  std::int64_t Between(std::int64_t low, std::int64_t high) {
    const std::uint64_t span = static_cast<std::uint64_t>(high - low) + 1;
    return low + static_cast<std::int64_t>(HashCombine(seed_, next_++) % span);
  }
  bool Chance(int percent) { return Between(1, 100) <= percent; }

 private:
  std::uint64_t seed_;
  std::uint64_t next_ = 0;
};

struct Case {
  RunShape shape;
  ConstantCosts costs;
  std::vector<std::pair<std::int64_t, double>> slow;
  bool uniform = false;

  v1::Run Run(v1::Switch fold, v1::Granularity granularity) const {
    v1::Run run = MakeRun(shape);
    run.mutable_simulation()->set_fold(fold);
    run.mutable_simulation()->set_granularity(granularity);
    run.mutable_simulation()->set_iterations(kIterations);
    for (const auto& [rank, factor] : slow) {
      v1::SlowGpu& gpu = *run.mutable_perturbation()->add_slow_gpus();
      gpu.set_rank(rank);
      gpu.set_factor(factor);
    }
    return run;
  }

  std::string Describe() const {
    std::ostringstream out;
    out << Run(v1::ON, v1::CHUNK).ShortDebugString() << " F " << costs.forward[0][0] << "+" << costs.forward[0][1]
        << " B " << costs.backward[0][0] << "+" << costs.backward[0][1] << " tp " << costs.tp << " c " << costs.message;
    return out.str();
  }
};

std::int64_t LegalGroupSize(Draws& draws, std::int64_t p, std::int64_t m) {
  std::vector<std::int64_t> legal;
  for (std::int64_t n = p; n <= m; ++n) {
    if (m % n == 0 || m % n >= p) legal.push_back(n);
  }
  return legal.empty() ? 0
                       : legal[static_cast<std::size_t>(draws.Between(0, static_cast<std::int64_t>(legal.size()) - 1))];
}

// Any family whose order is not planned, with the next number of micro-batches for which it is legal. A shape for which
// there is none within reach stays 1F1B.
void DrawFamily(Draws& draws, RunShape& shape) {
  const std::vector<schedules::Family>& families = schedules::Families();
  const schedules::Family& family = families[static_cast<std::size_t>(draws.Between(0, std::ssize(families) - 1))];
  const std::int64_t chunks = family.fixed_chunks > 0 ? family.fixed_chunks : 2 * draws.Between(1, 2);
  if (family.automatic || family.name == "seq1f1b") return;
  for (std::int64_t m = shape.micro_batches; m <= shape.micro_batches + 2 * shape.pp; ++m) {
    const schedules::Parameters parameters = {.ranks = static_cast<std::int32_t>(shape.pp),
                                              .chunks = static_cast<std::int32_t>(chunks),
                                              .micro_batches = static_cast<std::int32_t>(m),
                                              .group_size = static_cast<std::int32_t>(shape.pp)};
    if (!family.check(parameters).ok()) continue;
    shape.micro_batches = m;
    shape.virtual_stages = chunks;
    shape.schedule = family.name;
    return;
  }
}

void DrawShape(Draws& draws, RunShape& shape) {
  // Small cases are as telling as large ones and far cheaper: one in eight goes to the ends of the ranges.
  const bool large = draws.Chance(12);
  shape.pp = draws.Between(1, large ? 16 : 5);
  shape.micro_batches = draws.Between(1, large ? 64 : 12);
  shape.tp = draws.Between(1, large ? 2 : 4);
  shape.dp = draws.Between(1, large ? 2 : 4);
  if (draws.Chance(35)) {  // for ZeRO-3
    shape.pp = 1;
    shape.dp = draws.Between(2, 6);
  }
  const std::int64_t family = draws.Between(0, 16);
  shape.schedule = family < 2 ? "gpipe" : "1f1b";
  shape.group_size = shape.pp;
  if (family >= 10 && shape.pp > 1) {
    DrawFamily(draws, shape);
  } else if (family >= 6 && shape.pp > 1) {
    shape.micro_batches = std::max(shape.micro_batches, shape.pp);
    shape.group_size = LegalGroupSize(draws, shape.pp, shape.micro_batches);
    shape.schedule = "interleaved-1f1b";
    shape.virtual_stages = draws.Between(2, 4);
  }
  shape.message_mode = draws.Chance(50) ? v1::EAGER : v1::BATCHED;
  const bool several_stages = shape.virtual_stages > 1 || shape.schedule == "dualpipe" || shape.schedule == "chimera";
  if (!several_stages && draws.Chance(30)) shape.message_mode = v1::BLOCKING;
  constexpr std::int64_t kNodeSizes[] = {1, 2, 3, 4, 8};
  shape.gpus_per_node = kNodeSizes[draws.Between(0, 4)];
  shape.nodes_per_leaf = draws.Between(1, 4);
  shape.tied_embeddings = draws.Chance(50);
}

// Stages of different depth, some without layers.
void DrawStages(Draws& draws, RunShape& shape) {
  const std::int64_t stages = shape.pp * shape.virtual_stages;
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    shape.stage_layers.push_back(draws.Between(stage == 0 ? 1 : 0, shape.pp == 1 ? 5 : 2));
  }
}

// What data-parallel ranks shard, among how many, and when they communicate.
void DrawSharding(Draws& draws, Case& drawn) {
  RunShape& shape = drawn.shape;
  shape.zero_stage = shape.pp == 1 && draws.Chance(70) ? 3 : draws.Between(0, 2);
  std::vector<std::int64_t> divisors;
  for (std::int64_t d = 1; d <= shape.dp; ++d) {
    if (shape.dp % d == 0) divisors.push_back(d);
  }
  shape.shard_ranks = divisors[static_cast<std::size_t>(draws.Between(0, std::ssize(divisors) - 1))];
  shape.reduce_every_micro_batch = draws.Chance(40);
  shape.reshard_after_forward = draws.Chance(60);
  shape.gather_ahead = draws.Between(0, 3);
  ConstantCosts& costs = drawn.costs;
  costs.replica_reduction = draws.Between(0, 60);
  costs.layer_conversion = draws.Chance(50) ? 0 : draws.Between(1, 9);
  costs.layer_gather = draws.Between(0, 60);
  costs.layer_reduction = draws.Between(0, 60);
  costs.root_gather = draws.Between(0, 30);
  costs.root_reduction = draws.Between(0, 30);
}

void DrawCosts(Draws& draws, Case& drawn) {
  const auto stages = static_cast<std::size_t>(drawn.shape.pp * drawn.shape.virtual_stages);
  ConstantCosts& costs = drawn.costs;
  const auto two = [&](std::int64_t high) {
    return std::array<std::int64_t, 2>{draws.Between(0, high), draws.Between(1, high)};
  };
  costs.forward.assign(stages, two(50));
  costs.backward.assign(stages, two(90));
  costs.tp = draws.Between(0, 9);
  costs.tp_lead = draws.Between(0, 2);
  costs.message = draws.Chance(30) ? 0 : draws.Between(1, 20);
  if (drawn.uniform) {
    drawn.shape.message_mode = v1::EAGER;
    drawn.shape.norm_barrier = draws.Chance(50);
    return;
  }
  for (auto& pass : costs.forward) pass = two(50);
  for (auto& pass : costs.backward) pass = two(90);
  drawn.shape.overlapped = draws.Chance(50);
  if (draws.Chance(40)) DrawStages(draws, drawn.shape);
  DrawSharding(draws, drawn);
  costs.ends = draws.Chance(50) ? 0 : draws.Between(1, 20);
  costs.step_overhead = draws.Chance(70) ? 0 : draws.Between(1, 200);
  drawn.shape.norm_barrier = draws.Chance(70);
  drawn.shape.issue_seconds = draws.Chance(50) ? 0 : static_cast<double>(draws.Between(1, 40)) * 1e-12;
  drawn.shape.data_seconds = draws.Chance(70) ? 0 : static_cast<double>(draws.Between(1, 4000)) * 1e-12;
  costs.gather = draws.Between(0, 60);
  costs.reduction = draws.Between(0, 80);
  costs.buckets = static_cast<std::int32_t>(draws.Between(1, 3));
  costs.copies_reduction = draws.Between(0, 30);
  costs.embedding_reduction = draws.Between(0, 20);
  costs.norm_barrier = draws.Between(0, 10);
  costs.slowest_wait = draws.Chance(50) ? 0 : draws.Between(1, 30);
  costs.optimizer = draws.Between(0, 50);
  const std::int64_t world = drawn.shape.tp * drawn.shape.dp * drawn.shape.pp;
  if (draws.Chance(40)) {
    std::set<std::int64_t> ranks;
    const std::int64_t slow = draws.Between(1, 3);
    for (std::int64_t i = 0; i < slow; ++i) ranks.insert(draws.Between(0, world - 1));
    for (const std::int64_t rank : ranks) {
      drawn.slow.emplace_back(rank, 1 + static_cast<double>(draws.Between(1, 8)) / 4);
    }
  }
}

Case MakeCase(int index) {
  Draws draws(static_cast<std::uint64_t>(index));
  Case drawn;
  drawn.uniform = index % 5 < 2;
  DrawShape(draws, drawn.shape);
  DrawCosts(draws, drawn);
  return drawn;
}

// A built world, folded where it may be.
struct Built {
  Plan plan;
  engine::World world;

  Built(const Case& drawn, v1::Switch fold, v1::Granularity granularity)
      : plan(*MakePlan(drawn.Run(fold, granularity))) {
    ConstantPricer pricer(plan, drawn.costs);
    TrainingWorld built = *BuildWorld(plan, pricer);
    world = built.refinable ? engine::Fold(built.world).world : std::move(built.world);
  }
};

engine::Replay Replayed(const engine::World& world, engine::EngineKind kind, bool reverse_ties = false,
                        Time fault = Time()) {
  engine::ReplayOptions options;
  options.engine = kind;
  options.iterations = kIterations;
  options.reverse_ties = reverse_ties;
  options.stop_when_periodic = false;
  options.fault = fault;
  absl::StatusOr<engine::Replay> replay = engine::Run(world, options);
  EXPECT_TRUE(replay.ok()) << replay.status();
  return replay.ok() ? *std::move(replay) : engine::Replay{};
}

// Rank-picoseconds by class over all ranks.
std::vector<Int128> ClassSums(const engine::World& world, const engine::Replay& replay) {
  std::vector<Int128> sums(engine::kTimeClasses);
  for (std::size_t i = 0; i < world.units.size(); ++i) {
    for (std::size_t c = 0; c < sums.size(); ++c) {
      sums[c] += static_cast<Int128>(replay.units[i].classes[c].count()) * world.units[i].multiplicity;
    }
  }
  return sums;
}

void ExpectClassesSumToWindow(const engine::Replay& replay) {
  for (const engine::UnitResult& unit : replay.units) {
    const Time sum = std::accumulate(unit.classes.begin(), unit.classes.end(), Time());
    ASSERT_EQ(sum, replay.window_end - replay.window_begin);
  }
}

void ExpectSameTimeline(const engine::Replay& a, const engine::Replay& b) {
  EXPECT_EQ(a.iteration_ends, b.iteration_ends);
  EXPECT_EQ(a.timeline_hash, b.timeline_hash);
}

// All engines on one granularity; returns the unfolded replay.
engine::Replay CheckGranularity(const Case& drawn, v1::Granularity granularity) {
  const Built unfolded(drawn, v1::OFF, granularity);
  EXPECT_EQ(static_cast<std::int64_t>(unfolded.world.units.size()), unfolded.plan.world);
  engine::Replay worklist = Replayed(unfolded.world, engine::EngineKind::kWorklist);
  const engine::testing::LongestPath longest = *engine::testing::FindLongestPath(unfolded.world, kIterations);
  EXPECT_EQ(worklist.timeline_hash, longest.timeline_hash);
  // The longest path goes one iteration further.
  const std::vector<Time> ends(longest.iteration_ends.begin(), longest.iteration_ends.begin() + kIterations + 1);
  EXPECT_EQ(worklist.iteration_ends, ends);
  const engine::Replay queue = Replayed(unfolded.world, engine::EngineKind::kEventQueue);
  ExpectSameTimeline(worklist, queue);
  ExpectSameTimeline(worklist, Replayed(unfolded.world, engine::EngineKind::kWorklist, true));
  ExpectSameTimeline(worklist, Replayed(unfolded.world, engine::EngineKind::kEventQueue, true));
  ExpectClassesSumToWindow(worklist);
  const std::vector<Int128> classes = ClassSums(unfolded.world, worklist);
  EXPECT_TRUE(classes == ClassSums(unfolded.world, queue));

  const Built folded(drawn, v1::ON, granularity);
  EXPECT_LE(folded.world.units.size(), unfolded.world.units.size());
  const engine::Replay folded_replay = Replayed(folded.world, engine::EngineKind::kWorklist);
  ExpectSameTimeline(worklist, folded_replay);
  EXPECT_TRUE(classes == ClassSums(folded.world, folded_replay));
  return worklist;
}

// Those of full backward passes.
bool HasClosedForm(const std::string& schedule) {
  return schedule == "gpipe" || schedule == "1f1b" || schedule == "interleaved-1f1b";
}

std::optional<Time> ClosedForm(const Case& drawn, const Plan& plan) {
  if (!drawn.uniform || !HasClosedForm(drawn.shape.schedule)) return std::nullopt;
  const bool tp = drawn.shape.tp > 1;
  const ConstantCosts& costs = drawn.costs;
  const std::int64_t collective = tp ? costs.tp + costs.tp_lead : 0;
  return schedules::ClosedFormMakespan(drawn.shape.schedule,
                                       {.ranks = static_cast<std::int32_t>(drawn.shape.pp),
                                        .chunks = plan.chunks,
                                        .micro_batches = plan.micro_batches,
                                        .group_size = static_cast<std::int32_t>(drawn.shape.group_size)},
                                       {.forward = Time(costs.forward[0][0] + costs.forward[0][1] + collective),
                                        .backward = Time(costs.backward[0][0] + costs.backward[0][1] + collective),
                                        .latency = Time(costs.message)});
}

TEST(Differential, EveryEngineGivesOneAnswer) {
  const int cases = NumberOfCases();
  int closed_forms = 0;
  int slow_gpus = 0;
  int sharded = 0;
  int hybrid = 0;
  int uneven = 0;
  int several_copies = 0;
  std::map<std::string, int> schedules;
  std::set<std::string> distinct;
  for (int index = 0; index < cases; ++index) {
    const Case drawn = MakeCase(index);
    SCOPED_TRACE("case " + std::to_string(index) + ": " + drawn.Describe());
    distinct.insert(drawn.Describe());
    const engine::Replay chunk = CheckGranularity(drawn, v1::CHUNK);
    const engine::Replay operators = CheckGranularity(drawn, v1::OPERATOR);
    EXPECT_EQ(chunk.iteration_ends, operators.iteration_ends);
    ASSERT_EQ(chunk.units.size(), operators.units.size());
    for (std::size_t i = 0; i < chunk.units.size(); ++i) {
      ASSERT_TRUE(chunk.units[i].classes == operators.units[i].classes) << "unit " << i;
    }
    slow_gpus += drawn.slow.empty() ? 0 : 1;
    const Plan plan = *MakePlan(drawn.Run(v1::OFF, v1::CHUNK));
    sharded += plan.gathers_units() ? 1 : 0;
    hybrid += plan.replicas() > 1 ? 1 : 0;
    several_copies += plan.copies() > 1 ? 1 : 0;
    ++schedules[drawn.shape.schedule];
    uneven += drawn.shape.stage_layers.empty() ? 0 : 1;
    const std::optional<Time> closed_form = ClosedForm(drawn, plan);
    if (closed_form.has_value()) {
      ++closed_forms;
      EXPECT_EQ(chunk.iteration_ends[0], *closed_form);
      // Nothing but the barrier between iterations: each is the first again.
      if (drawn.shape.norm_barrier) {
        EXPECT_EQ(chunk.window_end - chunk.window_begin, *closed_form);
      }
    }
    if (::testing::Test::HasFailure()) FAIL() << "stopped at the first case that differs";
  }
  RecordProperty("cases", static_cast<int>(distinct.size()));
  RecordProperty("closed_forms", closed_forms);
  RecordProperty("slow_gpus", slow_gpus);
  std::printf(
      "%d cases, %zu distinct; %d with a closed form, %d with slow GPUs; %d gather units, %d have replicas of "
      "shards, %d uneven stages; %zu schedules, %d with copies of the model\n",
      cases, distinct.size(), closed_forms, slow_gpus, sharded, hybrid, uneven, schedules.size(), several_copies);
  if (cases >= 1000) {
    EXPECT_GE(distinct.size(), 1000u);
    EXPECT_GE(closed_forms, 300);
    EXPECT_GE(slow_gpus, 200);
    EXPECT_GE(sharded, 100);
    EXPECT_GE(hybrid, 100);
    EXPECT_GE(uneven, 200);
    EXPECT_GE(schedules.size(), 17u);
    EXPECT_GE(several_copies, 10);
  }
}

// A picosecond too much in one operation of either engine shows, in either granularity, unfolded and folded.
TEST(Differential, FindsAFaultOfOnePicosecond) {
  for (const int index : {0, 2, 3, 7, 11}) {
    const Case drawn = MakeCase(index);
    SCOPED_TRACE(drawn.Describe());
    for (const v1::Granularity granularity : {v1::CHUNK, v1::OPERATOR}) {
      for (const v1::Switch fold : {v1::OFF, v1::ON}) {
        const Built built(drawn, fold, granularity);
        const engine::testing::LongestPath longest = *engine::testing::FindLongestPath(built.world, kIterations);
        for (const engine::EngineKind kind : {engine::EngineKind::kWorklist, engine::EngineKind::kEventQueue}) {
          EXPECT_EQ(Replayed(built.world, kind).timeline_hash, longest.timeline_hash);
          EXPECT_NE(Replayed(built.world, kind, false, Time(1)).timeline_hash, longest.timeline_hash);
        }
      }
    }
  }
}

// Gives a unit its own program in which segments of one operation take `extra` longer.
void SlowKernel(engine::World& world, std::size_t unit, std::size_t op_index, Time extra) {
  engine::Program program = world.programs[static_cast<std::size_t>(world.units[unit].program)];
  engine::Op& op = program.ops[op_index];
  const auto first = static_cast<std::ptrdiff_t>(op.first_segment);
  std::vector<engine::Segment> own(program.segments.begin() + first,
                                   program.segments.begin() + first + op.num_segments);
  op.first_segment = static_cast<std::int32_t>(program.segments.size());
  own.front().duration += extra;
  program.segments.insert(program.segments.end(), own.begin(), own.end());
  world.units[unit].program = static_cast<std::int32_t>(world.programs.size());
  world.programs.push_back(std::move(program));
}

// A kernel of one rank that takes a picosecond longer: every engine gives the longest path's answer, and folding sees
// it.
TEST(Differential, OneKernelOneRankOnePicosecond) {
  int changed = 0;
  const int cases = std::min(200, NumberOfCases());
  for (int index = 0; index < cases; ++index) {
    const Case drawn = MakeCase(index);
    SCOPED_TRACE("case " + std::to_string(index) + ": " + drawn.Describe());
    Built built(drawn, v1::OFF, index % 2 == 0 ? v1::CHUNK : v1::OPERATOR);
    Draws draws(static_cast<std::uint64_t>(index) + 1000000);
    const auto unit =
        static_cast<std::size_t>(draws.Between(0, static_cast<std::int64_t>(built.world.units.size()) - 1));
    const std::vector<engine::Op>& ops =
        built.world.programs[static_cast<std::size_t>(built.world.units[unit].program)].ops;
    std::vector<std::size_t> kernels;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      if (ops[i].kind == engine::OpKind::kLocal && ops[i].num_segments > 0) kernels.push_back(i);
    }
    const auto chosen = static_cast<std::size_t>(draws.Between(0, static_cast<std::int64_t>(kernels.size()) - 1));
    const std::uint64_t before = Replayed(built.world, engine::EngineKind::kWorklist).timeline_hash;
    SlowKernel(built.world, unit, kernels[chosen], Time(1));
    const engine::testing::LongestPath longest = *engine::testing::FindLongestPath(built.world, kIterations);
    changed += longest.timeline_hash != before ? 1 : 0;
    const engine::Replay worklist = Replayed(built.world, engine::EngineKind::kWorklist);
    EXPECT_EQ(worklist.timeline_hash, longest.timeline_hash);
    EXPECT_EQ(Replayed(built.world, engine::EngineKind::kEventQueue).timeline_hash, longest.timeline_hash);
    const engine::World folded = engine::Fold(built.world).world;
    const engine::Replay folded_replay = Replayed(folded, engine::EngineKind::kWorklist);
    EXPECT_EQ(folded_replay.timeline_hash, longest.timeline_hash);
    EXPECT_TRUE(ClassSums(folded, folded_replay) == ClassSums(built.world, worklist));
  }
  // A kernel that the host holds back hides it.
  EXPECT_GE(changed, cases * 9 / 10);
}

// Random sets of ranks slowed on all axes at once: the engine's refinement finds what is still alike, and changes
// nothing.
TEST(Differential, RandomSetsSlowedFoldExactly) {
  std::size_t folded_units = 0;
  std::size_t all_units = 0;
  for (int index = 0; index < 200; ++index) {
    Case drawn = MakeCase(index);
    Draws draws(static_cast<std::uint64_t>(index) + 2000000);
    drawn.slow.clear();
    const std::int64_t world_size = drawn.shape.tp * drawn.shape.dp * drawn.shape.pp;
    const int percent = static_cast<int>(draws.Between(5, 60));
    for (std::int64_t rank = 0; rank < world_size; ++rank) {
      if (draws.Chance(percent)) drawn.slow.emplace_back(rank, draws.Chance(50) ? 1.5 : 2.25);
    }
    SCOPED_TRACE("case " + std::to_string(index) + ": " + drawn.Describe());
    const Built unfolded(drawn, v1::OFF, v1::CHUNK);
    const engine::Replay whole = Replayed(unfolded.world, engine::EngineKind::kWorklist);
    const engine::World refined = engine::Fold(unfolded.world).world;
    const engine::Replay part = Replayed(refined, engine::EngineKind::kEventQueue);
    EXPECT_EQ(whole.timeline_hash, part.timeline_hash);
    const Built symbolic(drawn, v1::ON, v1::CHUNK);
    EXPECT_EQ(whole.timeline_hash, Replayed(symbolic.world, engine::EngineKind::kWorklist).timeline_hash);
    EXPECT_EQ(symbolic.world.units.size(), refined.units.size()) << "both ways reach the coarsest partition";
    folded_units += refined.units.size();
    all_units += unfolded.world.units.size();
  }
  EXPECT_LT(folded_units, all_units);
}

}  // namespace
}  // namespace orrery::training::testing
