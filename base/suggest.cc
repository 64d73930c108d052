#include "base/suggest.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"

namespace orrery {

int EditDistance(std::string_view a, std::string_view b) {
  const auto same = [&](std::size_t i, std::size_t j) {
    return absl::ascii_tolower(static_cast<unsigned char>(a[i])) ==
           absl::ascii_tolower(static_cast<unsigned char>(b[j]));
  };
  // Three rows of the table whose cell (i, j) is the distance of the first i letters of a to the first j of b.
  std::vector<int> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<int>(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before_last.swap(last);
    last.swap(row);
    row[0] = static_cast<int>(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same(i - 1, j - 1) ? 0 : 1)});
      if (i > 1 && j > 1 && same(i - 1, j - 2) && same(i - 2, j - 1)) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
  }
  return row[b.size()];
}

std::optional<std::string> Nearest(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLongestWord = 200;
  if (word.size() > kLongestWord) return std::nullopt;
  const std::size_t limit = (word.size() + 1) / 3;
  const std::string* nearest = nullptr;
  int nearest_distance = static_cast<int>(limit) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t size_difference =
        candidate.size() > word.size() ? candidate.size() - word.size() : word.size() - candidate.size();
    if (size_difference > limit) continue;  // each letter of difference costs an edit
    const int distance = EditDistance(word, candidate);
    if (distance < nearest_distance) {
      nearest_distance = distance;
      nearest = &candidate;
    }
  }
  if (nearest == nullptr) return std::nullopt;
  return *nearest;
}

std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::optional<std::string> nearest = Nearest(word, candidates);
  return nearest.has_value() ? absl::StrCat(" (did you mean '", *nearest, "'?)") : std::string();
}

}  // namespace orrery
