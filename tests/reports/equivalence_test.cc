// One run, simulated in every way: folded or not, by pass or by kernel, by worklist or event queue. The JSON without
// its `simulator` object has the same bytes.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "reports/json.h"
#include "tests/sim/training/example_runs.h"

namespace orrery::reports {
namespace {

using training::testing::Example;
using training::testing::Simulated;
using training::testing::SmallRun;

using Overrides = std::vector<std::string>;

// Few layers and micro-batches: simulated by kernel, unfolded, many times.
v1::Run ShortRun(Overrides overrides) {
  overrides.insert(overrides.begin(), {"model.layers=12", "training.global_batch=16"});
  return SmallRun(std::move(overrides));
}

// How a run is simulated must not show.
struct Way {
  const char* name;
  v1::Switch fold;
  v1::Granularity granularity;
  v1::Engine engine;
};
constexpr Way kWays[] = {
    {"unfolded", v1::OFF, v1::CHUNK, v1::WORKLIST},
    {"by kernel", v1::ON, v1::OPERATOR, v1::WORKLIST},
    {"by event queue", v1::ON, v1::CHUNK, v1::EVENT_QUEUE},
    {"unfolded, by kernel, by event queue", v1::OFF, v1::OPERATOR, v1::EVENT_QUEUE},
};

std::string Json(const v1::Run& run, const Waterfall& waterfall) {
  return ResultJson(
      Simulated(run), waterfall,
      Provenance{.version = "test", .spec_sha256 = {}, .profile = {}, .software = {}, .expected_error = {}}, nullptr);
}

void ExpectOneAnswer(v1::Run run) {
  run.mutable_simulation()->set_fold(v1::ON);
  const std::string expected = Json(run, Waterfall());
  for (const Way& way : kWays) {
    run.mutable_simulation()->set_fold(way.fold);
    run.mutable_simulation()->set_granularity(way.granularity);
    run.mutable_simulation()->set_engine(way.engine);
    EXPECT_EQ(Json(run, Waterfall()), expected) << way.name;
  }
}

struct Shape {
  const char* name;
  Overrides overrides;
  bool several_stages_per_rank = false;
};

std::vector<Shape> Shapes() {
  return {
      {"regular", {}},
      {"interleaved", {"parallelism.virtual_stages=3"}, true},
      {"one stage", {"parallelism.pp=1"}, true},
      {"two copies, fused blocks", {"schedule.name=dualpipe", "parallelism.pp=2"}, true},
      {"planned V",
       {"schedule.name=zb-v-greedy", "model.layers=16", "parallelism.virtual_stages=2",
        "software.post_validation=true"},
       true},
      // Groups of 6 on nodes of 8: some within a node, some over two. 24 heads and 2048 tokens: no sequence
      // parallelism.
      {"tp 6 on nodes of 8", {"parallelism={tp: 6 pp: 4 dp: 4 sequence_parallel: false}"}},
      // A pipeline rank is 12 GPUs, one node and a half, with two nodes a leaf: of the messages between two pipeline
      // ranks some stay below a leaf and some do not, and groups are spread unevenly.
      {"dp over nodes and leaves",
       {"parallelism={tp: 2 pp: 4 dp: 6}", "training.global_batch=24", "cluster.fabric.nodes_per_leaf=2"}},
  };
}

const std::vector<Overrides>& Perturbations() {
  static const std::vector<Overrides> kPerturbations = {
      {},
      {"perturbation.jitter={mode: EXPECTED}"},
      {"perturbation.jitter={mode: SAMPLED}"},
      {"perturbation.slow_gpus=[{rank: 5 factor: 1.25}, {rank: 7 factor: 1.5}]"},
  };
  return kPerturbations;
}

Overrides operator+(Overrides a, const Overrides& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class EquivalenceTest : public ::testing::TestWithParam<std::string> {};

INSTANTIATE_TEST_SUITE_P(MessageModes, EquivalenceTest, ::testing::Values("EAGER", "BATCHED", "BLOCKING"),
                         [](const auto& test) { return test.param; });

TEST_P(EquivalenceTest, EveryWayOfSimulatingGivesTheSameBytes) {
  const Overrides mode = {"software.message_mode=" + GetParam(), "software.split_message_mode=" + GetParam()};
  const std::vector<Overrides> communication = {
      {"software.issue_seconds=0"},
      {"software.gradient_reduction=OVERLAPPED", "software.parameter_gather=OVERLAPPED", "parallelism.zero_stage=2",
       "software.bucket_bytes=100000000", "training.data_seconds=0.3"},
  };
  for (const Shape& shape : Shapes()) {
    // A ring of blocking messages deadlocks: blocking is for one stage per rank.
    if (GetParam() == "BLOCKING" && shape.several_stages_per_rank) continue;
    for (const Overrides& communicates : communication) {
      for (const Overrides& perturbation : Perturbations()) {
        SCOPED_TRACE(std::string(shape.name) + " " + ::testing::PrintToString(communicates + perturbation));
        // Later overrides win.
        ExpectOneAnswer(ShortRun(shape.overrides + mode + communicates + perturbation));
      }
    }
  }
}

// The shapes above are what they claim to be: folding merges nearly all of a regular run, and less of an irregular one.
TEST(Equivalence, FoldingSeesIrregularPlacements) {
  EXPECT_EQ(Simulated(ShortRun({})).ranks_simulated, 4);
  const std::vector<Shape> shapes = Shapes();
  for (const Shape* irregular : {&shapes[5], &shapes[6]}) {
    const training::Result result = Simulated(ShortRun(irregular->overrides));
    EXPECT_GT(result.ranks_simulated, result.plan->pp) << irregular->name;
    EXPECT_LT(result.ranks_simulated, result.gpus) << irregular->name;
  }
}

// With the waterfall, on a shipped example.
TEST(Equivalence, WholeJsonOfAnExample) {
  v1::Run run = Example("korthikanti_22b");
  const auto whole = [&] { return Json(run, *MakeWaterfall(run, Simulated(run))); };
  const std::string expected = whole();
  run.mutable_simulation()->set_fold(v1::OFF);
  run.mutable_simulation()->set_granularity(v1::OPERATOR);
  EXPECT_EQ(whole(), expected);
}

// 12,288 GPUs, each with a cursor of its own.
TEST(Equivalence, MegascaleFoldedAndUnfolded) {
  const Overrides fewer = {"training.global_batch=1536"};  // eight micro-batches are as telling as 32
  const std::string folded = Json(Example("megascale_175b_12288", fewer), Waterfall());
  EXPECT_EQ(Json(Example("megascale_175b_12288", fewer + Overrides{"simulation.fold=OFF"}), Waterfall()), folded);
}

// Data-parallel communication beside both passes, with rules of these factors.
v1::Run Overlapped(const std::string& factors, const Overrides& overrides) {
  return ShortRun(Overrides{"software.gradient_reduction=OVERLAPPED", "software.parameter_gather=OVERLAPPED",
                            "parallelism.zero_stage=2", "software.bucket_bytes=100000000",
                            "software.overlap_rules=[{axis: DP pass: FORWARD micro_batches: FIRST " + factors +
                                "}, {axis: DP pass: BACKWARD micro_batches: LAST " + factors + "}]"} +
                  overrides);
}

// Overlap that slows nothing is static overlap: no message is beside compute where there is no pipeline, or where
// compute waits for messages.
TEST(Equivalence, DynamicOverlapWithoutSlowdownIsStatic) {
  const std::string nothing = "compute_factor: 1 communication_factor: 1";
  for (const Overrides& overrides : std::vector<Overrides>{
           {"parallelism.pp=1"}, {"software.message_mode=BATCHED"}, {"perturbation.jitter={mode: EXPECTED}"}}) {
    SCOPED_TRACE(::testing::PrintToString(overrides));
    const v1::Run fixed = Overlapped(nothing, overrides);
    const v1::Run changing = Overlapped(nothing, overrides + Overrides{"simulation.overlap=DYNAMIC"});
    EXPECT_EQ(Json(changing, *MakeWaterfall(changing, Simulated(changing))),
              Json(fixed, *MakeWaterfall(fixed, Simulated(fixed))));
  }
}

// Nor does it show there how a run is simulated; and it is slower, unless what is slowed is switched off.
TEST(Equivalence, DynamicOverlapInEveryWay) {
  for (const Shape& shape : Shapes()) {
    for (const Overrides& perturbation : Perturbations()) {
      SCOPED_TRACE(std::string(shape.name) + " " + ::testing::PrintToString(perturbation));
      v1::Run run = Overlapped(
          "compute_factor: 1.5 communication_factor: 1.25",
          shape.overrides + perturbation + Overrides{"simulation.overlap=DYNAMIC", "software.message_mode=EAGER"});
      const std::string expected = Json(run, Waterfall());
      for (const Way& way : kWays) {
        if (way.engine != v1::EVENT_QUEUE) continue;
        run.mutable_simulation()->set_fold(way.fold);
        run.mutable_simulation()->set_granularity(way.granularity);
        EXPECT_EQ(Json(run, Waterfall()), expected) << way.name;
      }
    }
  }
}

TEST(Equivalence, SwitchingACauseOffRemovesItsSlowdown) {
  const std::string factors = "compute_factor: 1.5 communication_factor: 1.25";
  const v1::Run fixed = Overlapped(factors, {"parallelism.pp=1"});
  const v1::Run changing = Overlapped(factors, {"parallelism.pp=1", "simulation.overlap=DYNAMIC"});
  const training::Result result = Simulated(changing);
  EXPECT_GT(result.iteration_time,
            Simulated(Overlapped("compute_factor: 1 communication_factor: 1", {"parallelism.pp=1"})).iteration_time);
  EXPECT_LT(result.iteration_time, Simulated(fixed).iteration_time);
  const Waterfall a = *MakeWaterfall(changing, result);
  const Waterfall b = *MakeWaterfall(fixed, Simulated(fixed));
  for (std::size_t i = 3; i < a.steps.size(); ++i) EXPECT_EQ(a.steps[i].time, b.steps[i].time) << a.steps[i].name;
}

}  // namespace
}  // namespace orrery::reports
