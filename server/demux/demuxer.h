#ifndef PENSTOCK_SERVER_DEMUX_DEMUXER_H_
#define PENSTOCK_SERVER_DEMUX_DEMUXER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/format/shard.h"

namespace penstock::demux {

enum class StreamKind { kVideo, kAudio, kOther };

struct Rational {
  std::int64_t num = 0, den = 1;
};

// One stream of a container, as its header and a bounded probe describe it.
struct Stream {
  StreamKind kind = StreamKind::kOther;
  format::CodecParameters codec;
  Rational time_base{1, 1};
  Rational average_rate, base_rate;  // frames/s; num 0: unknown
  std::int64_t header_frames = 0;    // 0: the header does not say
  std::uint8_t matrix = 2, transfer = 2, primaries = 2;  // H.273, 2 unknown
  bool full_range = false, range_known = false;
  int rotation = 0;       // degrees clockwise to show it upright: 0, 90, 180, 270
  bool mirrored = false;  // left and right are swapped before the rotation
  std::uint32_t initial_padding = 0;  // audio samples to drop at the start
};

inline constexpr std::uint32_t kDemuxKey = 1;
inline constexpr std::uint32_t kDemuxDiscard = 2;   // decode, never show
inline constexpr std::uint32_t kDemuxCorrupt = 4;
inline constexpr std::uint32_t kDemuxNewParameters = 8;

// A packet; `data` is valid until the next call.
struct Packet {
  int stream = 0;
  std::int64_t pts = format::kNoPts, dts = format::kNoPts;
  std::int64_t duration = 0;  // in the stream's time base, 0 unknown
  std::uint32_t flags = 0;
  std::uint32_t skip_start = 0, skip_end = 0;  // audio samples not to play
  std::span<const std::uint8_t> data;
};

// Takes a local file apart: own I/O, only the allowed containers, nothing else
// is opened on its behalf (no playlists, no references, no network).
//
// Threading: one thread.
class Demuxer {
 public:
  // kInvalidArgument: not a video container, or one that is not allowed
  // kDataLoss:        a container whose index is cut off
  // kNotFound, kPermissionDenied, kUnavailable: the file
  static absl::StatusOr<std::unique_ptr<Demuxer>> Open(const std::string& path);
  virtual ~Demuxer() = default;

  virtual const std::vector<Stream>& streams() const = 0;
  virtual std::string container() const = 0;
  // False at the end of the file. What the demuxer complained about is in
  // complaints().
  virtual absl::StatusOr<bool> Next(Packet& packet) = 0;
  virtual std::vector<std::string> complaints() const = 0;
};

}  // namespace penstock::demux

#endif  // PENSTOCK_SERVER_DEMUX_DEMUXER_H_
