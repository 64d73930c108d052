#include "reports/schedule_style.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"

namespace orrery::reports {
namespace {

using schedules::Action;
using schedules::ActionKind;
using schedules::Schedule;

struct Color {
  int red = 0;
  int green = 0;
  int blue = 0;
};

// Blue, vermilion, amber and green, which are told apart with any colour vision (after Okabe and Ito, "Color Universal
// Design", 2008), each from a light shade for the first chunk to a dark one for the last.
struct Palette {
  ActionKind kind;
  Color light;
  Color dark;
};
constexpr std::array kPalettes = {
    Palette{ActionKind::kForward, {168, 208, 240}, {24, 100, 170}},
    Palette{ActionKind::kBackward, {250, 184, 158}, {190, 76, 20}},
    Palette{ActionKind::kInputGradient, {255, 224, 148}, {224, 152, 16}},
    Palette{ActionKind::kWeightGradient, {172, 224, 200}, {16, 126, 94}},
};

Color Shade(const Palette& palette, std::int32_t chunk, std::int32_t chunks) {
  const int share = chunks == 1 ? 20 : 100 * chunk / (chunks - 1);
  const auto mix = [share](int light, int dark) { return light + (dark - light) * share / 100; };
  return {mix(palette.light.red, palette.dark.red), mix(palette.light.green, palette.dark.green),
          mix(palette.light.blue, palette.dark.blue)};
}

const Palette& PaletteOf(ActionKind kind) {
  return *std::find_if(kPalettes.begin(), kPalettes.end(), [kind](const Palette& p) { return p.kind == kind; });
}

}  // namespace

ScheduleContents::ScheduleContents(const Schedule& schedule) {
  for (const std::vector<Action>& order : schedule.order) {
    for (const Action& action : order) {
      kinds[static_cast<std::size_t>(action.kind)] = true;
      blocks = blocks || action.fused;
    }
  }
}

std::string BoxClass(ActionKind kind, std::int32_t chunk) {
  return absl::StrCat(std::string(1, schedules::Letter(kind)), chunk);
}

bool IsDark(ActionKind kind, std::int32_t chunk, std::int32_t chunks) {
  const Color color = Shade(PaletteOf(kind), chunk, chunks);
  return 30 * color.red + 59 * color.green + 11 * color.blue < 12500;  // luma of ITU-R BT.601, in hundredths
}

std::string ScheduleStyle(const Schedule& schedule, const ScheduleContents& contents, SvgLength font,
                          SvgLength narrowest, SvgLength row) {
  const std::string_view border = narrowest >= 8 * kSvgPixel   ? ";stroke:#333;stroke-width:.6"
                                  : narrowest >= 3 * kSvgPixel ? ";stroke:#333;stroke-width:.3"
                                                               : "";
  std::string style = absl::StrCat(
      "text{font-family:Helvetica,Arial,'Liberation Sans','DejaVu Sans',sans-serif;font-size:12px;fill:#222}\n"
      ".title{font-size:19px;font-weight:bold}\n.small{font-size:11px;fill:#555}\n.end{text-anchor:end}\n"
      ".middle{text-anchor:middle}\n.worst{fill:#b00020;font-weight:bold}\n"
      ".dark,.white{font-size:",
      SvgNumber(font),
      "px;text-anchor:middle}\n.dark{fill:#111}\n.white{fill:#fff}\n"
      ".page{fill:#fff}\n.idle{fill:url(#orrery-idle)",
      row >= 14 * kSvgPixel ? ";stroke:#c9c9c9;stroke-width:.5" : "",
      "}\n"
      ".axis{stroke:#444;stroke-width:1}\n.grid{stroke:#999;stroke-width:.6;stroke-dasharray:1.5 3}\n"
      ".block{fill:none;stroke:#222;stroke-width:1}\n.stripe{fill:#111;fill-opacity:.8}\n"
      ".held{fill:#cfd6e2;stroke:#4a5a75;stroke-width:.9}\n.base{stroke:#aaa;stroke-width:.6}\n"
      ".limit{stroke:#b00020;stroke-width:.9;stroke-dasharray:5 3}\n");
  for (const Palette& palette : kPalettes) {
    if (!contents.Has(palette.kind)) continue;
    for (std::int32_t chunk = 0; chunk < schedule.chunks(); ++chunk) {
      const Color color = Shade(palette, chunk, schedule.chunks());
      absl::StrAppend(&style, ".", BoxClass(palette.kind, chunk), "{fill:rgb(", color.red, ",", color.green, ",",
                      color.blue, ")", std::string(border), "}\n");
    }
  }
  return style;
}

const std::string_view kScheduleDefs =
    "<pattern id=\"orrery-idle\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" "
    "patternTransform=\"rotate(45)\">"
    "<rect width=\"5\" height=\"5\" fill=\"#f7f7f7\"/><line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"5\" stroke=\"#d9d9d9\" "
    "stroke-width=\"1.2\"/></pattern>\n";

}  // namespace orrery::reports
