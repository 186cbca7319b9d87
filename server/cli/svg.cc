#include "server/cli/svg.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace penstock::cli {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Bytes of the UTF-8 character that `text` starts with; 0: none that XML may hold.
std::size_t CharacterBytes(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<std::uint8_t>(text[i]) : 0;
  };
  const std::uint8_t first = byte(0);
  if (first < 0x80) {
    const bool good = first >= 0x20 || first == '\t' || first == '\n' || first == '\r';
    return good && first != 0x7F ? 1 : 0;
  }
  const std::size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4) return 0;
  std::uint32_t value = first & (0x7Fu >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    value = value << 6 | (byte(i) & 0x3F);
  }
  const bool overlong = (bytes == 3 && value < 0x800) || (bytes == 4 && value < 0x10000);
  const bool surrogate = value >= 0xD800 && value < 0xE000;
  const bool none = value == 0xFFFE || value == 0xFFFF || value > 0x10FFFF;
  return overlong || surrogate || none ? 0 : bytes;
}

std::string_view Escaped(std::string_view character) {
  switch (character[0]) {
    case '&': return "&amp;";
    case '<': return "&lt;";
    case '>': return "&gt;";
    case '"': return "&quot;";
    case '\'': return "&apos;";
    case '\t': case '\n': case '\r': return " ";
    default: return character;
  }
}

std::string Attributes(std::string_view attributes) {
  return attributes.empty() ? "" : absl::StrFormat(" %s", attributes);
}

}  // namespace

std::string XmlText(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::size_t bytes = CharacterBytes(text);
    out += bytes == 0 ? kReplacement : Escaped(text.substr(0, bytes));
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return out;
}

std::string Shortened(std::string_view text, std::size_t characters) {
  std::size_t at = 0, last = 0, count = 0;
  for (; at < text.size() && count < characters; ++count) {
    last = at;
    const std::size_t bytes = CharacterBytes(text.substr(at));
    at += bytes == 0 ? 1 : bytes;
  }
  if (at >= text.size()) return std::string(text);
  return std::string(text.substr(0, last)) + "\xE2\x80\xA6";
}

std::string Pixels(double value) {
  std::string out = absl::StrFormat("%.2f", value);
  out.erase(out.find_last_not_of('0') + 1);
  if (out.back() == '.') out.pop_back();
  return out == "-0" ? "0" : out;
}

Svg::Svg(double width, double height, std::string_view title,
         std::string_view description) {
  const std::string w = Pixels(width), h = Pixels(height);
  out_ = absl::StrFormat(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%s\" height=\"%s\" "
      "viewBox=\"0 0 %s %s\" role=\"img\" aria-labelledby=\"title desc\" "
      "font-family=\"sans-serif\" font-size=\"12\" fill=\"#222222\">\n"
      "<title id=\"title\">%s</title>\n<desc id=\"desc\">%s</desc>\n",
      w, h, w, h, XmlText(title), XmlText(description));
  Rect({0, 0, width, height}, "fill=\"#ffffff\"");
}

void Svg::Close(std::string_view element, std::string_view tip) {
  out_ += tip.empty() ? "/>\n"
                      : absl::StrFormat("><title>%s</title></%s>\n", XmlText(tip), element);
}

void Svg::Rect(const Box& box, std::string_view attributes, std::string_view tip) {
  absl::StrAppendFormat(&out_, "<rect x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\"%s",
                        Pixels(box.x), Pixels(box.y), Pixels(box.width),
                        Pixels(box.height), Attributes(attributes));
  Close("rect", tip);
}

void Svg::Line(Point from, Point to, std::string_view attributes) {
  absl::StrAppendFormat(&out_, "<line x1=\"%s\" y1=\"%s\" x2=\"%s\" y2=\"%s\"%s",
                        Pixels(from.x), Pixels(from.y), Pixels(to.x), Pixels(to.y),
                        Attributes(attributes));
  Close("line", "");
}

void Svg::Polyline(std::span<const Point> points, std::string_view attributes,
                   std::string_view tip) {
  out_ += "<polyline fill=\"none\" points=\"";
  for (std::size_t i = 0; i < points.size(); ++i) {
    absl::StrAppend(&out_, i == 0 ? "" : " ", Pixels(points[i].x), ",",
                    Pixels(points[i].y));
  }
  out_ += "\"" + Attributes(attributes);
  Close("polyline", tip);
}

void Svg::Text(Point at, std::string_view text, std::string_view attributes) {
  absl::StrAppendFormat(&out_, "<text x=\"%s\" y=\"%s\"%s>%s</text>\n", Pixels(at.x),
                        Pixels(at.y), Attributes(attributes), XmlText(text));
}

void Svg::Begin(std::string_view attributes) {
  out_ += "<g" + Attributes(attributes) + ">\n";
}

void Svg::End() { out_ += "</g>\n"; }

std::string Svg::Finish() && {
  out_ += "</svg>\n";
  return std::move(out_);
}

}  // namespace penstock::cli
