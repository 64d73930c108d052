// The spec loader: from a .txtpb that a user wrote to a Run in which everything is explicit.
//
//   text -> fields with positions -> --set overrides -> presets underneath -> defaults -> rules -> cross-field checks
//
// A resolved Run has every field that its rule calls required, so the layers above read fields without asking whether
// they are there. All errors of a spec are found in one go and reported in order of position, each as
//
//   file:line:column: field.path: what was found; what is allowed
//
// `preset` fields are empty after resolution; `name` says what was loaded, unless the user named it otherwise.
#ifndef ORRERY_PROTO_LOADER_H_
#define ORRERY_PROTO_LOADER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "orrery/v1/run.pb.h"

namespace orrery::spec {

// Something that a layer above finds wrong with a run. It is reported at the first of `fields` that somebody wrote.
struct FieldProblem {
  std::vector<std::string> fields;
  std::string message;
};

struct LoadOptions {
  // Folders that hold models/, accelerators/, clusters/, software/ and profiles/; an earlier one hides a later one. The
  // users' own come first, the shipped specs/ last. Each must exist.
  std::vector<std::string> spec_path;
  // `path=value`, as given to --set: "parallelism.tp=4", "model.preset=gpt-22b", "perturbation.jitter={mode:
  // EXPECTED}", "perturbation.slow_gpus={rank: 3 factor: 1.1}" (a list is replaced),
  // "perturbation.slow_gpus[0].factor=1.2". They are applied in this order as if the user had written them in the file,
  // those with an index after the presets are known.
  std::vector<std::string> overrides;
  // What the schema does not know. Called with every run, also with one in which other things are wrong; a problem is
  // not reported where one of its fields is wrong already.
  std::function<std::vector<FieldProblem>(const v1::Run&)> check = nullptr;
  // The same, called only with a run in which nothing else is wrong.
  std::function<std::vector<FieldProblem>(const v1::Run&)> check_sound = nullptr;
  // Stages per rank that a schedule demands, 0 where it takes any number: parallelism.virtual_stages where it is not
  // written.
  std::function<std::int64_t(const v1::Schedule&)> stages_per_rank = nullptr;
  // Above 0: micro-batches per pipeline and iteration; training.global_batch becomes dp x micro_batch times this,
  // whatever was written.
  std::int64_t micro_batches = 0;
};

// One thing that is wrong with a spec.
struct SpecError {
  std::string file = {};  // name of the file, or "--set path=value"; empty for a Run that code built
  int line = 0;           // from 1; 0 where there is none
  int column = 0;         // from 1
  std::string field = {};
  std::string message = {};

  std::string ToString() const;
};

struct LoadedRun {
  v1::Run run;
  // Of the resolved text without simulation.fold, granularity and engine, which must not change any answer.
  std::string sha256;
  std::string profile;   // name of the accelerator's profile
  std::string software;  // name of the software level
  std::vector<std::string> warnings;
  // Read into the run beside its spec and presets: the schedule's table.
  std::vector<std::string> files;
};

// INVALID_ARGUMENT whose message joins the errors, one a line; `errors`, where given, gets them one by one.
absl::StatusOr<LoadedRun> LoadRun(const std::string& path, const LoadOptions& options,
                                  std::vector<SpecError>* errors = nullptr);
// `filename` stands in messages only.
absl::StatusOr<LoadedRun> LoadRunFromText(std::string_view text, const std::string& filename,
                                          const LoadOptions& options, std::vector<SpecError>* errors = nullptr);
// For runs that code builds; presets may be named and defaults left out as in a file.
absl::StatusOr<LoadedRun> ResolveRun(const v1::Run& run, const LoadOptions& options,
                                     std::vector<SpecError>* errors = nullptr);

class PresetCache;

// A run that many runs start from. Its text and the presets are read once; resolving it with overrides then goes
// through the steps of LoadRun, to the same run or the same errors, at a fraction of the cost. Threads may share one.
class BaseRun {
 public:
  // INVALID_ARGUMENT where the file cannot be read as a run at all, or an override of `options` could stand nowhere.
  // Whether the base is legal by itself is not asked: what is varied may make it so.
  static absl::StatusOr<BaseRun> Read(const std::string& path, const LoadOptions& options);
  static absl::StatusOr<BaseRun> FromText(std::string text, const std::string& filename, const LoadOptions& options);

  // As LoadRun with these `overrides` behind those of the options, and `micro_batches` in their place.
  absl::StatusOr<v1::Run> Resolve(const std::vector<std::string>& overrides, std::int64_t micro_batches = 0,
                                  std::vector<SpecError>* errors = nullptr) const;
  // Whether path=value could be legal in some run: the field exists, the value has its type and lies in its range, a
  // preset of the name exists. INVALID_ARGUMENT says what is allowed.
  absl::Status CheckOverride(const std::string& override) const;
  // What LoadedRun::files would be under these overrides.
  std::vector<std::string> Files(const std::vector<std::string>& overrides = {}) const;
  // A digest of the base with presets and defaults filled in, legal or not, under further overrides.
  std::string Sha256(const std::vector<std::string>& overrides = {}) const;

 private:
  BaseRun(std::string text, std::string filename, LoadOptions options);
  LoadOptions OptionsWith(const std::vector<std::string>& overrides, std::int64_t micro_batches) const;

  std::string text_;
  std::string filename_;
  LoadOptions options_;
  v1::Run written_;  // of the text
  std::shared_ptr<PresetCache> presets_;
};

// Fills `message` (Model, Accelerator, Cluster, Software or Profile) from the preset `name` and checks it against its
// rules.
absl::Status LoadPreset(const std::string& name, const LoadOptions& options, google::protobuf::Message* message);

// Looks at a cluster whose fields are all in their ranges; fields of problems are the cluster's ("node.nics").
using ClusterCheck = std::function<std::vector<FieldProblem>(const v1::Cluster&)>;

// A cluster by itself: a file, which is what has a '/' or ends in .txtpb or is there, else a preset, for which '_'
// counts as '-' and any beginning before a '-' will do that only one has ("dgx_h100"). Resolved and checked like that
// of a run, but for what only runs ask; a graph needs neither nodes, node and fabric nor an accelerator beside it.
// Overrides are "node.gpus=4".
absl::StatusOr<v1::Cluster> LoadCluster(const std::string& name, const LoadOptions& options,
                                        const ClusterCheck& check = nullptr, std::vector<SpecError>* errors = nullptr);

// Kinds of presets, which are also the folders: accelerators, clusters, expert_transports, models, nccl, nccl_times,
// profiles, software.
std::vector<std::string> PresetKinds();
// Names in order, each once. INVALID_ARGUMENT lists the kinds when there is no such kind.
absl::StatusOr<std::vector<std::string>> ListPresets(std::string_view kind, const LoadOptions& options);

// The text of a resolved run, with its header; loading it gives the same run and the same text.
std::string ResolvedText(const v1::Run& run);
// A commented run to start from, with every field's range and default; it loads with the shipped specs.
std::string NewRunText();

}  // namespace orrery::spec

#endif  // ORRERY_PROTO_LOADER_H_
