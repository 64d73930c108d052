#include "proto/overrides.h"

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "base/suggest.h"
#include "proto/presets.h"
#include "proto/rules.h"
#include "proto/text_reader.h"

namespace orrery::spec {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// One step of a path: a field, and which of its elements.
struct Step {
  std::string name;
  std::optional<int> index;
};

std::optional<Step> ParseStep(const std::string& text) {
  Step step;
  const std::size_t open = text.find('[');
  step.name = text.substr(0, open);
  if (open == std::string::npos) return step;
  int index = 0;
  if (text.back() != ']' || !absl::SimpleAtoi(text.substr(open + 1, text.size() - open - 2), &index) || index < 0) {
    return std::nullopt;
  }
  step.index = index;
  return step;
}

class Walker {
 public:
  Walker(const Override& parsed, Message* message, Origins* origins, Diagnostics* diagnostics)
      : override_(parsed), message_(message), origins_(origins), diagnostics_(diagnostics) {}

  void Apply() {
    const std::vector<std::string> steps = absl::StrSplit(override_.path, '.');
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const std::optional<Step> step = ParseStep(steps[i]);
      if (!step.has_value()) {
        Error(absl::StrCat("found \"", steps[i],
                           "\" in the path; allowed: a field, or an element of a list as in list[0]"));
        return;
      }
      const FieldDescriptor* field = Find(*step);
      if (field == nullptr) return;
      if (i + 1 == steps.size()) {
        SetValue(*step, field);
        return;
      }
      if (!Descend(*step, field)) return;
    }
  }

 private:
  void Error(const std::string& message) { diagnostics_->Error({override_.source, 0, 0}, override_.path, message); }

  // The field that the step names in the current message.
  const FieldDescriptor* Find(const Step& step) {
    const FieldDescriptor* field = message_->GetDescriptor()->FindFieldByName(step.name);
    if (field == nullptr) {
      const std::vector<std::string> names = FieldNames(message_->GetDescriptor());
      Error(absl::StrCat("no field \"", step.name, "\"", path_.empty() ? "" : absl::StrCat(" in ", path_),
                         "; allowed: one of ", absl::StrJoin(names, ", "), orrery::DidYouMean(step.name, names)));
      return nullptr;
    }
    if (!step.index.has_value()) return field;
    const int size = field->is_repeated() ? message_->GetReflection()->FieldSize(*message_, field) : 0;
    if (!field->is_repeated() || field->message_type() == nullptr) {
      Error(absl::StrCat(step.name, " is no list of blocks; allowed: ", step.name, " without an index"));
      return nullptr;
    }
    if (*step.index >= size) {
      Error(absl::StrCat(step.name, " has ", size, " elements; allowed: an index below ", size));
      return nullptr;
    }
    return field;
  }

  bool Descend(const Step& step, const FieldDescriptor* field) {
    path_ = StepPath(step);
    if (field->message_type() == nullptr) {
      Error(absl::StrCat(path_, " has no fields; allowed: ", path_, "=value with ", AllowedValues(field)));
      return false;
    }
    if (field->is_repeated() && !step.index.has_value()) {
      Error(absl::StrCat(path_, " is a list; allowed: ", path_, "[0] and so on for one element, or ", path_,
                         "={ ... } for all"));
      return false;
    }
    const Reflection* reflection = message_->GetReflection();
    message_ = step.index.has_value() ? reflection->MutableRepeatedMessage(message_, field, *step.index)
                                      : reflection->MutableMessage(message_, field);
    if (!origins_->Has(path_)) origins_->Set(path_, {override_.source, 0, 0});
    return true;
  }

  std::string StepPath(const Step& step) const {
    std::string path = JoinPath(path_, step.name);
    if (step.index.has_value()) absl::StrAppend(&path, "[", *step.index, "]");
    return path;
  }

  // The value is read into an empty message of the same type and then written over, so that it may repeat fields.
  void SetValue(const Step& step, const FieldDescriptor* field) {
    const std::unique_ptr<Message> written(message_->New());
    Origins written_origins;
    const std::string field_path = JoinPath(path_, step.name);
    ReadValue(override_.value, override_.source, field_path, field, written.get(), &written_origins, diagnostics_);
    if (diagnostics_->IsBad(field_path)) return;
    if (!step.index.has_value()) {
      MergeOver(*written, written_origins, path_, message_, origins_);
      return;
    }
    const Reflection* reflection = message_->GetReflection();
    if (reflection->FieldSize(*written, field) != 1) {
      Error(absl::StrCat("found a list; allowed: ", AllowedValues(field)));
      return;
    }
    const Message& above = reflection->GetRepeatedMessage(*written, field, 0);
    reflection->MutableRepeatedMessage(message_, field, *step.index)->MergeFrom(above);
    origins_->Set(StepPath(step), {override_.source, 0, 0});
  }

  const Override& override_;
  Message* message_;
  Origins* origins_;
  Diagnostics* diagnostics_;
  std::string path_;
};

}  // namespace

std::string PathOfOverride(absl::string_view text) {
  return std::string(absl::StripTrailingAsciiWhitespace(text.substr(0, text.find_first_of("={"))));
}

std::vector<Override> ParseOverrides(const std::vector<std::string>& texts, Diagnostics* diagnostics) {
  std::vector<Override> overrides;
  for (const std::string& text : texts) {
    Override parsed;
    const bool is_text = IsUtf8(text);
    parsed.source = diagnostics->AddSource(absl::StrCat("--set ", is_text ? text : absl::CHexEscape(text)),
                                           Diagnostics::Author::kOverride);
    if (!is_text) {
      diagnostics->Error({parsed.source, 0, 0}, "", "found bytes that are not UTF-8; allowed: path=value in UTF-8");
      continue;
    }
    const std::size_t end = text.find_first_of("={");
    parsed.path = PathOfOverride(text);
    if (end == std::string::npos || parsed.path.empty()) {
      diagnostics->Error({parsed.source, 0, 0}, "",
                         "is no override; allowed: path=value, such as parallelism.tp=4, or path {fields}");
      continue;
    }
    parsed.value = text.substr(text[end] == '=' ? end + 1 : end);
    overrides.push_back(std::move(parsed));
  }
  return overrides;
}

void ApplyOverride(const Override& parsed, Message* message, Origins* origins, Diagnostics* diagnostics) {
  Walker(parsed, message, origins, diagnostics).Apply();
}

}  // namespace orrery::spec
