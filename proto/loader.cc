#include "proto/loader.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "proto/checks.h"
#include "proto/cluster_loader.h"
#include "proto/defaults.h"
#include "proto/limits.h"
#include "proto/origins.h"
#include "proto/overrides.h"
#include "proto/presets.h"
#include "proto/rules.h"
#include "proto/spec_file.h"
#include "proto/text_reader.h"
#include "proto/text_writer.h"

namespace orrery::spec {
namespace {

// A run on its way from what the user wrote to what is simulated. `origins` says where each field was written;
// `diagnostics` may hold errors of reading already.
struct Draft {
  v1::Run run;
  Origins origins;
  Diagnostics diagnostics;
};

// Overrides and presets. `cache` may be null; `of_cluster` gets what is wrong with a cluster that is not named.
void Expand(const LoadOptions& options, PresetCache* cache, Diagnostics* of_cluster, Draft* draft) {
  auto& [run, origins, diagnostics] = *draft;
  const std::vector<Override> overrides = ParseOverrides(options.overrides, &diagnostics);
  // Overrides first, so that they may name presets; but an element of a list may come from a preset.
  for (const Override& parsed : overrides) {
    if (!parsed.has_index()) ApplyOverride(parsed, &run, &origins, &diagnostics);
  }
  PresetExpander expander(options.spec_path, &origins, &diagnostics, cache);
  // The software level first: it knows the cluster of a run that names only an accelerator.
  if (run.has_software()) expander.Expand("software", run.mutable_software());
  FillCluster(&run, origins, of_cluster);
  expander.Expand("", &run);
  const std::string& version = run.cluster().accelerator().nccl_times().nccl_version();
  if (run.has_software() && !run.software().has_nccl() && !version.empty()) {
    run.mutable_software()->mutable_nccl()->set_preset(version);
    expander.Expand("software.nccl", run.mutable_software()->mutable_nccl());
  }
  for (const Override& parsed : overrides) {
    if (parsed.has_index()) ApplyOverride(parsed, &run, &origins, &diagnostics);
  }
}

// Overrides, presets, defaults. Returns the files that become part of the run.
std::vector<std::string> Complete(const LoadOptions& options, PresetCache* cache, Draft* draft) {
  auto& [run, origins, diagnostics] = *draft;
  Expand(options, cache, &diagnostics, draft);
  std::vector<std::string> files;
  if (run.schedule().has_file()) files.push_back(run.schedule().file());
  FillDefaults(options.stages_per_rank, &run, origins, &diagnostics);
  if (options.micro_batches > 0) FillGlobalBatch(options.micro_batches, &run, &diagnostics);
  return files;
}

void Check(const LoadOptions& options, Draft* draft) {
  auto& [run, origins, diagnostics] = *draft;
  RefuseBareGraph(run, origins, &diagnostics);
  CheckRules(run, "", origins, &diagnostics);
  CheckGraph(run.cluster(), "cluster", options.overrides, origins, &diagnostics);
  CheckAcrossFields(run, origins, &diagnostics);
  if (options.check) ReportProblems(options.check(run), origins, &diagnostics);
  if (diagnostics.ok()) CheckLimits(run, origins, &diagnostics);
  if (options.check_sound && diagnostics.ok()) ReportProblems(options.check_sound(run), origins, &diagnostics);
}

absl::StatusOr<LoadedRun> Resolve(Draft draft, const LoadOptions& options, std::vector<SpecError>* errors) {
  ABSL_RETURN_IF_ERROR(CheckSpecPath(options, errors));
  std::vector<std::string> files = Complete(options, nullptr, &draft);
  Check(options, &draft);
  auto& [run, origins, diagnostics] = draft;
  ABSL_RETURN_IF_ERROR(StatusOf(diagnostics, errors));

  LoadedRun loaded;
  loaded.sha256 = SpecSha256(run);
  loaded.profile = run.cluster().accelerator().profile().name();
  loaded.software = run.software().name();
  loaded.warnings = diagnostics.warnings();
  loaded.run = std::move(run);
  loaded.files = std::move(files);
  return loaded;
}

}  // namespace

absl::StatusOr<LoadedRun> LoadRun(const std::string& path, const LoadOptions& options, std::vector<SpecError>* errors) {
  ABSL_ASSIGN_OR_RETURN(const std::string text, ReadSpecFile(path, errors));
  return LoadRunFromText(text, path, options, errors);
}

absl::StatusOr<LoadedRun> LoadRunFromText(std::string_view text, const std::string& filename,
                                          const LoadOptions& options, std::vector<SpecError>* errors) {
  if (const std::string problem = NotText(text); !problem.empty()) return FileError(filename, problem, errors);
  Draft draft;
  auto& [run, origins, diagnostics] = draft;
  ReadText(text, diagnostics.AddSource(filename, Diagnostics::Author::kFile), "", &run, &origins, &diagnostics);
  if (diagnostics.ok() && run.ByteSizeLong() == 0 && options.overrides.empty()) {
    return FileError(
        filename, absl::StrCat("has no fields; allowed: ", absl::StrJoin(FieldNames(run.descriptor()), ", ")), errors);
  }
  return Resolve(std::move(draft), options, errors);
}

absl::StatusOr<LoadedRun> ResolveRun(const v1::Run& run, const LoadOptions& options, std::vector<SpecError>* errors) {
  return Resolve(Draft{.run = run, .origins = {}, .diagnostics = {}}, options, errors);
}

BaseRun::BaseRun(std::string text, std::string filename, LoadOptions options)
    : text_(std::move(text)),
      filename_(std::move(filename)),
      options_(std::move(options)),
      presets_(std::make_shared<PresetCache>()) {}

absl::StatusOr<BaseRun> BaseRun::Read(const std::string& path, const LoadOptions& options) {
  ABSL_ASSIGN_OR_RETURN(std::string text, ReadSpecFile(path, nullptr));
  return FromText(std::move(text), path, options);
}

absl::StatusOr<BaseRun> BaseRun::FromText(std::string text, const std::string& filename, const LoadOptions& options) {
  if (const std::string problem = NotText(text); !problem.empty()) return FileError(filename, problem, nullptr);
  ABSL_RETURN_IF_ERROR(CheckSpecPath(options, nullptr));
  BaseRun base(std::move(text), filename, options);
  Diagnostics diagnostics;
  Origins origins;
  ReadText(base.text_, diagnostics.AddSource(filename, Diagnostics::Author::kFile), "", &base.written_, &origins,
           &diagnostics);
  ABSL_RETURN_IF_ERROR(StatusOf(diagnostics, nullptr));
  for (const std::string& override : options.overrides) ABSL_RETURN_IF_ERROR(base.CheckOverride(override));
  return base;
}

LoadOptions BaseRun::OptionsWith(const std::vector<std::string>& overrides, std::int64_t micro_batches) const {
  LoadOptions options = options_;
  options.overrides.insert(options.overrides.end(), overrides.begin(), overrides.end());
  if (micro_batches > 0) options.micro_batches = micro_batches;
  return options;
}

absl::StatusOr<v1::Run> BaseRun::Resolve(const std::vector<std::string>& overrides, std::int64_t micro_batches,
                                         std::vector<SpecError>* errors) const {
  const LoadOptions options = OptionsWith(overrides, micro_batches);
  Draft draft{.run = written_, .origins = Origins::None(), .diagnostics = {}};
  Complete(options, presets_.get(), &draft);
  Check(options, &draft);
  if (draft.diagnostics.ok()) return std::move(draft.run);
  // Again, for messages that know where everything was written.
  ABSL_ASSIGN_OR_RETURN(LoadedRun loaded, LoadRunFromText(text_, filename_, options, errors));
  return std::move(loaded.run);
}

absl::Status BaseRun::CheckOverride(const std::string& override) const {
  Draft draft{.run = written_, .origins = Origins::None(), .diagnostics = {}};
  Diagnostics ignored;
  const LoadOptions options = OptionsWith({override}, 0);
  Expand(options, presets_.get(), &ignored, &draft);
  // A message that leaves out what has a default is complete.
  ignored = draft.diagnostics;
  FillDefaults(options.stages_per_rank, &draft.run, draft.origins, &ignored);
  CheckRules(draft.run, "", draft.origins, &draft.diagnostics);
  const std::string path = PathOfOverride(override);
  for (const SpecError& error : draft.diagnostics.Sorted()) {
    // What is wrong with other fields is for other overrides to mend.
    if (error.file == absl::StrCat("--set ", override) || error.field == path) {
      return absl::InvalidArgumentError(absl::StrCat(error.field.empty() ? override : path, ": ", error.message));
    }
  }
  return absl::OkStatus();
}

std::vector<std::string> BaseRun::Files(const std::vector<std::string>& overrides) const {
  Draft draft{.run = written_, .origins = Origins::None(), .diagnostics = {}};
  return Complete(OptionsWith(overrides, 0), presets_.get(), &draft);
}

std::string BaseRun::Sha256(const std::vector<std::string>& overrides) const {
  Draft draft{.run = written_, .origins = Origins::None(), .diagnostics = {}};
  Complete(OptionsWith(overrides, 0), presets_.get(), &draft);
  return SpecSha256(draft.run);
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
  PresetExpander expander(options.spec_path, &origins, &diagnostics);
  if (auto* cluster = dynamic_cast<v1::Cluster*>(message)) {
    ExpandCluster(&expander, cluster, &diagnostics);
  } else {
    expander.Expand("", message);
  }
  if (auto* model = dynamic_cast<v1::Model*>(message)) FillModelDefaults("", model, origins, &diagnostics);
  if (auto* cluster = dynamic_cast<v1::Cluster*>(message)) FillClusterDefaults("", cluster, &diagnostics);
  CheckRules(*message, "", origins, &diagnostics);
  if (const auto* cluster = dynamic_cast<v1::Cluster*>(message)) CheckGraph(*cluster, "", {}, origins, &diagnostics);
  return StatusOf(diagnostics, nullptr);
}

std::vector<std::string> PresetKinds() {
  return {"accelerators", "clusters", "expert_transports", "models", "nccl", "nccl_times", "profiles", "software"};
}

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
