// Internal to schedules/text/: one cell of a table.
#ifndef ORRERY_SCHEDULES_TEXT_CELL_H_
#define ORRERY_SCHEDULES_TEXT_CELL_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace orrery::schedules {

enum class Verb : std::uint8_t {
  kForward,
  kBackward,
  kInputGradient,
  kWeightGradient,
  kSendForward,
  kReceiveForward,
  kSendBackward,
  kReceiveBackward,
  kUnshard,
  kReshard,
  kReduceGradient,
};

inline bool IsPass(Verb verb) { return verb <= Verb::kWeightGradient; }
inline bool IsMessage(Verb verb) { return verb >= Verb::kSendForward && verb <= Verb::kReceiveBackward; }
std::string_view NameOf(Verb verb);

struct CellAction {
  Verb verb = Verb::kForward;
  std::int32_t stage = 0;
  std::int32_t micro_batch = 0;  // of passes and messages
};

// One action, or the two of a block; empty: an idle slot. INVALID_ARGUMENT quotes the text and says what is allowed.
absl::StatusOr<std::vector<CellAction>> ParseCell(std::string_view text);

}  // namespace orrery::schedules

#endif  // ORRERY_SCHEDULES_TEXT_CELL_H_
