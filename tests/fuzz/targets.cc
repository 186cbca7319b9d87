#include "tests/fuzz/targets.h"

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "common/format/block.h"
#include "common/format/capture_index.h"
#include "common/format/input_bins.h"
#include "common/format/shard.h"
#include "common/hash/hash.h"
#include "common/job/attach.h"
#include "common/job/job_record.h"
#include "server/import/mapping.h"

namespace penstock::fuzz {
namespace {

using Bytes = std::vector<std::uint8_t>;

void Must(bool law) {
  if (!law) std::abort();
}

void PutU32(Bytes& b, std::size_t at, std::uint32_t v) {
  std::memcpy(b.data() + at, &v, 4);
}

void UseBlock(Input in) {
  const auto b = format::ParseBlock(in);
  if (!b.ok()) return;
  Must(b->bytes <= in.size());
  switch (b->header.kind) {
    case format::TrackKind::kVideo:
    case format::TrackKind::kAudio:
      for (const auto& p : b->Packets()) {
        Must(b->payload.subspan(p.offset, p.bytes).size() == p.bytes);
      }
      break;
    case format::TrackKind::kEvents: {
      const std::int64_t boundaries[] = {0, 1'000'000, INT64_MAX};
      (void)format::BinInputs({&*b, 1}, boundaries);
      break;
    }
    case format::TrackKind::kTicks:
    case format::TrackKind::kFrames:
      for (std::size_t c = 0; c < b->ColumnCount(); ++c) {
        for (std::size_t r = 0; r < b->header.entries; ++r) {
          (void)b->ColumnBits(c, r);
          (void)b->ColumnValid(c, r);
        }
      }
      break;
    case format::TrackKind::kText:
    case format::TrackKind::kSpans:
      for (const auto& t : b->Texts()) {
        (void)b->payload.subspan(t.text_offset, t.text_bytes);
        (void)b->payload.subspan(t.author_offset, t.author_bytes);
      }
      break;
  }
}

// The index must lie aligned, as a mapping does.
void UseIndex(const Bytes& bytes) {
  const std::vector<std::uint64_t> aligned = [&] {
    std::vector<std::uint64_t> a(bytes.size() / 8 + 1);
    if (!bytes.empty()) std::memcpy(a.data(), bytes.data(), bytes.size());
    return a;
  }();
  const Input file{reinterpret_cast<const std::uint8_t*>(aligned.data()),
                   bytes.size()};
  const auto v = format::OpenCaptureIndex(file);
  if (!format::CheckCaptureIndex(file).ok()) return;
  Must(v.ok());
  for (const auto& c : v->captures) {
    for (const auto& t : v->TracksOf(c)) {
      for (const auto& g : v->GopsOf(t)) Must(g.shard < v->shards.size());
      for (const auto& r : v->RunsOf(t)) Must(r.end_frame <= t.rows);
      for (const auto& s : v->SegmentsOf(t)) Must(s.shard < v->shards.size());
    }
  }
}

}  // namespace

void Block(Input in) {
  UseBlock(in);
  if (in.size() < sizeof(format::BlockHeader)) return;
  Bytes b(in.begin(), in.end());
  b.resize((b.size() + 63) / 64 * 64);
  format::BlockHeader h;
  std::memcpy(&h, b.data(), sizeof(h));
  h.magic = format::kBlockMagic;
  h.version = format::kBlockVersion;
  h.crc32c = 0;
  const std::uint64_t used =
      sizeof(h) + std::uint64_t{h.table_bytes} + h.payload_bytes;
  if (used > b.size()) return;
  b.resize((used + 63) / 64 * 64);
  std::memcpy(b.data(), &h, sizeof(h));
  PutU32(b, offsetof(format::BlockHeader, crc32c), hash::Crc32c(b));
  UseBlock(b);
}

void ShardFooter(Input in) {
  (void)format::CheckShardHeader(in);
  const std::uint64_t offset = 1 << 20;
  if (in.size() >= format::kShardTrailerBytes) {
    (void)format::ParseShardTrailer(in.last(format::kShardTrailerBytes),
                                    in.size());
  }
  const auto f = format::ParseShardFooter(
      in, {offset, static_cast<std::uint32_t>(in.size()), hash::Crc32c(in)});
  if (!f.ok()) return;
  const Bytes again = format::EncodeShardFooter(*f, offset);
  Must(again.size() == in.size() + format::kShardTrailerBytes &&
       std::equal(in.begin(), in.end(), again.begin()));
  for (const auto& t : f->tracks) {
    Must(t.row.first_gop + t.row.gop_count <= f->gops.size());
    Must(t.row.first_segment + t.row.segment_count <= f->segments.size());
  }
}

void CaptureIndex(Input in) {
  Bytes b(in.begin(), in.end());
  UseIndex(b);
  if (b.size() < 256) return;
  for (std::size_t i = 0; i < 7; ++i) {
    std::uint32_t row;
    std::uint64_t offset, count;
    std::memcpy(&row, b.data() + 16 + 24 * i, 4);
    std::memcpy(&offset, b.data() + 24 + 24 * i, 8);
    std::memcpy(&count, b.data() + 32 + 24 * i, 8);
    if (row == 0 || offset > b.size() || count > (b.size() - offset) / row) {
      return;
    }
    PutU32(b, 20 + 24 * i,
           hash::Crc32c(Input(b).subspan(offset, count * row)));
  }
  PutU32(b, 252, hash::Crc32c(Input(b).first(252)));
  UseIndex(b);
}

void Cursor(Input in) {
  const std::string text(in.begin(), in.end());
  const auto c = job::ParseCursor(text);
  if (c.ok()) Must(job::EncodeCursor(*c) == text);
}

void JobRecord(Input in) {
  (void)job::DecodeRecord(in);
  if (in.size() < 4) return;
  Bytes b(in.begin(), in.end());
  PutU32(b, b.size() - 4, hash::Crc32c(Input(b).first(b.size() - 4)));
  const auto record = job::DecodeRecord(b);
  if (!record.ok()) return;
  const auto again = job::DecodeRecord(job::EncodeRecord(*record));
  Must(again.ok() && *again == *record);
}

void Mapping(Input in) {
  (void)import::ParseMapping(std::string(in.begin(), in.end()), "capture.json");
}

}  // namespace penstock::fuzz
