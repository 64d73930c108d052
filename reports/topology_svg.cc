// The pictures of topology_picture.h as SVG.
#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "reports/svg.h"
#include "reports/topology_picture.h"

namespace orrery::reports {
namespace {

constexpr SvgLength kMargin = 24 * kSvgPixel;
constexpr SvgLength kTitles = 110 * kSvgPixel;  // the column of row titles
constexpr SvgLength kTitle = 30 * kSvgPixel;    // height of a picture's title
constexpr SvgLength kBoxHeight = 34 * kSvgPixel;
constexpr SvgLength kGap = 10 * kSvgPixel;  // between boxes of a row
constexpr SvgLength kBetweenRows = 90 * kSvgPixel;
constexpr SvgLength kLane = 4 * kSvgPixel;  // between lines that run along a row
constexpr SvgLength kCharacter = 620;       // width of one at 10 pixels, in hundredths of a pixel
constexpr SvgLength kNarrowest = 44 * kSvgPixel;

// Colours that are told apart with any colour vision (after Okabe and Ito, "Color Universal Design", 2008).
constexpr char kStyle[] =
    "text{font:10px sans-serif;fill:#222;text-anchor:middle}\n"
    ".row{text-anchor:start;fill:#555}\n.title{font-size:14px;text-anchor:start}\n.note{text-anchor:start;fill:#555}\n"
    "line,path{stroke:#888;stroke-width:1;fill:none;stroke-opacity:0.6}\n.thick{stroke-width:2.5}\n.slow{stroke:#"
    "be4c14;stroke-width:2.5;stroke-opacity:1}\n"
    "rect{stroke:#444;stroke-width:1}\n.many{stroke-width:3;stroke-dasharray:4 2}\n"
    ".gpu{fill:#acdcc8}\n.nvswitch{fill:#ffe094}\n.pcie{fill:#e4e4e4}\n.cpu{fill:#f4f4f4}\n.nic{fill:#a8d0f0}\n"
    ".leaf{fill:#a8d0f0}\n.spine{fill:#fab89e}\n.core{fill:#ffe094}\n.node{fill:#acdcc8}\n.back{fill:#fff;stroke:none}"
    "\n";

struct Place {
  SvgRect rect;
  std::size_t row = 0;
};

// Boxes of a picture on the canvas, below `top`.
class Layout {
 public:
  Layout(const Picture& picture, SvgLength top)
      : picture_(picture), places_(picture.boxes.size()), lanes_(picture.rows.size(), 0) {
    for (std::size_t row = 0; row < picture.rows.size(); ++row) {
      for (const std::size_t box : picture.rows[row].boxes) places_[box].row = row;
    }
    for (const PictureLine& line : picture.lines) {
      if (places_[line.a].row == places_[line.b].row) ++lanes_[places_[line.a].row];
    }
    SvgLength widest = 0;
    for (const PictureRow& row : picture.rows) widest = std::max(widest, RowWidth(row));
    width_ = kMargin + kTitles + widest + kMargin;
    SvgLength y = top + kTitle;
    for (std::size_t row = 0; row < picture.rows.size(); ++row) {
      y += kLane * lanes_[row];
      const std::vector<std::size_t>& boxes = picture.rows[row].boxes;
      const SvgLength width = BoxWidth(picture.rows[row]);
      // Each in the middle of its share of the width, so that rows stand above each other.
      const auto shares = static_cast<SvgLength>(2 * boxes.size());
      for (std::size_t i = 0; i < boxes.size(); ++i) {
        const SvgLength middle = kMargin + kTitles + widest * static_cast<SvgLength>(2 * i + 1) / shares;
        places_[boxes[i]].rect = {middle - width / 2, y, width, kBoxHeight};
      }
      bottom_ = y + kBoxHeight;
      y = bottom_ + kBetweenRows;
    }
  }

  SvgLength width() const { return width_; }
  SvgLength bottom() const { return bottom_; }
  const Place& place(std::size_t box) const { return places_[box]; }

 private:
  // All boxes of a row are as wide as its longest text.
  SvgLength BoxWidth(const PictureRow& row) const {
    SvgLength width = kNarrowest;
    for (const std::size_t box : row.boxes) {
      const std::size_t characters = std::max(picture_.boxes[box].label.size(), picture_.boxes[box].detail.size());
      width = std::max(width, static_cast<SvgLength>(characters) * kCharacter + 10 * kSvgPixel);
    }
    return width;
  }
  SvgLength RowWidth(const PictureRow& row) const {
    return static_cast<SvgLength>(row.boxes.size()) * (BoxWidth(row) + kGap) - kGap;
  }

  const Picture& picture_;
  std::vector<Place> places_;
  std::vector<SvgLength> lanes_;  // lines along each row, which run above it
  SvgLength width_ = 0;
  SvgLength bottom_ = 0;
};

void DrawLines(const Picture& picture, const Layout& layout, SvgWriter* svg) {
  std::map<std::size_t, SvgLength> lanes;  // used, by row
  for (const PictureLine& line : picture.lines) {
    const Place& a = layout.place(line.a);
    const Place& b = layout.place(line.b);
    const char* const look = line.is_slow ? "slow" : line.cables > 1 ? "thick" : "thin";
    if (a.row == b.row) {
      const SvgLength y = a.rect.y - kLane * ++lanes[a.row];
      // Ends a little apart, so that lines of one box do not cover each other.
      const SvgLength shift = kLane * (lanes[a.row] % 8) - 4 * kLane;
      SvgWriter::Steps steps(a.rect.x + a.rect.width / 2 + shift, a.rect.y);
      steps.Vertical(y);
      steps.Horizontal(b.rect.x + b.rect.width / 2 + shift);
      steps.Vertical(b.rect.y);
      svg->Path(look, steps);
      continue;
    }
    const Place& upper = a.row < b.row ? a : b;
    const Place& lower = a.row < b.row ? b : a;
    svg->Line(look, upper.rect.x + upper.rect.width / 2, upper.rect.y + upper.rect.height,
              lower.rect.x + lower.rect.width / 2, lower.rect.y);
  }
}

void Draw(const Picture& picture, const Layout& layout, SvgLength top, SvgWriter* svg) {
  svg->Text("title", kMargin, top + 16 * kSvgPixel, picture.title);
  DrawLines(picture, layout, svg);
  for (const PictureRow& row : picture.rows) {
    svg->Text("row", kMargin, layout.place(row.boxes.front()).rect.y + 20 * kSvgPixel, row.title);
    for (const std::size_t index : row.boxes) {
      const PictureBox& box = picture.boxes[index];
      const SvgRect& rect = layout.place(index).rect;
      svg->Rect(absl::StrCat(row.css_class, box.is_many ? " many" : ""), rect);
      const SvgLength middle = rect.x + rect.width / 2;
      svg->Text("label", middle, rect.y + (box.detail.empty() ? 20 : 14) * kSvgPixel, box.label);
      if (!box.detail.empty()) svg->Text("label", middle, rect.y + 27 * kSvgPixel, box.detail);
    }
  }
}

}  // namespace

std::string TopologySvg(const std::string& name, const topology::Topology& topology) {
  const Picture fabric = FabricPicture(name, topology);
  const Picture node = NodePicture(topology);
  const Layout above(fabric, kMargin);
  const SvgLength second = above.bottom() + 2 * kMargin;
  const Layout below(node, second);
  const SvgLength width = std::max({above.width(), below.width(), 500 * kSvgPixel});
  const SvgLength height = below.bottom() + 3 * kMargin;
  SvgWriter svg(width, height, absl::StrCat(name, ": topology"), kStyle, "");
  svg.Rect("back", {0, 0, width, height});
  Draw(fabric, above, kMargin, &svg);
  Draw(node, below, second, &svg);
  svg.Text("note", kMargin, height - kMargin,
           "thick: several cables; dashed: several devices; red: a cable slower than others of its kind");
  return std::move(svg).Finish();
}

}  // namespace orrery::reports
