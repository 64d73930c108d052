// Turns evaluated operations into time classes, traces and pipeline spans: common to both engines.
//
// An engine reports every operation once, after everything it waited for, with the instants that decided its start. For
// the compute stream the accountant adds the pieces between the previous operation's end and this one's to the unit's
// classes. For other streams it appends them to the stream's history, which is consulted when the compute stream turns
// out to have waited for them.
//
// Only streams that the compute stream follows, directly or through others, have a history. The compute stream needs
// none: whatever it follows, at instants after its own last end, cannot itself be blocked on the compute stream, whose
// operations so far have all ended. Such pieces lie in the past of every query and carry an arbitrary class.
#ifndef ORRERY_SIM_ENGINE_ACCOUNTING_H_
#define ORRERY_SIM_ENGINE_ACCOUNTING_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "sim/engine/history.h"
#include "sim/engine/program.h"
#include "sim/engine/program_index.h"
#include "sim/engine/replay.h"
#include "sim/engine/world.h"

namespace orrery::engine {

// Where every stream and host stands: its last end, carried from iteration to iteration.
struct Clocks {
  explicit Clocks(const World& world);

  std::vector<std::size_t> first_stream;  // [unit], and one past the last
  std::vector<Time> stream;               // [first_stream[unit] + stream]
  std::vector<Time> host;                 // [unit]
};

// [begin, end) during which one message is under way.
struct Transfer {
  Time begin;
  Time end;
};

// One operation, evaluated.
struct Evaluated {
  std::int32_t unit = 0;
  std::int32_t op = 0;
  Time previous_end;  // of its stream
  Time host_start;    // of its host op
  Time ready;         // see TracedSpan
  Time start;
  Time end;
  const Time* event_ends = nullptr;     // of this unit and iteration
  std::span<const Transfer> transfers;  // kExchange: its parts. kLocal: its eager receives
  // kLocal: of its segments, where they may have taken longer than alone.
  std::span<const Time> segment_ends = {};
};

// How an iteration counts.
enum class AccountMode {
  kNone,    // histories only
  kFull,    // everything, uncut
  kBefore,  // iteration n-1: what follows the update may lie in the window
  kWindow,  // iteration n: begins at or before the window, ends in or after it
  kAfter,   // iteration n+1: may begin in the window
};

// Which operations of a stream an engine may leave out: those whose stream was free at or after `nothing_from`, and, of
// those free at or after `gapless_from`, the kLocal ones that started then, ran for the sum of their segments, and are
// not marked (MarkedPositions).
struct ReportFilter {
  Time gapless_from;
  Time nothing_from;
};

class Accountant {
 public:
  Accountant(const World& world, const std::vector<ProgramIndex>& indices, const Clocks& clocks,
             const ReplayOptions& options);

  // Begins an iteration. kWindow and kAfter need the window's begin, kAfter its end.
  void BeginIteration(std::int32_t iteration, AccountMode mode, Time window_begin, Time window_end);

  ReportFilter FilterOf(std::int32_t unit, std::int32_t stream) const;
  // Positions in the compute stream: the first and last operation of the pipeline phase, and what follows the update.
  std::vector<std::int32_t> MarkedPositions(std::int32_t program) const;
  void Report(const Evaluated& evaluated);
  // The host op that began at `start` after the previous one had ended at `previous_end`. Needed where the program's
  // host waits.
  void ReportHost(std::int32_t unit, std::int32_t host_op, Time previous_end, Time start);

  // Forgets what iterations so far have been counted, but not their histories.
  void Discard() { units_.assign(units_.size(), UnitAccount()); }
  // A hash of what later reports will look at, of what has been reported so far; instants count from `now`.
  std::uint64_t HashHistories(Time now) const;

  // Closes the account: idle time up to the window's end, deferred pieces. `mode` is kFull or kAfter.
  void Finish(Time window_begin, Time window_end, std::vector<UnitResult>& results) const;
  // The trace of the window, sorted. In kFull mode the last iteration stands for its neighbours, shifted by multiples
  // of the window, but for streams in phase with it only: `runs_ahead[unit]` has a bit per stream that is not.
  std::vector<TracedSpan> Trace(Time window_begin, Time window_end, const std::vector<std::uint32_t>& runs_ahead) const;

 private:
  struct RunSums {  // per-class sums of a run of segments: a range of ProgramAccount::sums
    std::int32_t first = 0;
    std::int32_t count = 0;
    Time total;
  };
  struct ClassSum {
    TimeClass time_class;
    Time sum;
  };
  struct ProgramAccount {
    std::vector<RunSums> run_sums;  // [ProgramIndex::runs]
    std::vector<ClassSum> sums;
    std::span<const ClassSum> ByClass(const RunSums& run) const {
      return std::span(sums).subspan(static_cast<std::size_t>(run.first), static_cast<std::size_t>(run.count));
    }
    TimeByClass compute_total{};       // of all segments of the compute stream
    TimeByClass compute_to_update{};   // the same without what follows the update
    std::uint32_t followed = 0;        // streams with a history, one bit each
    std::int32_t update_position = 0;  // in the compute stream
    std::int32_t first_pipeline = -1;  // positions in the compute stream
    std::int32_t last_pipeline = -1;
    Time pipeline_busy;  // segments of busy classes from first_pipeline to last_pipeline
  };
  struct UnitAccount {
    TimeByClass classes{};
    Time pipeline_first_start;
    Time pipeline_last_end;
    Time pipeline_gap_busy;
    std::vector<Piece> deferred;
  };
  struct UnitHistories {
    std::vector<History> streams;
    History host;
  };

  static ProgramAccount Prepare(const Program& program, const ProgramIndex& index);
  static void SumUpRuns(const Program& program, const ProgramIndex& index, ProgramAccount& account);
  static std::uint32_t FollowedStreams(const Program& program, const ProgramIndex& index);

  void Expect(std::int32_t unit, std::int32_t op);
  void Emit(const Evaluated& evaluated, const Piece& piece);
  void EmitGap(const Evaluated& evaluated, const Piece& piece);
  void EmitSegments(const Evaluated& evaluated);
  void EmitWaits(const Evaluated& evaluated);
  void EmitTransfers(const Evaluated& evaluated, Time begin, Time end);
  void Count(std::int32_t unit, std::int32_t position, const Piece& piece);
  void CountStretched(const Evaluated& evaluated, std::int32_t position);
  bool CountWhole(const Evaluated& evaluated, std::int32_t position);
  template <typename Sink>
  void FollowHost(const Evaluated& evaluated, Time begin, Time end, Sink&& sink) const;
  template <typename Sink>
  void FollowEvent(std::int32_t unit, std::int32_t event, Time begin, Time end, Sink&& sink) const;

  const Program& ProgramOf(std::int32_t unit) const;
  const ProgramIndex& IndexOf(std::int32_t unit) const;
  const ProgramAccount& AccountOf(std::int32_t unit) const;
  // Of the segments that an operation runs.
  const RunSums& SumsOf(std::int32_t unit, std::int32_t op) const;

  const World& world_;
  const std::vector<ProgramIndex>& indices_;
  const Clocks& clocks_;
  std::vector<ProgramAccount> programs_;
  std::vector<UnitAccount> units_;
  std::vector<UnitHistories> histories_;  // empty where the program follows no stream and its host waits for nothing
  std::vector<bool> traced_;
  std::vector<TracedSpan> spans_;
  std::vector<Transfer> sorted_transfers_;

  std::int32_t iteration_ = 0;
  AccountMode mode_ = AccountMode::kNone;
  Time window_begin_;
  std::optional<Time> window_end_;
};

}  // namespace orrery::engine

#endif  // ORRERY_SIM_ENGINE_ACCOUNTING_H_
