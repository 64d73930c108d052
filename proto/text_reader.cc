#include "proto/text_reader.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/suggest.h"
#include "base/utf8.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "proto/rules.h"

namespace orrery::spec {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using google::protobuf::io::Tokenizer;

constexpr std::size_t kLongestQuote = 40;  // characters of the input that a message repeats
// Elements of a list whose fields have positions of their own; of a later one only its beginning is known. A list may
// have millions.
constexpr int kLocatedElements = 1000;

// What the tokenizer itself objects to: an unterminated string, a stray control character.
class TokenErrors : public google::protobuf::io::ErrorCollector {
 public:
  TokenErrors(int source, std::string path, bool has_lines, Diagnostics* diagnostics)
      : source_(source), path_(std::move(path)), has_lines_(has_lines), diagnostics_(diagnostics) {}
  void AddError(int line, int column, const std::string& message) override {
    const Position position = has_lines_ ? Position{source_, line + 1, column + 1} : Position{source_, 0, 0};
    // The tokenizer complains of every byte of a character, of which all but the first are no news.
    const bool is_foreign = absl::StartsWith(message, "Interpreting non ascii codepoint");
    if (is_foreign && line == foreign_line_) return;
    if (is_foreign) foreign_line_ = line;
    diagnostics_->Error(
        position, path_,
        is_foreign ? "found a character beyond ASCII; allowed: only inside quotes and comments" : message);
  }

 private:
  int foreign_line_ = -1;  // the last one with such a character
  int source_;
  std::string path_;
  bool has_lines_;
  Diagnostics* diagnostics_;
};

class Reader {
 public:
  // `has_lines`: positions have line and column (a file); else only the source (an override).
  Reader(std::string_view text, int source, const std::string& path, bool has_lines, Origins* origins,
         Diagnostics* diagnostics)
      : input_(text.data(), static_cast<int>(text.size())),
        token_errors_(source, path, has_lines, diagnostics),
        tokens_(std::make_unique<Tokenizer>(&input_, &token_errors_)),
        source_(source),
        has_lines_(has_lines),
        origins_(origins),
        diagnostics_(diagnostics) {
    tokens_->set_comment_style(Tokenizer::SH_COMMENT_STYLE);
    tokens_->set_allow_f_after_float(true);
    tokens_->Next();
  }

  void ReadFile(const std::string& path, Message* message) {
    while (!AtEnd()) {
      ReadFields(path, message, "");
      if (AtEnd()) return;
      Error(Here(), path, absl::StrCat("found ", Found(), " that closes no block; allowed: a field"));
      tokens_->Next();
    }
  }

  void ReadWholeValue(const std::string& path, const FieldDescriptor* field, Message* message) {
    origins_->Set(path, Here());
    ReadFieldValue(path, field, message);
    if (!AtEnd() && !diagnostics_->IsBad(path)) {
      Error(Here(), path, absl::StrCat("found ", Found(), " behind the value; allowed: ", AllowedValues(field)));
    }
  }

 private:
  const Tokenizer::Token& Token() const { return tokens_->current(); }
  bool AtEnd() const { return Token().type == Tokenizer::TYPE_END; }
  bool LooksAt(std::string_view text) const { return Token().text == text; }
  bool TryConsume(std::string_view text) {
    if (!LooksAt(text)) return false;
    tokens_->Next();
    return true;
  }
  Position Here() const {
    return has_lines_ ? Position{source_, Token().line + 1, Token().column + 1} : Position{source_, 0, 0};
  }
  std::string Found() const {
    if (AtEnd()) return "the end";
    std::string text = Token().text.substr(0, kLongestQuote);
    if (text.size() < Token().text.size()) text += "...";
    if (!IsUtf8(text)) text = absl::CHexEscape(text);  // part of a character
    return Token().type == Tokenizer::TYPE_STRING ? absl::StrCat("the text ", text) : absl::StrCat("\"", text, "\"");
  }
  void Error(Position position, const std::string& path, const std::string& message) {
    diagnostics_->Error(position, path, message);
  }
  bool AtCloser() const { return LooksAt("}") || LooksAt(">") || LooksAt("]"); }

  // Reads fields until `closer`, which is consumed ("": to the end of input or a closer that fits nothing).
  void ReadFields(const std::string& path, Message* message, std::string_view closer) {
    while (!AtEnd()) {
      if (AtCloser()) {
        if (LooksAt(closer)) tokens_->Next();
        return;
      }
      ReadField(path, message);
      if (!TryConsume(",")) TryConsume(";");
    }
    if (!closer.empty())
      Error(Here(), path, absl::StrCat("is not closed at the end; allowed: \"", std::string(closer), "\""));
  }

  void ReadField(const std::string& path, Message* message) {
    const Position position = Here();
    const auto names = [&] { return FieldNames(message->GetDescriptor()); };
    if (Token().type != Tokenizer::TYPE_IDENTIFIER) {
      Error(position, path,
            absl::StrCat("found ", Found(), " where a field begins; allowed: one of ", absl::StrJoin(names(), ", ")));
      SkipLine();
      return;
    }
    const std::string name = Token().text;
    const std::string field_path = JoinPath(path, name);
    const FieldDescriptor* field = message->GetDescriptor()->FindFieldByName(name);
    tokens_->Next();
    if (field == nullptr) {
      Error(position, field_path,
            absl::StrCat("no such field; allowed: one of ", absl::StrJoin(names(), ", "),
                         orrery::DidYouMean(name, names())));
      TryConsume(":");
      SkipValue();
      return;
    }
    if (!field->is_repeated() && message->GetReflection()->HasField(*message, field)) {
      Error(position, field_path, "is written twice; allowed: once");
    }
    const bool has_colon = TryConsume(":");
    if (!has_colon && field->message_type() == nullptr) {
      Error(position, field_path,
            absl::StrCat("is followed by ", Found(), "; allowed: \":\" and ", AllowedValues(field)));
      SkipLine();
      return;
    }
    if (far_elements_ == 0) origins_->SetFirst(field_path, position);
    ReadFieldValue(field_path, field, message);
  }

  void ReadFieldValue(const std::string& path, const FieldDescriptor* field, Message* message) {
    if (!field->is_repeated()) {
      ReadOne(path, field, message);
      return;
    }
    const auto read_element = [&] {
      const int index = message->GetReflection()->FieldSize(*message, field);
      const std::string element = absl::StrCat(path, "[", index, "]");
      origins_->Set(element, Here());
      const int far = index < kLocatedElements ? 0 : 1;
      far_elements_ += far;
      ReadOne(element, field, message);
      far_elements_ -= far;
    };
    if (!TryConsume("[")) {
      read_element();
      return;
    }
    while (!TryConsume("]")) {
      if (AtEnd()) return Error(Here(), path, "is not closed at the end; allowed: \"]\"");
      read_element();
      if (!TryConsume(",") && !LooksAt("]")) {
        Error(Here(), path, absl::StrCat("found ", Found(), " in a list; allowed: \",\" or \"]\""));
        SkipLine();
        TryConsume("]");
        return;
      }
    }
  }

  // One value: a block or a scalar.
  void ReadOne(const std::string& path, const FieldDescriptor* field, Message* message) {
    if (field->message_type() == nullptr) {
      if (!ReadScalar(path, field, message)) SkipValue();
      return;
    }
    const std::string_view closer = LooksAt("{") ? "}" : LooksAt("<") ? ">" : "";
    if (closer.empty()) {
      WrongType(path, field);
      SkipValue();
      return;
    }
    tokens_->Next();
    const Reflection* reflection = message->GetReflection();
    Message* inner =
        field->is_repeated() ? reflection->AddMessage(message, field) : reflection->MutableMessage(message, field);
    ReadFields(path, inner, closer);
  }

  void WrongType(const std::string& path, const FieldDescriptor* field) {
    Error(Here(), path, absl::StrCat("found ", Found(), "; allowed: ", AllowedValues(field)));
  }

  // False, with an error and nothing consumed but a sign, where the token does not fit the field.
  bool ReadScalar(const std::string& path, const FieldDescriptor* field, Message* message) {
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT64:
        return ReadInteger(path, field, message);
      case FieldDescriptor::CPPTYPE_DOUBLE:
        return ReadNumber(path, field, message);
      case FieldDescriptor::CPPTYPE_BOOL:
        return ReadBool(path, field, message);
      case FieldDescriptor::CPPTYPE_ENUM:
        return ReadEnum(path, field, message);
      default:
        return ReadString(path, field, message);
    }
  }

  bool ReadInteger(const std::string& path, const FieldDescriptor* field, Message* message) {
    const Position position = Here();
    const bool negative = TryConsume("-");
    if (Token().type != Tokenizer::TYPE_INTEGER) {
      WrongType(path, field);
      return false;
    }
    constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    std::uint64_t magnitude = 0;
    const std::string text = absl::StrCat(negative ? "-" : "", Token().text);
    const bool fits = Tokenizer::ParseInteger(Token().text, kMax, &magnitude);
    tokens_->Next();
    if (!fits) {
      Error(position, path, absl::StrCat("found ", text, "; allowed: ", AllowedValues(field)));
      return true;
    }
    const auto value = static_cast<std::int64_t>(magnitude);
    Set(field, message, negative ? -value : value);
    return true;
  }

  bool ReadNumber(const std::string& path, const FieldDescriptor* field, Message* message) {
    const bool negative = TryConsume("-");
    const std::string text = Token().text;
    double value = 0;
    if (Token().type == Tokenizer::TYPE_FLOAT || Token().type == Tokenizer::TYPE_INTEGER) {
      // Hexadecimal and octal have no place among reals: 010 could be meant either way.
      if (text.size() > 1 && text[0] == '0' && text[1] != '.' && text[1] != 'e' && text[1] != 'E') {
        WrongType(path, field);
        return false;
      }
      value = Tokenizer::ParseFloat(text);
    } else if (text == "inf" || text == "infinity") {
      value = std::numeric_limits<double>::infinity();
    } else if (text == "nan") {
      value = std::numeric_limits<double>::quiet_NaN();
    } else {
      WrongType(path, field);
      return false;
    }
    tokens_->Next();
    Set(field, message, negative ? -value : value);
    return true;
  }

  bool ReadBool(const std::string& path, const FieldDescriptor* field, Message* message) {
    const bool is_true = LooksAt("true") || LooksAt("True") || LooksAt("t") || LooksAt("1");
    if (!is_true && !LooksAt("false") && !LooksAt("False") && !LooksAt("f") && !LooksAt("0")) {
      WrongType(path, field);
      return false;
    }
    tokens_->Next();
    Set(field, message, is_true);
    return true;
  }

  bool ReadEnum(const std::string& path, const FieldDescriptor* field, Message* message) {
    const EnumValueDescriptor* value =
        Token().type == Tokenizer::TYPE_IDENTIFIER ? field->enum_type()->FindValueByName(Token().text) : nullptr;
    if (value == nullptr || value->number() == 0) {
      Error(Here(), path,
            absl::StrCat("found ", Found(), "; allowed: ", AllowedValues(field),
                         orrery::DidYouMean(Token().text, ValueNames(field->enum_type()))));
      return false;
    }
    tokens_->Next();
    const Reflection* reflection = message->GetReflection();
    field->is_repeated() ? reflection->AddEnum(message, field, value) : reflection->SetEnum(message, field, value);
    return true;
  }

  bool ReadString(const std::string& path, const FieldDescriptor* field, Message* message) {
    if (Token().type != Tokenizer::TYPE_STRING) {
      WrongType(path, field);
      return false;
    }
    const Position position = Here();
    std::string text;
    while (Token().type == Tokenizer::TYPE_STRING) {
      Tokenizer::ParseStringAppend(Token().text, &text);
      tokens_->Next();
    }
    if (!IsUtf8(text)) {
      Error(position, path, "found bytes that are not UTF-8; allowed: a text in quotes");
      return true;
    }
    const Reflection* reflection = message->GetReflection();
    field->is_repeated() ? reflection->AddString(message, field, text) : reflection->SetString(message, field, text);
    return true;
  }

  // No list of numbers or booleans exists in the schema; a repeated one is added all the same.
  void Set(const FieldDescriptor* field, Message* message, std::int64_t value) {
    const Reflection* reflection = message->GetReflection();
    field->is_repeated() ? reflection->AddInt64(message, field, value) : reflection->SetInt64(message, field, value);
  }
  void Set(const FieldDescriptor* field, Message* message, double value) {
    const Reflection* reflection = message->GetReflection();
    field->is_repeated() ? reflection->AddDouble(message, field, value) : reflection->SetDouble(message, field, value);
  }
  void Set(const FieldDescriptor* field, Message* message, bool value) {
    const Reflection* reflection = message->GetReflection();
    field->is_repeated() ? reflection->AddBool(message, field, value) : reflection->SetBool(message, field, value);
  }

  // Passes over one value: a scalar, or a block or list with all it holds.
  void SkipValue() {
    if (AtEnd() || AtCloser()) return;
    int depth = 0;
    do {
      if (LooksAt("{") || LooksAt("<") || LooksAt("[")) ++depth;
      if (AtCloser()) --depth;
      tokens_->Next();
    } while (depth > 0 && !AtEnd());
  }

  // After a syntax error: on with the next line, or with what closes the block.
  void SkipLine() {
    const int line = Token().line;
    while (!AtEnd() && Token().line == line && !AtCloser()) SkipValue();
  }

  google::protobuf::io::ArrayInputStream input_;
  TokenErrors token_errors_;
  std::unique_ptr<Tokenizer> tokens_;  // whose current() is not const
  int source_;
  bool has_lines_;
  int far_elements_ = 0;  // around the current field: elements of lists that are too far on for positions inside
  Origins* origins_;
  Diagnostics* diagnostics_;
};

}  // namespace

bool IsUtf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const Character character = FirstCharacter(bytes);
    if (character.bytes == 0) return false;
    bytes.remove_prefix(character.bytes);
  }
  return true;
}

std::string NotText(std::string_view text) {
  if (text.empty()) return "is empty; allowed: a protobuf text";
  if (text.find('\0') != std::string_view::npos || !IsUtf8(text)) {
    return "is a binary file; allowed: a protobuf text in UTF-8";
  }
  return "";
}

void ReadText(std::string_view text, int source, const std::string& prefix, Message* message, Origins* origins,
              Diagnostics* diagnostics) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  origins->Set(prefix, Position{source, 1, 1});
  Reader(text, source, prefix, /*has_lines=*/true, origins, diagnostics).ReadFile(prefix, message);
}

void ReadValue(std::string_view text, int source, const std::string& path, const FieldDescriptor* field,
               Message* message, Origins* origins, Diagnostics* diagnostics) {
  std::string quoted;
  const bool bare = field->cpp_type() == FieldDescriptor::CPPTYPE_STRING && !text.starts_with('"') &&
                    !text.starts_with('\'') && !text.starts_with('[');
  if (bare) {
    // A shell eats quotes; a name without them is meant as one text.
    quoted.push_back('"');
    for (const char c : text) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += c;
    }
    quoted += '"';
    text = quoted;
  }
  Reader(text, source, path, /*has_lines=*/false, origins, diagnostics).ReadWholeValue(path, field, message);
}

}  // namespace orrery::spec
