// Sweeps from spec to rows: the same bytes with any number of threads, interrupted or not.
#include "sweep/sweep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <utility>
#include <vector>

#include "schedules/family.h"
#include "sim/training/plan.h"
#include "sim/training/simulate.h"

namespace orrery::sweep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kRun = ORRERY_SOURCE_DIR "/specs/runs/megatron_175b_12288.txtpb";

// 12 layers on 64 GPUs: tp 2, pp 4, dp 8.
spec::LoadOptions SmallOptions(std::vector<std::string> overrides = {}) {
  std::vector<std::string> all = {"model.layers=12",  "parallelism.tp=2",
                                  "parallelism.pp=4", "parallelism.virtual_stages=1",
                                  "parallelism.dp=8", "training.global_batch=64"};
  all.insert(all.end(), overrides.begin(), overrides.end());
  return {.spec_path = {ORRERY_SOURCE_DIR "/specs"}, .overrides = std::move(all), .check = training::ProblemsOf};
}

spec::BaseRun SmallBase() { return spec::BaseRun::Read(kRun, SmallOptions()).value(); }

Points PointsOf(const std::vector<std::string>& varied) {
  std::vector<Axis> axes;
  for (const std::string& vary : varied) axes.push_back(ParseVary(vary).value());
  return Points::Make(std::move(axes)).value();
}

std::vector<Row> RowsOf(const Points& points) {
  std::vector<Row> rows;
  const absl::Status status = RunPoints(SmallBase(), points, {}, [&](const Row& row) {
    rows.push_back(row);
    return absl::OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status;
  return rows;
}

// All rows as text.
std::string TextOf(const Points& points, const Options& options, absl::Status* status = nullptr) {
  const Table table(points.fields(), "id", Format::kCsv);
  std::string text;
  const absl::Status ended = RunPoints(SmallBase(), points, options, [&](const Row& row) {
    text += table.Line(row);
    return absl::OkStatus();
  });
  if (status != nullptr) *status = ended;
  return text;
}

TEST(SweepTest, SameBytesWithAnyNumberOfThreads) {
  // pp = 5 and 3 micro-batches of the interleaved order are refused among the rest.
  const Points points =
      PointsOf({"schedule=1f1b,gpipe,interleaved-1f1b", "pp=2:5", "virtual_stages=1,3", "microbatches=3,8"});
  ASSERT_EQ(points.size(), 48);
  const std::string one = TextOf(points, {.threads = 1});
  EXPECT_EQ(TextOf(points, {.threads = 2}), one);
  EXPECT_EQ(TextOf(points, {.threads = 4}), one);
  EXPECT_THAT(one, AllOf(HasSubstr(",ok,"), HasSubstr(",refused,")));
}

// A row says what the run says when it is loaded and simulated by itself.
TEST(SweepTest, RowsAreThoseOfSingleRuns) {
  const std::vector<Row> rows = RowsOf(PointsOf({"tp=1,2", "pp=2,4", "micro_batch=1,2", "zero=0,1"}));
  ASSERT_EQ(rows.size(), 16);
  for (const Row& row : rows) {
    const spec::LoadedRun loaded =
        spec::LoadRun(
            kRun, SmallOptions({"parallelism.tp=" + row.fields[0], "parallelism.pp=" + row.fields[1],
                                "training.micro_batch=" + row.fields[2], "parallelism.zero_stage=" + row.fields[3]}))
            .value();
    const training::Result result = training::Simulate(loaded.run).value();
    EXPECT_EQ(row.figures.iteration_time_s, SecondsFromTime(result.iteration_time));
    EXPECT_EQ(row.figures.mfu, result.Mfu());
    EXPECT_EQ(row.figures.span_bubble_fraction, result.span_bubble_fraction);
    EXPECT_EQ(row.figures.fits, result.Fits());
    EXPECT_EQ(row.status, result.Fits() ? Status::kOk : Status::kDoesNotFit);
  }
}

// 16 micro-batches of 2 sequences on each of 8 replicas are a global batch of 256.
TEST(SweepTest, MicroBatchesSetTheGlobalBatch) {
  const std::vector<Row> rows = RowsOf(PointsOf({"microbatches=16", "micro_batch=2"}));
  const std::vector<Row> same = RowsOf(PointsOf({"global_batch=256", "micro_batch=2"}));
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(rows[0].status, Status::kOk);
  EXPECT_EQ(rows[0].figures.iteration_time_s, same.at(0).figures.iteration_time_s);
  // dp may follow from gpus: 64 GPUs at tp 2 and pp 4 are 8 replicas as well.
  EXPECT_THAT(RowsOf(PointsOf({"microbatches=8", "gpus=64"})).at(0).reason, "");
}

TEST(SweepTest, RefusalsSayWhy) {
  const std::vector<Row> rows = RowsOf(PointsOf({"tp=2,5", "global_batch=64,65"}));
  ASSERT_EQ(rows.size(), 4);
  EXPECT_EQ(rows[0].status, Status::kOk);
  EXPECT_EQ(rows[1].status, Status::kRefused);
  EXPECT_THAT(rows[1].reason, AllOf(HasSubstr("training.global_batch: "), HasSubstr("65"), HasSubstr("multiple of 8")));
  // Everything that is wrong, on one line.
  EXPECT_THAT(rows[3].reason, AllOf(HasSubstr("tp = 5 does not divide"), HasSubstr("; training.global_batch: ")));
  EXPECT_EQ(rows[3].reason.find('\n'), std::string::npos);
}

// 12 layers of hidden 12,288 are 22e9 parameters: at 16 bytes each more than one GPU holds.
TEST(SweepTest, WhatDoesNotFitIsTimed) {
  const std::vector<Row> rows = RowsOf(PointsOf({"pp=1", "tp=1", "zero=0"}));
  ASSERT_EQ(rows.size(), 1);
  EXPECT_EQ(rows[0].status, Status::kDoesNotFit);
  EXPECT_THAT(rows[0].reason, HasSubstr("of 79.15 GiB"));
  EXPECT_GT(rows[0].figures.iteration_time_s, 0);
  EXPECT_GT(rows[0].figures.device_peak_bytes, 80e9);
}

// No schedule ends a sweep, whatever it asks of ranks, stages or micro-batches.
TEST(SweepTest, EveryScheduleHasARow) {
  const std::vector<Row> rows = RowsOf(PointsOf({"schedule=all", "microbatches=8"}));
  ASSERT_EQ(rows.size(), schedules::Families().size());
  for (const Row& row : rows) {
    EXPECT_EQ(row.status == Status::kOk, row.reason.empty()) << row.fields[0] << ": " << row.reason;
  }
  EXPECT_EQ(rows[0].fields[0], schedules::Families()[0].name);
}

// Stopped behind any row, it goes on to the same bytes.
TEST(SweepTest, StoppedAndResumed) {
  const Points points = PointsOf({"pp=1,2,4", "microbatches=4,8,12,16"});
  const std::string whole = TextOf(points, {.threads = 2});
  for (const int asked : {1, 2, 7, 12}) {
    std::atomic<int> calls = 0;
    absl::Status status;
    const std::string part = TextOf(
        points, {.threads = 3, .first = 0, .stopped = [&] { return ++calls > asked; }, .expected_error = nullptr},
        &status);
    const std::int64_t rows = std::count(part.begin(), part.end(), '\n');
    EXPECT_LE(rows, asked);
    EXPECT_EQ(absl::IsCancelled(status), rows < points.size()) << status;
    EXPECT_EQ(part + TextOf(points, {.threads = 2, .first = rows}), whole);
  }
}

TEST(SweepTest, AFailingSinkEndsIt) {
  int rows = 0;
  const absl::Status status = RunPoints(
      SmallBase(), PointsOf({"microbatches=1:20"}), {.threads = 2},
      [&](const Row& /*row*/) { return ++rows < 3 ? absl::OkStatus() : absl::ResourceExhaustedError("disk full"); });
  EXPECT_EQ(status.message(), "disk full");
  EXPECT_EQ(rows, 3);
}

TEST(SweepTest, ExpectedErrors) {
  const Options options{.threads = 1, .first = 0, .stopped = nullptr, .expected_error = [](const v1::Run& run) {
                          return std::optional(std::pair(0.01 * static_cast<double>(run.parallelism().pp()), 0.5));
                        }};
  const Row row = RowOf(SmallBase(), PointsOf({"pp=2"}), 0, options);
  EXPECT_TRUE(row.figures.has_expected_error);
  EXPECT_EQ(row.figures.expected_error_p50, 0.02);
  EXPECT_EQ(row.figures.expected_error_p90, 0.5);
}

}  // namespace
}  // namespace orrery::sweep
