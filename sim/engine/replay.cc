#include "sim/engine/replay.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "sim/engine/accounting.h"
#include "sim/engine/engine.h"
#include "sim/engine/overlap.h"
#include "sim/engine/program_index.h"

namespace orrery::engine {
namespace {

absl::Status CheckOptions(const World& world, const ReplayOptions& options) {
  if (options.iterations < 0) return absl::InternalError(absl::StrCat("replay: ", options.iterations, " iterations"));
  for (std::int32_t unit : options.traced_units) {
    if (unit < 0 || static_cast<std::size_t>(unit) >= world.units.size()) {
      return absl::InternalError(absl::StrCat("replay: traced unit ", unit, " does not exist"));
    }
  }
  if (options.transfers != nullptr && options.engine != EngineKind::kEventQueue) {
    return absl::InternalError("replay: only the event queue shares links");
  }
  if (HasLoads(world) && options.engine != EngineKind::kEventQueue) {
    return absl::InternalError("replay: only the event queue evaluates loads");
  }
  if (SlowsTransfers(world) && options.transfers != nullptr) {
    return absl::InternalError("replay: loads slow no transfers that share links");
  }
  return absl::OkStatus();
}

// Per program, streams with operations, and those of them that nobody outside their unit can notice.
struct StreamMasks {
  std::uint32_t used = 0;
  std::uint32_t secluded = 0;
};

StreamMasks MasksOf(const ProgramIndex& index) {
  StreamMasks masks;
  for (std::size_t stream = 0; stream < index.stream_ops.size(); ++stream) {
    if (!index.stream_ops[stream].empty()) masks.used |= 1u << stream;
  }
  masks.secluded = masks.used & ~index.outward & ~(1u << kComputeStream);
  return masks;
}

// One replay: engine, accountant and what passes between them.
class Replayer {
 public:
  Replayer(const World& world, const std::vector<ProgramIndex>& indices, const ReplayOptions& options)
      : world_(world),
        options_(options),
        may_stop_(options.stop_when_periodic && (options.transfers == nullptr || !options.whole_iterations)),
        state_(world) {
    for (const ProgramIndex& index : indices) masks_.push_back(MasksOf(index));
    accountant_.emplace(world_, indices, state_.clocks, options_);
    const EngineInputs inputs = {world_, indices, options_, *accountant_, state_};
    engine_ = options.engine == EngineKind::kWorklist ? MakeWorklist(inputs) : MakeEventQueue(inputs);
  }

  absl::StatusOr<Replay> Run() {
    const int n = options_.iterations;
    runs_ahead_.assign(world_.units.size(), 0);
    for (int k = 0; k <= n; ++k) {
      const Clocks before = state_.clocks;
      ABSL_RETURN_IF_ERROR(RunIteration(k, ModeOf(k)));
      if (!may_stop_ || k > n - 2) continue;
      replay_.periodic = IsPeriodic(before);
      if (replay_.periodic && IsAccounted(k)) return Finish(k);
      if (replay_.periodic) {
        // Iteration k+1 repeats k, including whatever of k reached into it: its own account is that of every later
        // window.
        ABSL_RETURN_IF_ERROR(RunIteration(k + 1, AccountMode::kFull));
        return Finish(k + 1);
      }
      if (IsAccounted(k)) accountant_->Discard();
    }
    if (options_.nothing_follows) return Finish(n);
    const std::vector<std::uint64_t> hashes = state_.hashes;
    // One more iteration covers the window wherever units wait for each other within an iteration. Units that do not
    // may be further ahead.
    ABSL_RETURN_IF_ERROR(RunIteration(n + 1, AccountMode::kAfter));
    for (int k = n + 2; k <= 2 * n + 1 && !WindowIsCovered(); ++k)
      ABSL_RETURN_IF_ERROR(RunIteration(k, AccountMode::kAfter));
    state_.hashes = hashes;
    replay_.iteration_ends.resize(static_cast<std::size_t>(n) + 1);
    return Finish(n);
  }

 private:
  AccountMode ModeOf(int k) const {
    const int n = options_.iterations;
    if (k == n) return AccountMode::kWindow;
    if (k == n - 1) return AccountMode::kBefore;
    return IsAccounted(k) ? AccountMode::kFull : AccountMode::kNone;
  }

  // Whether iteration k is accounted for in the hope that it ends in the state in which it began, which holds all that
  // its account depends on: it then stands for all that follow.
  bool IsAccounted(int k) const { return k > 0 && k <= options_.iterations - 2 && fingerprint_.has_value(); }

  // Whether every compute stream has reached the window's end.
  bool WindowIsCovered() const {
    for (std::size_t u = 0; u < world_.units.size(); ++u) {
      if (state_.clocks.stream[state_.clocks.first_stream[u]] < EndOf(options_.iterations)) return false;
    }
    return true;
  }

  Time EndOf(int k) const { return k < 0 ? Time() : replay_.iteration_ends[static_cast<std::size_t>(k)]; }

  absl::Status RunIteration(int k, AccountMode mode) {
    const int n = options_.iterations;
    const Time begin = mode == AccountMode::kWindow || mode == AccountMode::kAfter ? EndOf(n - 1) : Time();
    const Time end = mode == AccountMode::kAfter ? EndOf(n) : Time();
    accountant_->BeginIteration(k, mode, begin, end);
    const bool may_stop = mode == AccountMode::kAfter && !options_.whole_iterations;
    ABSL_RETURN_IF_ERROR(engine_->RunIteration(k, may_stop ? std::optional<Time>(end) : std::nullopt));
    replay_.iteration_ends.push_back(state_.update_end);
    ++replay_.iterations_evaluated;
    return absl::OkStatus();
  }

  // Whether this iteration has left everything as the one before did, as far as it shows: see replay.h.
  bool IsPeriodic(const Clocks& before) {
    std::optional<std::uint64_t> fingerprint = engine_->Fingerprint();
    if (!fingerprint.has_value()) return ClocksArePeriodic(before);
    *fingerprint += accountant_->HashHistories(state_.update_end);
    const std::optional<std::uint64_t> fingerprint_before = std::exchange(fingerprint_, fingerprint);
    if (fingerprint != fingerprint_before) return false;
    const Time period = EndOf(replay_.iterations_evaluated - 1) - EndOf(replay_.iterations_evaluated - 2);
    for (std::size_t u = 0; u < world_.units.size(); ++u) {
      if (state_.clocks.host[u] - before.host[u] > period) return false;
    }
    return true;
  }

  // Whether all clocks moved by one constant, the largest move, but for those that nobody waited for.
  bool ClocksArePeriodic(const Clocks& before) {
    const Clocks& now = state_.clocks;
    Time period;
    for (std::size_t s = 0; s < now.stream.size(); ++s) period = std::max(period, now.stream[s] - before.stream[s]);
    for (std::size_t u = 0; u < now.host.size(); ++u) period = std::max(period, now.host[u] - before.host[u]);
    for (std::size_t u = 0; u < world_.units.size(); ++u) {
      const std::uint32_t waited_for = state_.waited_for[u];
      if (now.host[u] - before.host[u] != period && (waited_for & kHostBit) != 0) return false;
      const StreamMasks& masks = masks_[static_cast<std::size_t>(world_.units[u].program)];
      std::uint32_t runs_ahead = 0;
      for (std::size_t s = now.first_stream[u]; s < now.first_stream[u + 1]; ++s) {
        const std::uint32_t bit = 1u << (s - now.first_stream[u]);
        if ((masks.used & bit) == 0 || now.stream[s] - before.stream[s] == period) continue;
        if ((masks.secluded & ~waited_for & bit) == 0) return false;
        runs_ahead |= bit;
      }
      runs_ahead_[u] = runs_ahead;
    }
    return true;
  }

  Replay Finish(int last) {
    replay_.window_begin = EndOf(last - 1);
    replay_.window_end = EndOf(last);
    replay_.units.resize(world_.units.size());
    accountant_->Finish(replay_.window_begin, replay_.window_end, replay_.units);
    for (std::size_t u = 0; u < world_.units.size(); ++u) {
      replay_.units[u].timeline_hash = state_.hashes[u];
      replay_.timeline_hash += static_cast<std::uint64_t>(world_.units[u].multiplicity) * state_.hashes[u];
    }
    replay_.trace = accountant_->Trace(replay_.window_begin, replay_.window_end, runs_ahead_);
    replay_.tasks = state_.tasks;
    replay_.events = state_.events;
    return std::move(replay_);
  }

  const World& world_;
  const ReplayOptions& options_;
  // Links are asked what they carried in iterations that are whole.
  const bool may_stop_;
  std::vector<StreamMasks> masks_;  // [program]
  EngineState state_;
  std::optional<Accountant> accountant_;
  std::unique_ptr<Engine> engine_;
  std::optional<std::uint64_t> fingerprint_;  // after the last iteration
  std::vector<std::uint32_t> runs_ahead_;     // [unit]: streams out of phase with the period
  Replay replay_;
};

}  // namespace

absl::StatusOr<Replay> Run(const World& world, const ReplayOptions& options) {
  ABSL_ASSIGN_OR_RETURN(const std::vector<ProgramIndex> indices, IndexWorld(world));
  ABSL_RETURN_IF_ERROR(CheckOptions(world, options));
  return Replayer(world, indices, options).Run();
}

}  // namespace orrery::engine
