#include "proto/rules.h"

#include <cmath>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/format.h"
#include "orrery/v1/profile.pb.h"

namespace orrery::spec {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

bool IsNumber(const FieldDescriptor* field) {
  return field->cpp_type() == FieldDescriptor::CPPTYPE_INT64 || field->cpp_type() == FieldDescriptor::CPPTYPE_DOUBLE;
}

// Ends of integer ranges print as integers: 1000000, not 1e+06.
std::string EndText(double value) {
  constexpr double kExactIntegers = 9007199254740992;  // 2^53
  if (std::abs(value) < kExactIntegers && value == std::trunc(value)) {
    return absl::StrCat(static_cast<std::int64_t>(value));
  }
  return FormatDouble(value);
}

bool InRange(double value, const v1::Rule& rule) {
  // NaN compares false with both ends, so it is never in range.
  return std::isfinite(value) && (!rule.has_min() || value >= rule.min()) && (!rule.has_max() || value <= rule.max());
}

// The number in words, and whether it is in range: of element `index` of a list, or of a singular field (-1).
std::pair<std::string, bool> JudgeNumber(const Message& message, const FieldDescriptor* field, int index,
                                         const v1::Rule& rule) {
  const Reflection* reflection = message.GetReflection();
  if (field->cpp_type() == FieldDescriptor::CPPTYPE_INT64) {
    const std::int64_t value =
        index < 0 ? reflection->GetInt64(message, field) : reflection->GetRepeatedInt64(message, field, index);
    return {absl::StrCat(value), InRange(static_cast<double>(value), rule)};
  }
  const double value =
      index < 0 ? reflection->GetDouble(message, field) : reflection->GetRepeatedDouble(message, field, index);
  const std::string text = std::isfinite(value) ? FormatDouble(value)
                           : std::isnan(value)  ? "nan"
                           : value > 0          ? "inf"
                                                : "-inf";
  return {text, InRange(value, rule)};
}

void CheckNumber(const Message& message, const FieldDescriptor* field, int index, const v1::Rule& rule,
                 const std::string& path, const Origins& origins, Diagnostics* diagnostics) {
  const auto [found, ok] = JudgeNumber(message, field, index, rule);
  if (!ok) {
    diagnostics->Error(origins.Nearest(path), path, absl::StrCat("found ", found, "; allowed: ", AllowedValues(field)));
  }
}

// A Constant inherits range and unit from the field that holds it.
void CheckConstant(const v1::Constant& constant, const v1::Rule& rule, const std::string& path, const Origins& origins,
                   Diagnostics* diagnostics) {
  const std::string value_path = JoinPath(path, "value");
  if (constant.has_value() && (rule.has_min() || rule.has_max()) && !InRange(constant.value(), rule)) {
    diagnostics->Error(
        origins.Nearest(value_path), value_path,
        absl::StrCat("found ", FormatDouble(constant.value()), "; allowed: a number ", AllowedRange(rule)));
  }
  if (rule.has_unit() && constant.has_unit() && constant.unit() != rule.unit()) {
    const std::string unit_path = JoinPath(path, "unit");
    diagnostics->Error(origins.Nearest(unit_path), unit_path,
                       absl::StrCat("found \"", constant.unit(), "\"; allowed: \"", rule.unit(), "\""));
  }
}

// The user left `field` out, and nothing filled it in.
void ReportMissing(const FieldDescriptor* field, const std::string& path, const Origins& origins,
                   Diagnostics* diagnostics) {
  diagnostics->Error(origins.Nearest(path), path,
                     absl::StrCat("is required and missing; allowed: ", AllowedValues(field)));
}

}  // namespace

const v1::Rule& RuleOf(const FieldDescriptor* field) { return field->options().GetExtension(v1::rule); }

std::vector<std::string> ValueNames(const EnumDescriptor* type) {
  std::vector<std::string> names;
  for (int i = 0; i < type->value_count(); ++i) {
    if (type->value(i)->number() != 0) names.push_back(type->value(i)->name());
  }
  return names;
}

std::vector<std::string> FieldNames(const Descriptor* type) {
  std::vector<std::string> names;
  for (int i = 0; i < type->field_count(); ++i) names.push_back(type->field(i)->name());
  return names;
}

std::string AllowedRange(const v1::Rule& rule) {
  std::string text;
  if (rule.has_min() && rule.has_max() && rule.min() == rule.max()) {
    text = absl::StrCat("equal to ", EndText(rule.min()));
  } else {
    if (rule.has_min()) absl::StrAppend(&text, "from ", EndText(rule.min()));
    if (rule.has_max()) absl::StrAppend(&text, rule.has_min() ? " to " : "up to ", EndText(rule.max()));
  }
  if (!rule.unit().empty()) absl::StrAppend(&text, text.empty() ? "" : " ", rule.unit());
  return text;
}

std::string AllowedValues(const FieldDescriptor* field) {
  const std::string range = AllowedRange(RuleOf(field));
  const char* gap = range.empty() ? "" : " ";
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT64:
      return absl::StrCat("a whole number", gap, range);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return absl::StrCat("a number", gap, range);
    case FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case FieldDescriptor::CPPTYPE_ENUM:
      return absl::StrCat("one of ", absl::StrJoin(ValueNames(field->enum_type()), ", "));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return absl::StrCat("a block { ... } of ", absl::StrJoin(FieldNames(field->message_type()), ", "));
    default:
      return "a text in quotes";
  }
}

void CheckRules(const Message& message, const std::string& path, const Origins& origins, Diagnostics* diagnostics) {
  const Reflection* reflection = message.GetReflection();
  const Descriptor* type = message.GetDescriptor();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor* field = type->field(i);
    const v1::Rule& rule = RuleOf(field);
    const std::string field_path = JoinPath(path, field->name());
    if (diagnostics->IsBad(field_path)) continue;
    const bool present =
        field->is_repeated() ? reflection->FieldSize(message, field) > 0 : reflection->HasField(message, field);
    if (!present) {
      if (rule.required()) ReportMissing(field, field_path, origins, diagnostics);
      continue;
    }
    if (field->is_repeated()) {
      for (int k = 0; k < reflection->FieldSize(message, field); ++k) {
        const std::string element = absl::StrCat(field_path, "[", k, "]");
        if (field->message_type() != nullptr) {
          CheckRules(reflection->GetRepeatedMessage(message, field, k), element, origins, diagnostics);
        } else if (IsNumber(field)) {
          CheckNumber(message, field, k, rule, element, origins, diagnostics);
        } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM &&
                   reflection->GetRepeatedEnum(message, field, k)->number() == 0) {
          diagnostics->Error(origins.Nearest(element), element,
                             absl::StrCat("found ", reflection->GetRepeatedEnum(message, field, k)->name(),
                                          "; allowed: ", AllowedValues(field)));
        }
      }
    } else if (field->message_type() != nullptr) {
      const Message& inner = reflection->GetMessage(message, field);
      CheckRules(inner, field_path, origins, diagnostics);
      if (field->message_type() == v1::Constant::descriptor()) {
        CheckConstant(static_cast<const v1::Constant&>(inner), rule, field_path, origins, diagnostics);
      }
    } else if (IsNumber(field)) {
      CheckNumber(message, field, /*index=*/-1, rule, field_path, origins, diagnostics);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_ENUM &&
               reflection->GetEnum(message, field)->number() == 0) {
      diagnostics->Error(
          origins.Nearest(field_path), field_path,
          absl::StrCat("found ", reflection->GetEnum(message, field)->name(), "; allowed: ", AllowedValues(field)));
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_STRING && rule.required() &&
               reflection->GetString(message, field).empty()) {
      diagnostics->Error(origins.Nearest(field_path), field_path, "found an empty text; allowed: a text in quotes");
    }
  }
}

}  // namespace orrery::spec
