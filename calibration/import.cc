#include "calibration/import.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/format.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "base/text_table.h"
#include "calibration/measured_attention.h"
#include "calibration/profile_file.h"

namespace orrery::calibration {
namespace {

using Json = nlohmann::ordered_json;

bool Wanted(const ImportOptions& options, std::string_view gpu) {
  if (options.gpu_prefixes.empty()) return IsAccelerator(options.accelerator, gpu);
  return std::any_of(options.gpu_prefixes.begin(), options.gpu_prefixes.end(),
                     [&](const std::string& prefix) { return gpu.starts_with(prefix); });
}

absl::Status NoRows(const ImportOptions& options, const CsvTable& table) {
  const std::string what = options.gpu_prefixes.empty()
                               ? absl::StrCat("that names ", options.accelerator.name(),
                                              " or one of its aliases in column gpu and that the profile serves")
                               : absl::StrCat("whose gpu begins with ", absl::StrJoin(options.gpu_prefixes, " or "),
                                              " and that the profile serves");
  return absl::NotFoundError(absl::StrCat(table.name(), ": no row ", what));
}

std::string TypesText(const v1::GemmProfile& entry) {
  std::vector<std::string> names;
  for (const int type : entry.data_types()) names.push_back(v1::DataType_Name(static_cast<v1::DataType>(type)));
  return absl::StrJoin(names, " ");
}

absl::Status ImportGemm(const ImportOptions& options, const CsvTable& table, ImportResult* result) {
  ABSL_RETURN_IF_ERROR(CheckGemmColumns(table));
  std::vector<std::vector<MeasuredGemm>> rows;  // by entry
  rows.resize(static_cast<std::size_t>(result->profile.gemm_size()));
  bool any = false;
  for (const CsvRow& row : table.rows()) {
    if (!Wanted(options, Cell(table, row, "gpu"))) continue;
    absl::StatusOr<MeasuredGemm> measured = ReadGemm(table, row);
    if (absl::IsUnimplemented(measured.status())) {
      ++result->refused[std::string(measured.status().message())];
      continue;
    }
    if (!measured.ok()) return measured.status();
    const int entry = GemmEntryOf(result->profile, measured->type);
    if (entry < 0 || PeakOf(options.accelerator, measured->type).count() == 0) {
      ++result->refused[absl::StrCat("an entry for ", v1::DataType_Name(measured->type))];
      continue;
    }
    rows[static_cast<std::size_t>(entry)].push_back(*std::move(measured));
    any = true;
  }
  if (!any) return NoRows(options, table);
  for (int i = 0; i < result->profile.gemm_size(); ++i) {
    result->gemm.push_back(
        FitGemm(options.accelerator, result->profile.gemm(i), rows[static_cast<std::size_t>(i)], options.keep));
    *result->profile.mutable_gemm(i) = result->gemm.back().profile;
  }
  return absl::OkStatus();
}

absl::Status ImportAttention(const ImportOptions& options, const CsvTable& table, ImportResult* result) {
  std::vector<MeasuredAttention> rows;
  ABSL_RETURN_IF_ERROR(table.Column("gpu").status());
  for (const CsvRow& row : table.rows()) {
    if (!Wanted(options, Cell(table, row, "gpu"))) continue;
    absl::StatusOr<MeasuredAttention> measured = ReadMeasuredAttention(table, row);
    if (absl::IsUnimplemented(measured.status())) {
      ++result->refused[std::string(measured.status().message())];
      continue;
    }
    if (!measured.ok()) return measured.status();
    rows.push_back(*std::move(measured));
  }
  if (rows.empty()) return NoRows(options, table);
  v1::Accelerator accelerator = options.accelerator;
  *accelerator.mutable_profile() = result->profile;
  result->attention = CalibrateAttention(rows, &accelerator);
  result->profile = accelerator.profile();
  return absl::OkStatus();
}

std::string ErrorText(const ErrorSummary& error) {
  if (error.rows == 0) return "no rows";
  return absl::StrCat(FormatCount(error.rows), error.rows == 1 ? " row" : " rows", ", median ",
                      FormatPercent(error.median), ", 90th percentile ", FormatPercent(error.p90), ", bias ",
                      FormatPercent(error.bias));
}

// The columns of AddError for each set of rows.
void AddErrorColumns(const std::vector<std::string>& sets, std::vector<TextTable::Column>* columns) {
  for (const std::string& set : sets) {
    columns->push_back({absl::StrCat(set, " rows"), TextTable::Align::kRight});
    for (const char* what : {"median", "p90", "bias"}) columns->push_back({what, TextTable::Align::kRight});
  }
}

// Rows, median, 90th percentile, bias.
void AddError(const ErrorSummary& error, std::vector<std::string>* cells) {
  cells->push_back(absl::StrCat(error.rows));
  for (const double value : {error.median, error.p90, error.bias}) {
    cells->push_back(error.rows == 0 ? "" : FormatPercent(value));
  }
}

std::vector<ListedConstant> ConstantsOf(const v1::GemmProfile& entry) {
  v1::Profile profile;
  *profile.add_gemm() = entry;
  return ListConstants(profile);
}

// The constant as ListConstants has it.
ListedConstant Find(const std::vector<ListedConstant>& constants, const std::string& name) {
  for (const ListedConstant& constant : constants) {
    if (constant.path.ends_with("." + name)) return constant;
  }
  return {};
}

std::string GemmText(const GemmFit& fit) {
  using Align = TextTable::Align;
  std::string text = absl::StrCat("GEMM, ", TypesText(fit.profile), ", ", fit.profile.library(), ": ",
                                  fit.constants.size(), " constants fitted\n");
  std::vector<TextTable::Column> columns = {{"gpu, dtype, library", Align::kLeft}};
  AddErrorColumns({"fitted", "held out", "short"}, &columns);
  TextTable groups(columns);
  const auto add = [&](const std::string& name, const ErrorSummary& fitted, const ErrorSummary& held_out,
                       const ErrorSummary& too_short) {
    std::vector<std::string> cells = {name};
    for (const ErrorSummary* error : {&fitted, &held_out, &too_short}) AddError(*error, &cells);
    groups.AddRow(std::move(cells));
  };
  for (const FitGroup& group : fit.groups) add(group.name, group.fitted, group.held_out, group.too_short);
  groups.AddRule();
  add("all", fit.fitted, fit.held_out, fit.too_short);
  absl::StrAppend(&text, groups.Render());
  if (fit.constants.empty()) return text + "no row to fit on: all constants are the base's\n";
  TextTable constants({{"constant", Align::kLeft},
                       {"value", Align::kRight},
                       {"unit", Align::kLeft},
                       {"10 % off costs", Align::kRight},
                       {"", Align::kLeft}});
  const std::vector<ListedConstant> listed = ConstantsOf(fit.profile);
  for (const Determination& constant : fit.constants) {
    const ListedConstant found = Find(listed, constant.constant);
    constants.AddRow({constant.constant, found.value, found.unit, FormatPercent(constant.growth, 2),
                      constant.determined() ? "" : "not determined by these rows"});
  }
  return absl::StrCat(text, "\n", constants.Render());
}

Json ErrorJson(const ErrorSummary& error) {
  Json json = {{"rows", error.rows}};
  if (error.rows > 0) {
    json["median_abs_error"] = error.median;
    json["p90_abs_error"] = error.p90;
    json["bias"] = error.bias;
  }
  return json;
}

Json GemmJson(const GemmFit& fit) {
  Json json = {{"data_types", TypesText(fit.profile)}, {"library", fit.profile.library()}};
  json["fitted"] = ErrorJson(fit.fitted);
  json["held_out"] = ErrorJson(fit.held_out);
  json["short"] = ErrorJson(fit.too_short);
  json["groups"] = Json::array();
  for (const FitGroup& group : fit.groups) {
    json["groups"].push_back({{"name", group.name},
                              {"fitted", ErrorJson(group.fitted)},
                              {"held_out", ErrorJson(group.held_out)},
                              {"short", ErrorJson(group.too_short)}});
  }
  json["constants"] = Json::array();
  const std::vector<ListedConstant> listed = ConstantsOf(fit.profile);
  for (const Determination& constant : fit.constants) {
    json["constants"].push_back({{"name", constant.constant},
                                 {"value", Find(listed, constant.constant).value},
                                 {"growth", constant.growth},
                                 {"determined", constant.determined()}});
  }
  return json;
}

}  // namespace

absl::StatusOr<ImportResult> Import(const ImportOptions& options, const CsvTable* gemm, const CsvTable* attention) {
  const std::vector<std::string> fitted = FittedGemmConstants();
  for (const std::string& name : options.keep) {
    if (std::find(fitted.begin(), fitted.end(), name) != fitted.end()) continue;
    return absl::InvalidArgumentError(absl::StrCat("--keep ", name, ": no constant of GEMM that is fitted; allowed: ",
                                                   absl::StrJoin(fitted, ", "), DidYouMean(name, fitted)));
  }
  ImportResult result;
  result.profile = options.base;
  if (gemm != nullptr) ABSL_RETURN_IF_ERROR(ImportGemm(options, *gemm, &result));
  if (attention != nullptr) ABSL_RETURN_IF_ERROR(ImportAttention(options, *attention, &result));
  return result;
}

std::string ImportedProfileText(const ImportOptions& options, const ImportResult& result) {
  std::vector<std::string> head = {
      "Regenerated, from the root of the repository and byte for byte, by", "  " + options.command,
      "Errors are |predicted / measured - 1|; rows of 20 us and more, but where it says short."};
  for (const GemmFit& fit : result.gemm) {
    head.push_back(absl::StrCat("GEMM ", TypesText(fit.profile), ": ", fit.constants.size(), " constants fitted; ",
                                ErrorText(fit.fitted), ";"));
    head.push_back(absl::StrCat("  held out: ", ErrorText(fit.held_out), "; short: ", ErrorText(fit.too_short), "."));
    std::vector<std::string> open;
    for (const Determination& constant : fit.constants) {
      if (!constant.determined()) open.push_back(constant.constant);
    }
    if (!open.empty()) head.push_back(absl::StrCat("  Not determined by these rows: ", absl::StrJoin(open, ", "), "."));
  }
  for (const AttentionFit& fit : result.attention) {
    head.push_back(absl::StrCat("Attention ", fit.name, ": ", ErrorText(fit.fitted), ";"));
    head.push_back(absl::StrCat("  held out: ", ErrorText(fit.held_out), "."));
  }
  return ProfileText(result.profile, head);
}

std::string ImportText(const ImportResult& result) {
  std::vector<std::string> parts;
  for (const GemmFit& fit : result.gemm) parts.push_back(GemmText(fit));
  if (!result.attention.empty()) {
    using Align = TextTable::Align;
    std::vector<TextTable::Column> columns = {{"attention", Align::kLeft}};
    AddErrorColumns({"fitted", "held out"}, &columns);
    columns.push_back({"not determined", Align::kLeft});
    TextTable table(columns);
    for (const AttentionFit& fit : result.attention) {
      std::vector<std::string> cells = {fit.name};
      for (const ErrorSummary* error : {&fit.fitted, &fit.held_out}) AddError(*error, &cells);
      cells.push_back(absl::StrJoin(fit.undetermined, "; "));
      table.AddRow(std::move(cells));
    }
    parts.push_back(table.Render());
  }
  if (!result.refused.empty()) {
    TextTable refused({{"rows without a price for want of", TextTable::Align::kLeft}, {"", TextTable::Align::kRight}});
    for (const auto& [reason, count] : result.refused) refused.AddRow({reason, absl::StrCat(count)});
    parts.push_back(refused.Render());
  }
  return absl::StrJoin(parts, "\n");
}

std::string ImportJson(const ImportResult& result) {
  Json json = {{"profile", result.profile.name()}};
  json["gemm"] = Json::array();
  for (const GemmFit& fit : result.gemm) json["gemm"].push_back(GemmJson(fit));
  json["attention"] = Json::array();
  for (const AttentionFit& fit : result.attention) {
    json["attention"].push_back({{"name", fit.name},
                                 {"fitted", ErrorJson(fit.fitted)},
                                 {"held_out", ErrorJson(fit.held_out)},
                                 {"undetermined", fit.undetermined}});
  }
  json["refused"] = result.refused;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace orrery::calibration
