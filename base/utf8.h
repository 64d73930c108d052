// Text of users, which may be anything, as characters of UTF-8 (RFC 3629).
#ifndef ORRERY_BASE_UTF8_H_
#define ORRERY_BASE_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace orrery {

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  // 0: no character
};

// What `text` begins with: no character where it is empty, or begins with bytes that UTF-8 does not allow (overlong
// forms, surrogates, beyond U+10FFFF, cut off).
Character FirstCharacter(std::string_view text);

// On one line of a terminal, which it cannot steer: control characters (U+0000 to U+001F, U+007F to U+009F) and bytes
// that are no UTF-8 become \n, \r, \t or \x1b, byte by byte; all else stays as it is.
std::string Printable(std::string_view text);

}  // namespace orrery

#endif  // ORRERY_BASE_UTF8_H_
