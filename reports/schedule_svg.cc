// The picture of a schedule as SVG: ranks over time, and below them, on the same time axis, what each holds.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/units.h"
#include "reports/action_names.h"
#include "reports/schedule_boxes.h"
#include "reports/schedule_picture.h"
#include "reports/schedule_style.h"
#include "reports/svg.h"

namespace orrery::reports {
namespace {

using pipeline::Costs;
using pipeline::Evaluation;
using schedules::Action;
using schedules::ActionKind;
using schedules::Schedule;

constexpr SvgLength kPx = kSvgPixel;
constexpr SvgLength kLeft = 64 * kPx;
constexpr SvgLength kRight = 56 * kPx;
constexpr SvgLength kRowsTop = 104 * kPx;
// Rows need more height per rank than bands of memory.
constexpr SvgLength kRowsHeight = 520 * kPx;
constexpr SvgLength kBandsHeight = 320 * kPx;
constexpr SvgLength kBandGap = 3 * kPx;
constexpr std::int32_t kMostBands = 16;
constexpr SvgLength kSmallestFont = 6 * kPx;
constexpr SvgLength kLargestFont = 12 * kPx;
constexpr SvgLength kLegendFont = 12 * kPx;

// What a micro-batch takes at a font size: digits of Helvetica are 0.556 of it wide, a point half of that.
SvgLength LabelWidth(std::string_view label, SvgLength font) {
  const auto points = std::count(label.begin(), label.end(), '.');
  return (2 * static_cast<SvgLength>(label.size()) - points) * font * 28 / 100;
}
// The same for words; an upper estimate of the average letter.
SvgLength WordsWidth(std::string_view text, SvgLength font) {
  return static_cast<SvgLength>(text.size()) * font * 49 / 100;
}

// Ranks whose memory is drawn: all, or with many every n-th and the fullest.
std::vector<std::int32_t> MemoryRanks(const Evaluation& evaluation) {
  const auto ranks = static_cast<std::int32_t>(evaluation.ranks.size());
  const auto fullest = static_cast<std::int32_t>(FullestRank(evaluation));
  const std::int32_t step = (ranks + kMostBands - 1) / kMostBands;
  std::vector<std::int32_t> chosen;
  for (std::int32_t rank = 0; rank < ranks; ++rank) {
    if (rank % step == 0 || rank == fullest) chosen.push_back(rank);
  }
  return chosen;
}

// Where everything stands.
struct Layout {
  Layout(std::int32_t rank_count, std::size_t band_count, std::int64_t makespan, SvgLength full_width)
      : ranks(rank_count),
        bands(static_cast<SvgLength>(band_count)),
        end(std::max<std::int64_t>(makespan, 1)),
        width(full_width),
        row(std::clamp<SvgLength>(kRowsHeight / ranks, 6 * kPx, 28 * kPx)),
        row_gap(row >= 14 * kPx ? 3 * kPx : kPx),
        band(std::clamp<SvgLength>(kBandsHeight / bands, 16 * kPx, 36 * kPx)) {}

  SvgLength X(std::int64_t time) const {
    return kLeft + static_cast<SvgLength>(static_cast<Int128>(time) * (width - kLeft - kRight) / end);
  }
  SvgLength Right() const { return width - kRight; }
  SvgLength RowTop(std::int32_t rank) const { return kRowsTop + rank * (row + row_gap); }
  SvgLength AxisTop() const { return RowTop(ranks) - row_gap + 4 * kPx; }
  SvgLength MemoryTitle() const { return AxisTop() + 58 * kPx; }
  SvgLength BandTop(SvgLength band_index) const { return MemoryTitle() + 12 * kPx + band_index * (band + kBandGap); }
  SvgLength Height() const { return BandTop(bands) + 12 * kPx; }
  // Every how many rows one is named.
  std::int32_t NameEvery() const { return static_cast<std::int32_t>((13 * kPx + row + row_gap - 1) / (row + row_gap)); }

  std::int32_t ranks;
  SvgLength bands;
  std::int64_t end;
  SvgLength width;
  SvgLength row;
  SvgLength row_gap;
  SvgLength band;
};

class Picture {
 public:
  Picture(const Schedule& schedule, const Costs& costs, const Evaluation& evaluation,
          const SchedulePictureOptions& options);
  std::string Draw() &&;

 private:
  struct Measures {
    SvgLength narrowest = 0;  // of all passes that cost something
    SvgLength font = 0;       // at which all micro-batches fit, or the smallest that can be read
    SvgLength label = 0;      // width of the longest micro-batch at that size
  };
  Measures Measure() const;

  void DrawTitle();
  void DrawLegend();
  void DrawRank(std::int32_t rank);
  void DrawPass(std::int32_t rank, const Action& action, const SvgRect& rect);
  void DrawAxis();
  void DrawMemory();
  void DrawBand(std::size_t index, std::int64_t most);
  SvgLength HalfHeight() const { return layout_.row / 2; }

  const Schedule& schedule_;
  const Costs& costs_;
  const Evaluation& evaluation_;
  const SchedulePictureOptions& options_;
  const ScheduleContents contents_;
  const std::vector<std::int32_t> memory_ranks_;
  const Layout layout_;
  std::vector<std::vector<ScheduleBox>> boxes_;  // by rank
  Measures measures_;
  SvgWriter svg_;
};

std::vector<std::vector<ScheduleBox>> AllBoxes(const Schedule& schedule, const Evaluation& evaluation) {
  std::vector<std::vector<ScheduleBox>> boxes;
  for (std::int32_t rank = 0; rank < schedule.ranks(); ++rank) boxes.push_back(BoxesOf(schedule, evaluation, rank));
  return boxes;
}

Picture::Picture(const Schedule& schedule, const Costs& costs, const Evaluation& evaluation,
                 const SchedulePictureOptions& options)
    : schedule_(schedule),
      costs_(costs),
      evaluation_(evaluation),
      options_(options),
      contents_(schedule),
      memory_ranks_(MemoryRanks(evaluation)),
      layout_(schedule.ranks(), memory_ranks_.size(), evaluation.makespan, options.pixels * kPx),
      boxes_(AllBoxes(schedule, evaluation)),
      measures_(Measure()),
      svg_(layout_.width, layout_.Height(), absl::StrCat(options.name, ": ", SizeText(schedule)),
           ScheduleStyle(schedule, contents_, measures_.font, measures_.narrowest, layout_.row), kScheduleDefs) {}

Picture::Measures Picture::Measure() const {
  Measures measures{.narrowest = layout_.width};
  std::string longest;
  for (const std::vector<ScheduleBox>& boxes : boxes_) {
    for (const ScheduleBox& box : boxes) {
      const SvgLength width = layout_.X(box.span.end) - layout_.X(box.span.start);
      if (width > 0) measures.narrowest = std::min(measures.narrowest, width);
      const std::string label = MicroBatchLabel(schedule_, box.pass->micro_batch);
      if (label.size() > longest.size()) longest = label;
    }
  }
  const SvgLength height = contents_.blocks ? HalfHeight() : layout_.row;
  const SvgLength fits = (measures.narrowest - 2 * kPx) * kPx / std::max<SvgLength>(LabelWidth(longest, kPx), 1);
  measures.font = std::clamp(std::min(fits, height * 7 / 10), kSmallestFont, kLargestFont);
  measures.label = LabelWidth(longest, measures.font);
  return measures;
}

std::string Picture::Draw() && {
  svg_.Rect("page", {.width = layout_.width, .height = layout_.Height()});
  DrawTitle();
  DrawLegend();
  for (std::int32_t rank = 0; rank < layout_.ranks; ++rank) DrawRank(rank);
  DrawAxis();
  DrawMemory();
  return std::move(svg_).Finish();
}

void Picture::DrawTitle() {
  svg_.Text("title", kLeft, 28 * kPx, absl::StrCat(options_.name, ": ", SizeText(schedule_)));
  svg_.Text("", kLeft, 48 * kPx, OutcomeText(evaluation_, costs_, options_));
  svg_.Text("small", kLeft, 65 * kPx, CostsText(schedule_, costs_, options_));
}

// Swatches of all chunks (of some, where there are many) per kind, then what else a box can look like.
void Picture::DrawLegend() {
  constexpr std::int32_t kMostSwatches = 4;
  constexpr SvgLength kSwatch = 14 * kPx;
  const SvgLength top = 78 * kPx;
  const std::int32_t chunks = schedule_.chunks();
  const std::int32_t swatches = std::min(chunks, kMostSwatches);
  SvgLength x = kLeft;
  const auto name = [&](const std::string& text) {
    svg_.Text("", x + 5 * kPx, top + 11 * kPx, text);
    x += WordsWidth(text, kLegendFont) + 22 * kPx;
  };
  for (const ActionKind kind : kLegendOrder) {
    if (!contents_.Has(kind)) continue;
    for (std::int32_t i = 0; i < swatches; ++i, x += kSwatch) {
      const std::int32_t chunk = swatches == 1 ? 0 : i * (chunks - 1) / (swatches - 1);
      svg_.Rect(BoxClass(kind, chunk), {.x = x, .y = top, .width = kSwatch, .height = kSwatch});
    }
    name(absl::StrCat(std::string(1, schedules::Letter(kind)), " ", std::string(ActionName(kind))));
  }
  if (chunks > 1) {
    x -= 11 * kPx;
    name(absl::StrCat("(light to dark: chunk 0 to ", chunks - 1, ")"));
  }
  if (schedule_.placement.pipelines() > 1) {
    svg_.Rect("stripe", {.x = x, .y = top + kSwatch * 5 / 6, .width = kSwatch, .height = kSwatch / 6});
    x += kSwatch;
    name("stripe: second pipeline");
  }
  if (contents_.blocks) {
    svg_.Rect("F0", {.x = x, .y = top, .width = kSwatch, .height = kSwatch / 2});
    svg_.Rect("B0", {.x = x, .y = top + kSwatch / 2, .width = kSwatch, .height = kSwatch / 2});
    svg_.Rect("block", {.x = x, .y = top, .width = kSwatch, .height = kSwatch});
    x += kSwatch;
    name("fused block");
  }
  svg_.Rect("idle", {.x = x, .y = top, .width = kSwatch, .height = kSwatch});
  x += kSwatch;
  name("idle");
}

void Picture::DrawRank(std::int32_t rank) {
  const SvgLength top = layout_.RowTop(rank);
  if (rank % layout_.NameEvery() == 0) {
    svg_.Text("end", kLeft - 8 * kPx, top + layout_.row / 2 + 4 * kPx, absl::StrCat("rank ", rank));
  }
  svg_.Rect("idle", {.x = kLeft, .y = top, .width = layout_.Right() - kLeft, .height = layout_.row});
  for (const ScheduleBox& box : boxes_[static_cast<std::size_t>(rank)]) {
    SvgRect rect = {.x = layout_.X(box.span.start), .y = top, .height = layout_.row};
    rect.width = layout_.X(box.span.end) - rect.x;
    if (rect.width == 0) continue;
    if (box.other == nullptr) {
      DrawPass(rank, *box.pass, rect);
      continue;
    }
    const SvgRect whole = rect;
    rect.height = HalfHeight();
    DrawPass(rank, *box.pass, rect);
    rect.y += rect.height;
    rect.height = whole.height - rect.height;
    DrawPass(rank, *box.other, rect);
    svg_.Rect("block", whole);
  }
}

void Picture::DrawPass(std::int32_t rank, const Action& action, const SvgRect& rect) {
  svg_.Rect(BoxClass(action.kind, action.chunk), rect);
  const SvgLength stripe = rect.height / 6;
  const bool striped = schedule_.placement.PipelineOf(rank, action.chunk) > 0;
  if (striped) {
    svg_.Rect("stripe", {.x = rect.x, .y = rect.y + rect.height - stripe, .width = rect.width, .height = stripe});
  }
  const SvgLength room = rect.height - (striped ? stripe : 0);
  if (measures_.label + kPx > rect.width || measures_.font * 8 / 10 > room) return;
  const bool dark = IsDark(action.kind, action.chunk, schedule_.chunks());
  svg_.Text(dark ? "white" : "dark", rect.x + rect.width / 2, rect.y + room / 2 + measures_.font * 36 / 100,
            MicroBatchLabel(schedule_, action.micro_batch));
}

// Below the ranks, with faint lines down through the memory.
void Picture::DrawAxis() {
  const SvgLength top = layout_.AxisTop();
  const std::int64_t step = TickStep(layout_.end, options_.unit, 16);
  svg_.Line("axis", kLeft, top, layout_.Right(), top);
  for (std::int64_t tick = 0; tick <= layout_.end; tick += step) {
    const SvgLength x = layout_.X(tick);
    svg_.Line("axis", x, top, x, top + 5 * kPx);
    svg_.Line("grid", x, layout_.MemoryTitle() + 8 * kPx, x, layout_.BandTop(layout_.bands) - kBandGap);
    svg_.Text("middle", x, top + 18 * kPx, Quantity(tick, options_.unit, 9));
  }
  svg_.Text(
      "middle", (kLeft + layout_.Right()) / 2, top + 34 * kPx,
      options_.unit_name.empty() ? "time in units of the costs" : absl::StrCat("time (", options_.unit_name, ")"));
}

void Picture::DrawMemory() {
  const std::size_t fullest = FullestRank(evaluation_);
  const bool all = memory_ranks_.size() == evaluation_.ranks.size();
  svg_.Text("", kLeft, layout_.MemoryTitle(),
            absl::StrCat("Activation memory in ", MemoryUnitText(costs_, options_), all ? "" : ", of some ranks"));
  svg_.Text("small end", layout_.Right(), layout_.MemoryTitle(),
            absl::StrCat("peak of each rank at the right; dashed: the highest, of rank ", fullest));
  for (std::size_t i = 0; i < memory_ranks_.size(); ++i) DrawBand(i, evaluation_.ranks[fullest].peak_memory);
}

// What one rank holds, as an area under `most`, which all ranks share.
void Picture::DrawBand(std::size_t index, std::int64_t most) {
  const auto rank = static_cast<std::size_t>(memory_ranks_[index]);
  const SvgLength top = layout_.BandTop(static_cast<SvgLength>(index));
  const SvgLength base = top + layout_.band;
  const auto y = [&](std::int64_t level) {
    const Int128 height = static_cast<Int128>(level) * (layout_.band - 2 * kPx) / std::max<std::int64_t>(most, 1);
    return base - static_cast<SvgLength>(height);
  };
  SvgWriter::Steps steps(kLeft, base);
  for (const MemoryLevel& level : MemoryLevels(boxes_[rank], costs_.memory)) {
    steps.Horizontal(layout_.X(level.from));
    steps.Vertical(y(level.level));
  }
  steps.Vertical(base);
  svg_.Path("held", steps);
  svg_.Line("base", kLeft, base, layout_.Right(), base);
  svg_.Line("limit", kLeft, y(most), layout_.Right(), y(most));
  const SvgLength middle = top + layout_.band / 2 + 4 * kPx;
  const std::int64_t peak = evaluation_.ranks[rank].peak_memory;
  svg_.Text("end", kLeft - 8 * kPx, middle, absl::StrCat("rank ", rank));
  svg_.Text(peak == most ? "worst" : "", layout_.Right() + 8 * kPx, middle, Quantity(peak, options_.memory_unit, 2));
}

}  // namespace

absl::StatusOr<std::string> ScheduleSvg(const Schedule& schedule, const Costs& costs, const Evaluation& evaluation,
                                        const SchedulePictureOptions& options) {
  ABSL_RETURN_IF_ERROR(CheckDrawable(schedule));
  if (options.pixels < 400 || options.pixels > 20000) {
    return absl::InvalidArgumentError(
        absl::StrCat("a picture ", options.pixels, " pixels wide, allowed: 400 to 20000"));
  }
  return Picture(schedule, costs, evaluation, options).Draw();
}

}  // namespace orrery::reports
