#include <algorithm>
#include <chrono>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "cli/commands.h"
#include "cli/environment.h"
#include "cli/output.h"
#include "reports/json.h"
#include "reports/summary.h"
#include "reports/trace.h"
#include "reports/waterfall.h"
#include "sim/training/simulate.h"
#include "validation/expected_error.h"

namespace orrery::cli {
namespace {

// One rank of each pipeline rank: they all do different things, and nobody else does.
std::vector<std::int64_t> RanksToTrace(const v1::Run& run, const std::vector<std::int64_t>& asked) {
  if (!asked.empty()) {
    std::vector<std::int64_t> distinct = asked;
    std::sort(distinct.begin(), distinct.end());
    distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
    return distinct;
  }
  std::vector<std::int64_t> ranks;
  const std::int64_t stride = run.parallelism().gpus() / run.parallelism().pp();
  for (std::int64_t pp = 0; pp < run.parallelism().pp(); ++pp) ranks.push_back(pp * stride);
  return ranks;
}

absl::Status WriteTrace(v1::Run run, const SimulateArguments& arguments) {
  training::SimulateOptions options;
  options.traced_ranks = RanksToTrace(run, arguments.trace_ranks);
  for (const std::int64_t rank : options.traced_ranks) {
    if (rank < 0 || rank >= run.parallelism().gpus()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--trace-ranks: rank ", rank, "; allowed: 0 to ", run.parallelism().gpus() - 1));
    }
  }
  // Every kernel is shown, whatever the spec simulates: both granularities have the same timeline.
  run.mutable_simulation()->set_granularity(v1::OPERATOR);
  const absl::StatusOr<training::Result> result = training::Simulate(run, options);
  if (!result.ok()) return result.status();
  const std::string json = reports::TraceJson(*result);
  return arguments.trace.ends_with(".gz") ? WriteGzip(arguments.trace, json) : WriteFile(arguments.trace, json);
}

// From the published record; where no run of this software level is in it, a warning says so.
absl::StatusOr<std::optional<reports::ExpectedError>> ExpectedErrorFor(const spec::LoadedRun& loaded,
                                                                       const SimulateArguments& arguments,
                                                                       training::Result& result) {
  const spec::LoadOptions options = LoadOptionsOf(arguments.spec.spec_path, {});
  const absl::StatusOr<v1::ExpectedErrors> errors = validation::LoadExpectedErrors(options.spec_path);
  if (!errors.ok()) return errors.status();
  const std::optional<v1::ExpectedError> family =
      validation::ExpectedErrorOf(*errors, loaded.run.software().name(), loaded.run.cluster().accelerator().name());
  if (!family.has_value()) return std::optional<reports::ExpectedError>();
  const std::string& accelerator = loaded.run.cluster().accelerator().name();
  if (family->software().empty() || family->accelerator().empty()) {
    result.warnings.push_back(absl::StrCat("fewer than five published runs of software level ", loaded.software, " on ",
                                           accelerator, " were predicted: the expected error is that of ",
                                           validation::FamilyName(*family)));
  }
  return std::optional(reports::ExpectedError{
      .p50 = family->p50(), .p90 = family->p90(), .family = validation::FamilyName(*family), .runs = family->rows()});
}

// What is written must not be what is read, or written twice.
absl::Status CheckFiles(const SimulateArguments& arguments, std::vector<std::string> inputs) {
  inputs.push_back(arguments.spec.spec);
  ABSL_RETURN_IF_ERROR(CheckNotRead("--output", arguments.output, inputs));
  ABSL_RETURN_IF_ERROR(CheckNotRead("--trace", arguments.trace, inputs));
  std::error_code ignored;
  if (!arguments.trace.empty() && (arguments.trace == arguments.output ||
                                   std::filesystem::equivalent(arguments.trace, arguments.output, ignored))) {
    return absl::InvalidArgumentError(
        absl::StrCat("--trace: ", arguments.trace, " is --output as well; allowed: another file"));
  }
  return absl::OkStatus();
}

}  // namespace

int Simulate(const SimulateArguments& arguments) {
  const auto started = std::chrono::steady_clock::now();
  const absl::StatusOr<spec::LoadedRun> loaded =
      spec::LoadRun(arguments.spec.spec, LoadOptionsOf(arguments.spec.spec_path, arguments.spec.overrides));
  if (!loaded.ok()) return Fail(loaded.status());
  if (const absl::Status files = CheckFiles(arguments, loaded->files); !files.ok()) return Fail(files);
  if (arguments.report_links > 0 && loaded->run.simulation().network() != v1::FLOW) {
    return Fail(absl::InvalidArgumentError("--report-links: no links are shared; allowed: with --network=flow"));
  }
  for (const std::string& warning : loaded->warnings) Warn(warning);
  absl::StatusOr<training::Result> result =
      training::Simulate(loaded->run, {.report_links = static_cast<std::size_t>(arguments.report_links)});
  if (!result.ok()) return Fail(result.status());
  result->warnings.insert(result->warnings.begin(), loaded->warnings.begin(), loaded->warnings.end());
  absl::StatusOr<std::optional<reports::ExpectedError>> expected = ExpectedErrorFor(*loaded, arguments, *result);
  if (!expected.ok()) return Fail(expected.status());
  const absl::StatusOr<reports::Waterfall> waterfall = reports::MakeWaterfall(loaded->run, *result);
  if (!waterfall.ok()) return Fail(waterfall.status());
  if (!arguments.trace.empty()) {
    const absl::Status written = WriteTrace(loaded->run, arguments);
    if (!written.ok()) return Fail(written);
  }
  const reports::Provenance provenance{.version = ORRERY_VERSION,
                                       .spec_sha256 = loaded->sha256,
                                       .profile = loaded->profile,
                                       .software = loaded->software,
                                       .expected_error = *std::move(expected)};
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - started;
  const reports::SimulatorCost cost{.wall_seconds = wall.count(), .peak_rss_bytes = PeakResidentBytes()};
  const std::string text =
      arguments.json ? reports::ResultJson(*result, *waterfall, provenance, arguments.no_simulator ? nullptr : &cost)
                     : reports::Summary(*result, *waterfall, provenance, cost);
  const absl::Status written = Write(text, arguments.output);
  if (!written.ok()) return Fail(written);
  return result->Fits() ? kDone : kAnswerIsNo;
}

}  // namespace orrery::cli
