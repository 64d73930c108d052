#include "sweep/sweep.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/format.h"
#include "base/parallel.h"
#include "base/utf8.h"
#include "sim/training/simulate.h"

namespace orrery::sweep {
namespace {

std::string OneLine(const std::string& text) { return Printable(absl::StrReplaceAll(text, {{"\n", "; "}})); }

// Without file and position: the fields are those of every point.
std::string ReasonOf(const std::vector<spec::SpecError>& errors, const absl::Status& status) {
  if (errors.empty()) return OneLine(std::string(status.message()));
  return OneLine(absl::StrJoin(errors, "; ", [](std::string* out, const spec::SpecError& error) {
    absl::StrAppend(out, error.field, error.field.empty() ? "" : ": ", error.message);
  }));
}

Figures FiguresOf(const training::Result& result) {
  Figures figures;
  figures.iteration_time_s = SecondsFromTime(result.iteration_time);
  figures.mfu = result.Mfu();
  figures.tokens_per_s_per_gpu = result.tokens / figures.iteration_time_s / static_cast<double>(result.gpus);
  figures.bubble_fraction = result.Fraction(engine::TimeClass::kBubble);
  figures.span_bubble_fraction = result.span_bubble_fraction;
  figures.exposed_communication_fraction = result.ExposedCommunicationFraction();
  for (const training::PipelineRankResult& rank : result.pipeline_ranks) {
    figures.allocator_peak_bytes = std::max(figures.allocator_peak_bytes, rank.memory.AllocatorPeak().count());
    figures.device_peak_bytes = std::max(figures.device_peak_bytes, rank.memory.DevicePeak().count());
  }
  figures.fits = result.Fits();
  return figures;
}

// Rows come in any order and leave in that of their points. Thread-safe.
class InOrder {
 public:
  InOrder(std::int64_t first, const std::function<absl::Status(const Row&)>& sink) : next_(first), sink_(sink) {}

  // Waits until row `index` may be begun; false where no more are. A thread that works on a slow point holds up the
  // others before they have piled up too many rows behind it.
  bool Begin(std::int64_t index) {
    constexpr std::int64_t kMostAhead = 4096;
    std::unique_lock<std::mutex> lock(mutex_);
    moved_.wait(lock, [&] { return closed_ || index < next_ + kMostAhead; });
    return !closed_;
  }

  // No more rows are begun.
  void Close() {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    moved_.notify_all();
  }

  void End(std::int64_t index, Row row) {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting_.emplace(index, std::move(row));
    for (auto it = waiting_.begin(); it != waiting_.end() && it->first == next_; it = waiting_.erase(it), ++next_) {
      if (status_.ok()) status_ = sink_(it->second);
      closed_ = closed_ || !status_.ok();
    }
    moved_.notify_all();
  }

  // After all threads have ended.
  std::int64_t next() const { return next_; }
  const absl::Status& status() const { return status_; }

 private:
  std::mutex mutex_;
  std::condition_variable moved_;
  std::map<std::int64_t, Row> waiting_;
  std::int64_t next_;
  bool closed_ = false;
  absl::Status status_;
  const std::function<absl::Status(const Row&)>& sink_;
};

}  // namespace

Row RowOf(const spec::BaseRun& base, const Points& points, std::int64_t index, const Options& options) {
  Row row{.fields = points.At(index), .status = Status::kRefused, .reason = {}, .figures = {}};
  const Variation variation = points.VariationOf(index);
  std::vector<spec::SpecError> errors;
  const absl::StatusOr<v1::Run> run = base.Resolve(variation.overrides, variation.micro_batches, &errors);
  if (!run.ok()) {
    row.reason = ReasonOf(errors, run.status());
    return row;
  }
  const absl::StatusOr<training::Result> result = training::Simulate(*run);
  if (!result.ok()) {
    row.reason = ReasonOf({}, result.status());
    return row;
  }
  row.figures = FiguresOf(*result);
  row.status = row.figures.fits ? Status::kOk : Status::kDoesNotFit;
  if (!row.figures.fits) {
    row.reason = absl::StrCat("the fullest rank needs ", FormatBytes(Bytes(row.figures.device_peak_bytes)), " of ",
                              FormatBytes(Bytes(result->memory_capacity)));
  }
  if (options.expected_error) {
    if (const auto expected = options.expected_error(*run); expected.has_value()) {
      row.figures.has_expected_error = true;
      std::tie(row.figures.expected_error_p50, row.figures.expected_error_p90) = *expected;
    }
  }
  return row;
}

absl::Status RunPoints(const spec::BaseRun& base, const Points& points, const Options& options,
                       const std::function<absl::Status(const Row&)>& sink) {
  InOrder rows(options.first, sink);
  ParallelFor(points.size() - options.first, options.threads, [&](std::int64_t i) {
    const std::int64_t index = options.first + i;
    if (options.stopped && options.stopped()) rows.Close();
    if (rows.Begin(index)) rows.End(index, RowOf(base, points, index, options));
  });
  if (!rows.status().ok()) return rows.status();
  if (rows.next() < points.size()) {
    return absl::CancelledError(absl::StrCat("stopped after ", rows.next(), " of ", points.size(), " points"));
  }
  return absl::OkStatus();
}

}  // namespace orrery::sweep
