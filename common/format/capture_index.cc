#include "common/format/capture_index.h"

#include <cstring>

#include "absl/strings/str_format.h"
#include "common/hash/hash.h"
#include "common/status/status.h"

namespace penstock::format {
namespace {

constexpr char kMagic[8] = {'P', 'S', 'P', 'I', 'D', 'X', '\x1a', '\n'};
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kSectionCount = 7;
constexpr std::size_t kHeaderBytes = 256;
constexpr std::size_t kSectionAlignment = 64;
constexpr const char* kSectionNames[kSectionCount] = {
    "captures", "tracks", "gops", "runs", "extents", "segments", "shards"};
constexpr std::uint32_t kRowBytes[kSectionCount] = {
    sizeof(CaptureRow), sizeof(TrackRow),   sizeof(GopRow),  sizeof(RunRow),
    sizeof(ExtentRow),  sizeof(SegmentRow), sizeof(ShardRow)};

struct Section {
  std::uint32_t row_bytes;
  std::uint32_t crc32c;
  std::uint64_t offset;
  std::uint64_t count;
};
static_assert(sizeof(Section) == 24);

struct Header {
  char magic[8];
  std::uint32_t version;
  std::uint32_t section_count;
  Section sections[kSectionCount];
  std::uint8_t reserved[kHeaderBytes - 16 - 24 * kSectionCount - 4];
  std::uint32_t crc32c;  // of the bytes before it
};
static_assert(sizeof(Header) == kHeaderBytes);

std::uint32_t HeaderCrc(const Header& h) {
  return hash::Crc32c({reinterpret_cast<const std::uint8_t*>(&h),
                       kHeaderBytes - 4});
}

absl::Status Bad(std::string what, std::string found = "",
                 std::string expected = "") {
  return MakeError(
      absl::StatusCode::kDataLoss,
      {.where = "captures.pidx",
       .what = std::move(what),
       .found = std::move(found),
       .expected = std::move(expected),
       .action = "copy the dataset again from its origin, or import again"});
}

template <typename Row>
std::span<const std::uint8_t> RowBytesOf(const std::vector<Row>& rows) {
  return {reinterpret_cast<const std::uint8_t*>(rows.data()),
          rows.size() * sizeof(Row)};
}

template <typename Row>
std::span<const Row> RowsAt(std::span<const std::uint8_t> file,
                            const Section& s) {
  return {reinterpret_cast<const Row*>(file.data() + s.offset),
          static_cast<std::size_t>(s.count)};
}

absl::StatusOr<Header> ReadHeader(std::span<const std::uint8_t> file) {
  if (file.size() < kHeaderBytes) {
    return Bad("cut off in the header", absl::StrFormat("%d bytes", file.size()),
               absl::StrFormat("at least %d", kHeaderBytes));
  }
  Header h;
  std::memcpy(&h, file.data(), sizeof(h));
  if (std::memcmp(h.magic, kMagic, 8) != 0) {
    return Bad("this is no capture index: the magic differs");
  }
  if (HeaderCrc(h) != h.crc32c) {
    return Bad("header checksum differs",
               absl::StrFormat("crc32c %08x", HeaderCrc(h)),
               absl::StrFormat("%08x", h.crc32c));
  }
  if (h.version != kVersion || h.section_count != kSectionCount) {
    return Bad("unknown version", absl::StrFormat("%d", h.version),
               absl::StrFormat("%d", kVersion));
  }
  for (std::size_t i = 0; i < kSectionCount; ++i) {
    const Section& s = h.sections[i];
    if (s.row_bytes != kRowBytes[i] || s.offset % 8 != 0 ||
        s.offset > file.size() ||
        s.count > (file.size() - s.offset) / s.row_bytes) {
      return Bad(absl::StrFormat("section %s does not fit the file",
                                 kSectionNames[i]),
                 absl::StrFormat("%d rows of %d bytes at %d", s.count,
                                 s.row_bytes, s.offset),
                 absl::StrFormat("inside %d bytes", file.size()));
    }
  }
  return h;
}

bool Fits(std::uint64_t first, std::uint64_t count, std::size_t size) {
  return first <= size && count <= size - first;
}

absl::Status BadRow(const char* section, std::size_t row, const char* field,
                    std::string found = "", std::string expected = "") {
  return Bad(absl::StrFormat("section %s, row %d: %s", section, row, field),
             std::move(found), std::move(expected));
}

absl::Status CheckCaptures(const CaptureIndexView& v) {
  std::uint64_t track = 0, extent = 0;
  for (std::size_t i = 0; i < v.captures.size(); ++i) {
    const CaptureRow& c = v.captures[i];
    if (i > 0 && !(v.captures[i - 1].id < c.id)) {
      return BadRow("captures", i, "ids do not ascend");
    }
    if (c.first_track != track || !Fits(track, c.track_count, v.tracks.size())) {
      return BadRow("captures", i, "tracks do not tile");
    }
    if (c.first_extent != extent ||
        !Fits(extent, c.extent_count, v.extents.size())) {
      return BadRow("captures", i, "extents do not tile");
    }
    for (const TrackRow& t : v.TracksOf(c)) {
      if (t.capture != i) {
        return BadRow("tracks", track, "capture",
                      absl::StrFormat("%d", t.capture), absl::StrFormat("%d", i));
      }
      ++track;
    }
    for (const ExtentRow& e : v.extents.subspan(extent, c.extent_count)) {
      if (e.capture != i) {
        return BadRow("extents", extent, "capture",
                      absl::StrFormat("%d", e.capture), absl::StrFormat("%d", i));
      }
      ++extent;
    }
  }
  if (track != v.tracks.size() || extent != v.extents.size()) {
    return Bad("tracks or extents that belong to no capture");
  }
  return absl::OkStatus();
}

absl::Status CheckGops(const CaptureIndexView& v, std::size_t track) {
  const TrackRow& t = v.tracks[track];
  std::uint64_t frame = 0;
  for (std::size_t i = 0; i < t.gop_count; ++i) {
    const GopRow& g = v.gops[t.first_gop + i];
    if (g.track != track || g.shard >= v.shards.size()) {
      return BadRow("gops", t.first_gop + i, "track or shard");
    }
    if (g.first_frame != frame) {
      return BadRow("gops", t.first_gop + i, "frames do not tile",
                    absl::StrFormat("first frame %d", g.first_frame),
                    absl::StrFormat("%d", frame));
    }
    if (g.lead_count > g.frame_count || g.preroll > i ||
        !Fits(g.offset, g.bytes, v.shards[g.shard].bytes)) {
      return BadRow("gops", t.first_gop + i, "lead, preroll or byte range");
    }
    frame += g.frame_count;
  }
  if (t.gop_count > 0 && frame != t.rows) {
    return BadRow("tracks", track, "frames of its GOPs",
                  absl::StrFormat("%d", frame), absl::StrFormat("%d", t.rows));
  }
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < t.run_count; ++i) {
    const RunRow& r = v.runs[t.first_run + i];
    if (r.track != track || r.begin_frame < end ||
        r.end_frame <= r.begin_frame || r.end_frame > t.rows) {
      return BadRow("runs", t.first_run + i, "range");
    }
    end = r.end_frame;
  }
  return absl::OkStatus();
}

absl::Status CheckTracks(const CaptureIndexView& v) {
  std::uint64_t gop = 0, segment = 0, run = 0;
  for (std::size_t i = 0; i < v.tracks.size(); ++i) {
    const TrackRow& t = v.tracks[i];
    if (t.time_base_num == 0 || t.time_base_den == 0) {
      return BadRow("tracks", i, "time base");
    }
    if (t.first_gop != gop || !Fits(gop, t.gop_count, v.gops.size()) ||
        t.first_segment != segment ||
        !Fits(segment, t.segment_count, v.segments.size()) ||
        t.first_run != run || !Fits(run, t.run_count, v.runs.size())) {
      return BadRow("tracks", i, "GOPs, segments or runs do not tile");
    }
    gop += t.gop_count;
    segment += t.segment_count;
    run += t.run_count;
    PENSTOCK_RETURN_IF_ERROR(CheckGops(v, i));
    std::uint64_t rows = 0;
    for (std::size_t k = 0; k < t.segment_count; ++k) {
      const SegmentRow& s = v.segments[t.first_segment + k];
      if (s.track != i || s.shard >= v.shards.size() || s.rows_before != rows ||
          !Fits(s.offset, s.bytes, v.shards[s.shard].bytes)) {
        return BadRow("segments", t.first_segment + k, "range");
      }
      rows += s.rows;
    }
  }
  if (gop != v.gops.size() || segment != v.segments.size() ||
      run != v.runs.size()) {
    return Bad("rows that belong to no track");
  }
  return absl::OkStatus();
}

absl::Status CheckExtents(const CaptureIndexView& v) {
  for (std::size_t i = 0; i < v.extents.size(); ++i) {
    const ExtentRow& e = v.extents[i];
    if (e.shard >= v.shards.size() ||
        !Fits(e.offset, e.bytes, v.shards[e.shard].bytes)) {
      return BadRow("extents", i, "range");
    }
  }
  return absl::OkStatus();
}

// Sections lie back to back as the encoder puts them, nothing behind them, zeros
// between them: no byte of the file is without a check.
absl::Status CheckPlaces(std::span<const std::uint8_t> file, const Header& h) {
  std::uint64_t end = kHeaderBytes;
  for (std::size_t i = 0; i < kSectionCount; ++i) {
    const Section& s = h.sections[i];
    if (s.offset != end) {
      return Bad(absl::StrFormat("section %s: place", kSectionNames[i]),
                 absl::StrFormat("byte %d", s.offset),
                 absl::StrFormat("%d", end));
    }
    const std::uint64_t used = end + s.count * s.row_bytes;
    end = (used + kSectionAlignment - 1) / kSectionAlignment * kSectionAlignment;
    if (end > file.size()) {
      return Bad("cut off behind a section", absl::StrFormat("%d bytes", file.size()),
                 absl::StrFormat("at least %d", end));
    }
    for (std::uint64_t at = used; at < end; ++at) {
      if (file[at] != 0) {
        return Bad(absl::StrFormat("section %s: padding at byte %d",
                                   kSectionNames[i], at),
                   absl::StrFormat("%d", file[at]), "0");
      }
    }
  }
  if (end != file.size()) {
    return Bad("bytes behind the last section",
               absl::StrFormat("%d bytes", file.size()),
               absl::StrFormat("%d", end));
  }
  return absl::OkStatus();
}

CaptureIndexView ViewAt(std::span<const std::uint8_t> file, const Header& h) {
  return {RowsAt<CaptureRow>(file, h.sections[0]),
          RowsAt<TrackRow>(file, h.sections[1]),
          RowsAt<GopRow>(file, h.sections[2]),
          RowsAt<RunRow>(file, h.sections[3]),
          RowsAt<ExtentRow>(file, h.sections[4]),
          RowsAt<SegmentRow>(file, h.sections[5]),
          RowsAt<ShardRow>(file, h.sections[6])};
}

}  // namespace

CaptureIndexView ViewOf(const CaptureIndexRows& rows) {
  return {rows.captures, rows.tracks,   rows.gops,  rows.runs,
          rows.extents,  rows.segments, rows.shards};
}

std::vector<std::uint8_t> EncodeCaptureIndex(const CaptureIndexRows& rows) {
  const std::span<const std::uint8_t> parts[kSectionCount] = {
      RowBytesOf(rows.captures), RowBytesOf(rows.tracks),
      RowBytesOf(rows.gops),     RowBytesOf(rows.runs),
      RowBytesOf(rows.extents),  RowBytesOf(rows.segments),
      RowBytesOf(rows.shards)};
  Header h{};
  std::memcpy(h.magic, kMagic, 8);
  h.version = kVersion;
  h.section_count = kSectionCount;
  std::vector<std::uint8_t> out(kHeaderBytes, 0);
  for (std::size_t i = 0; i < kSectionCount; ++i) {
    h.sections[i] = {kRowBytes[i], hash::Crc32c(parts[i]), out.size(),
                     parts[i].size() / kRowBytes[i]};
    out.insert(out.end(), parts[i].begin(), parts[i].end());
    out.resize((out.size() + kSectionAlignment - 1) / kSectionAlignment *
               kSectionAlignment);
  }
  h.crc32c = HeaderCrc(h);
  std::memcpy(out.data(), &h, sizeof(h));
  return out;
}

absl::StatusOr<CaptureIndexView> OpenCaptureIndex(
    std::span<const std::uint8_t> file) {
  PENSTOCK_ASSIGN_OR_RETURN(const Header h, ReadHeader(file));
  return ViewAt(file, h);
}

absl::Status CheckCaptureIndex(std::span<const std::uint8_t> file) {
  PENSTOCK_ASSIGN_OR_RETURN(const Header h, ReadHeader(file));
  for (std::size_t i = 0; i < kSectionCount; ++i) {
    const Section& s = h.sections[i];
    const auto crc =
        hash::Crc32c(file.subspan(s.offset, s.count * s.row_bytes));
    if (crc != s.crc32c) {
      return Bad(absl::StrFormat("section %s: checksum differs",
                                 kSectionNames[i]),
                 absl::StrFormat("crc32c %08x", crc),
                 absl::StrFormat("%08x", s.crc32c));
    }
  }
  PENSTOCK_RETURN_IF_ERROR(CheckPlaces(file, h));
  const CaptureIndexView v = ViewAt(file, h);
  PENSTOCK_RETURN_IF_ERROR(CheckCaptures(v));
  PENSTOCK_RETURN_IF_ERROR(CheckTracks(v));
  return CheckExtents(v);
}

}  // namespace penstock::format
