#include "proto/loader.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "proto/checks.h"
#include "proto/defaults.h"
#include "proto/limits.h"
#include "proto/origins.h"
#include "proto/overrides.h"
#include "proto/presets.h"
#include "proto/rules.h"
#include "proto/text_reader.h"
#include "proto/text_writer.h"

namespace orrery::spec {
namespace {

absl::Status StatusOf(const Diagnostics& diagnostics, std::vector<SpecError>* errors) {
  if (diagnostics.ok()) return absl::OkStatus();
  const std::vector<SpecError> sorted = diagnostics.Sorted();
  if (errors != nullptr) *errors = sorted;
  std::string message =
      absl::StrJoin(sorted, "\n", [](std::string* out, const SpecError& error) { *out += error.ToString(); });
  if (diagnostics.dropped() > 0) absl::StrAppend(&message, "\nand ", diagnostics.dropped(), " more errors");
  return absl::InvalidArgumentError(message);
}

// A file that cannot be read as a spec at all.
absl::Status FileError(const std::string& filename, const std::string& message, std::vector<SpecError>* errors) {
  const SpecError error{.file = filename, .message = message};
  if (errors != nullptr) *errors = {error};
  return absl::InvalidArgumentError(error.ToString());
}

// A folder that is not there would only surface as a preset that is not found, or not at all.
absl::Status CheckSpecPath(const LoadOptions& options, std::vector<SpecError>* errors) {
  for (const std::string& folder : options.spec_path) {
    std::error_code error;
    if (std::filesystem::is_directory(folder, error)) continue;
    const char* what = std::filesystem::exists(folder, error) ? "is no folder" : "does not exist";
    return FileError(absl::StrCat("spec path \"", folder, "\""),
                     absl::StrCat(what, "; allowed: a folder that holds ", absl::StrJoin(PresetKinds(), ", ")), errors);
  }
  return absl::OkStatus();
}

void ReportProblems(const std::vector<FieldProblem>& problems, const Origins& origins, Diagnostics* diagnostics) {
  for (const FieldProblem& problem : problems) {
    const bool known = std::any_of(problem.fields.begin(), problem.fields.end(),
                                   [&](const std::string& field) { return diagnostics->IsBad(field); });
    if (!known) diagnostics->ErrorAtWriter(origins, problem.fields, problem.message);
  }
}

// What the user wrote -> resolved and checked. `origins` says where; diagnostics may hold errors of reading already.
absl::StatusOr<LoadedRun> Resolve(v1::Run run, Origins origins, Diagnostics diagnostics, const LoadOptions& options,
                                  std::vector<SpecError>* errors) {
  ABSL_RETURN_IF_ERROR(CheckSpecPath(options, errors));
  const std::vector<Override> overrides = ParseOverrides(options.overrides, &diagnostics);
  // Overrides first, so that they may name presets; but an element of a list may come from a preset.
  for (const Override& parsed : overrides) {
    if (!parsed.has_index()) ApplyOverride(parsed, &run, &origins, &diagnostics);
  }
  PresetExpander expander(options.spec_path, &origins, &diagnostics);
  // The software level first: it knows the cluster of a run that names only an accelerator.
  if (run.has_software()) expander.Expand("software", run.mutable_software());
  FillCluster(&run, origins, &diagnostics);
  expander.Expand("", &run);
  for (const Override& parsed : overrides) {
    if (parsed.has_index()) ApplyOverride(parsed, &run, &origins, &diagnostics);
  }
  FillDefaults(&run, origins, &diagnostics);
  CheckRules(run, "", origins, &diagnostics);
  CheckAcrossFields(run, origins, &diagnostics);
  if (options.check) ReportProblems(options.check(run), origins, &diagnostics);
  if (diagnostics.ok()) CheckLimits(run, origins, &diagnostics);
  ABSL_RETURN_IF_ERROR(StatusOf(diagnostics, errors));

  LoadedRun loaded;
  loaded.sha256 = SpecSha256(run);
  loaded.profile = run.cluster().accelerator().profile().name();
  loaded.software = run.software().name();
  loaded.warnings = diagnostics.warnings();
  loaded.run = std::move(run);
  return loaded;
}

}  // namespace

absl::StatusOr<LoadedRun> LoadRun(const std::string& path, const LoadOptions& options, std::vector<SpecError>* errors) {
  absl::StatusOr<std::string> text = orrery::ReadFile(path, limits::kFileBytes);
  if (!text.ok()) {
    std::string message(text.status().message());
    // base names the path as we do.
    if (message.starts_with(path + ": ")) message.erase(0, path.size() + 2);
    return FileError(path, message, errors);
  }
  return LoadRunFromText(*text, path, options, errors);
}

absl::StatusOr<LoadedRun> LoadRunFromText(std::string_view text, const std::string& filename,
                                          const LoadOptions& options, std::vector<SpecError>* errors) {
  if (const std::string problem = NotText(text); !problem.empty()) return FileError(filename, problem, errors);
  Diagnostics diagnostics;
  Origins origins;
  v1::Run run;
  ReadText(text, diagnostics.AddSource(filename, Diagnostics::Author::kFile), "", &run, &origins, &diagnostics);
  if (diagnostics.ok() && run.ByteSizeLong() == 0 && options.overrides.empty()) {
    return FileError(
        filename, absl::StrCat("has no fields; allowed: ", absl::StrJoin(FieldNames(run.descriptor()), ", ")), errors);
  }
  return Resolve(std::move(run), std::move(origins), std::move(diagnostics), options, errors);
}

absl::StatusOr<LoadedRun> ResolveRun(const v1::Run& run, const LoadOptions& options, std::vector<SpecError>* errors) {
  Diagnostics diagnostics;
  return Resolve(run, Origins(), std::move(diagnostics), options, errors);
}

absl::Status LoadPreset(const std::string& name, const LoadOptions& options, google::protobuf::Message* message) {
  const std::string kind = KindOf(message->GetDescriptor());
  if (kind.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(message->GetDescriptor()->name(),
                                                   " has no presets; allowed: ", absl::StrJoin(PresetKinds(), ", ")));
  }
  ABSL_RETURN_IF_ERROR(CheckSpecPath(options, nullptr));
  Diagnostics diagnostics;
  Origins origins;
  message->Clear();
  message->GetReflection()->SetString(message, message->GetDescriptor()->FindFieldByName("preset"), name);
  PresetExpander(options.spec_path, &origins, &diagnostics).Expand("", message);
  if (auto* model = dynamic_cast<v1::Model*>(message)) FillModelDefaults("", model, origins, &diagnostics);
  if (auto* cluster = dynamic_cast<v1::Cluster*>(message); cluster != nullptr && cluster->has_node()) {
    FillNodeDefaults(cluster->mutable_node());
  }
  CheckRules(*message, "", origins, &diagnostics);
  return StatusOf(diagnostics, nullptr);
}

std::vector<std::string> PresetKinds() { return {"accelerators", "clusters", "models", "profiles", "software"}; }

absl::StatusOr<std::vector<std::string>> ListPresets(std::string_view kind, const LoadOptions& options) {
  const std::vector<std::string> kinds = PresetKinds();
  if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) {
    return absl::InvalidArgumentError(absl::StrCat("no kind of presets \"", std::string(kind), "\"; allowed: ",
                                                   absl::StrJoin(kinds, ", "), orrery::DidYouMean(kind, kinds)));
  }
  ABSL_RETURN_IF_ERROR(CheckSpecPath(options, nullptr));
  return PresetNames(std::string(kind), options.spec_path);
}

}  // namespace orrery::spec
