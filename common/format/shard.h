#ifndef PENSTOCK_COMMON_FORMAT_SHARD_H_
#define PENSTOCK_COMMON_FORMAT_SHARD_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/format/block.h"
#include "common/format/capture_index.h"

// A shard file: header, extents of blocks, footer, trailer. The footer is
// enough to read a shard without the rest of its dataset.
namespace penstock::format {

inline constexpr std::size_t kShardHeaderBytes = 4096;
inline constexpr std::size_t kShardTrailerBytes = 32;
inline constexpr std::size_t kExtentAlignment = 4096;
inline constexpr std::size_t kExtentBytesMin = 256u << 10;
inline constexpr std::size_t kFooterBytesMax = 256u << 20;

// What a decoder needs beside the packets.
struct CodecParameters {
  std::string codec;         // FFmpeg's decoder-independent name: "h264", "flac"
  std::string pixel_format;  // FFmpeg's name: "yuv420p"; video
  std::vector<std::uint8_t> extradata;
  std::int32_t profile = 0, level = 0;
  std::uint32_t width = 0, height = 0;                         // video
  std::uint32_t sample_rate = 0, channels = 0, bits = 0;       // audio
  std::uint32_t block_align = 0, frame_size = 0;               // audio
  friend bool operator==(const CodecParameters&,
                         const CodecParameters&) = default;
};

struct ShardCapture {
  Digest256 id{};
  std::string title;
  std::uint32_t first_track = 0, track_count = 0;
};

struct ShardTrack {
  TrackRow row{};      // capture: index in this footer; ranges: in this footer
  std::string name;
  std::string schema;  // JSON: columns, dictionary, devices
};

struct ShardFooter {
  std::vector<CodecParameters> codecs;
  std::vector<ShardCapture> captures;
  std::vector<ShardTrack> tracks;
  std::vector<GopRow> gops;          // track: in this footer; shard: 0
  std::vector<SegmentRow> segments;  // likewise
  std::vector<ExtentRow> extents;    // capture: in this footer
};

std::vector<std::uint8_t> EncodeShardHeader();

// kDataLoss: not a shard, unknown version, checksum
absl::Status CheckShardHeader(std::span<const std::uint8_t> header);

// Footer and trailer, for the end of a shard whose footer starts at `offset`.
std::vector<std::uint8_t> EncodeShardFooter(const ShardFooter& footer,
                                            std::uint64_t offset);

struct FooterPlace {
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
  std::uint32_t crc32c = 0;
};

// Where the footer is, from the last kShardTrailerBytes of a file.
//
// kDataLoss: cut off, not a shard, a place outside the file
absl::StatusOr<FooterPlace> ParseShardTrailer(
    std::span<const std::uint8_t> trailer, std::uint64_t file_bytes);

// kDataLoss: checksum, cut off, rows that point outside the shard
absl::StatusOr<ShardFooter> ParseShardFooter(
    std::span<const std::uint8_t> bytes, const FooterPlace& place);

}  // namespace penstock::format

#endif  // PENSTOCK_COMMON_FORMAT_SHARD_H_
