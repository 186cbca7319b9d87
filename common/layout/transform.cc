#include "common/layout/transform.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_format.h"
#include "common/layout/axis_weights.h"
#include "common/layout/transform_kernels.h"
#include "common/status/status.h"

namespace penstock::layout {
namespace {

// Behind a row that the horizontal pass reads: its weights there are 0.
constexpr std::size_t kRowPadding = 32;

struct Coefficients {
  std::uint8_t matrix;
  bool full_range;
  std::int32_t value[6];  // cy, y0, crv, cgu, cgv, cbu in Q13; y0 in Q6
};
// README, "Colour": round(8192 x) of the formulas of ITU-R BT.601, 709, 2020.
constexpr Coefficients kCoefficients[] = {
    {1, false, {9539, 1024, 14686, 1747, 4366, 17305}},
    {1, true, {8192, 0, 12901, 1535, 3835, 15201}},
    {6, false, {9539, 1024, 13075, 3209, 6660, 16525}},
    {6, true, {8192, 0, 11485, 2819, 5850, 14516}},
    {9, false, {9539, 1024, 13752, 1535, 5328, 17545}},
    {9, true, {8192, 0, 12080, 1348, 4681, 15412}},
};

const Coefficients* FindCoefficients(std::uint8_t matrix, bool full_range) {
  if (matrix == 5) matrix = 6;  // both are BT.601
  for (const auto& c : kCoefficients) {
    if (c.matrix == matrix && c.full_range == full_range) return &c;
  }
  return nullptr;
}

absl::Status Invalid(std::string what, std::string found,
                     std::string expected) {
  return MakeError(
      absl::StatusCode::kInvalidArgument,
      {.where = "video transform",
       .what = std::move(what),
       .found = std::move(found),
       .expected = std::move(expected),
       .action =
           "correct the output of the feed, or leave these captures out"});
}

absl::Status Check(const VideoTransform& t) {
  auto side = [](std::uint32_t v, std::uint32_t max) {
    return v >= 1 && v <= max;
  };
  if (!side(t.src_width, kSourceSideMax) || !side(t.src_height, kSourceSideMax)) {
    return Invalid("source size out of bounds",
                   absl::StrFormat("%dx%d", t.src_width, t.src_height),
                   absl::StrFormat("sides from 1 to %d", kSourceSideMax));
  }
  if (!side(t.width, kOutputSideMax) || !side(t.height, kOutputSideMax)) {
    return Invalid("output size out of bounds",
                   absl::StrFormat("%dx%d", t.width, t.height),
                   absl::StrFormat("sides from 1 to %d", kOutputSideMax));
  }
  const int degrees = t.rotation % 1000;
  if (t.rotation >= 2000 || degrees >= 360 || degrees % 90 != 0) {
    return Invalid("rotation is no quarter turn",
                   absl::StrFormat("%d", t.rotation),
                   "0, 90, 180, 270, and 1000 more when mirrored");
  }
  if ((t.layout != PixelLayout::kTchw && t.layout != PixelLayout::kThwc) ||
      (t.colour != Colour::kRgb && t.colour != Colour::kGray) ||
      (t.resize != Resize::kBilinear && t.resize != Resize::kLetterbox) ||
      t.siting < ChromaSiting::kLeft || t.siting > ChromaSiting::kTopLeft) {
    return Invalid("unknown layout, colour, resize or siting", "", "");
  }
  if (t.matrix == 2) {
    return Invalid("the colour matrix is unspecified (2)", "",
                   "the assumed one: 1 from 720 lines on, else 6");
  }
  if (FindCoefficients(t.matrix, t.full_range) == nullptr) {
    return MakeError(absl::StatusCode::kUnimplemented,
                     {.where = "video transform",
                      .what = "this colour matrix is not converted",
                      .found = absl::StrFormat("H.273 matrix %d", t.matrix),
                      .expected = "1 (BT.709), 5 or 6 (BT.601), 9 (BT.2020)",
                      .action = "re-encode the capture with one of them"});
  }
  return absl::OkStatus();
}

// Larger side kept, the other rounded half up.
std::uint32_t Fit(std::uint64_t side, std::uint64_t by, std::uint64_t over,
                  std::uint32_t max) {
  const std::uint64_t fitted = (2 * side * by + over) / (2 * over);
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(fitted, 1, max));
}

// One plane through both passes for output row `oy`.
const std::int16_t* ResizeRow(const std::uint8_t* plane, std::ptrdiff_t stride,
                              const AxisWeights& wx, const AxisWeights& wy,
                              std::uint32_t oy, std::int16_t* row,
                              std::int16_t* out) {
  const std::int16_t* weight = wy.weight.data() + std::size_t{oy} * wy.taps;
  std::uint32_t taps = wy.taps;
  while (taps > 1 && weight[taps - 1] == 0) --taps;  // stays inside the plane
  kernels::Vertical(plane + wy.first[oy] * stride, stride, weight, taps, wx.in,
                    row);
  if (wx.identity) return row;
  kernels::Horizontal(row, wx.first.data(), wx.weight.data(), wx.taps, wx.out,
                      out);
  return out;
}

// Where the coded picture's rows go in the output.
struct Placement {
  std::ptrdiff_t start;        // of coded pixel (0, 0)
  std::ptrdiff_t dx, dy;       // to the next coded column and row
  std::ptrdiff_t channel;      // to the next colour
};

Placement Place(const VideoTransform& t, std::uint32_t iw, std::uint32_t ih,
                std::uint32_t left, std::uint32_t top) {
  const bool planar = t.layout == PixelLayout::kTchw || t.colour == Colour::kGray;
  const std::ptrdiff_t px = planar ? 1 : 3;
  const std::ptrdiff_t line = px * t.width;
  std::ptrdiff_t x0 = 0, y0 = 0, dx = 0, dy = 0;
  switch (t.rotation % 1000) {
    case 0: dx = px; dy = line; break;
    case 90: x0 = ih - 1; dx = line; dy = -px; break;
    case 180: x0 = iw - 1; y0 = ih - 1; dx = -px; dy = -line; break;
    default: y0 = iw - 1; dx = -line; dy = px; break;
  }
  std::ptrdiff_t start = (x0 + left) * px + (y0 + top) * line;
  if (t.rotation >= 1000) {  // coded columns run from right to left
    start += (static_cast<std::ptrdiff_t>(iw) - 1) * dx;
    dx = -dx;
  }
  return {start, dx, dy,
          planar ? std::ptrdiff_t{t.width} * t.height : std::ptrdiff_t{1}};
}

}  // namespace

std::uint64_t FrameBytes(const VideoTransform& t) {
  return std::uint64_t{t.width} * t.height *
         (t.colour == Colour::kGray ? 1 : 3);
}

absl::Status CheckPixelFormat(std::string_view pixel_format) {
  if (pixel_format == "yuv420p" || pixel_format == "yuvj420p") {
    return absl::OkStatus();
  }
  return MakeError(
      absl::StatusCode::kUnimplemented,
      {.where = "video transform",
       .what = "only 8-bit planar 4:2:0 is converted today",
       .found = "pixel format " + std::string(pixel_format),
       .expected = "yuv420p or yuvj420p",
       .action = "import the capture with re-encoding, or leave it out"});
}

absl::StatusOr<TransformPlan> TransformPlan::Create(
    const VideoTransform& transform) {
  PENSTOCK_RETURN_IF_ERROR(Check(transform));
  TransformPlan p;
  p.transform_ = transform;
  const auto& t = p.transform_;
  std::copy_n(FindCoefficients(t.matrix, t.full_range)->value, 6,
              p.coefficient_);

  const bool turned = t.rotation % 1000 % 180 != 0;
  const std::uint64_t sw = turned ? t.src_height : t.src_width;
  const std::uint64_t sh = turned ? t.src_width : t.src_height;
  std::uint32_t iw = t.width, ih = t.height;  // as shown
  if (t.resize == Resize::kLetterbox) {
    if (t.width * sh <= t.height * sw) {
      ih = Fit(t.width, sh, sw, t.height);
    } else {
      iw = Fit(t.height, sw, sh, t.width);
    }
  }
  p.left_ = (t.width - iw) / 2;
  p.top_ = (t.height - ih) / 2;
  p.inner_width_ = turned ? ih : iw;
  p.inner_height_ = turned ? iw : ih;

  const auto across = t.siting == ChromaSiting::kCentre
                          ? Sampling::kHalfBetween
                          : Sampling::kHalfCosited;
  const auto down = t.siting == ChromaSiting::kTopLeft ? Sampling::kHalfCosited
                                                       : Sampling::kHalfBetween;
  p.luma_x_ = MakeAxisWeights(t.src_width, p.inner_width_, Sampling::kLuma);
  p.luma_y_ = MakeAxisWeights(t.src_height, p.inner_height_, Sampling::kLuma);
  p.chroma_x_ = MakeAxisWeights(t.src_width, p.inner_width_, across);
  p.chroma_y_ = MakeAxisWeights(t.src_height, p.inner_height_, down);
  return p;
}

void TransformPlan::Convert(const Yuv420Planes& planes,
                            TransformScratch& scratch,
                            std::span<std::uint8_t> out) const {
  const auto& t = transform_;
  const std::uint32_t iw = inner_width_, ih = inner_height_;
  const bool gray = t.colour == Colour::kGray;
  if (std::uint64_t{iw} * ih != std::uint64_t{t.width} * t.height) {
    std::memset(out.data(), 0, out.size());  // the bars
  }
  const std::size_t row_values =
      t.src_width + std::max(luma_x_.taps, chroma_x_.taps) + kRowPadding;
  if (scratch.rows.size() < row_values) scratch.rows.resize(row_values);
  if (scratch.planes.size() < 4 * row_values + 3 * std::size_t{iw}) {
    scratch.planes.resize(4 * row_values + 3 * std::size_t{iw});
  }
  if (scratch.pixels.size() < 3 * std::size_t{iw}) scratch.pixels.resize(3 * iw);

  // Three rows after the vertical pass, three after the horizontal one.
  std::int16_t* const row[3] = {scratch.rows.data(), scratch.planes.data(),
                                scratch.planes.data() + row_values};
  std::int16_t* const flat = scratch.planes.data() + 2 * row_values;
  const Placement place = Place(t, iw, ih, left_, top_);
  for (std::uint32_t oy = 0; oy < ih; ++oy) {
    std::uint8_t* const to = out.data() + place.start + oy * place.dy;
    const bool direct = place.dx == 1;
    std::uint8_t* pixel[3];
    for (int c = 0; c < 3; ++c) {
      pixel[c] = direct ? to + c * place.channel
                        : scratch.pixels.data() + c * std::size_t{iw};
    }
    const auto* y = ResizeRow(planes.y, planes.y_stride, luma_x_, luma_y_, oy,
                              row[0], flat);
    if (gray) {
      kernels::ToGray(y, coefficient_, iw, pixel[0]);
    } else {
      const auto* u = ResizeRow(planes.u, planes.u_stride, chroma_x_, chroma_y_,
                                oy, row[1], flat + iw);
      const auto* v = ResizeRow(planes.v, planes.v_stride, chroma_x_, chroma_y_,
                                oy, row[2], flat + 2 * std::size_t{iw});
      kernels::ToRgb(y, u, v, coefficient_, iw, pixel[0], pixel[1], pixel[2]);
    }
    if (direct) continue;
    if (!gray && place.dx == 3 && place.channel == 1) {
      kernels::Interleave(pixel[0], pixel[1], pixel[2], iw, to);
      continue;
    }
    for (int c = 0; c < (gray ? 1 : 3); ++c) {
      for (std::uint32_t x = 0; x < iw; ++x) {
        to[c * place.channel + static_cast<std::ptrdiff_t>(x) * place.dx] =
            pixel[c][x];
      }
    }
  }
}

absl::Status ConvertYuv420(const Yuv420Planes& planes,
                           const VideoTransform& transform,
                           std::span<std::uint8_t> out) {
  PENSTOCK_ASSIGN_OR_RETURN(auto plan, TransformPlan::Create(transform));
  if (out.size() != plan.frame_bytes()) {
    return Invalid("output has another size", absl::StrFormat("%d bytes", out.size()),
                   absl::StrFormat("%d", plan.frame_bytes()));
  }
  TransformScratch scratch;
  plan.Convert(planes, scratch, out);
  return absl::OkStatus();
}

}  // namespace penstock::layout
