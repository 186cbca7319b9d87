#ifndef PENSTOCK_COMMON_FORMAT_CAPTURE_INDEX_H_
#define PENSTOCK_COMMON_FORMAT_CAPTURE_INDEX_H_

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/types/ids.h"

// captures.pidx: what the plan and the daemon need to know of every capture
// without opening a shard. Fixed-size little-endian rows in sections, made to
// be mapped; ordinals (capture, track, …) are row numbers in their sections.
namespace penstock::format {

static_assert(std::endian::native == std::endian::little,
              "rows are mapped as they lie on disk");

enum class TrackKind : std::uint8_t {
  kVideo = 1,
  kAudio = 2,
  kEvents = 3,
  kTicks = 4,   // columnar table with its own timestamps
  kFrames = 5,  // columnar table with one row per video frame
  kText = 6,
  kSpans = 7,
};

enum class Chroma : std::uint8_t {
  kUnknown = 0,
  k420 = 1,
  k422 = 2,
  k444 = 3,
  k400 = 4,
  kRgb = 5,
};

// Track flags.
inline constexpr std::uint16_t kTrackConstantRate = 1;    // pts = first + i/rate
inline constexpr std::uint16_t kTrackSyntheticPts = 2;    // some pts were made up
inline constexpr std::uint16_t kTrackAssumedColour = 4;   // no tags in the source
inline constexpr std::uint16_t kTrackFullRange = 8;       // 0..255, else limited
inline constexpr std::uint16_t kTrackDamaged = 16;        // some frames were lost

// GOP flags.
inline constexpr std::uint16_t kGopOpen = 1;     // has lead frames
inline constexpr std::uint16_t kGopDamaged = 2;  // some frame is damaged

// One capture. Ordered by id, so that the same captures give the same file.
struct CaptureRow {
  Digest256 id;  // of the content: source bytes and declared mapping
  std::uint32_t first_track, track_count;
  std::uint64_t first_extent, extent_count;
  std::int64_t duration_ns;  // end of the last video frame (or of the last row)
  std::uint8_t reserved[24];
};
static_assert(sizeof(CaptureRow) == 88);

// One track of a capture. Times are ns from the first presented frame.
struct TrackRow {
  std::uint32_t capture;
  std::uint16_t ordinal;  // inside the capture
  TrackKind kind;
  std::uint8_t bit_depth;  // video
  Chroma chroma;           // video
  std::uint8_t colour_matrix, colour_transfer, colour_primaries;  // ITU-T H.273
  std::uint16_t flags;
  std::uint16_t rotation;  // degrees clockwise to show it upright; +1000 mirrored
  std::uint32_t time_base_num, time_base_den;  // of pts in the packet tables
  std::uint32_t width, height;                 // coded, visible area
  std::uint32_t rate_num, rate_den;  // frames/s, ticks/s or samples/s; 0 unknown
  std::uint64_t rows;     // presented frames, audio samples, events, table rows
  std::int64_t origin_ns;  // source time of time zero: ns = PtsToNs(pts) - this
  std::int64_t first_ns, end_ns;
  std::uint64_t first_gop, gop_count;          // video
  std::uint64_t first_segment, segment_count;  // other kinds
  std::uint64_t first_run, run_count;          // video
};
static_assert(sizeof(TrackRow) == 120);

// One GOP of a video track, in decode order; frame numbers are presentation
// order inside the track, and the frame ranges of a track's GOPs tile it.
struct GopRow {
  std::uint32_t track;    // row in the track section
  std::uint16_t flags;
  std::uint16_t codec;    // codec parameters in the shard's footer
  std::uint32_t shard, preroll;  // GOPs before it that its lead frames need
  std::uint64_t offset;   // of its first block in the shard
  std::uint32_t bytes, block_count;  // blocks lie back to back
  std::int64_t first_ns, end_ns;     // of its presented frames
  std::uint64_t first_frame;         // = frames of the track before it
  std::uint32_t frame_count, lead_count;
  std::uint64_t events_before;  // input events of the capture before first_ns
  std::uint64_t tokens_before;  // text tokens of the capture before first_ns
  std::uint64_t cost_before;    // decode cost of the track's GOPs before it
  std::uint64_t frames_hash;    // XXH3-64 of the frame hashes, in frame order
};
static_assert(sizeof(GopRow) == 96);

// A run of frames of a video track without gap, damage or forbidden span:
// windows never leave it.
struct RunRow {
  std::uint32_t track;
  std::uint32_t ended_by;  // SpanKind that ends it, 0 at the end of the track
  std::uint64_t begin_frame, end_frame;
};
static_assert(sizeof(RunRow) == 24);

// All tracks of a time range, in one aligned piece of a shard.
struct ExtentRow {
  std::uint32_t capture, shard;
  std::uint64_t offset, bytes;  // multiples of 4096, bytes >= 256 KiB
  std::int64_t begin_ns, end_ns;
};
static_assert(sizeof(ExtentRow) == 40);

// One block of a track that is not video.
struct SegmentRow {
  std::uint32_t track, shard;
  std::uint64_t offset;
  std::uint32_t bytes, rows;
  std::int64_t first_ns, end_ns;
  std::uint64_t rows_before;
};
static_assert(sizeof(SegmentRow) == 48);

struct ShardRow {
  Digest256 sha256;
  std::uint64_t bytes;
};
static_assert(sizeof(ShardRow) == 40);

// The index as values to write, or as views of a mapped file.
struct CaptureIndexRows {
  std::vector<CaptureRow> captures;
  std::vector<TrackRow> tracks;
  std::vector<GopRow> gops;
  std::vector<RunRow> runs;
  std::vector<ExtentRow> extents;
  std::vector<SegmentRow> segments;
  std::vector<ShardRow> shards;
};

struct CaptureIndexView {
  std::span<const CaptureRow> captures;
  std::span<const TrackRow> tracks;
  std::span<const GopRow> gops;
  std::span<const RunRow> runs;
  std::span<const ExtentRow> extents;
  std::span<const SegmentRow> segments;
  std::span<const ShardRow> shards;

  std::span<const TrackRow> TracksOf(const CaptureRow& c) const {
    return tracks.subspan(c.first_track, c.track_count);
  }
  std::span<const GopRow> GopsOf(const TrackRow& t) const {
    return gops.subspan(t.first_gop, t.gop_count);
  }
  std::span<const RunRow> RunsOf(const TrackRow& t) const {
    return runs.subspan(t.first_run, t.run_count);
  }
  std::span<const SegmentRow> SegmentsOf(const TrackRow& t) const {
    return segments.subspan(t.first_segment, t.segment_count);
  }
};

CaptureIndexView ViewOf(const CaptureIndexRows& rows);

// The bytes of captures.pidx. Same rows, same bytes.
std::vector<std::uint8_t> EncodeCaptureIndex(const CaptureIndexRows& rows);

// Views of `file`, which must outlive them and lie 8-byte aligned. O(1): checks
// the header and the section bounds, not the rows.
//
// kDataLoss: not an index, cut off, a header that does not match its checksum.
absl::StatusOr<CaptureIndexView> OpenCaptureIndex(
    std::span<const std::uint8_t> file);

// Every row against every other: ranges inside their sections, tiles without
// holes, checksums of the sections. O(rows); for verify and import.
//
// kDataLoss: names section, row, field, found, expected.
absl::Status CheckCaptureIndex(std::span<const std::uint8_t> file);

}  // namespace penstock::format

#endif  // PENSTOCK_COMMON_FORMAT_CAPTURE_INDEX_H_
