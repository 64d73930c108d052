#include "base/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace orrery {
namespace {

TEST(Utf8Test, ReadsCharactersOfOneToFourBytes) {
  const struct {
    std::string_view text;
    std::uint32_t code;
    std::size_t bytes;
  } cases[] = {{"a", 0x61, 1},
               {"\xC3\xA4", 0xE4, 2},
               {"\xE2\x82\xAC", 0x20AC, 3},
               {"\xEF\xBF\xBF", 0xFFFF, 3},
               {"\xF0\x9F\x98\x80", 0x1F600, 4},
               {"\xF4\x8F\xBF\xBF", 0x10FFFF, 4}};
  for (const auto& [text, code, bytes] : cases) {
    const Character character = FirstCharacter(std::string(text) + "z");
    EXPECT_EQ(character.code, code) << text;
    EXPECT_EQ(character.bytes, bytes) << text;
  }
  EXPECT_EQ(FirstCharacter(std::string_view("\0", 1)).bytes, 1U);
}

// RFC 3629, sections 3 and 4: overlong forms, surrogates, beyond U+10FFFF, a continuation alone, a character cut off.
TEST(Utf8Test, RefusesWhatTheStandardDoes) {
  for (const char* text :
       {"", "\xC0\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF", "\xED\xA0\x80", "\xED\xBF\xBF",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\x80", "\xC3", "\xE2\x82", "\xF0\x9F\x98", "\xC3z"}) {
    EXPECT_EQ(FirstCharacter(text).bytes, 0U) << text;
  }
}

TEST(Utf8Test, PrintableEscapesWhatSteersATerminal) {
  EXPECT_EQ(Printable(""), "");
  EXPECT_EQ(Printable("zb-v, \"5 %\" \\ \xC3\xA4 \xF0\x9F\x98\x80"), "zb-v, \"5 %\" \\ \xC3\xA4 \xF0\x9F\x98\x80");
  EXPECT_EQ(Printable("two\nlines\r\tand \x1b[31mred\x7f"), "two\\nlines\\r\\tand \\x1b[31mred\\x7f");
  EXPECT_EQ(Printable(std::string_view("a\0b", 3)), "a\\x00b");
  // U+009B, which is ESC [ in one character, and U+00A0, which is no control character.
  EXPECT_EQ(Printable("\xC2\x9B"
                      "31m \xC2\xA0"),
            "\\xc2\\x9b31m \xC2\xA0");
  EXPECT_EQ(Printable("\xFF\xC3"), "\\xff\\xc3");
}

}  // namespace
}  // namespace orrery
