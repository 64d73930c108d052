// The trace is what a viewer expects of it: slices of one thread nest, stay within the window and show every pass; live
// memory is a counter.
#include "reports/trace.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "tests/sim/training/example_runs.h"

namespace orrery::reports {
namespace {

using nlohmann::json;
using training::testing::Simulated;
using training::testing::SmallRun;

struct Slice {
  std::string name;
  std::int64_t begin = 0;  // picoseconds
  std::int64_t end = 0;
};

struct Trace {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<Slice>> slices;  // by pid, tid
  std::map<std::int64_t, std::vector<std::pair<double, double>>> memory;       // by pid: microseconds, GiB
  std::map<std::int64_t, std::string> processes;
};

std::int64_t Picoseconds(const json& microseconds) { return std::llround(microseconds.get<double>() * 1e6); }

Trace Parse(const std::string& text) {
  Trace trace;
  const json document = json::parse(text);
  for (const json& event : document["traceEvents"]) {
    const std::int64_t pid = event["pid"];
    if (event["ph"] == "X") {
      const std::int64_t begin = Picoseconds(event["ts"]);
      trace.slices[{pid, event["tid"]}].push_back({event["name"], begin, begin + Picoseconds(event["dur"])});
    } else if (event["ph"] == "C") {
      trace.memory[pid].emplace_back(event["ts"], event["args"]["live"]);
    } else if (event["ph"] == "M" && event["name"] == "process_name") {
      trace.processes[pid] = event["args"]["name"];
    }
  }
  return trace;
}

// Slices come outer before inner, each either inside the one that is open or after it.
void ExpectNested(const std::vector<Slice>& slices) {
  std::vector<Slice> open;
  for (const Slice& slice : slices) {
    EXPECT_LT(slice.begin, slice.end) << slice.name;
    while (!open.empty() && open.back().end <= slice.begin) open.pop_back();
    if (!open.empty()) {
      ASSERT_GE(slice.begin, open.back().begin) << slice.name << " in " << open.back().name;
      ASSERT_LE(slice.end, open.back().end) << slice.name << " in " << open.back().name;
    }
    open.push_back(slice);
  }
}

void ExpectWellFormed(const Trace& trace, Time window) {
  for (const auto& [thread, slices] : trace.slices) {
    SCOPED_TRACE("rank " + std::to_string(thread.first) + " stream " + std::to_string(thread.second));
    ExpectNested(slices);
    for (const Slice& slice : slices) {
      EXPECT_GE(slice.begin, 0) << slice.name;
      EXPECT_LE(slice.end, window.count()) << slice.name;
    }
  }
  for (const auto& [rank, counter] : trace.memory) {
    double previous = 0;
    for (const auto& [time, live] : counter) {
      EXPECT_GE(time, previous) << "rank " << rank;
      EXPECT_LE(time, SecondsFromTime(window) * 1e6 + 1e-3);
      EXPECT_GT(live, 0) << "rank " << rank;
      previous = time;
    }
  }
}

Trace TraceOf(const v1::Run& run, const std::vector<std::int64_t>& ranks, Time* window = nullptr) {
  const training::Result result = Simulated(run, {.traced_ranks = ranks});
  if (window != nullptr) *window = result.iteration_time;
  Trace trace = Parse(TraceJson(result));
  ExpectWellFormed(trace, result.iteration_time);
  return trace;
}

int Count(const std::vector<Slice>& slices, const std::string& name) {
  int count = 0;
  for (const Slice& slice : slices) count += slice.name == name ? 1 : 0;
  return count;
}

// Ranks 0, 8, 16 and 24 are the pipeline ranks 0 to 3.
TEST(TraceTest, ShowsEveryPassOnce) {
  for (const auto& variant :
       std::vector<std::vector<std::string>>{{},
                                             {"simulation.granularity=OPERATOR"},
                                             {"simulation.granularity=OPERATOR", "software.message_mode=EAGER"},
                                             {"software.gradient_reduction=OVERLAPPED", "software.bucket_bytes=1000000",
                                              "parallelism.zero_stage=2", "software.parameter_gather=OVERLAPPED"},
                                             {"parallelism.virtual_stages=2", "simulation.granularity=OPERATOR"}}) {
    SCOPED_TRACE(::testing::PrintToString(variant));
    const v1::Run run = SmallRun(variant);
    const Trace trace = TraceOf(run, {0, 8, 16, 24});
    EXPECT_EQ(trace.processes.at(16), "rank 16 (pipeline rank 2)");
    for (const std::int64_t rank : {0, 8, 16, 24}) {
      const std::vector<Slice>& compute = trace.slices.at({rank, 0});
      for (std::int64_t chunk = 0; chunk < run.parallelism().virtual_stages(); ++chunk) {
        for (int micro_batch = 0; micro_batch < 8; ++micro_batch) {
          const std::string pass = std::to_string(micro_batch) + " chunk " + std::to_string(chunk);
          EXPECT_EQ(Count(compute, "F" + pass), 1) << rank << ": F" << pass;
          EXPECT_EQ(Count(compute, "B" + pass), 1) << rank << ": B" << pass;
        }
      }
      EXPECT_EQ(Count(compute, "optimizer"), 1);
    }
  }
}

// A GPU that updates more slowly ends the iteration late: the others' first passes of the next one lie in the window
// already, and are cut at its borders.
TEST(TraceTest, SlowGpuCutsPassesAtTheWindow) {
  const Trace trace = TraceOf(SmallRun({"simulation.granularity=OPERATOR", "simulation.fold=OFF",
                                        "perturbation.slow_gpus={rank: 9 factor: 1.5}"}),
                              {0, 8, 9, 24});
  EXPECT_EQ(Count(trace.slices.at({0, 0}), "F0 chunk 0"), 2);
  EXPECT_EQ(Count(trace.slices.at({9, 0}), "F0 chunk 0"), 1);
}

// Overlapped communication has a thread of its own: six buckets of one layer each, and the gather.
TEST(TraceTest, DataParallelCommunicationOnItsOwnThread) {
  const Trace trace =
      TraceOf(SmallRun({"software.gradient_reduction=OVERLAPPED", "software.parameter_gather=OVERLAPPED",
                        "parallelism.zero_stage=1", "software.bucket_bytes=1000000"}),
              {0});
  const std::vector<Slice>& communication = trace.slices.at({0, 1});
  EXPECT_EQ(Count(communication, "reduce gradients, chunk 0"), 6);
  // Gathered bucket by bucket as well, so that the first forward pass can begin.
  EXPECT_EQ(Count(communication, "all-gather parameters, chunk 0"), 6);
}

// Kernels stand inside their pass, and fill it: nothing is simulated that is not shown.
TEST(TraceTest, KernelsFillTheirPass) {
  const Trace trace = TraceOf(SmallRun({"simulation.granularity=OPERATOR", "software.issue_seconds=0"}), {8});
  const std::vector<Slice>& compute = trace.slices.at({8, 0});
  int passes = 0;
  for (std::size_t i = 0; i < compute.size(); ++i) {
    if (compute[i].name.find(" chunk ") == std::string::npos || compute[i].name.starts_with("reduce")) continue;
    ++passes;
    std::int64_t inside = 0;
    for (std::size_t k = i + 1; k < compute.size() && compute[k].begin < compute[i].end; ++k) {
      inside += compute[k].end - compute[k].begin;
    }
    EXPECT_EQ(inside, compute[i].end - compute[i].begin) << compute[i].name;
  }
  EXPECT_EQ(passes, 16);
}

// The highest point of the counter is the ledger's peak, which at most one micro-batch too many or too few would miss.
TEST(TraceTest, CounterReachesTheLedgersPeak) {
  const v1::Run run = SmallRun();
  const training::Result result = Simulated(run, {.traced_ranks = {0, 8, 16, 24}});
  const Trace trace = Parse(TraceJson(result));
  for (std::size_t pp = 0; pp < 4; ++pp) {
    double highest = 0;
    for (const auto& [time, live] : trace.memory.at(8 * static_cast<std::int64_t>(pp)))
      highest = std::max(highest, live);
    const double peak = static_cast<double>(result.pipeline_ranks[pp].memory.AllocatorPeak().count());
    EXPECT_NEAR(highest, peak / (1024.0 * 1024 * 1024), 1e-9) << "pipeline rank " << pp;
  }
}

// Without a barrier the window cuts iterations apart: a rank that runs ahead has forward passes of the next iteration
// in flight when the window opens. Their activations are live then, and the counter knows.
TEST(TraceTest, CounterKnowsWhatWasLiveBeforeTheWindow) {
  const v1::Run run = SmallRun({"software.norm_barrier=false", "software.message_mode=EAGER", "parallelism.dp=1",
                                "training.global_batch=8", "model.tied_embeddings=false",
                                "perturbation.slow_gpus=[{rank: 6 factor: 40}, {rank: 7 factor: 40}]"});
  const training::Result result = Simulated(run, {.traced_ranks = {0, 2, 4, 6}});
  const Trace trace = Parse(TraceJson(result));
  ExpectWellFormed(trace, result.iteration_time);
  for (std::size_t pp = 0; pp < 4; ++pp) {
    double lowest = 1e9;
    double highest = 0;
    for (const auto& [time, live] : trace.memory.at(2 * static_cast<std::int64_t>(pp))) {
      lowest = std::min(lowest, live);
      highest = std::max(highest, live);
    }
    const memory::Ledger& ledger = result.pipeline_ranks[pp].memory;
    constexpr double kGiB = 1024.0 * 1024 * 1024;
    const Bytes fixed = ledger.weights + ledger.gradients + ledger.optimizer + ledger.buffers;
    EXPECT_GE(lowest, static_cast<double>(fixed.count()) / kGiB - 1e-9) << "pipeline rank " << pp;
    EXPECT_LE(highest, static_cast<double>(ledger.AllocatorPeak().count()) / kGiB + 1e-9) << "pipeline rank " << pp;
  }
}

TEST(TraceTest, GzipRoundTrip) {
  const std::string text = TraceJson(Simulated(SmallRun(), {.traced_ranks = {0}}));
  const std::string packed = Gzip(text);
  EXPECT_LT(packed.size(), text.size() / 3);
  std::string unpacked(text.size() + 1, '\0');
  z_stream stream{};
  constexpr int kGzipHeader = 16;
  ASSERT_EQ(inflateInit2(&stream, MAX_WBITS + kGzipHeader), Z_OK);
  // zlib's interface is not const-correct.
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(unpacked.data());
  stream.avail_out = static_cast<uInt>(unpacked.size());
  EXPECT_EQ(inflate(&stream, Z_FINISH), Z_STREAM_END);
  unpacked.resize(stream.total_out);
  inflateEnd(&stream);
  EXPECT_EQ(unpacked, text);
}

}  // namespace
}  // namespace orrery::reports
