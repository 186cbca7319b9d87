#include "common/layout/transform.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>

#include "common/layout/axis_weights.h"
#include "tests/unit/layout/golden_source.h"

namespace penstock::layout {
namespace {

struct Source {
  std::vector<std::uint8_t> bytes;
  Yuv420Planes planes;
};

// Planes with `gap` foreign bytes behind each row.
Source MakeSource(std::uint32_t w, std::uint32_t h, std::uint32_t seed,
                  std::size_t gap) {
  const std::size_t cw = (w + 1) / 2, ch = (h + 1) / 2;
  const auto tight = test::SourceBytes(w * h + 2 * cw * ch, seed);
  Source s;
  s.bytes.assign((w + gap) * h + 2 * (cw + gap) * ch, 0xA5);
  std::size_t from = 0, to = 0;
  auto copy = [&](std::size_t width, std::size_t rows) {
    for (std::size_t y = 0; y < rows; ++y) {
      std::copy_n(tight.begin() + from, width, s.bytes.begin() + to);
      from += width;
      to += width + gap;
    }
  };
  copy(w, h);
  copy(cw, ch);
  copy(cw, ch);
  s.planes = {s.bytes.data(), s.bytes.data() + (w + gap) * h,
              s.bytes.data() + (w + gap) * h + (cw + gap) * ch,
              static_cast<std::ptrdiff_t>(w + gap),
              static_cast<std::ptrdiff_t>(cw + gap),
              static_cast<std::ptrdiff_t>(cw + gap)};
  return s;
}

VideoTransform FromJson(const nlohmann::json& c) {
  VideoTransform t;
  t.src_width = c["src_width"];
  t.src_height = c["src_height"];
  t.siting = c["siting"] == "left"     ? ChromaSiting::kLeft
             : c["siting"] == "centre" ? ChromaSiting::kCentre
                                       : ChromaSiting::kTopLeft;
  t.matrix = c["matrix"];
  t.full_range = c["full_range"];
  t.rotation = c["rotation"];
  t.width = c["width"];
  t.height = c["height"];
  t.layout = c["layout"] == "tchw" ? PixelLayout::kTchw : PixelLayout::kThwc;
  t.colour = c["colour"] == "rgb" ? Colour::kRgb : Colour::kGray;
  t.resize =
      c["resize"] == "bilinear" ? Resize::kBilinear : Resize::kLetterbox;
  return t;
}

std::vector<std::uint8_t> Solid(const VideoTransform& t, std::uint8_t y,
                                std::uint8_t u, std::uint8_t v) {
  const std::size_t cw = (t.src_width + 1) / 2, ch = (t.src_height + 1) / 2;
  std::vector<std::uint8_t> py(t.src_width * t.src_height, y), pu(cw * ch, u),
      pv(cw * ch, v), out(FrameBytes(t));
  const auto stride = static_cast<std::ptrdiff_t>(cw);
  REQUIRE(ConvertYuv420({py.data(), pu.data(), pv.data(),
                         static_cast<std::ptrdiff_t>(t.src_width), stride,
                         stride},
                        t, out)
              .ok());
  return out;
}

TEST_CASE("transform: golden vectors of the independent restatement (B-39)",
          "[layout][golden]") {
  const auto cases = nlohmann::json::parse(test::ReadGolden("transform.json"));
  const std::string blob = test::ReadGolden("transform.bin");
  REQUIRE(cases.size() > 40);
  TransformScratch scratch;  // one for all, so that leftovers would show
  for (const auto& c : cases) {
    INFO(c.dump());
    const VideoTransform t = FromJson(c);
    const std::size_t gap = c["seed"].get<int>() % 3 * 7;
    const Source s = MakeSource(t.src_width, t.src_height, c["seed"], gap);
    auto plan = TransformPlan::Create(t);
    REQUIRE(plan.ok());
    REQUIRE(plan->frame_bytes() == c["bytes"].get<std::uint64_t>());
    std::vector<std::uint8_t> out(plan->frame_bytes(), 0x5A);
    plan->Convert(s.planes, scratch, out);
    CHECK(std::memcmp(out.data(), blob.data() + c["offset"].get<std::size_t>(),
                      out.size()) == 0);
  }
}

TEST_CASE("transform: weights of every axis sum to 16384 and stay inside",
          "[layout][property]") {
  for (std::uint32_t in = 1; in <= 40; ++in) {
    for (std::uint32_t out = 1; out <= 40; ++out) {
      for (Sampling sampling : {Sampling::kLuma, Sampling::kHalfCosited,
                                Sampling::kHalfBetween}) {
        const AxisWeights a = MakeAxisWeights(in, out, sampling);
        bool good = a.taps % 4 == 0 && a.first.size() == out;
        for (std::uint32_t o = 0; o < out; ++o) {
          int sum = 0;
          for (std::uint32_t k = 0; k < a.taps; ++k) {
            const int w = a.weight[o * a.taps + k];
            good = good && w >= 0 && (w == 0 || a.first[o] + k < a.in);
            sum += w;
          }
          good = good && sum == 16384;
        }
        INFO(in << " to " << out);
        REQUIRE(good);
      }
    }
  }
}

TEST_CASE("transform: limited-range black, white and gray are exact",
          "[layout]") {
  for (std::uint8_t matrix : {1, 5, 6, 9}) {
    VideoTransform t{.src_width = 37, .src_height = 21, .matrix = matrix,
                     .width = 12, .height = 8};
    auto all = [&](std::uint8_t y, std::uint8_t want) {
      const auto out = Solid(t, y, 128, 128);
      return std::all_of(out.begin(), out.end(),
                         [&](std::uint8_t b) { return b == want; });
    };
    CHECK(all(16, 0));
    CHECK(all(235, 255));
    CHECK(all(0, 0));
    CHECK(all(255, 255));
    t.full_range = true;
    for (int y = 0; y < 256; ++y) {
      REQUIRE(all(static_cast<std::uint8_t>(y), static_cast<std::uint8_t>(y)));
    }
  }
}

TEST_CASE("transform: primaries come back within one step", "[layout]") {
  // BT.709 limited codes of red, green and blue at full saturation.
  struct Primary { std::uint8_t y, u, v; int r, g, b; };
  const VideoTransform t{.src_width = 8, .src_height = 8, .width = 2, .height = 2};
  for (const auto& p : {Primary{63, 102, 240, 255, 0, 0},
                        Primary{173, 42, 26, 0, 255, 0},
                        Primary{32, 240, 118, 0, 0, 255}}) {
    const auto out = Solid(t, p.y, p.u, p.v);
    CHECK(std::abs(out[0] - p.r) <= 1);
    CHECK(std::abs(out[4] - p.g) <= 1);
    CHECK(std::abs(out[8] - p.b) <= 1);
  }
}

TEST_CASE("transform: a fine pattern is averaged, not aliased", "[layout]") {
  // One-pixel columns, black and white: any reduction by an even factor is gray.
  const std::uint32_t w = 256, h = 64;
  std::vector<std::uint8_t> y(w * h), c(w / 2 * h / 2, 128);
  for (std::uint32_t i = 0; i < w * h; ++i) y[i] = i % 2 == 0 ? 0 : 254;
  const VideoTransform t{.src_width = w, .src_height = h, .full_range = true,
                         .width = 32, .height = 8, .colour = Colour::kGray};
  std::vector<std::uint8_t> out(FrameBytes(t));
  REQUIRE(ConvertYuv420({y.data(), c.data(), c.data(), w, w / 2, w / 2}, t, out)
              .ok());
  const auto [lo, hi] = std::minmax_element(out.begin(), out.end());
  CHECK(int{*lo} >= 120);  // at the edges half a triangle is missing
  CHECK(int{*hi} <= 134);
}

TEST_CASE("transform: refuses what it cannot convert, by name", "[layout]") {
  VideoTransform t{.src_width = 64, .src_height = 64, .width = 8, .height = 8};
  auto code = [](const VideoTransform& v) {
    return TransformPlan::Create(v).status().code();
  };
  CHECK(code(t) == absl::StatusCode::kOk);
  auto with = [&](auto change) {
    VideoTransform v = t;
    change(v);
    return code(v);
  };
  const auto invalid = absl::StatusCode::kInvalidArgument;
  CHECK(with([](auto& v) { v.width = 0; }) == invalid);
  CHECK(with([](auto& v) { v.height = kOutputSideMax + 1; }) == invalid);
  CHECK(with([](auto& v) { v.src_width = 0; }) == invalid);
  CHECK(with([](auto& v) { v.src_height = 70000; }) == invalid);
  CHECK(with([](auto& v) { v.rotation = 45; }) == invalid);
  CHECK(with([](auto& v) { v.rotation = 2000; }) == invalid);
  CHECK(with([](auto& v) { v.matrix = 2; }) == invalid);
  CHECK(with([](auto& v) { v.layout = PixelLayout{9}; }) == invalid);
  CHECK(with([](auto& v) { v.matrix = 0; }) ==
        absl::StatusCode::kUnimplemented);
  CHECK(CheckPixelFormat("yuv420p").ok());
  const auto refused = CheckPixelFormat("yuv420p10le");
  CHECK(refused.code() == absl::StatusCode::kUnimplemented);
  CHECK(std::string(refused.message()).find("yuv420p10le") != std::string::npos);
}

}  // namespace
}  // namespace penstock::layout
