#include "validation/memory.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/parallel.h"
#include "base/status_macros.h"
#include "sim/training/simulate.h"
#include "validation/catalogue.h"
#include "validation/constants.h"
#include "validation/megatron_memory.h"
#include "validation/published_memory.h"

namespace orrery::validation {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

// One of the two tables: how its rows are read, and what they measured.
struct Kind {
  std::function<absl::StatusOr<RunOfRow>(const Record&)> make_run;
  std::function<std::string(const Record&)> id;
  std::function<std::string(const Record&)> group;
  std::string group_column;
  // Column of the measured peak, and its unit in GiB.
  std::string column;
  double unit = 1;
  // What a result predicts of it, in bytes.
  std::function<double(const training::Result&)> predicted;
};

// On the fullest rank.
double AllocatorPeak(const training::Result& result) {
  Bytes peak;
  for (const training::PipelineRankResult& rank : result.pipeline_ranks) {
    peak = std::max(peak, rank.memory.AllocatorPeak());
  }
  return static_cast<double>(peak.count());
}

std::string Cell(const Record& record, std::string_view column) { return std::string(record.Text(column)); }

Kind MegatronTests(const Catalogue& catalogue) {
  Kind kind;
  kind.make_run = [&](const Record& record) { return MegatronTestRun(record, catalogue); };
  kind.id = [](const Record& record) {
    return absl::StrCat(Cell(record, "test_case"), " ", Cell(record, "environment"));
  };
  kind.group = [](const Record& record) {
    const std::string test = Cell(record, "test_case");
    return test.substr(0, test.find('/'));
  };
  kind.group_column = "family of tests";
  kind.column = "mem_max_allocated_bytes";
  kind.unit = 1 / kGiB;
  // The tests log the last rank.
  kind.predicted = [](const training::Result& result) {
    return static_cast<double>(result.pipeline_ranks.back().memory.AllocatorPeak().count());
  };
  return kind;
}

Kind PublishedPeaks(const Catalogue& catalogue, const std::vector<std::string>& models) {
  Kind kind;
  kind.make_run = [&](const Record& record) { return PublishedMemoryRun(record, catalogue, models); };
  kind.id = [](const Record& record) {
    return absl::StrCat(Cell(record, "model"), ", ", Cell(record, "n_gpus"), " x ", Cell(record, "gpu"), ", ",
                        Cell(record, "seq"), " tokens x ", Cell(record, "mbs"));
  };
  kind.group = [](const Record& record) { return Cell(record, "source"); };
  kind.group_column = "source";
  kind.column = "value_GiB";
  kind.predicted = [](const training::Result& result) { return AllocatorPeak(result); };
  return kind;
}

void Predict(const Record& record, const Kind& kind, const spec::LoadOptions& load, Row& row) {
  const auto fail = [&](const absl::Status& status) {
    row.status = status.code() == absl::StatusCode::kUnimplemented ? Status::kRefused : Status::kFailed;
    row.reason = std::string(status.message());
  };
  const absl::StatusOr<RunOfRow> made = kind.make_run(record);
  if (!made.ok()) return fail(made.status());
  row.assumptions = made->assumptions;
  const absl::StatusOr<spec::LoadedRun> loaded = spec::ResolveRun(made->run, load);
  if (!loaded.ok()) return fail(loaded.status());
  const absl::StatusOr<training::Result> result = training::Simulate(loaded->run);
  if (!result.ok()) return fail(result.status());
  row.predicted = kind.predicted(*result) / kGiB;
  // What is inside the allocator and no tensor of the model.
  const v1::Profile& profile = result->plan->run.cluster().accelerator().profile();
  row.constants = ConstantsOf(profile.workspace_memory(), "workspace_memory");
  if (!result->Fits()) row.flags.emplace_back("does not fit in memory");
}

Row PredictRow(const Record& record, const Kind& kind, const MemoryOptions& options) {
  Row row;
  row.id = kind.id(record);
  row.line = record.line();
  row.group = options.group_column.empty() ? kind.group(record) : Cell(record, options.group_column);
  const absl::StatusOr<std::optional<double>> measured = record.Number(kind.column);
  constexpr double kLeast = 1e-9;  // GiB
  constexpr double kMost = 1e9;
  const double peak = measured.ok() ? measured->value_or(0) * kind.unit : 0;
  if (peak >= kLeast && peak <= kMost) {
    row.measured = peak;
    Predict(record, kind, options.load, row);
  } else {
    row.status = measured.ok() && !measured->has_value() ? Status::kRefused : Status::kFailed;
    row.reason = row.status == Status::kRefused ? absl::StrCat("a value for ", kind.column)
                                                : absl::StrCat(kind.column, ": not a peak of memory");
  }
  return row;
}

absl::StatusOr<Kind> KindOf(const CsvTable& table, const Catalogue& catalogue, const std::vector<std::string>& models) {
  if (table.FindColumn("mem_max_allocated_bytes").has_value() && table.FindColumn("test_case").has_value()) {
    return MegatronTests(catalogue);
  }
  if (table.FindColumn("value_GiB").has_value() && table.FindColumn("metric").has_value()) {
    return PublishedPeaks(catalogue, models);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(table.name(),
                   ": not a table of memory peaks; allowed: columns test_case and mem_max_allocated_bytes "
                   "(Megatron-LM's functional tests), or metric and value_GiB"));
}

}  // namespace

absl::StatusOr<Report> ValidateMemory(const CsvTable& table, const MemoryOptions& options, Progress& progress) {
  ABSL_ASSIGN_OR_RETURN(const Catalogue catalogue, Catalogue::Load(options.load));
  ABSL_ASSIGN_OR_RETURN(const std::vector<std::string> models, spec::ListPresets("models", options.load));
  ABSL_ASSIGN_OR_RETURN(const Kind kind, KindOf(table, catalogue, models));
  if (!options.group_column.empty()) ABSL_RETURN_IF_ERROR(table.Column(options.group_column).status());
  ABSL_ASSIGN_OR_RETURN(const std::vector<const CsvRow*> rows, SelectRows(table, options.where));
  if (rows.empty()) return NoRows(table);
  Report report;
  report.group_column = options.group_column.empty() ? kind.group_column : options.group_column;
  report.unit = "GiB";
  report.rows.resize(rows.size());
  progress.Start("validating memory", static_cast<std::int64_t>(rows.size()));
  std::mutex one_at_a_time;
  ParallelFor(static_cast<std::int64_t>(rows.size()), options.threads, [&](std::int64_t i) {
    const auto index = static_cast<std::size_t>(i);
    report.rows[index] = PredictRow(Record(table, *rows[index]), kind, options);
    const std::lock_guard<std::mutex> lock(one_at_a_time);
    progress.Advance(1);
  });
  return report;
}

}  // namespace orrery::validation
