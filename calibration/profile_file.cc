#include "calibration/profile_file.h"

#include <algorithm>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "base/file.h"
#include "base/format.h"
#include "base/status_macros.h"
#include "base/suggest.h"
#include "proto/limits.h"
#include "proto/origins.h"
#include "proto/presets.h"
#include "proto/rules.h"
#include "proto/text_reader.h"

namespace orrery::calibration {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

constexpr std::string_view kExtension = ".txtpb";

// In double quotes, in which single ones need no escape.
std::string Quoted(const std::string& text) {
  return absl::StrCat("\"", absl::StrReplaceAll(absl::Utf8SafeCEscape(text), {{"\\'", "'"}}), "\"");
}

// The value of a scalar field, element `index` of a list (-1: no list), as text format has it.
std::string ScalarText(const Message& message, const FieldDescriptor* field, int index) {
  const Reflection* reflection = message.GetReflection();
  const bool one = index < 0;
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrCat(one ? reflection->GetInt64(message, field)
                              : reflection->GetRepeatedInt64(message, field, index));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return FormatDouble(one ? reflection->GetDouble(message, field)
                              : reflection->GetRepeatedDouble(message, field, index));
    case FieldDescriptor::CPPTYPE_BOOL:
      return (one ? reflection->GetBool(message, field) : reflection->GetRepeatedBool(message, field, index)) ? "true"
                                                                                                              : "false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return (one ? reflection->GetEnum(message, field) : reflection->GetRepeatedEnum(message, field, index))->name();
    default:
      return Quoted(one ? reflection->GetString(message, field) : reflection->GetRepeatedString(message, field, index));
  }
}

bool IsMessage(const FieldDescriptor* field) { return field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE; }

// Every field that is set, in the order of the schema's text; of a list that is not of messages all values in one.
std::vector<const FieldDescriptor*> SetFields(const Message& message) {
  std::vector<const FieldDescriptor*> fields;
  const Descriptor* type = message.GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    const bool set = field->is_repeated() ? message.GetReflection()->FieldSize(message, field) > 0
                                          : message.GetReflection()->HasField(message, field);
    if (set) fields.push_back(field);
  }
  return fields;
}

std::string ListText(const Message& message, const FieldDescriptor* field) {
  std::vector<std::string> values;
  for (int i = 0; i < message.GetReflection()->FieldSize(message, field); ++i) {
    values.push_back(ScalarText(message, field, i));
  }
  return absl::StrJoin(values, ", ");
}

bool HasMessages(const Message& message) {
  for (const FieldDescriptor* field : SetFields(message)) {
    if (IsMessage(field)) return true;
  }
  return false;
}

void Append(const Message& message, const std::string& indent, std::string* text);

// A message without messages inside on one line, any other as a block.
void AppendBlock(const std::string& name, const Message& message, const std::string& indent, std::string* text) {
  if (HasMessages(message)) {
    absl::StrAppend(text, indent, name, " {\n");
    Append(message, indent + "  ", text);
    absl::StrAppend(text, indent, "}\n");
    return;
  }
  absl::StrAppend(text, indent, name, " {");
  for (const FieldDescriptor* field : SetFields(message)) {
    absl::StrAppend(
        text, " ", field->name(), ": ",
        field->is_repeated() ? absl::StrCat("[", ListText(message, field), "]") : ScalarText(message, field, -1));
  }
  absl::StrAppend(text, " }\n");
}

void Append(const Message& message, const std::string& indent, std::string* text) {
  const Reflection* reflection = message.GetReflection();
  for (const FieldDescriptor* field : SetFields(message)) {
    if (!IsMessage(field)) {
      const std::string value =
          field->is_repeated() ? absl::StrCat("[", ListText(message, field), "]") : ScalarText(message, field, -1);
      absl::StrAppend(text, indent, field->name(), ": ", value, "\n");
    } else if (field->is_repeated()) {
      for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
        AppendBlock(field->name(), reflection->GetRepeatedMessage(message, field, i), indent, text);
      }
    } else {
      AppendBlock(field->name(), reflection->GetMessage(message, field), indent, text);
    }
  }
}

// What sets an element of a list apart: the values of its lists and enums of a kind ("FLASH_ATTENTION_2, FP16, BF16"),
// its name, else its number.
std::string ElementName(const Message& message, int index) {
  const Reflection* reflection = message.GetReflection();
  std::vector<std::string> parts;
  for (const FieldDescriptor* field : SetFields(message)) {
    const bool names = field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM;
    if (names) parts.push_back(field->is_repeated() ? ListText(message, field) : ScalarText(message, field, -1));
    if (field->name() == "name") parts.push_back(reflection->GetString(message, field));
  }
  return parts.empty() ? absl::StrCat(index) : absl::StrJoin(parts, ", ");
}

void List(const Message& message, const std::string& prefix, std::vector<ListedConstant>* constants) {
  const Reflection* reflection = message.GetReflection();
  const auto visit = [&](const Message& inner, const std::string& path) {
    if (inner.GetDescriptor() == v1::Constant::descriptor()) {
      const auto& constant = static_cast<const v1::Constant&>(inner);
      constants->push_back({path, FormatDouble(constant.value()), constant.unit(), constant.source(), true});
    } else {
      List(inner, path, constants);
    }
  };
  for (const FieldDescriptor* field : SetFields(message)) {
    const std::string path = prefix.empty() ? field->name() : absl::StrCat(prefix, ".", field->name());
    if (!IsMessage(field)) {
      const std::string value = field->is_repeated() ? ListText(message, field) : ScalarText(message, field, -1);
      if (path != "name") constants->push_back({path, value, spec::RuleOf(field).unit(), "", false});
    } else if (field->is_repeated()) {
      for (int i = 0; i < reflection->FieldSize(message, field); ++i) {
        const Message& element = reflection->GetRepeatedMessage(message, field, i);
        visit(element, absl::StrCat(path, "[", ElementName(element, i), "]"));
      }
    } else {
      visit(reflection->GetMessage(message, field), path);
    }
  }
}

}  // namespace

absl::StatusOr<v1::Profile> LoadProfileFile(const std::string& path, const spec::LoadOptions& options) {
  ABSL_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, spec::limits::kFileBytes));
  if (const std::string problem = spec::NotText(text); !problem.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": ", problem));
  }
  spec::Diagnostics diagnostics;
  spec::Origins origins;
  v1::Profile profile;
  spec::ReadText(text, diagnostics.AddSource(path, spec::Diagnostics::Author::kFile), "", &profile, &origins,
                 &diagnostics);
  const std::string name = profile.name();
  spec::PresetExpander(options.spec_path, &origins, &diagnostics).Expand("", &profile);
  if (!name.empty()) profile.set_name(name);
  spec::CheckRules(profile, "", origins, &diagnostics);
  if (diagnostics.ok()) return profile;
  std::vector<std::string> errors;
  for (const spec::SpecError& error : diagnostics.Sorted()) errors.push_back(error.ToString());
  return absl::InvalidArgumentError(absl::StrJoin(errors, "\n"));
}

absl::Status CheckPresetName(std::string_view kind, const std::string& name, const spec::LoadOptions& options) {
  ABSL_ASSIGN_OR_RETURN(const std::vector<std::string> names, spec::ListPresets(kind, options));
  if (std::find(names.begin(), names.end(), name) != names.end()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("no preset \"", name, "\" in ", std::string(kind),
                                                 "; allowed: one of ", absl::StrJoin(names, ", "),
                                                 DidYouMean(name, names)));
}

absl::StatusOr<v1::Profile> LoadProfile(const std::string& name, const spec::LoadOptions& options) {
  if (name.ends_with(kExtension)) return LoadProfileFile(name, options);
  ABSL_RETURN_IF_ERROR(CheckPresetName("profiles", name, options));
  v1::Profile profile;
  ABSL_RETURN_IF_ERROR(spec::LoadPreset(name, options, &profile));
  return profile;
}

std::string ProfileText(const v1::Profile& profile, const std::vector<std::string>& comment) {
  std::string text = "# proto-file: orrery/v1/profile.proto\n# proto-message: orrery.v1.Profile\n";
  for (const std::string& line : comment) absl::StrAppend(&text, line.empty() ? "#" : "# ", line, "\n");
  return absl::StrCat(text, "\n", MessageText(profile));
}

std::string MessageText(const Message& message) {
  std::string text;
  Append(message, "", &text);
  return text;
}

std::vector<ListedConstant> ListConstants(const v1::Profile& profile) {
  std::vector<ListedConstant> constants;
  List(profile, "", &constants);
  return constants;
}

}  // namespace orrery::calibration
