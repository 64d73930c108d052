// Speed of the flow network: messages of random permutations on a fat tree, in steps. Rates are messages per CPU
// second.
//
//   network_bench [--simgrid_steps=N] [Google Benchmark's options]
//
// SimGrid plays N of the 10 steps (default 2: with 4,096 nodes and steps that run freely each takes it about ten
// seconds).
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "base/random.h"
#include "bench/sim/network/fat_tree.h"

namespace orrery::network {
namespace {

constexpr std::int32_t kSteps = 10;
std::int32_t simgrid_steps = 2;

using Permutations = std::vector<std::vector<std::int32_t>>;

// Plays permutations as SimGrid's actors do. Paths are looked up on the way, as they are there; the links are there
// before.
class Player {
 public:
  Player(const FatTree& tree, const Permutations& permutations, Steps steps)
      : tree_(tree), permutations_(permutations), steps_(steps), network_(tree.MakeNetwork()) {
    for (const std::vector<std::int32_t>& to : permutations) {
      from_.emplace_back(to.size());
      for (std::size_t from = 0; from < to.size(); ++from)
        from_.back()[static_cast<std::size_t>(to[from])] = static_cast<std::int32_t>(from);
    }
    nodes_.resize(permutations[0].size());
    message_.work = WorkOfUnits(kMessageBytes);
  }

  // The end of all, or kNever where the network refused something.
  Time Run() {
    StartStep();
    for (Time next = network_.NextEvent(); next != kNever && ok_; next = network_.NextEvent()) {
      const auto ends = network_.AdvanceTo(next);
      if (!ends.ok()) return kNever;
      in_progress_ -= static_cast<std::int64_t>(ends->size());
      if (steps_ == Steps::kFree) {
        for (const Completion& end : *ends) Proceed(end.key);
      } else if (in_progress_ == 0 && ++step_ < permutations_.size()) {
        StartStep();
      }
    }
    return ok_ ? network_.now() : kNever;
  }

  const FlowNetwork& network() const { return network_; }

 private:
  struct Node {
    std::size_t step = 0;
    int pending = 2;  // a message to send and one to receive
  };

  void StartStep() {
    for (std::size_t from = 0; from < nodes_.size(); ++from) Start(step_, from);
  }

  void Start(std::size_t step, std::size_t from) {
    message_.loads = tree_.Path(static_cast<std::int32_t>(from), permutations_[step][from], path_);
    message_.key = step * nodes_.size() + from;
    ok_ &= network_.Start(network_.now(), message_).ok();
    ++in_progress_;
  }

  void Proceed(std::uint64_t key) {
    const std::size_t step = key / nodes_.size();
    const std::size_t from = key % nodes_.size();
    for (const std::size_t n : {from, static_cast<std::size_t>(permutations_[step][from])}) {
      Node& node = nodes_[n];
      if (--node.pending > 0 || ++node.step == permutations_.size()) continue;
      node.pending = 2;
      if (nodes_[static_cast<std::size_t>(permutations_[node.step][n])].step == node.step) Start(node.step, n);
      const auto sender = static_cast<std::size_t>(from_[node.step][n]);
      if (nodes_[sender].step == node.step) Start(node.step, sender);
    }
  }

  const FatTree& tree_;
  const Permutations& permutations_;
  const Steps steps_;
  FlowNetwork network_;
  Permutations from_;
  std::vector<Node> nodes_;
  std::size_t step_ = 0;
  std::int64_t in_progress_ = 0;
  Activity message_;
  std::array<LinkLoad, 4> path_;
  bool ok_ = true;
};

// Under D-mod-K all messages of a permutation have their way down for themselves, so that only those of one uplink
// share: the last of a step to end is one of the k on the busiest uplink, which each have floor(C / k) all the time.
Time ClosedForm(const FatTree& tree, const Permutations& permutations) {
  Time end;
  for (const std::vector<std::int32_t>& to : permutations) {
    std::vector<std::int64_t> messages(static_cast<std::size_t>(tree.num_links()));
    std::int64_t most = 1;
    for (std::size_t from = 0; from < to.size(); ++from) {
      const LinkId up = tree.Uplink(static_cast<std::int32_t>(from), to[from]);
      if (up != kNoLink) most = std::max(most, ++messages[static_cast<std::size_t>(up)]);
    }
    end = EndOf(end, WorkOfUnits(kMessageBytes), Rate(kLinkBytesPerSecond * kRatePerUnit / most));
  }
  return end;
}

void BM_Permutations(benchmark::State& state) {
  const auto nodes = static_cast<std::int32_t>(state.range(0));
  const FatTree tree(nodes, Cables::kFullDuplex);
  const Permutations permutations = RandomPermutations(nodes, kSteps);
  const Time expected = ClosedForm(tree, permutations);
  std::int64_t bypassed = 0;
  for (auto _ : state) {
    state.PauseTiming();
    Player player(tree, permutations, Steps::kTogether);
    state.ResumeTiming();
    if (player.Run() != expected) {
      state.SkipWithError("wrong end");
      return;
    }
    bypassed = player.network().bypassed();
  }
  state.counters["bypassed"] = static_cast<double>(bypassed);
  state.counters["messages/s"] =
      benchmark::Counter(static_cast<double>(state.iterations() * nodes * kSteps), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_Permutations)->Arg(256)->Arg(1024)->Arg(4096)->Unit(benchmark::kMillisecond);

#ifdef ORRERY_HAS_SIMGRID
struct Measured {
  Time end;
  double messages_per_second = 0;
};
Measured Measure(Cables cables, Steps steps, const Permutations& permutations) {
  const FatTree tree(static_cast<std::int32_t>(permutations[0].size()), cables);
  Measured best;
  for (int run = 0; run < 3; ++run) {
    Player player(tree, permutations, steps);
    const std::clock_t start = std::clock();
    best.end = player.Run();
    const double seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    const double rate = static_cast<double>(permutations.size() * permutations[0].size()) / seconds;
    best.messages_per_second = std::max(best.messages_per_second, rate);
  }
  return best;
}

// One run of both: the same end of the steps that both play.
void AgainstSimGrid(benchmark::State& state, Cables cables, Steps steps) {
  const auto nodes = static_cast<std::int32_t>(state.range(0));
  const Permutations all = RandomPermutations(nodes, kSteps);
  const Permutations some(all.begin(), all.begin() + std::clamp(simgrid_steps, 1, kSteps));
  for (auto _ : state) {
    const Measured ours = Measure(cables, steps, all);
    const Time end = Measure(cables, steps, some).end;
    const SimGridRun run = RunInSimGrid(cables, steps, some);
    const double theirs = static_cast<double>(some.size()) * nodes / run.cpu_seconds;
    state.counters["messages/s"] = ours.messages_per_second;
    state.counters["SimGrid"] = theirs;
    state.counters["ratio"] = ours.messages_per_second / theirs;
    if (!(std::fabs(run.end / SecondsFromTime(end) - 1) <= 1e-6)) state.SkipWithError("SimGrid ends at another time");
  }
}
void BM_TogetherAgainstSimGrid(benchmark::State& state) {
  AgainstSimGrid(state, Cables::kFullDuplex, Steps::kTogether);
}
void BM_FreeAgainstSimGrid(benchmark::State& state) { AgainstSimGrid(state, Cables::kHalfDuplex, Steps::kFree); }
BENCHMARK(BM_TogetherAgainstSimGrid)->Arg(256)->Arg(1024)->Arg(4096)->Iterations(1)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_FreeAgainstSimGrid)->Arg(256)->Arg(1024)->Arg(4096)->Iterations(1)->Unit(benchmark::kMillisecond);
#endif

// Everybody sends to somebody, 1 to 16 MiB: one component of nearly all messages that is solved again at nearly every
// end.
void BM_RandomTraffic(benchmark::State& state) {
  const auto nodes = static_cast<std::int32_t>(state.range(0));
  const FatTree tree(nodes, Cables::kFullDuplex);
  Int128 bytes = 0;
  std::int64_t solves = 0;
  for (auto _ : state) {
    FlowNetwork network = tree.MakeNetwork();
    std::array<LinkLoad, 4> path;
    Int128 expected = 0;
    for (std::int32_t from = 0; from < nodes; ++from) {
      const std::uint64_t draw = HashCombine(1, static_cast<std::uint64_t>(from));
      const auto to = static_cast<std::int32_t>(draw % static_cast<std::uint64_t>(nodes));
      Activity message;
      message.loads = tree.Path(from, to, path);
      message.work = WorkOfUnits(static_cast<std::int64_t>(1 + (draw >> 32) % 16) * kMessageBytes + from);
      expected += message.work.count() * static_cast<std::int64_t>(message.loads.size());
      if (!network.Start(Time(), message).ok()) state.SkipWithError("refused");
    }
    while (network.NextEvent() != kNever) (void)network.AdvanceTo(network.NextEvent());
    bytes = 0;
    for (std::int32_t l = 0; l < tree.num_links(); ++l) bytes += network.UseOf(l)->bytes.count();
    if (bytes != expected) {
      state.SkipWithError("wrong bytes on the links");
      return;
    }
    solves = network.solves();
  }
  state.counters["solves"] = static_cast<double>(solves);
  state.counters["messages/s"] =
      benchmark::Counter(static_cast<double>(state.iterations() * nodes), benchmark::Counter::kIsRate);
}
BENCHMARK(BM_RandomTraffic)->Arg(256)->Arg(1024)->Arg(4096)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace orrery::network

int main(int argc, char** argv) {
  constexpr char kFlag[] = "--simgrid_steps=";
  int kept = 1;
  for (int i = 1; i < argc; ++i) {
    if (std::strncmp(argv[i], kFlag, sizeof(kFlag) - 1) == 0)
      orrery::network::simgrid_steps = static_cast<int>(std::strtol(argv[i] + sizeof(kFlag) - 1, nullptr, 10));
    else
      argv[kept++] = argv[i];
  }
  argc = kept;
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
