#include "server/cli/plan_picture.h"

#include <catch2/catch.hpp>

#include "server/cli/svg.h"

namespace penstock::cli {
namespace {

bool Has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::size_t CountOf(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos;
       at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

PlanPicture SmallPicture(std::size_t sources) {
  PlanPicture p{.feed = "a<b>&\"c\"",
                .order_digest = "0123456789abcdef0123",
                .cost = "decode",
                .units = "samples",
                .counted = "samples",
                .steps = {{{1, 0}}, {{1, 2}}}};
  for (std::uint64_t i = 0; i < sources; ++i) {
    p.sources.push_back({"<" + std::to_string(i) + ">", {0, i, 2 * i}, {0, 1, 2}});
  }
  return p;
}

TEST_CASE("svg: any bytes become text that XML holds", "[cli]") {
  CHECK(XmlText("a & <b> \"c\" 'd'") == "a &amp; &lt;b&gt; &quot;c&quot; &apos;d&apos;");
  CHECK(XmlText("é→🎮") == "é→🎮");
  CHECK(XmlText("a\tb\nc") == "a b c");
  const std::string no = "\xEF\xBF\xBD";
  for (const char* bad : {"\x01", "\x7F", "\x80", "\xC0", "\xF5", "\xFF"}) {
    CHECK(XmlText(bad) == no);
  }
  CHECK(XmlText(std::string_view("\0", 1)) == no);
  CHECK(XmlText("\xC3") == no);              // cut short
  CHECK(XmlText("\xC0\xAF") == no + no);     // overlong
  CHECK(XmlText("\xE0\x80\xAF") == no + no + no);
  CHECK(XmlText("\xED\xA0\x80") == no + no + no);  // surrogate
  CHECK(XmlText("\xEF\xBF\xBF") == no + no + no);  // U+FFFF
  CHECK(XmlText("\xF4\x90\x80\x80") == no + no + no + no);
}

TEST_CASE("svg: long texts and numbers are short", "[cli]") {
  CHECK(Shortened("abc", 3) == "abc");
  CHECK(Shortened("abcd", 3) == "ab…");
  CHECK(Shortened("ééé", 3) == "ééé");
  CHECK(Shortened("éééé", 3) == "éé…");
  CHECK(Pixels(1) == "1");
  CHECK(Pixels(1.5) == "1.5");
  CHECK(Pixels(100) == "100");
  CHECK(Pixels(0.126) == "0.13");
  CHECK(Pixels(-0.001) == "0");
}

TEST_CASE("plan picture: names are escaped wherever they stand", "[cli]") {
  const std::string svg = DrawPlan(SmallPicture(2));
  CHECK(svg == DrawPlan(SmallPicture(2)));
  CHECK(Has(svg, "plan of feed a&lt;b&gt;&amp;&quot;c&quot;"));
  CHECK(Has(svg, "data-source=\"&lt;1&gt;\""));
  CHECK_FALSE(Has(svg, "a<b"));
  CHECK_FALSE(Has(svg, "<1>"));
}

TEST_CASE("plan picture: many sources become eight lines", "[cli]") {
  const std::string eight = DrawPlan(SmallPicture(8));
  CHECK(CountOf(eight, "class=\"realised\"") == 8);
  CHECK_FALSE(Has(eight, "other sources"));

  const std::string ten = DrawPlan(SmallPicture(10));
  CHECK(CountOf(ten, "class=\"realised\"") == 8);
  CHECK(CountOf(ten, "class=\"asked\"") == 8);
  // The least drawn: 0, 1 and 2, with 0, 2 and 4 samples.
  CHECK(Has(ten, "data-source=\"3 other sources\" data-count=\"6\""));
  CHECK(Has(ten, "data-source=\"&lt;9&gt;\" data-count=\"18\""));
}

TEST_CASE("plan picture: a masked cell is marked, others are not", "[cli]") {
  const std::string svg = DrawPlan(SmallPicture(1));
  const std::string masked = svg.substr(svg.find("id=\"masked\""));
  const std::string marks = masked.substr(0, masked.find("</g>"));
  CHECK(CountOf(marks, "<rect") == 1);
  CHECK(Has(marks, "step 1, rank 0: 1.000 of the mean, 2 masked"));
}

}  // namespace
}  // namespace penstock::cli
