#include "proto/presets.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/suggest.h"
#include "orrery/v1/expert_transport.pb.h"
#include "orrery/v1/nccl.pb.h"
#include "orrery/v1/run.pb.h"
#include "proto/limits.h"
#include "proto/rules.h"
#include "proto/text_reader.h"

namespace orrery::spec {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr char kExtension[] = ".txtpb";

// The text field `name` of a message, "" where it has none.
std::string TextField(const Message& message, const std::string& name) {
  const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(name);
  return field == nullptr ? "" : message.GetReflection()->GetString(message, field);
}

bool IsPresetName(const std::string& name) {
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  return !name.empty() && name[0] != '.' && name.size() <= 255 && std::all_of(name.begin(), name.end(), allowed);
}

// Removes from `base` what `above` replaces as a whole: lists, and messages for which it names another preset.
void DropReplaced(const Message& above, const std::string& path, Message* base, Origins* base_origins) {
  std::vector<const FieldDescriptor*> fields;
  above.GetReflection()->ListFields(above, &fields);
  const Reflection* reflection = base->GetReflection();
  for (const FieldDescriptor* field : fields) {
    const std::string field_path = JoinPath(path, field->name());
    if (field->is_repeated()) {
      reflection->ClearField(base, field);
      base_origins->Erase(field_path);
    } else if (field->message_type() != nullptr) {
      const Message& inner = above.GetReflection()->GetMessage(above, field);
      if (!TextField(inner, "preset").empty()) {
        reflection->ClearField(base, field);
        base_origins->Erase(field_path);
      } else {
        DropReplaced(inner, field_path, reflection->MutableMessage(base, field), base_origins);
      }
    }
  }
}

}  // namespace

std::string KindOf(const Descriptor* type) {
  if (type == v1::Accelerator::descriptor()) return "accelerators";
  if (type == v1::Cluster::descriptor()) return "clusters";
  if (type == v1::ExpertTransport::descriptor()) return "expert_transports";
  if (type == v1::Model::descriptor()) return "models";
  if (type == v1::NcclTimes::descriptor()) return "nccl_times";
  if (type == v1::NcclVersion::descriptor()) return "nccl";
  if (type == v1::Profile::descriptor()) return "profiles";
  if (type == v1::Software::descriptor()) return "software";
  return "";
}

std::vector<std::string> PresetNames(const std::string& kind, const std::vector<std::string>& spec_path) {
  std::set<std::string> names;
  for (const std::string& folder : spec_path) {
    std::error_code error;
    for (std::filesystem::directory_iterator it(folder + "/" + kind, error), end; !error && it != end;
         it.increment(error)) {
      const std::filesystem::path& file = it->path();
      if (file.extension() == kExtension) names.insert(file.stem().string());
    }
  }
  return {names.begin(), names.end()};
}

std::string PresetNameList(const std::string& kind, const std::vector<std::string>& spec_path) {
  const std::vector<std::string> names = PresetNames(kind, spec_path);
  if (names.empty()) return absl::StrCat("(no folder of the spec path has ", kind, ")");
  return absl::StrJoin(names, ", ");
}

void MergeOver(const Message& above, const Origins& above_origins, const std::string& path, Message* base,
               Origins* base_origins) {
  DropReplaced(above, path, base, base_origins);
  base->MergeFrom(above);
  base_origins->Overlay(above_origins);
}

std::shared_ptr<const Message> PresetCache::Find(const std::string& kind, const std::string& name) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto found = presets_.find(absl::StrCat(kind, "/", name));
  return found == presets_.end() ? nullptr : found->second;
}

void PresetCache::Keep(const std::string& kind, const std::string& name, const Message& preset) {
  std::shared_ptr<Message> copy(preset.New());
  copy->CopyFrom(preset);
  const std::lock_guard<std::mutex> lock(mutex_);
  presets_.try_emplace(absl::StrCat(kind, "/", name), std::move(copy));
}

void PresetExpander::Expand(const std::string& path, Message* message) {
  const FieldDescriptor* preset = message->GetDescriptor()->FindFieldByName("preset");
  const Reflection* reflection = message->GetReflection();
  if (preset != nullptr && reflection->HasField(*message, preset)) {
    PutUnderneath(path, message);
    if (diagnostics_->IsBad(JoinPath(path, "preset"))) {
      // What the unknown preset would have said cannot be judged.
      diagnostics_->MarkBad(path);
      return;
    }
  }
  const Descriptor* type = message->GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    if (field->is_repeated() || field->message_type() == nullptr) continue;  // no list holds messages with presets
    const std::string field_path = JoinPath(path, field->name());
    const std::string kind = KindOf(field->message_type());
    // A block without a known field says as little as none.
    const bool is_written = reflection->HasField(*message, field) &&
                            (kind.empty() || reflection->GetMessage(*message, field).ByteSizeLong() > 0);
    if (is_written) {
      Expand(field_path, reflection->MutableMessage(message, field));
    } else if (!kind.empty() && RuleOf(field).required() && !diagnostics_->IsBad(field_path)) {
      diagnostics_->Error(origins_->Nearest(field_path), JoinPath(field_path, "preset"),
                          absl::StrCat("is required and missing; allowed: one of ", PresetNameList(kind, spec_path_)));
      diagnostics_->MarkBad(field_path);
    }
  }
}

void PresetExpander::PutUnderneath(const std::string& path, Message* message) {
  const std::string kind = KindOf(message->GetDescriptor());
  const std::string preset_path = JoinPath(path, "preset");
  const std::string first_name = TextField(*message, "preset");
  // From the user's message down to the preset that starts from nothing.
  struct Layer {
    std::unique_ptr<Message> message;
    Origins origins;
  };
  std::vector<Layer> layers;
  std::vector<std::string> names;
  Position named_at = origins_->Nearest(preset_path);
  std::string name = first_name;
  do {
    const bool again = std::find(names.begin(), names.end(), name) != names.end();
    names.push_back(name);
    if (again || static_cast<int>(names.size()) > limits::kPresetDepth) {
      diagnostics_->Error(named_at, preset_path,
                          absl::StrCat("presets start from each other: ", absl::StrJoin(names, " -> "),
                                       "; allowed: a chain of at most ", limits::kPresetDepth, " different presets"));
      return;
    }
    Layer layer{std::unique_ptr<Message>(message->New()), origins_->Fresh()};
    if (!Read(kind, name, named_at, path, layer.message.get(), &layer.origins)) return;
    named_at = layer.origins.Nearest(preset_path);
    name = TextField(*layer.message, "preset");
    layers.push_back(std::move(layer));
  } while (!name.empty());

  Layer base = std::move(layers.back());
  for (std::size_t i = layers.size() - 1; i-- > 0;) {
    MergeOver(*layers[i].message, layers[i].origins, path, base.message.get(), &base.origins);
  }
  const FieldDescriptor* preset_field = message->GetDescriptor()->FindFieldByName("preset");
  const FieldDescriptor* name_field = message->GetDescriptor()->FindFieldByName("name");
  const Reflection* reflection = message->GetReflection();
  // A preset is called what its file is called: two files cannot claim one name in the provenance of results.
  reflection->SetString(base.message.get(), name_field, first_name);
  // What MergeOver does; but the user's origins may be millions, of which none is copied.
  DropReplaced(*message, path, base.message.get(), &base.origins);
  base.message->MergeFrom(*message);
  reflection->Swap(message, base.message.get());
  reflection->ClearField(message, preset_field);
  origins_->Underlay(base.origins);
}

bool PresetExpander::Read(const std::string& kind, const std::string& name, Position named_at, const std::string& path,
                          Message* message, Origins* origins) {
  const std::string preset_path = JoinPath(path, "preset");
  const auto fail = [&](const std::string& what) {
    diagnostics_->Error(named_at, preset_path, what);
    return false;
  };
  if (!IsPresetName(name)) {
    return fail(absl::StrCat("found \"", name, "\"; allowed: a name of letters, digits, '-', '_' and '.': one of ",
                             PresetNameList(kind, spec_path_)));
  }
  if (cache_ != nullptr) {
    if (const std::shared_ptr<const Message> known = cache_->Find(kind, name)) {
      message->CopyFrom(*known);
      return true;
    }
  }
  for (const std::string& folder : spec_path_) {
    const std::string file = absl::StrCat(folder, "/", kind, "/", name, kExtension);
    const absl::StatusOr<std::string> text = orrery::ReadFile(file, limits::kFileBytes);
    if (absl::IsNotFound(text.status())) continue;
    if (!text.ok()) return fail(std::string(text.status().message()));
    const int source = diagnostics_->AddSource(file, Diagnostics::Author::kPreset);
    if (const std::string problem = NotText(*text); !problem.empty()) return fail(absl::StrCat(file, ": ", problem));
    ReadText(*text, source, path, message, origins, diagnostics_);
    if (cache_ != nullptr && diagnostics_->ok()) cache_->Keep(kind, name, *message);
    return true;
  }
  return fail(absl::StrCat("no preset \"", name, "\"; allowed: one of ", PresetNameList(kind, spec_path_),
                           orrery::DidYouMean(name, PresetNames(kind, spec_path_))));
}

}  // namespace orrery::spec
