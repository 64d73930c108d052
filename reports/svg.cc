#include "reports/svg.h"

#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/utf8.h"

namespace orrery::reports {
namespace {

absl::string_view View(std::string_view text) { return absl::string_view(text.data(), text.size()); }

// Bytes of the character of XML 1.0 that `text` begins with, or 0 where it begins with none.
std::size_t XmlCharacter(std::string_view text) {
  const auto [code, bytes] = FirstCharacter(text);
  const bool control = code < 0x20 && code != '\t' && code != '\n' && code != '\r';
  return control || code == 0xFFFE || code == 0xFFFF ? 0 : bytes;
}

}  // namespace

std::string SvgNumber(SvgLength length) {
  const SvgLength magnitude = length < 0 ? -length : length;
  std::string text = absl::StrCat(length < 0 ? "-" : "", magnitude / kSvgPixel);
  const SvgLength hundredths = magnitude % kSvgPixel;
  if (hundredths == 0) return text;
  absl::StrAppend(&text, ".", hundredths / 10);
  if (hundredths % 10 != 0) absl::StrAppend(&text, hundredths % 10);
  return text;
}

std::string XmlEscape(std::string_view text) {
  std::string escaped;
  while (!text.empty()) {
    const std::size_t size = XmlCharacter(text);
    if (size == 0) {
      escaped += '?';
    } else if (text.front() == '&') {
      escaped += "&amp;";
    } else if (text.front() == '<') {
      escaped += "&lt;";
    } else if (text.front() == '>') {
      escaped += "&gt;";
    } else if (text.front() == '"') {
      escaped += "&quot;";
    } else if (text.front() == '\'') {
      escaped += "&apos;";
    } else {
      escaped.append(text.substr(0, size));
    }
    text.remove_prefix(size == 0 ? 1 : size);
  }
  return escaped;
}

SvgWriter::SvgWriter(SvgLength width, SvgLength height, std::string_view title, std::string_view style,
                     std::string_view defs) {
  const std::string w = SvgNumber(width);
  const std::string h = SvgNumber(height);
  absl::StrAppend(&text_, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n",
                  "<svg xmlns=\"http://www.w3.org/2000/svg\" version=\"1.1\" width=\"", w, "\" height=\"", h,
                  "\" viewBox=\"0 0 ", w, " ", h, "\">\n<title>", XmlEscape(title), "</title>\n<style>\n", View(style),
                  "</style>\n");
  if (!defs.empty()) absl::StrAppend(&text_, "<defs>\n", View(defs), "</defs>\n");
}

void SvgWriter::Rect(std::string_view css_class, const SvgRect& rect) {
  absl::StrAppend(&text_, "<rect class=\"", View(css_class), "\" x=\"", SvgNumber(rect.x), "\" y=\"");
  absl::StrAppend(&text_, SvgNumber(rect.y), "\" width=\"", SvgNumber(rect.width), "\" height=\"",
                  SvgNumber(rect.height), "\"/>\n");
}

void SvgWriter::Line(std::string_view css_class, SvgLength x1, SvgLength y1, SvgLength x2, SvgLength y2) {
  absl::StrAppend(&text_, "<line class=\"", View(css_class), "\" x1=\"", SvgNumber(x1), "\" y1=\"");
  absl::StrAppend(&text_, SvgNumber(y1), "\" x2=\"", SvgNumber(x2), "\" y2=\"", SvgNumber(y2), "\"/>\n");
}

void SvgWriter::Text(std::string_view css_class, SvgLength x, SvgLength y, std::string_view text, int turn) {
  absl::StrAppend(&text_, "<text class=\"", View(css_class), "\" x=\"", SvgNumber(x), "\" y=\"", SvgNumber(y), "\"");
  if (turn != 0) absl::StrAppend(&text_, " transform=\"rotate(", turn, " ", SvgNumber(x), " ", SvgNumber(y), ")\"");
  absl::StrAppend(&text_, ">", XmlEscape(text), "</text>\n");
}

SvgWriter::Steps::Steps(SvgLength x, SvgLength y) : path_(absl::StrCat("M", SvgNumber(x), " ", SvgNumber(y))) {}
void SvgWriter::Steps::Horizontal(SvgLength x) { absl::StrAppend(&path_, "H", SvgNumber(x)); }
void SvgWriter::Steps::Vertical(SvgLength y) { absl::StrAppend(&path_, "V", SvgNumber(y)); }

void SvgWriter::Path(std::string_view css_class, const Steps& steps) {
  absl::StrAppend(&text_, "<path class=\"", View(css_class), "\" d=\"", steps.path_, "\"/>\n");
}

std::string SvgWriter::Finish() && {
  text_ += "</svg>\n";
  return std::move(text_);
}

}  // namespace orrery::reports
