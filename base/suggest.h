// "Did you mean": the known word nearest to an unknown one.
#ifndef ORRERY_BASE_SUGGEST_H_
#define ORRERY_BASE_SUGGEST_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

// Least number of insertions, deletions, substitutions and swaps of neighbours (no letter edited twice) between a and
// b: F. J. Damerau, "A technique for computer detection and correction of spelling errors", CACM 7 (1964), in the form
// known as optimal string alignment. Letters compare without case.
int EditDistance(std::string_view a, std::string_view b);

// The candidate at the least distance, the first of equals, if that distance is at most a third of the word's length
// (rounded to nearest); nothing otherwise. Words above 200 characters get nothing: no name is that long.
std::optional<std::string> Nearest(std::string_view word, const std::vector<std::string>& candidates);

// " (did you mean 'x'?)" or "", to append to a message.
std::string DidYouMean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace orrery

#endif  // ORRERY_BASE_SUGGEST_H_
