#include "schedules/text/cell.h"

#include <charconv>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/utf8.h"

namespace orrery::schedules {
namespace {

// By Verb.
constexpr std::string_view kNames[] = {"F",      "B",      "I",       "W",       "SEND_F",     "RECV_F",
                                       "SEND_B", "RECV_B", "UNSHARD", "RESHARD", "REDUCE_GRAD"};
constexpr std::string_view kBlock = "OVERLAP_F_B";
constexpr std::size_t kLongestQuote = 40;

absl::Status Wrong(std::string_view text, std::string_view allowed) {
  std::string quoted = Printable(text.substr(0, kLongestQuote));
  if (text.size() > kLongestQuote) quoted += "...";
  return absl::InvalidArgumentError(absl::StrCat("\"", quoted, "\"; allowed: ", std::string(allowed)));
}

constexpr std::string_view kAllowed =
    "<stage><F, B, I or W><micro-batch> as in 0F3, (1F2;0B3)OVERLAP_F_B, actions of communication, or nothing";

// Consumes a number. False where there is none, or none that fits.
bool TakeNumber(std::string_view& text, std::int32_t& number) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

absl::StatusOr<CellAction> ParseAction(std::string_view text) {
  CellAction action;
  std::string_view rest = text;
  if (!TakeNumber(rest, action.stage)) return Wrong(text, kAllowed);
  const std::string_view verb = rest.substr(0, rest.find_first_of("0123456789"));
  rest.remove_prefix(verb.size());
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    if (kNames[i] != verb) continue;
    action.verb = static_cast<Verb>(i);
    const bool has_micro_batch = IsPass(action.verb) || IsMessage(action.verb);
    if (has_micro_batch && !TakeNumber(rest, action.micro_batch)) {
      return Wrong(text, "a micro-batch after the kind, as in 0F3");
    }
    if (!rest.empty()) return Wrong(text, has_micro_batch ? kAllowed : "this kind without a micro-batch");
    return action;
  }
  return Wrong(text, kAllowed);
}

std::string_view Trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

std::string_view NameOf(Verb verb) { return kNames[static_cast<std::size_t>(verb)]; }

absl::StatusOr<std::vector<CellAction>> ParseCell(std::string_view text) {
  text = Trim(text);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = Trim(text.substr(1, text.size() - 2));
  std::vector<CellAction> actions;
  if (text.empty()) return actions;
  if (text.front() != '(') {
    ABSL_ASSIGN_OR_RETURN(const CellAction action, ParseAction(text));
    actions.push_back(action);
    return actions;
  }
  const std::size_t middle = text.find(';');
  const std::size_t end = text.find(')');
  if (middle == std::string_view::npos || end == std::string_view::npos || middle > end ||
      text.substr(end + 1) != kBlock) {
    return Wrong(text, "a block of two passes, as in (1F2;0B3)OVERLAP_F_B");
  }
  for (const std::string_view member : {text.substr(1, middle - 1), text.substr(middle + 1, end - middle - 1)}) {
    ABSL_ASSIGN_OR_RETURN(const CellAction action, ParseAction(Trim(member)));
    actions.push_back(action);
  }
  const auto backward = [](Verb verb) { return verb == Verb::kBackward || verb == Verb::kInputGradient; };
  if (!(actions[0].verb == Verb::kForward && backward(actions[1].verb)) &&
      !(actions[1].verb == Verb::kForward && backward(actions[0].verb))) {
    return Wrong(text, "a block of one F and one B or I");
  }
  return actions;
}

}  // namespace orrery::schedules
