#ifndef PENSTOCK_SERVER_DECODE_VIDEO_DECODER_H_
#define PENSTOCK_SERVER_DECODE_VIDEO_DECODER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "common/format/shard.h"

namespace penstock::decode {

// A picture as the decoder left it: planes of the visible area in the source's
// pixel format. Valid inside the sink only.
struct Picture {
  std::uint32_t packet = 0;  // ordinal that was given with the packet
  std::uint32_t width = 0, height = 0;
  std::string_view pixel_format;  // FFmpeg's name
  std::uint8_t bit_depth = 8;
  int plane_count = 0;
  const std::uint8_t* planes[4] = {};
  std::ptrdiff_t strides[4] = {};
  std::uint32_t row_bytes[4] = {};  // of the visible area
  std::uint32_t rows[4] = {};
  bool key = false;
  bool damaged = false;  // the decoder concealed something
};

using PictureSink = std::function<void(const Picture&)>;

// XXH3-64 of a picture: visible area, planes tightly packed one after the
// other, native depth, little-endian 16 bit above 8 (DESIGN §2).
std::uint64_t HashPicture(const Picture& picture);

// FFmpeg's software decoder for one video track; the same settings at import
// and in the workers, so that the same packets give the same pictures.
//
// Threading: one thread; `threads` > 1 lets FFmpeg use its own.
// Bounds: holds the decoder's reference and reordering frames.
class VideoDecoder {
 public:
  // kUnimplemented: codec not on the allow-list, or not in this FFmpeg
  // kInvalidArgument: parameters that the decoder refuses
  static absl::StatusOr<std::unique_ptr<VideoDecoder>> Create(
      const format::CodecParameters& parameters, int threads = 1);
  virtual ~VideoDecoder() = default;

  // Decodes one packet; `sink` gets every picture that became ready, in
  // presentation order. A packet that the decoder refuses is counted in
  // refused() and gives no picture.
  //
  // kResourceExhausted: no memory
  virtual absl::Status Decode(std::uint32_t ordinal,
                              std::span<const std::uint8_t> packet,
                              const PictureSink& sink) = 0;
  // Gives out what is still held. After it, call Reset().
  virtual absl::Status Drain(const PictureSink& sink) = 0;
  // Forgets everything; the next packet is an entry.
  virtual void Reset() = 0;
  // Packets refused since Create.
  virtual std::uint64_t refused() const = 0;
};

// True for codecs that may be decoded (FFmpeg's codec names).
bool VideoCodecAllowed(std::string_view codec);

}  // namespace penstock::decode

#endif  // PENSTOCK_SERVER_DECODE_VIDEO_DECODER_H_
