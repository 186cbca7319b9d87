#ifndef PENSTOCK_SERVER_CLI_SVG_H_
#define PENSTOCK_SERVER_CLI_SVG_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace penstock::cli {

// Text as XML holds it: escaped; bytes that are no UTF-8 and characters that XML
// has no place for become U+FFFD.
std::string XmlText(std::string_view text);

// At most `characters` of a UTF-8 text, an ellipsis for the rest.
std::string Shortened(std::string_view text, std::size_t characters);

// A length in pixels: at most two places, none that say nothing.
std::string Pixels(double value);

struct Point {
  double x = 0, y = 0;
};
struct Box {
  double x = 0, y = 0, width = 0, height = 0;
};

// Writes one self-contained SVG: no scripts, styles, fonts or links from outside.
// Equal calls give equal bytes. `attributes` are put into an element as they are:
// escape with XmlText what is not known beforehand.
class Svg {
 public:
  // `title` and `description` are what a reader without eyes gets.
  Svg(double width, double height, std::string_view title,
      std::string_view description);

  // `tip` is shown when a pointer rests on it; empty: none.
  void Rect(const Box& box, std::string_view attributes, std::string_view tip = "");
  void Line(Point from, Point to, std::string_view attributes);
  void Polyline(std::span<const Point> points, std::string_view attributes,
                std::string_view tip = "");
  void Text(Point at, std::string_view text, std::string_view attributes = "");
  void Begin(std::string_view attributes);  // a group
  void End();

  // The whole file; nothing is added afterwards.
  std::string Finish() &&;

 private:
  void Close(std::string_view element, std::string_view tip);
  std::string out_;
};

}  // namespace penstock::cli

#endif  // PENSTOCK_SERVER_CLI_SVG_H_
