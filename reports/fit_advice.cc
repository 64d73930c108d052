#include "reports/fit_advice.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"

namespace orrery::reports {
namespace {

// One thing to change; two of one kind exclude each other.
struct Move {
  enum class Kind : std::uint8_t { kSequence, kRecompute, kMicroBatch, kZero, kDegrees, kSharding };
  Kind kind;
  std::string description;
  std::vector<std::string> overrides;
};

using Moves = std::vector<Move>;

void AddRecompute(const v1::Run& run, Moves* moves) {
  const v1::Training& training = run.training();
  const auto add = [&](std::string description, std::vector<std::string> overrides) {
    moves->push_back({Move::Kind::kRecompute, std::move(description), std::move(overrides)});
  };
  // Fused attention computes its core again by itself.
  const bool unfused = run.software().attention_kernel() == v1::UNFUSED;
  const bool core_only = training.recompute() == v1::SELECTIVE && training.recompute_modules_size() == 1 &&
                         training.recompute_modules(0) == v1::CORE_ATTENTION;
  if (training.recompute() == v1::NONE || core_only) {
    const auto selective = [&](const std::string& what, const std::string& modules) {
      const bool with_core = core_only && unfused;
      add(absl::StrCat("compute ", what, " again"),
          {"training.recompute=SELECTIVE",
           absl::StrCat("training.recompute_modules=[", with_core ? "CORE_ATTENTION, " : "", modules, "]")});
    };
    if (unfused && !core_only) selective("the core of attention", "CORE_ATTENTION");
    selective("the activation function of the MLP", "MLP_ACTIVATION");
    selective("norms", "NORMS");
    selective("norms and the activation function of the MLP", "NORMS, MLP_ACTIVATION");
    selective("norms and the MLP", "NORMS, MLP");
  }
  if (training.recompute() == v1::FULL && !training.has_recompute_layers()) return;
  std::int64_t layers = 0;
  for (const std::int64_t stage : run.parallelism().stage_layers()) layers = std::max(layers, stage);
  std::int64_t last = training.recompute() == v1::FULL ? training.recompute_layers() : 0;
  constexpr std::int64_t kSteps = 4;
  for (std::int64_t step = 1; step <= kSteps; ++step) {
    const std::int64_t some = (layers * step + kSteps - 1) / kSteps;
    if (some <= last) continue;
    last = some;
    add(some == layers ? "compute all layers again"
                       : absl::StrCat("compute ", some, " of ", layers, " layers of each stage again"),
        {"training.recompute=FULL", absl::StrCat("training.recompute_layers=", some)});
  }
}

// The same GPUs, cut otherwise.
void AddDegrees(const v1::Run& run, Moves* moves) {
  const v1::Parallelism& parallelism = run.parallelism();
  const auto add = [&](std::int64_t tp, std::int64_t pp) {
    const std::int64_t replica = tp * pp * parallelism.cp();
    if (parallelism.gpus() % replica != 0) return;
    std::vector<std::string> overrides;
    std::vector<std::string> names;
    const auto change = [&](const char* field, const char* name, std::int64_t from, std::int64_t to) {
      if (from == to) return;
      overrides.push_back(absl::StrCat("parallelism.", field, "=", to));
      names.push_back(absl::StrCat(name, " ", to));
    };
    change("tp", "TP", parallelism.tp(), tp);
    change("pp", "PP", parallelism.pp(), pp);
    change("dp", "DP", parallelism.dp(), parallelism.gpus() / replica);
    std::string description;
    for (const std::string& name : names) absl::StrAppend(&description, description.empty() ? "" : ", ", name);
    moves->push_back({Move::Kind::kDegrees, std::move(description), std::move(overrides)});
  };
  const std::int64_t tp = parallelism.tp();
  const std::int64_t pp = parallelism.pp();
  // Tensor parallelism stays inside a node.
  const bool wider = 2 * tp <= run.cluster().node().gpus();
  if (wider) add(2 * tp, pp);
  add(tp, 2 * pp);
  if (wider && pp % 2 == 0) add(2 * tp, pp / 2);
  if (tp % 2 == 0) add(tp / 2, 2 * pp);
}

Moves MovesOf(const v1::Run& run) {
  const v1::Parallelism& parallelism = run.parallelism();
  Moves moves;
  if (parallelism.tp() > 1 && !parallelism.sequence_parallel()) {
    moves.push_back({Move::Kind::kSequence, "sequence parallelism", {"parallelism.sequence_parallel=true"}});
  }
  AddRecompute(run, &moves);
  if (run.training().micro_batch() % 2 == 0) {
    const std::int64_t half = run.training().micro_batch() / 2;
    moves.push_back(
        {Move::Kind::kMicroBatch, absl::StrCat("micro-batch ", half), {absl::StrCat("training.micro_batch=", half)}});
  }
  constexpr std::int64_t kMostZero = 3;
  for (std::int64_t stage = parallelism.zero_stage() + 1; stage <= kMostZero && parallelism.dp() > 1; ++stage) {
    moves.push_back(
        {Move::Kind::kZero, absl::StrCat("ZeRO-", stage), {absl::StrCat("parallelism.zero_stage=", stage)}});
  }
  if (parallelism.zero_stage() > 0 && parallelism.shard_ranks() < parallelism.dp()) {
    moves.push_back({Move::Kind::kSharding,
                     "sharding over all data-parallel ranks",
                     {absl::StrCat("parallelism.shard_ranks=", parallelism.dp())}});
  }
  AddDegrees(run, &moves);
  return moves;
}

std::optional<training::Result> Try(const Reload& reload, const std::vector<std::string>& overrides,
                                    FitAdvice* advice) {
  const absl::StatusOr<v1::Run> run = reload(overrides);
  if (!run.ok()) return std::nullopt;  // not legal
  absl::StatusOr<training::Result> result = training::Simulate(*run);
  if (!result.ok()) return std::nullopt;
  ++advice->tried;
  return *std::move(result);
}

void TryChange(const training::Result& base, const Reload& reload, std::string description,
               std::vector<std::string> overrides, FitAdvice* advice) {
  const std::optional<training::Result> result = Try(reload, overrides, advice);
  if (!result.has_value() || !result->Fits()) return;
  const double seconds = SecondsFromTime(result->iteration_time);
  advice->changes.push_back({.description = std::move(description),
                             .overrides = std::move(overrides),
                             .iteration_seconds = seconds,
                             .cost = seconds / SecondsFromTime(base.iteration_time) - 1,
                             .device_peak_bytes = DevicePeak(*result)});
}

void TryPairs(const training::Result& base, const Moves& moves, const Reload& reload, Progress& progress,
              FitAdvice* advice) {
  progress.Start("trying pairs of changes", static_cast<std::int64_t>(moves.size()));
  for (std::size_t i = 0; i < moves.size(); ++i) {
    for (std::size_t j = i + 1; j < moves.size(); ++j) {
      if (moves[i].kind == moves[j].kind) continue;
      std::vector<std::string> overrides = moves[i].overrides;
      overrides.insert(overrides.end(), moves[j].overrides.begin(), moves[j].overrides.end());
      TryChange(base, reload, absl::StrCat(moves[i].description, "; ", moves[j].description), std::move(overrides),
                advice);
    }
    progress.Advance(1);
  }
}

// Larger micro-batches need more, so that the first that does not fit ends the search.
std::int64_t LargestMicroBatch(const v1::Run& run, const Reload& reload, FitAdvice* advice) {
  const std::int64_t sequences = run.training().global_batch() / run.parallelism().dp();
  std::int64_t largest = run.training().micro_batch();
  constexpr int kMostTried = 16;
  for (std::int64_t next = largest + 1; next <= sequences && advice->tried < kMostTried; ++next) {
    if (sequences % next != 0) continue;
    const std::optional<training::Result> result = Try(reload, {absl::StrCat("training.micro_batch=", next)}, advice);
    if (!result.has_value()) continue;
    if (!result->Fits()) break;
    largest = next;
  }
  return largest;
}

}  // namespace

std::int64_t DevicePeak(const training::Result& result) {
  std::int64_t peak = 0;
  for (const training::PipelineRankResult& rank : result.pipeline_ranks) {
    peak = std::max(peak, rank.memory.DevicePeak().count());
  }
  return peak;
}

FitAdvice Advise(const training::Result& result, const Reload& reload, Progress& progress) {
  FitAdvice advice;
  const v1::Run& run = result.plan->run;
  if (result.Fits()) {
    advice.largest_micro_batch = LargestMicroBatch(run, reload, &advice);
    return advice;
  }
  const Moves moves = MovesOf(run);
  progress.Start("trying changes", static_cast<std::int64_t>(moves.size()));
  for (const Move& move : moves) {
    TryChange(result, reload, move.description, move.overrides, &advice);
    progress.Advance(1);
  }
  if (advice.changes.empty()) TryPairs(result, moves, reload, progress, &advice);
  std::sort(advice.changes.begin(), advice.changes.end(), [](const Change& a, const Change& b) {
    return std::tie(a.iteration_seconds, a.overrides) < std::tie(b.iteration_seconds, b.overrides);
  });
  return advice;
}

}  // namespace orrery::reports
