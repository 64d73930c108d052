// Whole runs from specs: how much is simulated, by formula, and answers that must move in one direction.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/training/role_pricer.h"
#include "tests/sim/training/example_runs.h"

namespace orrery::training::testing {
namespace {

// SmallRun without a pipeline and with parameters sharded over dp 16.
v1::Run ShardedRun(std::vector<std::string> overrides = {}) {
  std::vector<std::string> all = {"parallelism.pp=1", "parallelism.dp=16", "parallelism.zero_stage=3",
                                  "software.reduce_every_micro_batch=true"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return SmallRun(all);
}

// Length of a program at chunk granularity, from what the run is: operations of one iteration of a rank.
//
//   1                          the iteration's begin
//   v        dp > 1, ZeRO      parameter gathers, one a chunk; where they overlap, one a bucket
//   2 m v                      forward and backward passes; eager messages are part of them
//   x                          exchanges, where messages are not eager: one for each boundary with a send or receive
//   buckets  dp > 1            gradient reductions, one a bucket and chunk
//   1        first, last rank  reduction of tied embeddings (pp > 1)
//   1        world > 1         gradient norm
//   1        expected jitter   wait for the slowest rank
//   1                          update
//
// Where reductions overlap, the last backward pass of a chunk is cut into as many pieces as buckets (buckets - 1 more
// operations a chunk), and one operation waits for them; where gathers overlap, the first forward pass likewise.
struct ProgramLength {
  std::int64_t micro_batches = 1;
  std::int64_t chunks = 1;
  std::int64_t gathers = 0;
  std::int64_t exchanges = 0;
  std::int64_t reductions = 0;
  std::int64_t waits_for_reduction = 0;
  std::int64_t embedding = 0;
  std::int64_t norm = 1;
  std::int64_t slowest = 0;

  std::int64_t Total() const {
    return 1 + gathers + 2 * micro_batches * chunks + exchanges + reductions + waits_for_reduction + embedding + norm +
           slowest + 1;
  }
};

void ExpectTasks(const Result& result, std::int64_t world, std::int64_t sum_of_lengths) {
  EXPECT_EQ(result.ranks_simulated, world);
  EXPECT_GE(result.iterations_replayed, 2);
  EXPECT_EQ(result.tasks, sum_of_lengths * result.iterations_replayed);
}

// SmallRun: 4 pipeline ranks of 8 ranks each; 32 / 4 = 8 micro-batches; ZeRO off, one bucket, tied embeddings.
TEST(Tasks, EagerByFormula) {
  const Result result = Simulated(SmallRun({"simulation.fold=OFF", "software.message_mode=EAGER",
                                            "parallelism.zero_stage=0", "software.bucket_bytes=1000000000000"}));
  const ProgramLength inner = {.micro_batches = 8, .reductions = 1};
  ProgramLength end = inner;
  end.embedding = 1;
  ASSERT_EQ(inner.Total(), 20);  // begin, 16 passes, reduction, norm, update
  ExpectTasks(result, 32, 16 * inner.Total() + 16 * end.Total());
}

// Two pipeline ranks, m micro-batches, batched: rank 0 sends activation 0 alone; then activation k + 1 leaves in the
// batch in which gradient k arrives (m - 1 of them); then the last gradient arrives alone: m + 1 exchanges. Rank 1 is
// the other end of each. Here m = 32 / 8 = 4 and both ranks are ends of the pipeline.
TEST(Tasks, BatchedByFormula) {
  const Result result =
      Simulated(SmallRun({"simulation.fold=OFF", "software.message_mode=BATCHED", "parallelism.pp=2",
                          "parallelism.dp=8", "parallelism.zero_stage=0", "software.bucket_bytes=1000000000000"}));
  const ProgramLength length = {.micro_batches = 4, .exchanges = 5, .reductions = 1, .embedding = 1};
  ASSERT_EQ(length.Total(), 18);
  ExpectTasks(result, 32, 32 * length.Total());
}

// Overlapped reduction in buckets: GPT 1.7B has 6 layers a rank here, so buckets of a megabyte are clamped to one a
// layer: 6 reductions and 5 more pieces of the last backward pass. ZeRO-1 gathers likewise: 6 and 5 more pieces of the
// first forward pass.
TEST(Tasks, BucketsByFormula) {
  const Result result = Simulated(SmallRun({"simulation.fold=OFF", "software.message_mode=EAGER",
                                            "parallelism.zero_stage=1", "software.gradient_reduction=OVERLAPPED",
                                            "software.parameter_gather=OVERLAPPED", "software.bucket_bytes=1000000"}));
  const ProgramLength inner = {.micro_batches = 8, .gathers = 6 + 5, .reductions = 6 + 5, .waits_for_reduction = 1};
  ProgramLength end = inner;
  end.embedding = 1;
  ExpectTasks(result, 32, 16 * inner.Total() + 16 * end.Total());
}

// MegaScale on 3,072 GPUs, every rank with a cursor of its own: eager, 6 stages a rank, 6144 / 48 = 128 micro-batches,
// chunks reduced whole, gathers overlapped, expected jitter. Two of eight pipeline ranks are ends.
TEST(Tasks, MegascaleUnfoldedByFormula) {
  const Result result = Simulated(Example("megascale_175b_3072", {"simulation.fold=OFF"}));
  const ProgramLength inner = {
      .micro_batches = 128, .chunks = 6, .gathers = 6, .reductions = 6, .waits_for_reduction = 1, .slowest = 1};
  ProgramLength end = inner;
  end.embedding = 1;
  ASSERT_EQ(inner.Total(), 1553);
  ExpectTasks(result, 3072, 3072 / 8 * (6 * inner.Total() + 2 * end.Total()));
}

// ZeRO-3 on 32 ranks of tp 2, dp 16; GPT 1.7B has 24 layers; 32 / 16 = 2 micro-batches, gathered again for the backward
// pass and reduced in each. Per micro-batch: forward 24 layers, embedding and head, backward likewise: 2 x 26
// stretches; gathers 24 + 1 + 24, reductions 24 + 1. One rank then has begin, wait, norm and update. Hybrid sharding
// over 4 ranks reduces each unit a second time; without resharding 24 gathers a micro-batch are gone.
TEST(Tasks, ShardedByFormula) {
  const std::int64_t per_micro_batch = 2 * 26 + 49 + 25;
  ExpectTasks(Simulated(ShardedRun({"simulation.fold=OFF"})), 32, 32 * (2 * per_micro_batch + 4));
  ExpectTasks(Simulated(ShardedRun({"simulation.fold=OFF", "parallelism.shard_ranks=4"})), 32,
              32 * (2 * (per_micro_batch + 25) + 4));
  ExpectTasks(Simulated(ShardedRun({"simulation.fold=OFF", "software.reshard_after_forward=false"})), 32,
              32 * (2 * (per_micro_batch - 24) + 4));
}

// A million GPUs are eight pipeline ranks.
TEST(Folding, MillionGpusCostWhatEightDo) {
  const Result result = Simulated(Example(
      "megascale_175b_12288", {"parallelism.dp=16384", "training.global_batch=524288", "cluster.nodes=131072"}));
  EXPECT_EQ(result.gpus, 1048576);
  EXPECT_EQ(result.ranks_simulated, 8);
  EXPECT_GT(result.Mfu(), 0.1);
  EXPECT_LT(result.Mfu(), 1);
}

// A slow GPU splits off its coordinates, not the world: of 192 replicas and 8 tensor-parallel ranks two blocks each.
TEST(Folding, SlowGpuSplitsItsCoordinatesOff) {
  const Result result = Simulated(Example("megascale_175b_12288", {"perturbation.slow_gpus={rank: 777 factor: 1.2}"}));
  EXPECT_GT(result.ranks_simulated, 8);
  EXPECT_LE(result.ranks_simulated, 8 * 2 * 2);
}

// --- Directions

void ExpectAccountIsWhole(const Result& result) {
  Int128 sum = 0;
  for (const Int128 class_sum : result.class_sums) sum += class_sum;
  EXPECT_TRUE(sum == static_cast<Int128>(result.iteration_time.count()) * result.gpus);
  for (const PipelineRankResult& rank : result.pipeline_ranks) {
    Int128 rank_sum = 0;
    for (const Int128 class_sum : rank.class_sums) rank_sum += class_sum;
    EXPECT_TRUE(rank_sum == static_cast<Int128>(result.iteration_time.count()) * rank.ranks) << rank.pipeline_rank;
  }
}

const std::vector<std::vector<std::string>>& Variants() {
  static const std::vector<std::vector<std::string>> kVariants = {
      {},
      {"software.message_mode=EAGER"},
      {"software.message_mode=BLOCKING"},
      {"parallelism.virtual_stages=2"},
      {"software.gradient_reduction=OVERLAPPED", "software.parameter_gather=OVERLAPPED", "parallelism.zero_stage=1"},
      {"perturbation.jitter={mode: EXPECTED}"},
      {"perturbation.jitter={mode: SAMPLED}"},
      {"software.issue_seconds=50e-6", "training.data_seconds=2"},
      {"software.norm_barrier=false"},
      {"parallelism.pp=1", "parallelism.dp=16", "parallelism.zero_stage=3"},
      {"parallelism.pp=1", "parallelism.dp=16", "parallelism.zero_stage=3", "parallelism.shard_ranks=4",
       "software.reduce_every_micro_batch=true", "software.fp32_parameters=true",
       "perturbation.jitter={mode: EXPECTED}"},
      {"parallelism.zero_stage=1", "parallelism.shard_ranks=2", "software.reduce_every_micro_batch=true"},
      {"parallelism.stage_layers=[9, 7, 8, 0]", "software.fp32_parameters=true",
       "cluster.accelerator.profile.host.step_overhead={value: 0.05}"},
  };
  return kVariants;
}

std::vector<std::string> With(std::vector<std::string> overrides, const std::string& one_more) {
  overrides.push_back(one_more);
  return overrides;
}

TEST(Directions, AccountsAreWholeToThePicosecond) {
  for (const std::vector<std::string>& variant : Variants()) {
    SCOPED_TRACE(::testing::PrintToString(variant));
    ExpectAccountIsWhole(Simulated(SmallRun(variant)));
  }
  for (const std::string& name : ExampleNames()) {
    SCOPED_TRACE(name);
    ExpectAccountIsWhole(Simulated(Example(name)));
  }
}

// Units of different pipeline ranks that fold into one class still count for their own: without bubbles the middle
// ranks of a pipeline are alike.
TEST(Directions, EveryPipelineRankHasItsAccount) {
  const v1::Run run = SmallRun({"simulation.without=CAUSE_BUBBLE", "perturbation.slow_gpus={rank: 3 factor: 1.5}"});
  const Result result = Simulated(run);
  ASSERT_EQ(result.pipeline_ranks.size(), 4u);
  for (const PipelineRankResult& rank : result.pipeline_ranks) {
    EXPECT_EQ(rank.ranks, 8);  // tp 2 x dp 4
    Int128 sum = 0;
    for (const Int128 of_class : rank.class_sums) sum += of_class;
    EXPECT_TRUE(sum == static_cast<Int128>(result.iteration_time.count()) * rank.ranks);
  }
}

// Tensor-parallel groups that straddle nodes differently gather a scattered message at different cost; both sides must
// mean the receiver's: 2 x 2 x 2 ranks on nodes of 3.
TEST(Directions, ScatteredMessagesCostWhatTheReceiverGathers) {
  for (const char* mode : {"EAGER", "BLOCKING", "BATCHED"}) {
    const v1::Run run =
        SmallRun({"parallelism.sequence_parallel=false", "parallelism.pp=2", "parallelism.dp=2", "parallelism.gpus=8",
                  "cluster.node.gpus=3", "cluster.node.nics=3", std::string("software.message_mode=") + mode});
    EXPECT_GT(Simulated(run).iteration_time, Time()) << mode;
  }
}

TEST(Directions, SlowerHardwareNeverSpeedsUp) {
  for (const std::vector<std::string>& variant : Variants()) {
    SCOPED_TRACE(::testing::PrintToString(variant));
    const Time nominal = Simulated(SmallRun(variant)).iteration_time;
    Time previous = nominal;
    for (const char* const bandwidth : {"12.5e9", "6e9", "1e9"}) {
      const Time slower =
          Simulated(SmallRun(With(variant, std::string("cluster.node.nic.bandwidth=") + bandwidth))).iteration_time;
      EXPECT_GE(slower, previous) << "NIC " << bandwidth;
      previous = slower;
    }
    EXPECT_GT(previous, nominal) << "data-parallel groups cross nodes: the NIC matters";
    previous = nominal;
    for (const char* const factor : {"1.1", "1.5", "3"}) {
      const Time slower =
          Simulated(SmallRun(With(variant, std::string("perturbation.slow_gpus={rank: 13 factor: ") + factor + "}")))
              .iteration_time;
      EXPECT_GE(slower, previous) << "slow GPU " << factor;
      previous = slower;
    }
    EXPECT_GT(previous, nominal);
  }
}

// Draws of two seeds differ, and so do their answers; the expected mode has none.
TEST(Directions, SeedsMatterOnlyWhereSpeedsAreDrawn) {
  const auto time = [](const char* mode, int seed) {
    return Simulated(
               SmallRun({std::string("perturbation.jitter={mode: ") + mode + " seed: " + std::to_string(seed) + "}"}))
        .iteration_time;
  };
  EXPECT_NE(time("SAMPLED", 1), time("SAMPLED", 2));
  EXPECT_EQ(time("SAMPLED", 1), time("SAMPLED", 1));
  EXPECT_EQ(time("EXPECTED", 1), time("EXPECTED", 2));
  EXPECT_GT(time("EXPECTED", 1), time("NO_JITTER", 1));
}

// The largest of 32 draws is not the expected one in every sample, but on average it is near: the mean over ten seeds
// lies within half of the expected loss.
TEST(Directions, SampledJitterScattersAroundTheExpected) {
  const double nominal = SecondsFromTime(Simulated(SmallRun()).iteration_time);
  const double expected =
      SecondsFromTime(Simulated(SmallRun({"perturbation.jitter={mode: EXPECTED}"})).iteration_time) - nominal;
  double mean = 0;
  constexpr int kSeeds = 10;
  for (int seed = 1; seed <= kSeeds; ++seed) {
    const std::string jitter = "perturbation.jitter={mode: SAMPLED seed: " + std::to_string(seed) + "}";
    mean += (SecondsFromTime(Simulated(SmallRun({jitter})).iteration_time) - nominal) / kSeeds;
  }
  EXPECT_GT(mean, 0.5 * expected);
  EXPECT_LT(mean, 1.5 * expected);
}

// Folded or not, by pass or by kernel, worklist or queue: sharded runs have one answer and one account.
TEST(Sharded, OneAnswerInEveryWay) {
  const std::vector<std::vector<std::string>> runs = {
      {},
      {"parallelism.shard_ranks=4", "software.fp32_parameters=true"},
      {"parallelism.shard_ranks=8", "perturbation.slow_gpus={rank: 5 factor: 1.3}", "software.issue_seconds=20e-6"},
      {"perturbation.jitter={mode: SAMPLED}", "software.gather_ahead=2"},
      {"parallelism.shard_ranks=2", "perturbation.jitter={mode: EXPECTED}", "software.reduce_every_micro_batch=false",
       "cluster.accelerator.profile.host={launch_skew { value: 1e-3 } step_overhead { value: 2e-3 }}"},
      {"parallelism.tp=4", "parallelism.dp=8", "parallelism.shard_ranks=4", "cluster.node.gpus=6",
       "cluster.node.nics=6"},
  };
  for (const std::vector<std::string>& overrides : runs) {
    SCOPED_TRACE(::testing::PrintToString(overrides));
    const Result expected = Simulated(ShardedRun(overrides));
    ExpectAccountIsWhole(expected);
    for (const char* const way :
         {"simulation.fold=OFF", "simulation.granularity=OPERATOR", "simulation.engine=EVENT_QUEUE"}) {
      const Result result = Simulated(ShardedRun(With(overrides, way)));
      EXPECT_EQ(result.iteration_time, expected.iteration_time) << way;
      EXPECT_TRUE(result.class_sums == expected.class_sums) << way;
    }
  }
}

// ZeRO-3 moves what others do not: half as much again as an all-reduce of gradients (all-gathers of parameters for both
// passes; Rajbhandari et al. 2020, section 7.2). Gathered further ahead, or kept after the forward pass, less of it is
// exposed; sharded in a node, the network carries only copies of shards.
TEST(Sharded, ExposureFollowsWhatIsGatheredAhead) {
  const auto exposed = [](std::vector<std::string> overrides) {
    return Simulated(ShardedRun(With(std::move(overrides), "cluster.node.nic.bandwidth=5e9")))
        .Fraction(engine::TimeClass::kExposedDp);
  };
  const double one_ahead = exposed({});
  EXPECT_GT(exposed({"software.gather_ahead=0"}), one_ahead);
  EXPECT_LT(exposed({"software.reshard_after_forward=false"}), one_ahead);
  EXPECT_LT(exposed({"parallelism.shard_ranks=4"}), one_ahead);
  EXPECT_EQ(exposed({"simulation.without=CAUSE_EXPOSED_DP"}), 0);
}

// Constants of zero change nothing; a pause adds itself, the skew sigma times the expected largest of 32 normal draws,
// 2.0697 (Harter 1961), once an iteration, where there is jitter.
TEST(Host, CostsOfAnIteration) {
  const auto seconds = [](std::vector<std::string> overrides) {
    const v1::Run run = SmallRun(With(std::move(overrides), "software.issue_seconds=0"));
    return SecondsFromTime(Simulated(run).iteration_time);
  };
  const std::string host = "cluster.accelerator.profile.host.";
  const double nominal = seconds({});
  EXPECT_EQ(seconds({host + "step_overhead={value: 0}", host + "launch_skew={value: 0}"}), nominal);
  EXPECT_EQ(seconds({host + "launch_skew={value: 0.1}"}), nominal) << "no jitter";
  EXPECT_NEAR(seconds({host + "step_overhead={value: 0.25}"}), nominal + 0.25, 1e-9);
  EXPECT_EQ(seconds({host + "step_overhead={value: 0.25}", "simulation.without=CAUSE_HOST"}),
            seconds({"simulation.without=CAUSE_HOST"}));
  const std::string expected = "perturbation.jitter={mode: EXPECTED sigma: 0}";
  EXPECT_NEAR(seconds({expected, host + "launch_skew={value: 0.1}"}), nominal + 0.20697, 1e-5);
  EXPECT_EQ(seconds({expected, host + "launch_skew={value: 0.1}", "simulation.without=CAUSE_JITTER"}), nominal);
}

// Autocast reads fp32 parameters and writes 16 bit once a micro-batch: 6 bytes of 8 layers of 1.7B's 24 (tp 2, so half)
// are no less than at nominal bandwidth, and with full recomputation twice that.
TEST(Host, AutocastConvertsOnceAMicroBatch) {
  const auto compute = [](std::vector<std::string> overrides) {
    return Simulated(SmallRun(std::move(overrides))).pipeline_ranks[1].SecondsOf(engine::TimeClass::kCompute);
  };
  const v1::Run run = SmallRun();
  const double layers = 6;
  const double parameters = layers * 12 * 2304.0 * 2304.0 / 2;
  const double at_least = 8 * 6 * parameters / run.cluster().accelerator().memory_bandwidth();
  const double once =
      compute({"software.fp32_parameters=true", "training.recompute=NONE"}) - compute({"training.recompute=NONE"});
  EXPECT_GT(once, at_least);
  EXPECT_LT(once, 2 * at_least);
  const double twice =
      compute({"software.fp32_parameters=true", "training.recompute=FULL"}) - compute({"training.recompute=FULL"});
  EXPECT_NEAR(twice, 2 * once, 1e-9);
}

// Tensor-parallel ranks hold the same activation. Without scatter/gather each sends all of it to its peer, through its
// share of the node's NICs; with it, half each, which the receivers gather.
TEST(Messages, WholeActivationFromEveryTensorParallelRank) {
  const auto first_message = [](std::vector<std::string> overrides, std::int64_t bytes) {
    const v1::Run run = SmallRun(With(std::move(overrides), "parallelism.sequence_parallel=false"));
    const Plan plan = *MakePlan(run);
    const kernels::KernelPrices kernels(run.cluster().accelerator(), run.training().precision());
    const collectives::CollectivePrices collectives = CollectivePricesOf(plan);
    SpecPricer pricer(plan, kernels, collectives);
    const Time message =
        pricer.PricesOf({.tp = 1}).message[static_cast<std::size_t>(plan.links.IndexOf(0, {1, true, true}))].duration;
    return std::pair(message, TimeFromSeconds(collectives.MessageSeconds(Bytes(bytes), 1, 9)));
  };
  const v1::Run run = SmallRun();
  const std::int64_t whole = run.training().seq_len() * run.model().hidden() * 2;
  const auto [all, price_of_all] = first_message({"software.scatter_gather=false"}, whole);
  EXPECT_EQ(all, price_of_all);
  const auto [part, price_of_half] = first_message({"software.scatter_gather=true"}, whole / 2);
  EXPECT_GT(part, price_of_half) << "and a gather";
  EXPECT_LT(part, all);
  // Half as many NICs, half the rate.
  const auto [shared, _] = first_message({"software.scatter_gather=false", "cluster.node.nics=4"}, whole);
  EXPECT_GT(shared, all * 3 / 2);
}

// Unknown schedules and parameters that a schedule refuses are errors, not crashes.
TEST(Errors, ConventionThatDoesNotExist) {
  v1::Run run = SmallRun();
  run.mutable_simulation()->set_flops_convention("6N");
  EXPECT_THAT(std::string(Simulate(run).status().message()), ::testing::HasSubstr("simulation.flops_convention: "));
}

TEST(Errors, ScheduleThatDoesNotExistForItsParameters) {
  v1::Run run = SmallRun();
  run.mutable_schedule()->set_name("interleaved-1f1b");
  run.mutable_parallelism()->set_virtual_stages(2);
  run.mutable_schedule()->set_group_size(3);
  const absl::StatusOr<Result> result = Simulate(run);
  ASSERT_EQ(result.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(std::string(result.status().message()).find("schedule.group_size: "), std::string::npos) << result.status();
}

}  // namespace
}  // namespace orrery::training::testing
