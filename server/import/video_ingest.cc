#include "server/import/video_ingest.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "common/status/status.h"
#include "server/import/entries.h"
#include "server/import/frame_times.h"

namespace penstock::import {
namespace {

using format::kNoFrame;

// A packet, its row and the block header must fit one block.
constexpr std::size_t kPacketBytesMax = format::kBlockBytesMax - 4096;

// A picture is black when at least 98 % of its luma is at most this (of 255).
constexpr std::uint32_t kBlackLuma = 32;

bool IsBlack(const decode::Picture& p) {
  if (p.pixel_format.find("yuv") == std::string_view::npos &&
      p.pixel_format.find("gray") == std::string_view::npos) {
    return false;
  }
  std::uint64_t dark = 0, seen = 0;
  for (std::uint32_t y = 0; y < p.rows[0]; y += 2) {
    const std::uint8_t* row = p.planes[0] + y * p.strides[0];
    if (p.bit_depth > 8) {
      const std::uint32_t limit = kBlackLuma << (p.bit_depth - 8);
      for (std::uint32_t x = 0; x + 1 < p.row_bytes[0]; x += 4) {
        dark += (row[x] | std::uint32_t{row[x + 1]} << 8) <= limit;
        ++seen;
      }
    } else {
      for (std::uint32_t x = 0; x < p.row_bytes[0]; x += 2) {
        dark += row[x] <= kBlackLuma;
        ++seen;
      }
    }
  }
  return dark * 100 >= seen * 98;
}

// Marks what can not be trusted after damage: from the bad packet to the end
// of its GOP, and the lead frames of the next, which were predicted from it.
void SpreadDamage(const std::vector<bool>& bad, IngestedVideo& v) {
  bool tainted = false;
  for (std::size_t i = 0; i < v.gops.size(); ++i) {
    const GopPlan& g = v.gops[i];
    const bool before = tainted;
    tainted = false;
    for (std::uint32_t p = g.first_packet; p < g.end_packet; ++p) {
      tainted = tainted || bad[p];
      auto& row = v.packets[p];
      if (row.frame == kNoFrame) continue;
      const bool lead = row.frame < g.first_frame + g.lead_count;
      if (tainted || (lead && before)) {
        row.flags |= format::kFrameDamaged;
        row.hash = 0;
        v.frames[row.frame].damaged = true;
      }
    }
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<VideoIngest>> VideoIngest::Create(
    const demux::Stream& stream, Spool& spool, std::string where) {
  auto decoder = decode::VideoDecoder::Create(stream.codec);
  if (!decoder.ok()) return Annotate(decoder.status(), where);
  std::unique_ptr<VideoIngest> ingest(
      new VideoIngest(*std::move(decoder), spool, std::move(where)));
  ingest->out_.stream = stream;
  return ingest;
}

absl::Status VideoIngest::Add(const demux::Packet& packet) {
  const auto ordinal = static_cast<std::uint32_t>(out_.packets.size());
  if ((packet.flags & demux::kDemuxNewParameters) != 0) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = absl::StrFormat("%s, packet %d", where_, ordinal),
         .what = "the codec parameters change in mid-stream",
         .found = "other parameters than at the start",
         .expected = "one set for the whole track",
         .action = "split the recording there, or re-encode it"});
  }
  if (packet.data.size() > kPacketBytesMax) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = absl::StrFormat("%s, packet %d", where_, ordinal),
         .what = "a packet is larger than a block",
         .found = absl::StrFormat("%d bytes", packet.data.size()),
         .expected = absl::StrFormat("at most %d", kPacketBytesMax),
         .action = "re-encode the capture with a lower bit rate"});
  }
  format::PacketRow row{};
  row.pts = packet.pts;
  row.dts = packet.dts;
  row.duration = packet.duration;
  row.bytes = static_cast<std::uint32_t>(packet.data.size());
  row.frame = kNoFrame;
  if (packet.flags & demux::kDemuxKey) row.flags |= format::kPacketKey;
  if (packet.flags & demux::kDemuxDiscard) row.flags |= format::kPacketDiscard;
  out_.packets.push_back(row);
  picture_key_.push_back(false);
  packet_bad_.push_back((packet.flags & demux::kDemuxCorrupt) != 0);
  PENSTOCK_ASSIGN_OR_RETURN(const std::uint64_t at, spool_.Append(packet.data));
  out_.spool_offset.push_back(at);
  const std::uint64_t refused = decoder_->refused();
  PENSTOCK_RETURN_IF_ERROR(
      decoder_->Decode(ordinal, packet.data,
                       [this](const decode::Picture& p) { OnPicture(p); }));
  if (decoder_->refused() != refused) packet_bad_[ordinal] = true;
  return picture_status_;
}

void VideoIngest::OnPicture(const decode::Picture& p) {
  if (!picture_status_.ok() || p.packet >= out_.packets.size()) return;
  auto& stream = out_.stream;
  auto& row = out_.packets[p.packet];
  const auto frame = static_cast<std::uint32_t>(out_.frames.size());
  if (pixel_format_.empty()) {
    pixel_format_ = p.pixel_format;
    stream.codec.pixel_format = pixel_format_;
    stream.codec.width = p.width;  // what is decoded, not what a header says
    stream.codec.height = p.height;
    out_.bit_depth = p.bit_depth;
  }
  if (p.pixel_format != pixel_format_ || p.width != stream.codec.width ||
      p.height != stream.codec.height) {
    picture_status_ = MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = absl::StrFormat("%s, frame %d", where_, frame),
         .what = "the picture changes its size or format in mid-stream",
         .found = absl::StrFormat("%dx%d %s", p.width, p.height,
                                  std::string(p.pixel_format)),
         .expected = absl::StrFormat("%dx%d %s", stream.codec.width,
                                     stream.codec.height, pixel_format_),
         .action = "split the recording there, or re-encode it to one size"});
    return;
  }
  picture_key_[p.packet] = p.key;
  if (p.damaged) packet_bad_[p.packet] = true;
  if ((row.flags & format::kPacketDiscard) != 0) return;
  if (row.frame != kNoFrame) {
    picture_status_ = MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = absl::StrFormat("%s, packet %d", where_, p.packet),
         .what = "a packet holds more than one picture",
         .found = "more than one",
         .expected = "one picture a packet",
         .action =
             "remux the capture with a tool that splits packed pictures"});
    return;
  }
  row.frame = frame;
  row.hash = p.damaged ? 0 : decode::HashPicture(p);
  if (row.hash != 0 && row.hash == last_hash_) {
    row.flags |= format::kFrameDuplicate;
    ++out_.duplicate_frames;
  }
  last_hash_ = row.hash;
  if (IsBlack(p)) {
    row.flags |= format::kFrameBlack;
    ++out_.black_frames;
  }
  out_.frames.push_back({p.packet, row.pts, 0, false});
}

absl::StatusOr<IngestedVideo> VideoIngest::Finish(
    const std::vector<std::string>& complaints) {
  PENSTOCK_RETURN_IF_ERROR(
      decoder_->Drain([this](const decode::Picture& p) { OnPicture(p); }));
  decoder_.reset();
  PENSTOCK_RETURN_IF_ERROR(picture_status_);
  if (out_.frames.empty()) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = where_,
         .what = "no frame can be decoded",
         .found = absl::StrFormat(
             "%d packets, %d refused", out_.packets.size(),
             std::count(packet_bad_.begin(), packet_bad_.end(), true)),
         .expected = "at least one frame",
         .action = "remove the file from the sources, or record "
                   "it again"});
  }
  CompleteFrameTimes(out_);
  std::vector<std::uint32_t> candidates = {0};
  for (std::uint32_t p = 1; p < out_.packets.size(); ++p) {
    if ((out_.packets[p].flags & format::kPacketKey) && picture_key_[p]) {
      candidates.push_back(p);
    }
  }
  PENSTOCK_ASSIGN_OR_RETURN(const auto bytes, spool_.Map());
  PENSTOCK_RETURN_IF_ERROR(SplitIntoGops(bytes, std::move(candidates), out_));
  SpreadDamage(packet_bad_, out_);

  for (std::uint32_t p = 0; p < out_.packets.size(); ++p) {
    if (!packet_bad_[p] || out_.packets[p].frame != kNoFrame ||
        (out_.packets[p].flags & format::kPacketDiscard) != 0) {
      continue;
    }
    ++out_.lost_frames;
    const std::int64_t pts = out_.packets[p].pts;
    if (pts != format::kNoPts) {
      out_.holes.push_back(
          {pts, pts + std::max<std::int64_t>(out_.packets[p].duration, 1),
           true});
    }
  }
  bool cut_off = false;
  for (const auto& c : complaints) {
    cut_off |= c.find("partial file") != std::string::npos ||
               c.find("ended prematurely") != std::string::npos ||
               c.find("truncat") != std::string::npos;
    out_.notes.push_back("the demuxer said: " + c);
  }
  const auto listed = static_cast<std::uint64_t>(
      std::max<std::int64_t>(out_.stream.header_frames, 0));
  if (cut_off) {
    const std::uint64_t missing =
        listed > out_.packets.size() ? listed - out_.packets.size() : 1;
    out_.lost_frames += missing;
    out_.notes.push_back(absl::StrFormat(
        "the file is cut off: at least %d frames are missing at its end",
        missing));
  } else if (listed > out_.packets.size()) {
    out_.notes.push_back(
        absl::StrFormat("the header lists %d frames, the file holds %d", listed,
                        out_.packets.size()));
  }
  for (const FrameInfo& f : out_.frames) out_.damaged_frames += f.damaged;
  std::sort(out_.holes.begin(), out_.holes.end(),
            [](const Hole& a, const Hole& b) { return a.begin_pts < b.begin_pts; });
  return std::move(out_);
}

}  // namespace penstock::import
