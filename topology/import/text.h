// Lines and words of files that people paste: LF or CRLF, tabs or spaces, colours of a terminal, any bytes.
#ifndef ORRERY_TOPOLOGY_IMPORT_TEXT_H_
#define ORRERY_TOPOLOGY_IMPORT_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::topology {

struct TextLine {
  std::int64_t number = 0;  // from 1
  std::string text;         // without its end, escape sequences of terminals and spaces around it
};
std::vector<TextLine> SplitLines(std::string_view text);

// Split at spaces and tabs.
std::vector<std::string_view> Words(std::string_view text);

// Decimal digits and nothing else, at most `most`.
std::optional<std::int64_t> ParseCount(std::string_view text, std::int64_t most);

// Order of names with numbers in them: "mlx5_9" before "mlx5_10".
bool NaturalLess(std::string_view a, std::string_view b);

// As a message quotes it: on one line, cut where it is long.
std::string Quote(std::string_view text);

}  // namespace orrery::topology

#endif  // ORRERY_TOPOLOGY_IMPORT_TEXT_H_
