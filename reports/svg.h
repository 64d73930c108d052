// Writes SVG 1.1 element by element. Lengths are integers in hundredths of a pixel, so that the bytes are the same on
// every machine; looks are classes of a style sheet.
#ifndef ORRERY_REPORTS_SVG_H_
#define ORRERY_REPORTS_SVG_H_

#include <cstdint>
#include <string>
#include <string_view>

namespace orrery::reports {

// Hundredths of a pixel.
using SvgLength = std::int64_t;
constexpr SvgLength kSvgPixel = 100;

// "12.5" for 1250.
std::string SvgNumber(SvgLength length);

// Text as XML content or attribute value: &, <, >, " and ' escaped; characters that XML does not allow, and bytes that
// are not UTF-8, become '?'.
std::string XmlEscape(std::string_view text);

struct SvgRect {
  SvgLength x = 0;
  SvgLength y = 0;
  SvgLength width = 0;
  SvgLength height = 0;
};

class SvgWriter {
 public:
  // `title` is what a reader without eyes gets. `style`: CSS; `defs`: patterns and the like. Both are taken as they
  // are.
  SvgWriter(SvgLength width, SvgLength height, std::string_view title, std::string_view style, std::string_view defs);

  void Rect(std::string_view css_class, const SvgRect& rect);
  void Line(std::string_view css_class, SvgLength x1, SvgLength y1, SvgLength x2, SvgLength y2);
  // At the baseline `y`; left, middle or right of `x` as the class says. A turn is in degrees around (x, y).
  void Text(std::string_view css_class, SvgLength x, SvgLength y, std::string_view text, int turn = 0);
  // A line of horizontal and vertical pieces.
  class Steps {
   public:
    Steps(SvgLength x, SvgLength y);
    void Horizontal(SvgLength x);
    void Vertical(SvgLength y);

   private:
    friend class SvgWriter;
    std::string path_;
  };
  void Path(std::string_view css_class, const Steps& steps);

  // The document. Nothing may follow.
  std::string Finish() &&;

 private:
  std::string text_;
};

}  // namespace orrery::reports

#endif  // ORRERY_REPORTS_SVG_H_
