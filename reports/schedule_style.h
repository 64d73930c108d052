// Internal to reports/: colours and fonts of the picture of a schedule.
#ifndef ORRERY_REPORTS_SCHEDULE_STYLE_H_
#define ORRERY_REPORTS_SCHEDULE_STYLE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "reports/svg.h"
#include "schedules/schedule.h"

namespace orrery::reports {

inline constexpr std::array kLegendOrder = {schedules::ActionKind::kForward, schedules::ActionKind::kBackward,
                                            schedules::ActionKind::kInputGradient,
                                            schedules::ActionKind::kWeightGradient};

// Kinds that occur, and whether there are blocks.
struct ScheduleContents {
  explicit ScheduleContents(const schedules::Schedule& schedule);
  bool Has(schedules::ActionKind kind) const { return kinds[static_cast<std::size_t>(kind)]; }

  std::array<bool, kLegendOrder.size()> kinds = {};
  bool blocks = false;
};

// Class of the boxes of a pass, as in "F0": kind and chunk.
std::string BoxClass(schedules::ActionKind kind, std::int32_t chunk);
// White reads better on it than black.
bool IsDark(schedules::ActionKind kind, std::int32_t chunk, std::int32_t chunks);

// The style sheet. `font`: of the micro-batches; `narrowest`: box; `row`: height. Small boxes and rows get thin borders
// or none.
std::string ScheduleStyle(const schedules::Schedule& schedule, const ScheduleContents& contents, SvgLength font,
                          SvgLength narrowest, SvgLength row);
// The hatching of idle time.
extern const std::string_view kScheduleDefs;

}  // namespace orrery::reports

#endif  // ORRERY_REPORTS_SCHEDULE_STYLE_H_
