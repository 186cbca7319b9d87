#include "common/format/shard.h"

#include <cstring>

#include "absl/strings/str_format.h"
#include "common/format/bytes.h"
#include "common/hash/hash.h"
#include "common/status/status.h"

namespace penstock::format {
namespace {

constexpr char kHeaderMagic[8] = {'P', 'S', 'H', 'A', 'R', 'D', '\x1a', '\n'};
constexpr char kTrailerMagic[8] = {'P', 'S', 'H', 'E', 'N', 'D', '\x1a', '\n'};
constexpr std::uint32_t kShardVersion = 1;

struct Trailer {
  std::uint64_t offset;
  std::uint32_t bytes, crc32c;
  std::uint32_t version, self_crc32c;  // of the fields before it
  char magic[8];
};
static_assert(sizeof(Trailer) == kShardTrailerBytes);

std::uint32_t TrailerCrc(const Trailer& t) {
  return hash::Crc32c({reinterpret_cast<const std::uint8_t*>(&t), 20});
}

absl::Status Bad(const char* where, std::string what, std::string found = "",
                 std::string expected = "") {
  return MakeError(
      absl::StatusCode::kDataLoss,
      {.where = where,
       .what = std::move(what),
       .found = std::move(found),
       .expected = std::move(expected),
       .action = "copy the shard again from its origin, or import again"});
}

void PutCodec(ByteWriter& w, const CodecParameters& c) {
  w.PutString(c.codec);
  w.PutString(c.pixel_format);
  w.PutSized(c.extradata);
  w.Put(c.profile);
  w.Put(c.level);
  for (std::uint32_t v : {c.width, c.height, c.sample_rate, c.channels, c.bits,
                          c.block_align, c.frame_size}) {
    w.Put(v);
  }
}

CodecParameters GetCodec(ByteReader& r) {
  CodecParameters c;
  c.codec = r.GetString();
  c.pixel_format = r.GetString();
  auto e = r.GetSized();
  c.extradata.assign(e.begin(), e.end());
  c.profile = r.Get<std::int32_t>();
  c.level = r.Get<std::int32_t>();
  for (std::uint32_t* v : {&c.width, &c.height, &c.sample_rate, &c.channels,
                           &c.bits, &c.block_align, &c.frame_size}) {
    *v = r.Get<std::uint32_t>();
  }
  return c;
}

template <typename Row>
void PutRows(ByteWriter& w, const std::vector<Row>& rows) {
  w.Put(static_cast<std::uint32_t>(rows.size()));
  for (const Row& row : rows) w.Put(row);
}

template <typename Row>
std::vector<Row> GetRows(ByteReader& r) {
  std::vector<Row> rows(r.GetCount(sizeof(Row)));
  for (Row& row : rows) row = r.Get<Row>();
  return rows;
}

template <typename Row>
bool RangeFits(std::uint64_t first, std::uint64_t count,
               const std::vector<Row>& rows) {
  return first <= rows.size() && count <= rows.size() - first;
}

// Everything that later code uses as an index or a range.
absl::Status CheckFooter(const ShardFooter& f, std::uint64_t footer_offset) {
  auto place_ok = [&](std::uint64_t offset, std::uint64_t bytes) {
    return offset >= kShardHeaderBytes && offset <= footer_offset &&
           bytes <= footer_offset - offset;
  };
  for (std::size_t i = 0; i < f.captures.size(); ++i) {
    if (!RangeFits(f.captures[i].first_track, f.captures[i].track_count,
                   f.tracks)) {
      return Bad("shard footer", absl::StrFormat("capture %d: tracks", i));
    }
  }
  for (std::size_t i = 0; i < f.tracks.size(); ++i) {
    const TrackRow& t = f.tracks[i].row;
    if (t.capture >= f.captures.size() ||
        !RangeFits(t.first_gop, t.gop_count, f.gops) ||
        !RangeFits(t.first_segment, t.segment_count, f.segments) ||
        t.time_base_num == 0 || t.time_base_den == 0) {
      return Bad("shard footer", absl::StrFormat("track %d: ranges", i));
    }
  }
  for (std::size_t i = 0; i < f.gops.size(); ++i) {
    const GopRow& g = f.gops[i];
    if (g.track >= f.tracks.size() || g.codec >= f.codecs.size() ||
        !place_ok(g.offset, g.bytes) || g.offset % kBlockAlignment != 0) {
      return Bad("shard footer", absl::StrFormat("GOP row %d", i));
    }
  }
  for (std::size_t i = 0; i < f.segments.size(); ++i) {
    const SegmentRow& s = f.segments[i];
    if (s.track >= f.tracks.size() || !place_ok(s.offset, s.bytes)) {
      return Bad("shard footer", absl::StrFormat("segment row %d", i));
    }
  }
  for (std::size_t i = 0; i < f.extents.size(); ++i) {
    const ExtentRow& e = f.extents[i];
    if (e.capture >= f.captures.size() || !place_ok(e.offset, e.bytes) ||
        e.offset % kExtentAlignment != 0) {
      return Bad("shard footer", absl::StrFormat("extent row %d", i));
    }
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::uint8_t> EncodeShardHeader() {
  std::vector<std::uint8_t> out(kShardHeaderBytes, 0);
  std::memcpy(out.data(), kHeaderMagic, 8);
  const std::uint32_t version = kShardVersion, bytes = kShardHeaderBytes;
  std::memcpy(out.data() + 8, &version, 4);
  std::memcpy(out.data() + 12, &bytes, 4);
  const std::uint32_t crc =
      hash::Crc32c(std::span(out).first(kShardHeaderBytes - 4));
  std::memcpy(out.data() + kShardHeaderBytes - 4, &crc, 4);
  return out;
}

absl::Status CheckShardHeader(std::span<const std::uint8_t> header) {
  if (header.size() < kShardHeaderBytes) {
    return Bad("shard header", "cut off",
               absl::StrFormat("%d bytes", header.size()),
               absl::StrFormat("%d", kShardHeaderBytes));
  }
  if (std::memcmp(header.data(), kHeaderMagic, 8) != 0) {
    return Bad("shard header", "this is no shard: the magic differs");
  }
  std::uint32_t crc;
  std::memcpy(&crc, header.data() + kShardHeaderBytes - 4, 4);
  const auto actual = hash::Crc32c(header.first(kShardHeaderBytes - 4));
  if (crc != actual) {
    return Bad("shard header", "checksum differs",
               absl::StrFormat("crc32c %08x", actual),
               absl::StrFormat("%08x", crc));
  }
  std::uint32_t version;
  std::memcpy(&version, header.data() + 8, 4);
  if (version != kShardVersion) {
    return Bad("shard header", "unknown version", absl::StrFormat("%d", version),
               absl::StrFormat("%d", kShardVersion));
  }
  return absl::OkStatus();
}

std::vector<std::uint8_t> EncodeShardFooter(const ShardFooter& f,
                                            std::uint64_t offset) {
  ByteWriter w;
  w.Put(static_cast<std::uint32_t>(f.codecs.size()));
  for (const auto& c : f.codecs) PutCodec(w, c);
  w.Put(static_cast<std::uint32_t>(f.captures.size()));
  for (const auto& c : f.captures) {
    w.Put(c.id);
    w.PutString(c.title);
    w.Put(c.first_track);
    w.Put(c.track_count);
  }
  w.Put(static_cast<std::uint32_t>(f.tracks.size()));
  for (const auto& t : f.tracks) {
    w.Put(t.row);
    w.PutString(t.name);
    w.PutString(t.schema);
  }
  PutRows(w, f.gops);
  PutRows(w, f.segments);
  PutRows(w, f.extents);
  std::vector<std::uint8_t> out = w.Take();
  Trailer t{};
  t.offset = offset;
  t.bytes = static_cast<std::uint32_t>(out.size());
  t.crc32c = hash::Crc32c(out);
  t.version = kShardVersion;
  std::memcpy(t.magic, kTrailerMagic, 8);
  t.self_crc32c = TrailerCrc(t);
  const auto* p = reinterpret_cast<const std::uint8_t*>(&t);
  out.insert(out.end(), p, p + sizeof(t));
  return out;
}

absl::StatusOr<FooterPlace> ParseShardTrailer(
    std::span<const std::uint8_t> trailer, std::uint64_t file_bytes) {
  if (trailer.size() != kShardTrailerBytes ||
      file_bytes < kShardHeaderBytes + kShardTrailerBytes) {
    return Bad("shard trailer", "the file is too short for a shard",
               absl::StrFormat("%d bytes", file_bytes));
  }
  Trailer t;
  std::memcpy(&t, trailer.data(), sizeof(t));
  if (std::memcmp(t.magic, kTrailerMagic, 8) != 0) {
    return Bad("shard trailer", "the footer is cut off: no end mark at the end",
               absl::StrFormat("file of %d bytes", file_bytes),
               "the 8-byte end mark \"PSHEND\"");
  }
  if (TrailerCrc(t) != t.self_crc32c) {
    return Bad("shard trailer", "checksum differs",
               absl::StrFormat("crc32c %08x", TrailerCrc(t)),
               absl::StrFormat("%08x", t.self_crc32c));
  }
  if (t.version != kShardVersion) {
    return Bad("shard trailer", "unknown version",
               absl::StrFormat("%d", t.version),
               absl::StrFormat("%d", kShardVersion));
  }
  if (t.bytes > kFooterBytesMax || t.offset < kShardHeaderBytes ||
      t.offset > file_bytes ||
      t.offset + t.bytes + kShardTrailerBytes != file_bytes) {
    return Bad("shard trailer", "the footer's place does not fit the file",
               absl::StrFormat("offset %d, %d bytes, file %d", t.offset, t.bytes,
                               file_bytes));
  }
  return FooterPlace{t.offset, t.bytes, t.crc32c};
}

absl::StatusOr<ShardFooter> ParseShardFooter(
    std::span<const std::uint8_t> bytes, const FooterPlace& place) {
  if (bytes.size() != place.bytes || hash::Crc32c(bytes) != place.crc32c) {
    return Bad("shard footer", "checksum differs",
               absl::StrFormat("crc32c %08x", hash::Crc32c(bytes)),
               absl::StrFormat("%08x", place.crc32c));
  }
  ByteReader r(bytes);
  ShardFooter f;
  f.codecs.resize(r.GetCount(48));
  for (auto& c : f.codecs) c = GetCodec(r);
  f.captures.resize(r.GetCount(44));
  for (auto& c : f.captures) {
    c.id = r.Get<Digest256>();
    c.title = r.GetString();
    c.first_track = r.Get<std::uint32_t>();
    c.track_count = r.Get<std::uint32_t>();
  }
  f.tracks.resize(r.GetCount(sizeof(TrackRow) + 8));
  for (auto& t : f.tracks) {
    t.row = r.Get<TrackRow>();
    t.name = r.GetString();
    t.schema = r.GetString();
  }
  f.gops = GetRows<GopRow>(r);
  f.segments = GetRows<SegmentRow>(r);
  f.extents = GetRows<ExtentRow>(r);
  if (!r.ok() || r.left() != 0) {
    return Bad("shard footer", "cut off or overlong");
  }
  PENSTOCK_RETURN_IF_ERROR(CheckFooter(f, place.offset));
  return f;
}

}  // namespace penstock::format
