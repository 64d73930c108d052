#include "reports/trace.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/format.h"
#include "sim/training/model_states.h"
#include "sim/training/op_names.h"

namespace orrery::reports {
namespace {

using engine::Op;
using engine::OpKind;
using engine::TracedSpan;
using training::OpLabel;
using training::OpRole;

constexpr std::int64_t kPicosecondsPerMicrosecond = 1000000;

// Microseconds with six decimals, exactly.
std::string Microseconds(Time time) {
  const std::int64_t count = time.count();
  std::string fraction = absl::StrCat(count % kPicosecondsPerMicrosecond);
  fraction.insert(0, 6 - fraction.size(), '0');
  return absl::StrCat(count / kPicosecondsPerMicrosecond, ".", fraction);
}

// Writes the events of one rank. Slices of a thread nest because inner ones are cut to their outer one.
class RankWriter {
 public:
  RankWriter(const training::Result& result, const training::TracedRank& rank, std::string* out)
      : result_(result), rank_(rank), out_(*out), end_(result.iteration_time) {}

  void Write() {
    Meta("process_name", -1, absl::StrCat("rank ", rank_.rank, " (pipeline rank ", rank_.pipeline_rank, ")"));
    static constexpr std::array<std::string_view, training::kStreams> kStreamNames = {"compute", "data-parallel",
                                                                                      "input", "replicas"};
    for (int stream = 0; stream < training::kStreams; ++stream) {
      const bool used = std::any_of(rank_.spans.begin(), rank_.spans.end(),
                                    [&](const TracedSpan& span) { return span.stream == stream; });
      if (used) Meta("thread_name", stream, kStreamNames[static_cast<std::size_t>(stream)]);
    }
    for (std::size_t first = 0, end = 0; first < rank_.spans.size(); first = end) {
      end = GroupEnd(first);
      WriteGroup(first, end);
    }
    WriteMemory();
  }

 private:
  const Op& OpOf(const TracedSpan& span) const { return rank_.program->ops[static_cast<std::size_t>(span.op)]; }
  const OpLabel& LabelOf(const TracedSpan& span) const {
    return rank_.labels->ops[static_cast<std::size_t>(OpOf(span).tag)];
  }

  // One past the last of the spans that the pass of the first was cut into; any other span stands alone.
  std::size_t GroupEnd(std::size_t first) const {
    const TracedSpan& span = rank_.spans[first];
    std::size_t end = first + 1;
    if (LabelOf(span).role != OpRole::kPass) return end;
    const auto same = [&](const TracedSpan& other) {
      return other.stream == span.stream && other.iteration == span.iteration && OpOf(other).tag == OpOf(span).tag;
    };
    while (end < rank_.spans.size() && same(rank_.spans[end])) ++end;
    return end;
  }

  // A pass is one slice with its operators inside.
  void WriteGroup(std::size_t first, std::size_t end) {
    const TracedSpan& span = rank_.spans[first];
    if (LabelOf(span).role == OpRole::kPass) {
      Slice(span.stream, training::NameOf(LabelOf(span)), span.start, rank_.spans[end - 1].end);
      for (std::size_t i = first; i < end; ++i) WriteOperator(rank_.spans[i]);
      return;
    }
    Slice(span.stream, training::NameOf(LabelOf(span)), span.ready, span.end);
    if (OpOf(span).kind != OpKind::kLocal && span.start > span.ready) {
      Slice(span.stream, "transfer", span.start, span.end);
    }
  }

  void WriteOperator(const TracedSpan& span) {
    const Op& op = OpOf(span);
    if (op.kind == OpKind::kCollective) {
      Slice(span.stream, "tensor-parallel collective", span.start, span.end);
    } else if (op.num_segments == 1) {
      const std::int32_t tag = rank_.program->segments[static_cast<std::size_t>(op.first_segment)].tag;
      if (tag >= 0) Slice(span.stream, rank_.labels->operators[static_cast<std::size_t>(tag)], span.start, span.end);
    }
  }

  void Slice(std::int32_t stream, std::string_view name, Time start, Time end) {
    const Time from = std::max(start - result_.window_begin, Time());
    const Time to = std::min(end - result_.window_begin, end_);
    if (to <= from) return;
    absl::StrAppend(&out_, ",\n{\"ph\":\"X\",\"pid\":", rank_.rank, ",\"tid\":", stream, ",\"name\":\"",
                    std::string(name), "\",\"ts\":", Microseconds(from), ",\"dur\":", Microseconds(to - from), "}");
  }

  void Meta(std::string_view kind, int thread, std::string_view name) {
    absl::StrAppend(&out_, out_.back() == '[' ? "\n" : ",\n", "{\"ph\":\"M\",\"pid\":", rank_.rank);
    if (thread >= 0) absl::StrAppend(&out_, ",\"tid\":", thread);
    absl::StrAppend(&out_, ",\"name\":\"", std::string(kind), "\",\"args\":{\"name\":\"", std::string(name), "\"}}");
  }

  void Counter(Time at, Bytes live) {
    const Time time = at - result_.window_begin;
    if (time < Time() || time > end_) return;
    constexpr double kGiB = 1024.0 * 1024 * 1024;
    absl::StrAppend(&out_, ",\n{\"ph\":\"C\",\"pid\":", rank_.rank,
                    ",\"name\":\"memory (GiB)\",\"ts\":", Microseconds(time),
                    ",\"args\":{\"live\":", FormatDouble(static_cast<double>(live.count()) / kGiB), "}}");
  }

  const memory::PassFootprint& FootprintOf(std::int32_t chunk, schedules::ActionKind kind) const {
    const auto stage = static_cast<std::size_t>(result_.plan->schedule.StageOf(rank_.pipeline_rank, chunk));
    return result_.world->footprints[stage].Of(kind);
  }

  // What passes of the same iteration left behind before the first one shown: a rank that runs ahead of the others is
  // in the middle of an iteration when the window opens.
  memory::Live LiveBeforeWindow() const {
    memory::Live live;
    const auto first = std::find_if(rank_.spans.begin(), rank_.spans.end(),
                                    [&](const TracedSpan& span) { return LabelOf(span).role == OpRole::kPass; });
    if (first == rank_.spans.end()) return live;
    const OpLabel& label = LabelOf(*first);
    for (const schedules::Action& action :
         result_.plan->schedule.order[static_cast<std::size_t>(rank_.pipeline_rank)]) {
      if (action.kind == label.action && action.chunk == label.chunk && action.micro_batch == label.micro_batch) break;
      live = live + FootprintOf(action.chunk, action.kind).left;
    }
    return live;
  }

  // Highest point of each pass at its start, what it leaves at its end.
  void WriteMemory() {
    const memory::Ledger fixed = training::StaticMemory(*result_.plan, rank_.pipeline_rank);
    const Bytes base = fixed.AllocatorPeak();
    memory::Live live = LiveBeforeWindow();
    Counter(result_.window_begin, base + live.total());
    for (std::size_t first = 0, end = 0; first < rank_.spans.size(); first = end) {
      end = GroupEnd(first);
      const OpLabel& label = LabelOf(rank_.spans[first]);
      if (label.role != OpRole::kPass) continue;
      const memory::PassFootprint& footprint = FootprintOf(label.chunk, label.action);
      Counter(rank_.spans[first].start, base + (live + footprint.peak).total());
      live = live + footprint.left;
      Counter(rank_.spans[end - 1].end, base + live.total());
    }
  }

  const training::Result& result_;
  const training::TracedRank& rank_;
  std::string& out_;
  const Time end_;
};

}  // namespace

std::string TraceJson(const training::Result& result) {
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  for (const training::TracedRank& rank : result.traces) RankWriter(result, rank, &out).Write();
  absl::StrAppend(&out, "\n]}\n");
  return out;
}

}  // namespace orrery::reports
