#ifndef PENSTOCK_TESTS_UNIT_FORMAT_SAMPLES_H_
#define PENSTOCK_TESTS_UNIT_FORMAT_SAMPLES_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/format/block.h"
#include "common/format/capture_index.h"
#include "common/format/shard.h"

// Small values of every kind, also the ones behind tests/golden/format.
namespace penstock::format::test {

using Bytes = std::vector<std::uint8_t>;

inline Bytes TextBytes(std::string_view text) {
  return Bytes(text.begin(), text.end());
}

inline Digest256 DigestOf(std::uint8_t first) {
  Digest256 d{};
  for (std::size_t i = 0; i < d.size(); ++i) {
    d[i] = static_cast<std::uint8_t>(first + i);
  }
  return d;
}

inline Bytes VideoBlock() {
  const std::vector<PacketRow> rows = {
      {0, -512, 512, 0, 5, 0, kPacketKey | kPacketEntry, 0x1122334455667788},
      {1024, 0, 512, 5, 3, 2, kFrameDuplicate, 0x99AABBCCDDEEFF00},
      {512, 512, 512, 8, 3, 1, kFrameDamaged, 0},
  };
  BlockHeader h;
  h.kind = TrackKind::kVideo;
  return EncodeBlock(h, TableBytes(rows), 3, TextBytes("IIIIIPPPBBB"));
}

inline Bytes EventsBlock() {
  std::vector<EventRow> rows(3);
  rows[0] = {-1, 0x00070004, 0, 1, 0, EventKind::kKey, EventSource::kHuman, 0,
             kEventHeld};
  rows[1] = {20'000'000, 0, 0, -7, 9, EventKind::kMouseRel,
             EventSource::kInjected, 1, 0};
  rows[2] = {40'000'000, 0x00070004, 0, 0, 0, EventKind::kKey,
             EventSource::kHuman, 0, 0};
  BlockHeader h;
  h.kind = TrackKind::kEvents;
  h.track = 1;
  return EncodeBlock(h, TableBytes(rows), 3, {});
}

// Two columns, the second unknown in the second row.
inline Bytes TicksBlock() {
  const std::vector<TableRow> rows = {{0, 0}, {50'000'000, 1}};
  Bytes payload;
  auto put = [&](std::int64_t v) {
    const auto* p = reinterpret_cast<const std::uint8_t*>(&v);
    payload.insert(payload.end(), p, p + 8);
  };
  put(100);
  put(-3);
  payload.insert(payload.end(), {1, 1});
  put(0x3FF8000000000000);  // 1.5
  put(0);
  payload.insert(payload.end(), {1, 0});
  BlockHeader h;
  h.kind = TrackKind::kTicks;
  h.track = 2;
  return EncodeBlock(h, TableBytes(rows), 2, payload);
}

inline Bytes TextBlock() {
  const std::vector<TextRow> rows = {{0, INT64_MAX, 0, 9, 9, 2, 11, 0}};
  BlockHeader h;
  h.kind = TrackKind::kText;
  h.track = 3;
  return EncodeBlock(h, TableBytes(rows), 1, TextBytes("go aheadxen"));
}

inline TrackRow TrackOf(std::uint16_t ordinal, TrackKind kind) {
  TrackRow t{};
  t.ordinal = ordinal;
  t.kind = kind;
  t.time_base_num = 1;
  t.time_base_den = kind == TrackKind::kVideo ? 15360 : 1'000'000'000;
  t.end_ns = 100'000'000;
  return t;
}

// Shorter than what import writes (kExtentBytesMin): readers do not care.
inline constexpr std::uint64_t kSmallExtentBytes = kExtentAlignment;

// A shard of one capture with a video, an events, a ticks and a text track, all
// in one extent.
struct SmallShard {
  Bytes bytes;
  ShardFooter footer;
};

inline SmallShard MakeShard() {
  SmallShard out;
  ShardFooter& f = out.footer;
  CodecParameters codec;
  codec.codec = "h264";
  codec.pixel_format = "yuv420p";
  codec.extradata = {1, 100, 0, 31};
  codec.profile = 100;
  codec.level = 31;
  codec.width = 64;
  codec.height = 48;
  f.codecs = {codec};
  f.captures = {{DigestOf(1), "solarwolf", 0, 4}};

  out.bytes = EncodeShardHeader();
  auto put = [&](const Bytes& block) {
    const std::uint64_t offset = out.bytes.size();
    out.bytes.insert(out.bytes.end(), block.begin(), block.end());
    return offset;
  };
  ShardTrack video{TrackOf(0, TrackKind::kVideo), "video", "{}"};
  video.row.bit_depth = 8;
  video.row.chroma = Chroma::k420;
  video.row.width = 64;
  video.row.height = 48;
  video.row.rate_num = 30;
  video.row.rate_den = 1;
  video.row.rows = 3;
  video.row.gop_count = 1;
  GopRow gop{};
  gop.offset = put(VideoBlock());
  gop.bytes = static_cast<std::uint32_t>(out.bytes.size() - gop.offset);
  gop.block_count = 1;
  gop.end_ns = 100'000'000;
  gop.frame_count = 3;
  gop.frames_hash = 42;
  gop.flags = kGopDamaged;
  f.gops = {gop};
  f.tracks = {video};

  auto side = [&](std::uint16_t ordinal, TrackKind kind, const char* name,
                  std::uint32_t rows, const Bytes& block, const char* schema) {
    ShardTrack t{TrackOf(ordinal, kind), name, schema};
    t.row.first_gop = 1;
    t.row.rows = rows;
    t.row.first_segment = ordinal - 1u;
    t.row.segment_count = 1;
    SegmentRow s{};
    s.track = ordinal;
    s.offset = put(block);
    s.bytes = static_cast<std::uint32_t>(block.size());
    s.rows = rows;
    s.end_ns = 100'000'000;
    f.tracks.push_back(t);
    f.segments.push_back(s);
  };
  side(1, TrackKind::kEvents, "input", 2, EventsBlock(), R"({"codes":["KeyA"]})");
  side(2, TrackKind::kTicks, "ticks", 2, TicksBlock(),
       R"({"columns":[{"name":"health","type":"i64"},{"name":"x","type":"f64"}]})");
  side(3, TrackKind::kText, "caption", 1, TextBlock(), "{}");

  ExtentRow extent{};
  extent.offset = kShardHeaderBytes;
  out.bytes.resize(kShardHeaderBytes + kSmallExtentBytes, 0);
  extent.bytes = kSmallExtentBytes;
  extent.end_ns = 100'000'000;
  f.extents = {extent};
  const Bytes end = EncodeShardFooter(f, out.bytes.size());
  out.bytes.insert(out.bytes.end(), end.begin(), end.end());
  return out;
}

// The index of a dataset with that shard only.
inline CaptureIndexRows IndexOf(const SmallShard& shard) {
  CaptureIndexRows rows;
  CaptureRow capture{};
  capture.id = shard.footer.captures[0].id;
  capture.track_count = 4;
  capture.extent_count = 1;
  capture.duration_ns = 100'000'000;
  rows.captures = {capture};
  for (const ShardTrack& t : shard.footer.tracks) rows.tracks.push_back(t.row);
  rows.tracks[0].run_count = 1;
  for (std::size_t i = 1; i < rows.tracks.size(); ++i) {
    rows.tracks[i].first_run = 1;
  }
  rows.gops = shard.footer.gops;
  rows.segments = shard.footer.segments;
  rows.extents = shard.footer.extents;
  rows.runs = {{0, 0, 0, 2}};
  rows.shards = {{DigestOf(7), shard.bytes.size()}};
  return rows;
}

}  // namespace penstock::format::test

#endif  // PENSTOCK_TESTS_UNIT_FORMAT_SAMPLES_H_
