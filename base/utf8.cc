#include "base/utf8.h"

#include <algorithm>

namespace orrery {
namespace {

bool IsControl(std::uint32_t code) { return code < 0x20 || (code >= 0x7F && code < 0xA0); }

void AppendEscaped(char byte, std::string& text) {
  constexpr char kDigits[] = "0123456789abcdef";
  text += '\\';
  switch (byte) {
    case '\n':
      text += 'n';
      return;
    case '\r':
      text += 'r';
      return;
    case '\t':
      text += 't';
      return;
    default:
      break;
  }
  const auto value = static_cast<unsigned char>(byte);
  text += 'x';
  text += kDigits[value / 16];
  text += kDigits[value % 16];
}

}  // namespace

Character FirstCharacter(std::string_view text) {
  if (text.empty()) return {};
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {};
  std::uint32_t code = lead & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0U) != 0x80U) return {};
    code = code << 6 | (byte & 0x3FU);
  }
  const bool overlong = (bytes == 3 && code < 0x800) || (bytes == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return overlong || surrogate || code > 0x10FFFF ? Character{} : Character{code, bytes};
}

std::string Printable(std::string_view text) {
  std::string printable;
  while (!text.empty()) {
    const Character character = FirstCharacter(text);
    const std::string_view bytes = text.substr(0, std::max<std::size_t>(character.bytes, 1));
    if (character.bytes > 0 && !IsControl(character.code)) {
      printable += bytes;
    } else {
      for (const char byte : bytes) AppendEscaped(byte, printable);
    }
    text.remove_prefix(bytes.size());
  }
  return printable;
}

}  // namespace orrery
