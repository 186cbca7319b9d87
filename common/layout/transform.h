#ifndef PENSTOCK_COMMON_LAYOUT_TRANSFORM_H_
#define PENSTOCK_COMMON_LAYOUT_TRANSFORM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

// From an 8-bit 4:2:0 picture to the uint8 pixels of a tensor: resize, colour,
// rotation, memory order. Integers only; README.md states every step, so that
// any host, compiler or language gives the same bytes.
namespace penstock::layout {

enum class PixelLayout : std::uint8_t { kTchw = 1, kThwc = 2 };
enum class Colour : std::uint8_t { kRgb = 1, kGray = 2 };
enum class Resize : std::uint8_t { kBilinear = 1, kLetterbox = 2 };
// Where chroma samples lie between the luma samples: left = MPEG-2 and the
// usual case, centre = MPEG-1 and JPEG, top left = HDR.
enum class ChromaSiting : std::uint8_t { kLeft = 1, kCentre = 2, kTopLeft = 3 };

// What is made of a frame. Part of the content digest of a feed.
struct VideoTransform {
  std::uint32_t src_width = 0, src_height = 0;  // coded, visible area
  ChromaSiting siting = ChromaSiting::kLeft;
  std::uint8_t matrix = 1;   // H.273: 1 BT.709; 5, 6 BT.601; 9 BT.2020
  bool full_range = false;
  std::uint16_t rotation = 0;  // as TrackRow: degrees clockwise, +1000 mirrored
  std::uint32_t width = 0, height = 0;  // of the output, as shown
  PixelLayout layout = PixelLayout::kTchw;
  Colour colour = Colour::kRgb;
  Resize resize = Resize::kBilinear;
  friend bool operator==(const VideoTransform&,
                         const VideoTransform&) = default;
};

inline constexpr std::uint32_t kSourceSideMax = 16384;
inline constexpr std::uint32_t kOutputSideMax = 8192;

// Bytes of one output frame.
std::uint64_t FrameBytes(const VideoTransform& transform);

// The matrix to assume where the source names none (H.273 code 2).
constexpr std::uint8_t AssumedMatrix(std::uint32_t height) {
  return height >= 720 ? 1 : 6;
}

// OK for FFmpeg's names of 8-bit planar 4:2:0.
//
// kUnimplemented: anything else; names what was found
absl::Status CheckPixelFormat(std::string_view pixel_format);

struct Yuv420Planes {
  const std::uint8_t* y = nullptr;
  const std::uint8_t* u = nullptr;
  const std::uint8_t* v = nullptr;
  std::ptrdiff_t y_stride = 0, u_stride = 0, v_stride = 0;  // bytes
};

// One axis of a resize: output o is the sum of weight[o][k] * in[first[o] + k]
// for k in [0, taps). Weights are Q14 and sum to exactly 16384; those behind
// the last used tap are 0.
struct AxisWeights {
  std::uint32_t in = 0, out = 0;
  std::uint32_t taps = 0;    // of the widest output, a multiple of 4
  bool identity = false;     // out[i] = in[i]
  std::vector<std::uint32_t> first;
  std::vector<std::int16_t> weight;  // out × taps
};

// Buffers of one conversion, kept between frames. One thread at a time.
struct TransformScratch {
  std::vector<std::int16_t> rows;    // after the vertical pass
  std::vector<std::int16_t> planes;  // Y, U, V at output width
  std::vector<std::uint8_t> pixels;  // one output row, planar
};

// Everything about a transform that does not depend on the frame.
//
// Threading: immutable after Create; any number of threads convert with it,
//   each with its own scratch.
// Bounds: weight tables of at most a few times width + height + source sides.
class TransformPlan {
 public:
  // kInvalidArgument: a side of 0 or past the bounds, an unspecified matrix
  //   (2: use AssumedMatrix), a rotation that is no multiple of 90
  // kUnimplemented: a matrix without coefficients here; names it
  static absl::StatusOr<TransformPlan> Create(const VideoTransform& transform);

  // Writes one frame of exactly FrameBytes(transform()) bytes to `out`.
  // The planes hold src_width × src_height luma samples and half of each,
  // rounded up, for chroma.
  void Convert(const Yuv420Planes& planes, TransformScratch& scratch,
               std::span<std::uint8_t> out) const;

  const VideoTransform& transform() const { return transform_; }
  std::uint64_t frame_bytes() const { return FrameBytes(transform_); }

 private:
  VideoTransform transform_;
  std::uint32_t inner_width_ = 0, inner_height_ = 0;  // coded orientation
  std::uint32_t left_ = 0, top_ = 0;                  // of the picture, as shown
  AxisWeights luma_x_, luma_y_, chroma_x_, chroma_y_;
  std::int32_t coefficient_[6] = {};  // cy, y0, crv, cgu, cgv, cbu
};

// Plan and convert in one call; for tests and single frames.
absl::Status ConvertYuv420(const Yuv420Planes& planes,
                           const VideoTransform& transform,
                           std::span<std::uint8_t> out);

}  // namespace penstock::layout

#endif  // PENSTOCK_COMMON_LAYOUT_TRANSFORM_H_
