#include "calibration/collective_import.h"

#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/format.h"
#include "base/status_macros.h"
#include "base/text_table.h"
#include "calibration/measured.h"
#include "calibration/profile_file.h"
#include "sim/collectives/node_links.h"

namespace orrery::calibration {
namespace {

using Json = nlohmann::ordered_json;
namespace nccl = collectives::nccl;

absl::StatusOr<v1::NcclTimes> LoadTimes(const std::string& name, const spec::LoadOptions& options) {
  ABSL_RETURN_IF_ERROR(CheckPresetName("nccl_times", name, options));
  v1::NcclTimes times;
  ABSL_RETURN_IF_ERROR(spec::LoadPreset(name, options, &times));
  return times;
}

std::string ErrorText(const ErrorSummary& error) {
  if (error.rows == 0) return "no rows";
  return absl::StrCat(error.rows, " rows, median ", FormatPercent(error.median), ", 90th percentile ",
                      FormatPercent(error.p90), ", bias ", FormatPercent(error.bias));
}

const v1::Constant& ConstantOf(const v1::NcclTimes& times, const std::string& name) {
  const google::protobuf::FieldDescriptor* const field = times.GetDescriptor()->FindFieldByName(name);
  return static_cast<const v1::Constant&>(times.GetReflection()->GetMessage(times, field));
}

Json ErrorJson(const ErrorSummary& error) {
  Json json = {{"rows", error.rows}};
  if (error.rows == 0) return json;
  json["median_abs_error"] = error.median;
  json["p90_abs_error"] = error.p90;
  json["bias"] = error.bias;
  return json;
}

// The two bandwidths say which operation it was, and among how many.
absl::Status CheckBandwidths(const NcclTestsLog& log, std::string_view name, nccl::Operation operation) {
  constexpr double kRounding = 0.01;  // GB/s: digits that are printed
  const double factor = nccl::BusFactor(operation, log.ranks);
  for (const NcclTestsRow& row : log.rows) {
    if (std::fabs(row.busbw - factor * row.algbw) <= kRounding * (1 + factor) + 1e-3 * row.busbw) continue;
    return absl::InvalidArgumentError(absl::StrFormat(
        "%s: line %d: busbw is %.3f of algbw; allowed: %.3f, as of %s among %d ranks", std::string(name), row.line,
        row.busbw / row.algbw, factor, nccl::OperationName(operation), log.ranks));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CollectiveImport> ImportCollectiveTable(const CsvTable& table, const std::string& base,
                                                       const spec::LoadOptions& options) {
  ABSL_RETURN_IF_ERROR(CheckCollectiveColumns(table));
  ABSL_ASSIGN_OR_RETURN(const v1::NcclTimes times, LoadTimes(base, options));
  ABSL_ASSIGN_OR_RETURN(const CollectiveRecord record, CollectiveRecord::Load(options));
  CollectiveImport import;
  std::vector<MeasuredCollective> rows;
  const bool states_use = table.FindColumn("use").has_value();
  for (const CsvRow& row : table.rows()) {
    ABSL_RETURN_IF_ERROR(CheckUse(table, row));
    if (states_use && Cell(table, row, "use") != "fit") continue;
    absl::StatusOr<MeasuredCollective> measured = record.Read(table, row);
    if (absl::IsUnimplemented(measured.status())) {
      ++import.refused[std::string(measured.status().message())];
      continue;
    }
    if (!measured.ok()) return measured.status();
    if (measured->times->compute_capability() == times.compute_capability()) rows.push_back(*std::move(measured));
  }
  if (rows.empty()) {
    return absl::NotFoundError(absl::StrCat(table.name(), ": no row of the GPUs that ", base, " serves"));
  }
  import.rows = static_cast<int>(rows.size());
  ABSL_ASSIGN_OR_RETURN(import.fit, FitCollectives(times, rows));
  return import;
}

absl::StatusOr<CollectiveImport> ImportNcclTests(const NcclTestsLog& log, std::string_view name,
                                                 const NcclTestsImport& given, const spec::LoadOptions& options) {
  const auto lacks = [&](const std::string& what) {
    return absl::InvalidArgumentError(absl::StrCat(std::string(name), ": the log does not say ", what));
  };
  ABSL_ASSIGN_OR_RETURN(const v1::NcclTimes times, LoadTimes(given.base, options));
  ABSL_ASSIGN_OR_RETURN(const CollectiveRecord record, CollectiveRecord::Load(options));
  if (log.ranks < 1) return lacks("which ranks took part (lines \"Rank 0 ... Pid ... on HOST\")");
  if (log.ranks < 2)
    return absl::InvalidArgumentError(absl::StrCat(std::string(name), ": one rank communicates with none"));
  MeasuredCollective row;
  if (!given.operation.empty()) {
    ABSL_ASSIGN_OR_RETURN(row.operation, nccl::OperationOf(given.operation));
  } else if (log.operation.has_value()) {
    row.operation = *log.operation;
  } else {
    return lacks("which collective it is; allowed: --collective all_reduce and the like");
  }
  const auto differs = [&](const char* option, const std::string& there, const std::string& here) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, " ", here, ": ", std::string(name), " says ", there, "; allowed: without it"));
  };
  if (log.operation.has_value() && *log.operation != row.operation) {
    return differs("--collective", nccl::OperationName(*log.operation), given.operation);
  }
  ABSL_RETURN_IF_ERROR(CheckBandwidths(log, name, row.operation));
  // 2.21 is 2.21.5, too.
  const bool same_version = log.version == given.version || log.version.starts_with(given.version + ".");
  if (!log.version.empty() && !given.version.empty() && !same_version) {
    return differs("--nccl-version", log.version, given.version);
  }
  const std::string version = log.version.empty() ? given.version : log.version;
  if (version.empty()) return lacks("which NCCL it is; allowed: --nccl-version 2.21 and the like");
  v1::Cluster cluster;
  ABSL_RETURN_IF_ERROR(CheckPresetName("clusters", given.cluster, options));
  ABSL_RETURN_IF_ERROR(spec::LoadPreset(given.cluster, options, &cluster));
  // Hosts that share a rack's NVLink are one node.
  const std::int64_t domains = (log.ranks + cluster.node().gpus() - 1) / cluster.node().gpus();
  const std::int64_t nodes = cluster.node().hosts() > 1 ? domains : std::max<std::int64_t>(1, log.hosts);
  ABSL_ASSIGN_OR_RETURN(row.communicator,
                        collectives::CommunicatorOn(cluster, nccl::EvenPlacement(cluster, log.ranks, nodes)));
  const v1::NcclTimes& own = cluster.accelerator().nccl_times();
  if (own.compute_capability() != times.compute_capability()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--base ", given.base, ": of other GPUs than ", given.cluster, " has; allowed: ", own.name()));
  }
  ABSL_ASSIGN_OR_RETURN(row.version, record.library().Version(version));
  row.ranks = log.ranks;
  if (log.gpus_per_process > 1) row.issue_seconds = record.IssuePerGpu() * static_cast<double>(log.gpus_per_process);
  std::vector<MeasuredCollective> rows;
  for (const NcclTestsRow& logged : log.rows) {
    row.line = logged.line;
    row.bytes = logged.bytes;
    row.seconds = logged.out_of_place;
    row.split = absl::StrCat("nccl-tests|", logged.bytes);
    rows.push_back(row);
  }
  CollectiveImport import;
  import.rows = static_cast<int>(rows.size());
  import.grade = GradeOf(log);
  import.damaged = log.damaged;
  import.problems = log.problems;
  import.remarks = log.remarks;
  const std::string stand_in = record.library().StandIn(version);
  if (!stand_in.empty()) import.assumptions.push_back(stand_in);
  import.foreign_version = record.library().CoverageOf(version) == nccl::Coverage::kOutside;
  ABSL_ASSIGN_OR_RETURN(import.fit, FitCollectives(times, rows));
  return import;
}

std::string ImportedTimesText(const CollectiveImport& import, const std::string& command) {
  std::string text =
      absl::StrCat("# proto-file: orrery/v1/nccl.proto\n# proto-message: orrery.v1.NcclTimes\n# Regenerated by\n#   ",
                   command, "\n# Errors are |predicted / measured - 1|. Fitted: ", ErrorText(import.fit.fitted),
                   ";\n# held out: ", ErrorText(import.fit.held_out), ".\n");
  std::vector<std::string> open;
  for (const Determination& constant : import.fit.constants) {
    if (!constant.determined()) open.push_back(constant.constant);
  }
  if (!open.empty()) absl::StrAppend(&text, "# Not determined by these rows: ", absl::StrJoin(open, ", "), ".\n");
  return text + MessageText(import.fit.times);
}

std::string CollectiveImportText(const CollectiveImport& import) {
  std::string text =
      absl::StrCat(import.fit.times.name(), ": ", import.fit.constants.size(), " constants fitted\n",
                   "fitted: ", ErrorText(import.fit.fitted), "\nheld out: ", ErrorText(import.fit.held_out), "\n\n");
  using Align = TextTable::Align;
  TextTable table({{"constant", Align::kLeft},
                   {"value", Align::kRight},
                   {"unit", Align::kLeft},
                   {"10 % off costs", Align::kRight},
                   {"", Align::kLeft}});
  for (const Determination& constant : import.fit.constants) {
    const v1::Constant& found = ConstantOf(import.fit.times, constant.constant);
    table.AddRow({constant.constant, FormatDouble(found.value()), found.unit(), FormatPercent(constant.growth, 2),
                  constant.determined() ? "" : "not determined by these rows"});
  }
  absl::StrAppend(&text, table.Render());
  for (const auto& [reason, count] : import.refused)
    absl::StrAppend(&text, "refused: ", count, " rows, ", reason, "\n");
  if (!import.grade.empty()) {
    absl::StrAppend(&text, "log: ", import.grade, ", ", import.rows, " rows used, ", import.damaged, " damaged\n");
  }
  for (const std::string& problem : import.problems) absl::StrAppend(&text, "left out: ", problem, "\n");
  const std::size_t unnamed = static_cast<std::size_t>(import.damaged) - import.problems.size();
  if (unnamed > 0) absl::StrAppend(&text, "left out: ", unnamed, " more\n");
  for (const std::string& remark : import.remarks) absl::StrAppend(&text, "note: ", remark, "\n");
  for (const std::string& assumption : import.assumptions) absl::StrAppend(&text, "assumed: ", assumption, "\n");
  return text;
}

std::string CollectiveImportJson(const CollectiveImport& import) {
  Json json = {{"times", import.fit.times.name()}, {"rows", import.rows}};
  json["fitted"] = ErrorJson(import.fit.fitted);
  json["held_out"] = ErrorJson(import.fit.held_out);
  json["constants"] = Json::array();
  for (const Determination& constant : import.fit.constants) {
    json["constants"].push_back({{"name", constant.constant},
                                 {"value", ConstantOf(import.fit.times, constant.constant).value()},
                                 {"growth", constant.growth},
                                 {"determined", constant.determined()}});
  }
  json["refused"] = import.refused;
  if (!import.grade.empty()) {
    json["log"] = {{"grade", import.grade}, {"rows", import.rows}, {"damaged", import.damaged}};
  }
  json["left_out"] = import.problems;
  json["remarks"] = import.remarks;
  json["assumptions"] = import.assumptions;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace orrery::calibration
