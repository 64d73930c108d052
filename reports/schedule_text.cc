// The picture of a schedule as text for a terminal.
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/format.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "reports/action_names.h"
#include "reports/schedule_boxes.h"
#include "reports/schedule_picture.h"

namespace orrery::reports {
namespace {

using pipeline::Evaluation;
using pipeline::Span;
using schedules::Action;
using schedules::Schedule;

// Lower case for chunk 1 of 2.
std::string KindLabel(const Schedule& schedule, const Action& action) {
  const char letter = schedules::Letter(action.kind);
  if (schedule.chunks() != 2 || action.chunk == 0) return std::string(1, letter);
  return std::string(1, static_cast<char>(std::tolower(static_cast<unsigned char>(letter))));
}

std::string PassLabel(const Schedule& schedule, std::int32_t rank, const Action& action) {
  const std::string stage = schedule.chunks() > 2 ? absl::StrCat(schedule.StageOf(rank, action.chunk)) : "";
  return absl::StrCat(stage, KindLabel(schedule, action), MicroBatchLabel(schedule, action.micro_batch));
}

std::string BoxLabel(const Schedule& schedule, std::int32_t rank, const ScheduleBox& box) {
  const std::string label = PassLabel(schedule, rank, *box.pass);
  return box.other == nullptr ? label : absl::StrCat(label, "&", PassLabel(schedule, rank, *box.other));
}

using Rows = std::vector<std::vector<ScheduleBox>>;

// Greatest common divisor of all starts and ends: every pass begins and ends at a border of such cells.
std::int64_t CellTime(const Rows& rows) {
  std::int64_t divisor = 0;
  for (const std::vector<ScheduleBox>& boxes : rows) {
    for (const ScheduleBox& box : boxes) divisor = std::gcd(divisor, std::gcd(box.span.start, box.span.end));
  }
  return std::max<std::int64_t>(divisor, 1);
}

// Least width of a cell at which every label fits into its pass, with a space before it.
std::int64_t CellWidth(const Schedule& schedule, const Rows& rows, std::int64_t cell) {
  std::int64_t width = 2;
  for (std::size_t rank = 0; rank < rows.size(); ++rank) {
    for (const ScheduleBox& box : rows[rank]) {
      const std::int64_t cells = (box.span.end - box.span.start) / cell;
      if (cells == 0) continue;
      const std::string label = BoxLabel(schedule, static_cast<std::int32_t>(rank), box);
      width = std::max(width, (static_cast<std::int64_t>(label.size()) + 1 + cells - 1) / cells);
    }
  }
  return width;
}

std::size_t At(std::int64_t index) { return static_cast<std::size_t>(index); }

// " F0 F1 .. B0===": a space and its label at the start of a pass, then '='.
std::string CellLine(const Schedule& schedule, std::int32_t rank, const std::vector<ScheduleBox>& boxes,
                     std::int64_t cells, std::int64_t cell, std::int64_t width) {
  std::string line;
  for (std::int64_t i = 0; i < cells; ++i) absl::StrAppend(&line, " ", std::string(At(width - 1), '.'));
  for (const ScheduleBox& box : boxes) {
    const std::int64_t characters = (box.span.end - box.span.start) / cell * width;
    if (characters == 0) continue;
    std::string text = absl::StrCat(" ", BoxLabel(schedule, rank, box));
    text.resize(At(characters), '=');
    line.replace(At(box.span.start / cell * width), text.size(), text);
  }
  return line;
}

// One character per column: what runs in its middle; '&' for a block.
std::string ColumnLine(const Schedule& schedule, const std::vector<ScheduleBox>& boxes, std::int64_t columns,
                       std::int64_t makespan) {
  std::string line(At(columns), '.');
  for (const ScheduleBox& box : boxes) {
    // Columns c with start <= (2c + 1) makespan / (2 columns) < end.
    const auto first_from = [&](std::int64_t time) {
      const Int128 numerator = static_cast<Int128>(2) * time * columns - makespan;
      const Int128 denominator = static_cast<Int128>(2) * makespan;
      return numerator <= 0 ? std::int64_t{0} : static_cast<std::int64_t>((numerator + denominator - 1) / denominator);
    };
    const std::int64_t last = std::min(first_from(box.span.end), columns);
    const char letter = box.other == nullptr ? KindLabel(schedule, *box.pass).front() : '&';
    for (std::int64_t column = first_from(box.span.start); column < last; ++column) line[At(column)] = letter;
  }
  return line;
}

// Round times above the columns they belong to, left-aligned; a time that would touch the one before is left out.
std::string TimeLine(std::int64_t makespan, std::int64_t characters, std::int64_t step, std::int64_t unit) {
  std::string line;
  for (std::int64_t tick = 0; tick < makespan; tick += step) {
    const auto column = At(static_cast<std::int64_t>(static_cast<Int128>(tick) * characters / makespan));
    if (!line.empty() && column <= line.size()) continue;
    line.resize(column, ' ');
    line += Quantity(tick, unit, 9);
  }
  return line;
}

std::string Legend(const Schedule& schedule, const Rows& rows, bool labels) {
  bool blocks = false;
  std::string text;
  for (const auto kind : {schedules::ActionKind::kForward, schedules::ActionKind::kBackward,
                          schedules::ActionKind::kInputGradient, schedules::ActionKind::kWeightGradient}) {
    bool found = false;
    for (const std::vector<Action>& order : schedule.order) {
      found = found || std::any_of(order.begin(), order.end(), [kind](const Action& a) { return a.kind == kind; });
    }
    if (found)
      absl::StrAppend(&text, std::string(1, schedules::Letter(kind)), " ", std::string(ActionName(kind)), ", ");
  }
  for (const std::vector<ScheduleBox>& boxes : rows) {
    blocks = blocks || std::any_of(boxes.begin(), boxes.end(), [](const ScheduleBox& b) { return b.other != nullptr; });
  }
  if (blocks) text += labels ? "F&B a fused block, " : "& a fused block, ";
  text += ". idle";
  if (schedule.chunks() == 2) text += "; lower case: chunk 1";
  if (schedule.chunks() > 2 && labels) text += "; the number before the letter is the stage";
  return text;
}

}  // namespace

absl::StatusOr<std::string> ScheduleText(const Schedule& schedule, const pipeline::Costs& costs,
                                         const Evaluation& evaluation, const SchedulePictureOptions& options) {
  ABSL_RETURN_IF_ERROR(CheckDrawable(schedule));
  if (options.columns < 40 || options.columns > 10000) {
    return absl::InvalidArgumentError(
        absl::StrCat("a picture ", options.columns, " characters wide, allowed: 40 to 10000"));
  }
  Rows rows;
  for (std::int32_t rank = 0; rank < schedule.ranks(); ++rank) rows.push_back(BoxesOf(schedule, evaluation, rank));
  const std::int64_t makespan = std::max<std::int64_t>(evaluation.makespan, 1);
  const std::int64_t cell = CellTime(rows);
  const std::int64_t cells = makespan / cell;
  const std::int64_t width = CellWidth(schedule, rows, cell);
  const std::size_t margin = absl::StrCat(schedule.ranks() - 1).size();
  const std::int64_t room = options.columns - static_cast<std::int64_t>(margin);
  const bool labels = cells <= room / width;
  const std::int64_t columns = labels ? cells * width : std::min(cells, room - 1);

  std::string text =
      absl::StrCat(options.name, ": ", SizeText(schedule), "\n", OutcomeText(evaluation, costs, options), "\n",
                   CostsText(schedule, costs, options), "\n", Legend(schedule, rows, labels), "\n");
  absl::StrAppend(
      &text, "scale: ", labels ? width : 1, labels ? " characters = " : " character = ",
      labels || columns == cells
          ? Quantity(cell, options.unit, 9)
          : absl::StrCat("about ", FormatFixed(static_cast<double>(makespan) / static_cast<double>(options.unit) /
                                                   static_cast<double>(columns),
                                               3)),
      options.unit_name.empty() ? "" : " ", options.unit_name, "\n\n");
  const std::int64_t step = TickStep(makespan, options.unit, std::max<std::int64_t>(columns / 12, 1));
  absl::StrAppend(&text, std::string(margin + 1, ' '), TimeLine(makespan, columns, step, options.unit), "\n");
  for (std::int32_t rank = 0; rank < schedule.ranks(); ++rank) {
    const std::vector<ScheduleBox>& boxes = rows[At(rank)];
    std::string name = absl::StrCat(rank);
    name.insert(0, margin - name.size(), ' ');
    absl::StrAppend(
        &text, name, labels ? "" : " ",
        labels ? CellLine(schedule, rank, boxes, cells, cell, width) : ColumnLine(schedule, boxes, columns, makespan),
        "\n");
  }
  return text;
}

}  // namespace orrery::reports
