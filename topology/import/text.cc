#include "topology/import/text.h"

#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace orrery::topology {
namespace {

constexpr std::size_t kLongestQuote = 80;

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// Without control sequences (ECMA-48): ESC [, parameters, a letter.
std::string WithoutEscapes(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b' || i + 1 >= text.size() || text[i + 1] != '[') {
      plain += text[i];
      continue;
    }
    i += 2;
    while (i < text.size() && (text[i] < '@' || text[i] > '~')) ++i;
  }
  return plain;
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && IsSpace(text.front())) text.remove_prefix(1);
  while (!text.empty() && IsSpace(text.back())) text.remove_suffix(1);
  return text;
}

// Takes a run of digits, without the zeros before it, off the front.
std::string_view TakeNumber(std::string_view* text) {
  while (text->size() > 1 && text->front() == '0' && IsDigit((*text)[1])) text->remove_prefix(1);
  std::size_t size = 0;
  while (size < text->size() && IsDigit((*text)[size])) ++size;
  const std::string_view number = text->substr(0, size);
  text->remove_prefix(size);
  return number;
}

}  // namespace

std::vector<TextLine> SplitLines(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // byte order mark
  std::vector<TextLine> lines;
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    lines.push_back({number, std::string(Trimmed(WithoutEscapes(text.substr(0, end))))});
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

std::vector<std::string_view> Words(std::string_view text) {
  std::vector<std::string_view> words;
  while (true) {
    text = Trimmed(text);
    if (text.empty()) return words;
    std::size_t size = 0;
    while (size < text.size() && !IsSpace(text[size])) ++size;
    words.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
}

std::optional<std::int64_t> ParseCount(std::string_view text, std::int64_t most) {
  if (text.empty()) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : text) {
    if (!IsDigit(c)) return std::nullopt;
    value = value * 10 + (c - '0');
    if (value > most) return std::nullopt;
  }
  return value;
}

bool NaturalLess(std::string_view a, std::string_view b) {
  const std::string_view whole_a = a;
  const std::string_view whole_b = b;
  while (!a.empty() && !b.empty()) {
    if (IsDigit(a.front()) && IsDigit(b.front())) {
      const std::string_view left = TakeNumber(&a);
      const std::string_view right = TakeNumber(&b);
      if (left.size() != right.size()) return left.size() < right.size();
      if (left != right) return left < right;
      continue;
    }
    if (a.front() != b.front()) return a.front() < b.front();
    a.remove_prefix(1);
    b.remove_prefix(1);
  }
  if (a.empty() != b.empty()) return a.empty();
  return whole_a < whole_b;
}

std::string Quote(std::string_view text) {
  const bool cut = text.size() > kLongestQuote;
  return absl::StrCat("\"", Printable(text.substr(0, kLongestQuote)), cut ? "..." : "", "\"");
}

}  // namespace orrery::topology
