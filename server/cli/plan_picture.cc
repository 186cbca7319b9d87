#include "server/cli/plan_picture.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <utility>

#include "absl/strings/str_format.h"
#include "server/cli/svg.h"

namespace penstock::cli {
namespace {

constexpr double kLeft = 84, kRight = 34, kTop = 126, kPlotWidth = 1000;
constexpr double kMixHeight = 220, kLegendRow = 18;
constexpr std::size_t kTipsMax = 20000;  // cells; more would make a slow file
constexpr std::size_t kLinesMax = 8;
// Told apart with any colour sight (Okabe and Ito); grey is for the others.
constexpr std::array<const char*, kLinesMax> kColours = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7",
    "#e69f00", "#56b4e9", "#7a5195", "#777777"};

struct Rgb {
  double r, g, b;
};
constexpr Rgb kBelow{0x3a, 0x7f, 0xb8}, kEven{0xf4, 0xf4, 0xf4}, kAbove{0xc2, 0x45, 0x2d};

// Of -1 (below the mean) to 1 (above it).
std::string Colour(double at) {
  const double t = std::clamp(std::abs(at), 0.0, 1.0);
  const Rgb& end = at < 0 ? kBelow : kAbove;
  const auto mix = [&](double a, double b) { return static_cast<int>(a + (b - a) * t + 0.5); };
  return absl::StrFormat("#%02x%02x%02x", mix(kEven.r, end.r), mix(kEven.g, end.g),
                         mix(kEven.b, end.b));
}

// The smallest of 1, 2, 5, 10, 20, … that is at least `value`.
double Nice(double value) {
  double power = 1;
  while (power * 10 <= value) power *= 10;
  for (const double m : {1.0, 2.0, 5.0}) {
    if (m * power >= value) return m * power;
  }
  return 10 * power;
}

// How far from the mean the colours reach.
double SpreadOf(const PlanPicture& p) {
  double most = 0;
  for (const auto& step : p.steps) {
    for (const PlanCell& c : step) most = std::max(most, std::abs(c.of_mean - 1));
  }
  for (const double s : {0.05, 0.1, 0.25, 0.5}) {
    if (most <= s) return s;
  }
  return 1;
}

std::string Ranks(const PlanPicture& p, std::size_t row) {
  const std::uint64_t first = row * p.ranks_of_row;
  const std::uint64_t last = std::min<std::uint64_t>(p.world, first + p.ranks_of_row) - 1;
  return first == last ? absl::StrFormat("%d", first)
                       : absl::StrFormat("%d-%d", first, last);
}

struct MixLine {
  SourceShare share;
  char letter = 'A';
  const char* colour = "";
};

void AddTo(SourceShare& sum, const SourceShare& s) {
  for (std::size_t k = 0; k < s.realised.size(); ++k) sum.realised[k] += s.realised[k];
  for (std::size_t k = 0; k < s.asked.size(); ++k) sum.asked[k] += s.asked[k];
}

SourceShare NoShare(const PlanPicture& p, std::string name) {
  return {std::move(name), std::vector<std::uint64_t>(p.steps.size() + 1),
          std::vector<double>(p.sources[0].asked.size())};
}

// The sources in their order, or the most drawn ones and the sum of the others.
std::vector<MixLine> LinesOf(const PlanPicture& p) {
  std::vector<std::size_t> by_count(p.sources.size());
  std::iota(by_count.begin(), by_count.end(), 0);
  if (p.sources.size() > kLinesMax) {
    std::stable_sort(by_count.begin(), by_count.end(), [&](std::size_t a, std::size_t b) {
      return p.sources[a].realised.back() > p.sources[b].realised.back();
    });
  }
  std::vector<MixLine> lines;
  for (std::size_t i = 0; i < by_count.size(); ++i) {
    const SourceShare& s = p.sources[by_count[i]];
    if (p.sources.size() <= kLinesMax || i + 1 < kLinesMax) {
      lines.push_back({.share = s});
      continue;
    }
    if (lines.size() < kLinesMax) {
      lines.push_back({.share = NoShare(
          p, absl::StrFormat("%d other sources", by_count.size() - i))});
    }
    AddTo(lines.back().share, s);
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    lines[i].letter = static_cast<char>('A' + i);
    lines[i].colour = kColours[i];
  }
  return lines;
}

class Drawing {
 public:
  explicit Drawing(const PlanPicture& picture)
      : p_(picture),
        lines_(LinesOf(picture)),
        total_(NoShare(picture, "")),
        spread_(SpreadOf(picture)),
        cell_width_(std::max(1.0, std::floor(kPlotWidth / Steps() + 0.5))),
        cell_height_(std::clamp(std::floor(320.0 / Rows()), 5.0,
                                std::max(24.0, 60.0 / Rows()))),
        mix_top_(kTop + Rows() * cell_height_ + 108),
        svg_(kLeft + Width() + kRight, LegendTop() + lines_.size() * kLegendRow + 14,
             Title(), Description()) {
    for (const SourceShare& s : p_.sources) AddTo(total_, s);
  }

  std::string Draw() && {
    Heads();
    Key();
    Cells();
    RankAxis();
    StepAxis(kTop + Rows() * cell_height_, 0.5);
    ShareAxis();
    StepAxis(mix_top_ + kMixHeight, 0);
    Mixture();
    Letters();
    Legend();
    return std::move(svg_).Finish();
  }

 private:
  double Steps() const { return static_cast<double>(p_.steps.size()); }
  double Rows() const { return static_cast<double>(p_.steps[0].size()); }
  double Width() const { return Steps() * cell_width_; }
  double LegendTop() const { return mix_top_ + kMixHeight + 66; }
  double XOf(std::size_t steps) const { return kLeft + static_cast<double>(steps) * cell_width_; }

  std::string Title() const {
    return absl::StrFormat("plan of feed %s", Shortened(p_.feed, 60));
  }
  std::string Description() const;
  std::string Tip(std::size_t step, std::size_t row) const;
  double ShareOf(const MixLine& line, std::size_t k, bool asked) const;
  double ShareTop() const;
  double YOf(double share) const {
    return mix_top_ + kMixHeight * (1 - share / share_top_);
  }

  void Heads();
  void Key();
  void Cells();
  void RankAxis();
  void StepAxis(double y, double within);
  void ShareAxis();
  void Mixture();
  void MixPath(const MixLine& line, bool asked);
  void Letters();
  void Legend();

  const PlanPicture& p_;
  const std::vector<MixLine> lines_;
  SourceShare total_;
  const double spread_, cell_width_, cell_height_, mix_top_;
  double share_top_ = 1;
  Svg svg_;
};

std::string Drawing::Description() const {
  return absl::StrFormat(
      "Steps %d to %d, %d data ranks, order %s. Above: predicted cost (%s) of every "
      "rank's share of %s in each step, relative to the mean of the step. Below: the "
      "cumulative share of each source, realised and asked for.",
      p_.from, p_.from + p_.steps.size(), p_.world, p_.order_digest, p_.cost, p_.units);
}

void Drawing::Heads() {
  svg_.Text({20, 28}, Title(), "font-size=\"17\" font-weight=\"bold\"");
  svg_.Text({20, 48},
            absl::StrFormat("steps %d to %d, %d data rank%s, order %s", p_.from,
                            p_.from + p_.steps.size(), p_.world, p_.world == 1 ? "" : "s",
                            p_.order_digest.substr(0, 16)),
            "fill=\"#555555\"");
  svg_.Text({20, 80},
            absl::StrFormat("predicted cost (%s) of each rank's %s over the step's mean%s",
                            Shortened(p_.cost, 40), p_.units,
                            p_.ranks_of_row > 1
                                ? absl::StrFormat("; a row is the costliest of %d ranks",
                                                  p_.ranks_of_row)
                                : ""),
            "font-size=\"14\" font-weight=\"bold\"");
  svg_.Text({20, mix_top_ - 18},
            absl::StrFormat("mixture: share of all %s since step %d", p_.counted, p_.from),
            "font-size=\"14\" font-weight=\"bold\"");
}

void Drawing::Key() {
  constexpr int kParts = 20;
  constexpr double kPart = 9, kY = 92;
  svg_.Begin("id=\"key\"");
  for (int i = 0; i <= kParts; ++i) {
    svg_.Rect({kLeft + 40 + i * kPart, kY, kPart, 12},
              absl::StrFormat("fill=\"%s\"", Colour((i - kParts / 2) / (kParts / 2.0))));
  }
  const double right = kLeft + 40 + (kParts + 1) * kPart;
  svg_.Rect({kLeft + 40, kY, (kParts + 1) * kPart, 12}, "fill=\"none\" stroke=\"#888888\"");
  svg_.Text({kLeft + 34, kY + 10}, absl::StrFormat("%.2f", 1 - spread_),
            "text-anchor=\"end\"");
  svg_.Text({right + 6, kY + 10},
            absl::StrFormat(spread_ < 1 ? "%.2f of the mean" : "%.2f of the mean and more",
                            1 + spread_));
  svg_.Rect({right + 190, kY, 12, 12}, "fill=\"#f4f4f4\" stroke=\"#888888\"");
  svg_.Rect({right + 190, kY + 8, 12, 4}, "fill=\"#000000\"");
  svg_.Text({right + 208, kY + 10}, absl::StrFormat("has masked %s", p_.units));
  svg_.End();
}

std::string Drawing::Tip(std::size_t step, std::size_t row) const {
  if (p_.steps.size() * p_.steps[0].size() > kTipsMax) return "";
  const PlanCell& c = p_.steps[step][row];
  return absl::StrFormat("step %d, rank %s: %.3f of the mean%s", p_.from + step,
                         Ranks(p_, row), c.of_mean,
                         c.masked > 0 ? absl::StrFormat(", %d masked", c.masked) : "");
}

void Drawing::Cells() {
  svg_.Begin("id=\"cells\" shape-rendering=\"crispEdges\"");
  for (std::size_t k = 0; k < p_.steps.size(); ++k) {
    for (std::size_t r = 0; r < p_.steps[k].size(); ++r) {
      svg_.Rect({XOf(k), kTop + static_cast<double>(r) * cell_height_, cell_width_,
                 cell_height_},
                absl::StrFormat("fill=\"%s\"",
                                Colour((p_.steps[k][r].of_mean - 1) / spread_)),
                Tip(k, r));
    }
  }
  svg_.End();
  const double mark = std::min(4.0, std::floor(cell_height_ / 3 + 0.5));
  svg_.Begin("id=\"masked\" fill=\"#000000\" shape-rendering=\"crispEdges\"");
  for (std::size_t k = 0; k < p_.steps.size(); ++k) {
    for (std::size_t r = 0; r < p_.steps[k].size(); ++r) {
      if (p_.steps[k][r].masked == 0) continue;
      const double bottom = kTop + static_cast<double>(r + 1) * cell_height_;
      svg_.Rect({XOf(k), bottom - mark, cell_width_, mark}, "", Tip(k, r));
    }
  }
  svg_.End();
  svg_.Rect({kLeft, kTop, Width(), Rows() * cell_height_},
            "fill=\"none\" stroke=\"#888888\"");
}

void Drawing::RankAxis() {
  const auto every = static_cast<std::size_t>(Nice(std::ceil(13 / cell_height_)));
  for (std::size_t r = 0; r < p_.steps[0].size(); r += every) {
    const double y = kTop + (static_cast<double>(r) + 0.5) * cell_height_;
    svg_.Text({kLeft - 6, y + 4}, absl::StrFormat("%d", r * p_.ranks_of_row),
              "text-anchor=\"end\"");
  }
  const double middle = kTop + Rows() * cell_height_ / 2;
  svg_.Text({18, middle}, p_.ranks_of_row > 1 ? "first data rank of the row" : "data rank",
            absl::StrFormat("text-anchor=\"middle\" transform=\"rotate(-90 18 %s)\"",
                            Pixels(middle)));
}

// `within` a step's width lies what its label belongs to.
void Drawing::StepAxis(double y, double within) {
  const auto every = static_cast<std::uint64_t>(Nice(Steps() / std::floor(Width() / 110)));
  const std::uint64_t end = p_.from + p_.steps.size();
  for (std::uint64_t s = (p_.from + every - 1) / every * every; s <= end; s += every) {
    if (within > 0 && s == end) break;  // no such cell
    const double x = XOf(s - p_.from) + within * cell_width_;
    svg_.Line({x, y}, {x, y + 5}, "stroke=\"#888888\"");
    const std::string label = absl::StrFormat("%d", s);
    const double most = kLeft + Width() + kRight - 4.5 * static_cast<double>(label.size());
    svg_.Text({std::min(x, most), y + 18}, label, "text-anchor=\"middle\"");
  }
  svg_.Text({kLeft + Width() / 2, y + 36}, within > 0 ? "step" : "before step",
            "text-anchor=\"middle\"");
}

double Drawing::ShareOf(const MixLine& line, std::size_t k, bool asked) const {
  if (asked) return total_.asked[k] > 0 ? line.share.asked[k] / total_.asked[k] : 0;
  return total_.realised[k] > 0 ? static_cast<double>(line.share.realised[k]) /
                                      static_cast<double>(total_.realised[k])
                                : 0;
}

double Drawing::ShareTop() const {
  double most = 0;
  for (const MixLine& line : lines_) {
    for (std::size_t k = 1; k <= p_.steps.size(); ++k) {
      most = std::max(most, ShareOf(line, k, false));
      if (!line.share.asked.empty()) most = std::max(most, ShareOf(line, k, true));
    }
  }
  return most;
}

void Drawing::ShareAxis() {
  const double most = ShareTop() * 100;
  const double tick = Nice(std::max(1.0, most / 6));
  const int ticks = std::max(1, static_cast<int>(std::ceil(most / tick)));
  share_top_ = ticks * tick / 100;
  for (int i = 0; i <= ticks; ++i) {
    const double y = YOf(i * tick / 100);
    svg_.Line({kLeft, y}, {kLeft + Width(), y},
              i == 0 ? "stroke=\"#888888\"" : "stroke=\"#e2e2e2\"");
    svg_.Text({kLeft - 6, y + 4}, absl::StrFormat("%.0f %%", i * tick),
              "text-anchor=\"end\"");
  }
  const double middle = mix_top_ + kMixHeight / 2;
  svg_.Text({18, middle}, absl::StrFormat("share of %s", p_.counted),
            absl::StrFormat("text-anchor=\"middle\" transform=\"rotate(-90 18 %s)\"",
                            Pixels(middle)));
}

void Drawing::MixPath(const MixLine& line, bool asked) {
  std::vector<Point> points;
  for (std::size_t k = 1; k <= p_.steps.size(); ++k) {
    points.push_back({XOf(k), YOf(ShareOf(line, k, asked))});
  }
  // Before the first step there is no share; one point alone would not show.
  if (points.size() == 1) points.insert(points.begin(), {kLeft, points[0].y});
  const std::string count = asked ? absl::StrFormat("%.2f", line.share.asked.back())
                                  : absl::StrFormat("%d", line.share.realised.back());
  const std::string what = asked ? "asked" : "realised";
  svg_.Polyline(
      points,
      absl::StrFormat("class=\"%s\" data-source=\"%s\" data-count=\"%s\" %s", what,
                      XmlText(line.share.name), count,
                      asked ? "stroke=\"#000000\" stroke-width=\"1.2\" "
                              "stroke-dasharray=\"6 5\""
                            : absl::StrFormat("stroke=\"%s\" stroke-width=\"3\"",
                                              line.colour)),
      absl::StrFormat("%s: %s %s %s", line.share.name, what, count, p_.counted));
}

void Drawing::Mixture() {
  svg_.Begin("id=\"mixture\" stroke-linejoin=\"round\"");
  for (const MixLine& line : lines_) MixPath(line, false);
  for (const MixLine& line : lines_) {
    if (!line.share.asked.empty()) MixPath(line, true);
  }
  svg_.End();
}

// At the right end of each line, pushed apart where lines end together.
void Drawing::Letters() {
  std::vector<std::pair<double, const MixLine*>> at;
  for (const MixLine& line : lines_) {
    at.push_back({YOf(ShareOf(line, p_.steps.size(), false)) + 4, &line});
  }
  std::stable_sort(at.begin(), at.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  double limit = mix_top_ + kMixHeight + 4;
  for (auto i = at.rbegin(); i != at.rend(); ++i) {  // upwards from the axis
    i->first = std::min(i->first, limit);
    limit = i->first - 12;
  }
  for (const auto& [y, line] : at) {
    svg_.Text({kLeft + Width() + 7, y}, std::string(1, line->letter),
              "font-weight=\"bold\"");
  }
}

void Drawing::Legend() {
  svg_.Begin("id=\"legend\"");
  double y = LegendTop();
  for (const MixLine& line : lines_) {
    svg_.Text({kLeft, y + 4}, std::string(1, line.letter), "font-weight=\"bold\"");
    svg_.Line({kLeft + 16, y}, {kLeft + 52, y},
              absl::StrFormat("stroke=\"%s\" stroke-width=\"3\"", line.colour));
    std::string text = absl::StrFormat(
        "%s: realised %d (%.2f %%)", Shortened(line.share.name, 40),
        line.share.realised.back(), 100 * ShareOf(line, p_.steps.size(), false));
    if (!line.share.asked.empty()) {
      svg_.Line({kLeft + 16, y}, {kLeft + 52, y},
                "stroke=\"#000000\" stroke-width=\"1.2\" stroke-dasharray=\"6 5\"");
      absl::StrAppendFormat(&text, ", asked (dashed) %.2f (%.2f %%)",
                            line.share.asked.back(),
                            100 * ShareOf(line, p_.steps.size(), true));
    }
    svg_.Text({kLeft + 60, y + 4}, text);
    y += kLegendRow;
  }
  svg_.End();
}

}  // namespace

std::string DrawPlan(const PlanPicture& picture) { return Drawing(picture).Draw(); }

}  // namespace penstock::cli
