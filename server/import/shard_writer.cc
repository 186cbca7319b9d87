#include "server/import/shard_writer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "common/hash/hash.h"
#include "common/status/status.h"
#include "server/import/shard_file.h"
#include "server/import/track_blocks.h"
#include "server/import/track_rows.h"

namespace penstock::import {
namespace {

using format::GopRow;
using format::SegmentRow;

// Rows of one track of the shard that is open, before they are put in order.
struct OpenTrack {
  std::uint32_t global = 0;  // row in the index's track section
  std::vector<GopRow> gops;
  std::vector<SegmentRow> segments;
};

struct OpenCapture {
  std::uint32_t global = 0;
  Digest256 id{};
  std::string title;
  std::vector<OpenTrack> tracks;
  std::vector<format::ExtentRow> extents;
};

}  // namespace

struct ShardWriter::Impl {
  std::string dir;
  std::uint64_t shard_bytes;
  format::CaptureIndexRows rows;

  std::unique_ptr<ShardFile> file;
  std::vector<format::CodecParameters> codecs;  // of the open shard
  std::vector<OpenCapture> open;
  // Names and schemas of the tracks in the index, for the footers.
  std::vector<std::string> names, schemas;

  absl::Status OpenShard() {
    if (file) return absl::OkStatus();
    PENSTOCK_ASSIGN_OR_RETURN(
        file, ShardFile::Create(absl::StrFormat("%s/%05d.pshard", dir,
                                                rows.shards.size())));
    return absl::OkStatus();
  }

  std::uint16_t CodecIndex(const format::CodecParameters& codec) {
    auto it = std::find(codecs.begin(), codecs.end(), codec);
    if (it == codecs.end()) it = codecs.insert(codecs.end(), codec);
    return static_cast<std::uint16_t>(it - codecs.begin());
  }

  absl::Status CloseShard();
};

absl::Status ShardWriter::Impl::CloseShard() {
  if (!file) return absl::OkStatus();
  format::ShardFooter footer;
  footer.codecs = codecs;
  for (const OpenCapture& c : open) {
    format::ShardCapture capture;
    capture.id = c.id;
    capture.title = c.title;
    capture.first_track = static_cast<std::uint32_t>(footer.tracks.size());
    const auto capture_index =
        static_cast<std::uint32_t>(footer.captures.size());
    for (const OpenTrack& t : c.tracks) {
      format::ShardTrack track;
      track.row = rows.tracks[t.global];
      track.row.capture = capture_index;
      const auto index = static_cast<std::uint32_t>(footer.tracks.size());
      track.row.first_gop = footer.gops.size();
      track.row.gop_count = t.gops.size();
      track.row.first_segment = footer.segments.size();
      track.row.segment_count = t.segments.size();
      track.row.first_run = track.row.run_count = 0;
      track.name = names[t.global];
      track.schema = schemas[t.global];
      for (GopRow g : t.gops) {
        g.track = index;
        g.shard = 0;
        footer.gops.push_back(g);
      }
      for (SegmentRow s : t.segments) {
        s.track = index;
        s.shard = 0;
        footer.segments.push_back(s);
      }
      footer.tracks.push_back(std::move(track));
    }
    capture.track_count =
        static_cast<std::uint32_t>(footer.tracks.size()) - capture.first_track;
    for (format::ExtentRow e : c.extents) {
      e.capture = capture_index;
      e.shard = 0;
      footer.extents.push_back(e);
    }
    footer.captures.push_back(std::move(capture));
  }
  PENSTOCK_ASSIGN_OR_RETURN(const auto row, file->Finish(footer));
  rows.shards.push_back(row);
  file.reset();
  codecs.clear();
  open.clear();
  return absl::OkStatus();
}

namespace {

// Writes one capture: lays GOPs out in time, cuts extents, appends blocks.
class CaptureWriter {
 public:
  CaptureWriter(IngestedCapture& capture, CaptureTracks tracks)
      : capture_(capture), tracks_(std::move(tracks)) {
    for (const auto& e : capture_.events) held_.emplace_back(e.table);
    gops_.resize(tracks_.rows.size());
    segments_.resize(tracks_.rows.size());
    LayOut();
  }

  struct Placed {
    std::uint32_t video = 0, gop = 0;
    std::int64_t first_ns = 0;
  };
  // GOPs of all video tracks by time.
  const std::vector<Placed>& placed() const { return placed_; }

  CaptureTracks& tracks() { return tracks_; }
  std::vector<std::vector<GopRow>>& gops() { return gops_; }
  std::vector<std::vector<SegmentRow>>& segments() { return segments_; }

  // Fills in what only the bytes tell, for GOP `at` of the layout.
  GopRow MakeGopRow(const Placed& at) const {
    const IngestedVideo& v = capture_.videos[at.video];
    const GopPlan& plan = v.gops[at.gop];
    GopRow g{};
    g.preroll = plan.preroll;
    g.first_frame = plan.first_frame;
    g.frame_count = plan.frame_count;
    g.lead_count = plan.lead_count;
    g.first_ns = at.first_ns;
    g.end_ns = at.first_ns;
    hash::Xxh3Stream hashes;
    if (plan.lead_count > 0) g.flags |= format::kGopOpen;
    for (std::uint32_t f = 0; f < plan.frame_count; ++f) {
      const FrameInfo& frame = v.frames[plan.first_frame + f];
      const std::uint64_t h = v.packets[frame.packet].hash;
      hashes.Update({reinterpret_cast<const std::uint8_t*>(&h), 8});
      if (frame.damaged) g.flags |= format::kGopDamaged;
      g.end_ns = CaptureNs(capture_, v.stream, frame.pts + frame.duration);
    }
    g.frames_hash = hashes.Digest64();
    return g;
  }

  // Blocks of everything that is not video in a time range.
  absl::Status AppendSides(TimeRange range, std::uint32_t capture_index,
                           std::vector<std::uint8_t>& extent,
                           std::uint64_t extent_offset) {
    PENSTOCK_ASSIGN_OR_RETURN(const auto spool, capture_.spool->Map());
    for (std::uint32_t t = 0; t < tracks_.rows.size(); ++t) {
      const TrackPlace& place = tracks_.places[t];
      format::BlockHeader header;
      header.capture = capture_index;
      header.track = t;
      header.kind = tracks_.rows[t].kind;
      header.sequence = static_cast<std::uint32_t>(segments_[t].size());
      std::vector<TrackBlock> blocks;
      switch (header.kind) {
        case format::TrackKind::kVideo:
          continue;
        case format::TrackKind::kAudio:
          blocks = AudioBlocks(capture_, capture_.audios[place.index], spool,
                               range, header);
          break;
        case format::TrackKind::kEvents:
          blocks = EventBlocks(capture_.events[place.index].table,
                               held_[place.index], range, header);
          break;
        case format::TrackKind::kTicks:
        case format::TrackKind::kFrames:
          blocks = ColumnBlocks(capture_.columns[place.index].table, range,
                                header);
          break;
        case format::TrackKind::kText:
          blocks = TextBlocks(capture_.source.mapping.texts, range, header);
          break;
        case format::TrackKind::kSpans:
          blocks = TextBlocks(tracks_.spans, range, header);
          break;
      }
      for (const TrackBlock& b : blocks) {
        SegmentRow row{};
        row.offset = extent_offset + extent.size();
        row.bytes = static_cast<std::uint32_t>(b.bytes.size());
        row.rows = b.rows;
        row.first_ns = b.first_ns;
        row.end_ns = b.end_ns;
        row.rows_before = segments_[t].empty()
                              ? 0
                              : segments_[t].back().rows_before +
                                    segments_[t].back().rows;
        segments_[t].push_back(row);
        extent.insert(extent.end(), b.bytes.begin(), b.bytes.end());
      }
    }
    return absl::OkStatus();
  }

  absl::Status AppendGop(const Placed& at, std::uint16_t codec,
                         std::uint32_t capture_index,
                         std::vector<std::uint8_t>& extent,
                         std::uint64_t extent_offset) {
    PENSTOCK_ASSIGN_OR_RETURN(const auto spool, capture_.spool->Map());
    format::BlockHeader header;
    header.capture = capture_index;
    header.track = at.video;
    header.sequence = at.gop;
    const IngestedVideo& v = capture_.videos[at.video];
    GopRow g = MakeGopRow(at);
    g.codec = codec;
    g.offset = extent_offset + extent.size();
    for (const auto& block : GopBlocks(v, v.gops[at.gop], spool, header)) {
      extent.insert(extent.end(), block.begin(), block.end());
      ++g.block_count;
    }
    g.bytes = static_cast<std::uint32_t>(extent_offset + extent.size() -
                                         g.offset);
    g.events_before = EventsBefore(g.first_ns);
    auto& done = gops_[at.video];
    g.cost_before = done.empty() ? 0 : done.back().cost_before + last_cost_[at.video];
    last_cost_[at.video] = DecodeCost(v, v.gops[at.gop]);
    done.push_back(g);
    return absl::OkStatus();
  }

 private:
  void LayOut() {
    last_cost_.assign(capture_.videos.size(), 0);
    for (std::uint32_t v = 0; v < capture_.videos.size(); ++v) {
      const IngestedVideo& video = capture_.videos[v];
      for (std::uint32_t g = 0; g < video.gops.size(); ++g) {
        const auto& plan = video.gops[g];
        const std::int64_t pts =
            plan.frame_count > 0 ? video.frames[plan.first_frame].pts : 0;
        placed_.push_back({v, g, CaptureNs(capture_, video.stream, pts)});
      }
    }
    std::stable_sort(placed_.begin(), placed_.end(),
                     [](const Placed& a, const Placed& b) {
                       return a.first_ns < b.first_ns;
                     });
  }

  std::uint64_t EventsBefore(std::int64_t t) const {
    std::uint64_t n = 0;
    for (const auto& e : capture_.events) {
      n += std::lower_bound(e.table.rows.begin(), e.table.rows.end(), t,
                            [](const format::EventRow& row, std::int64_t at) {
                              return row.t_ns < at;
                            }) -
           e.table.rows.begin();
    }
    return n;
  }

  // Macroblocks and sixteenths of bytes: a formula, so that the same source
  // has the same cost on every host.
  static std::uint64_t DecodeCost(const IngestedVideo& v, const GopPlan& g) {
    const std::uint64_t blocks =
        ((v.stream.codec.width + 15ull) / 16) *
        ((v.stream.codec.height + 15ull) / 16);
    std::uint64_t cost = 0;
    for (std::uint32_t p = g.first_packet; p < g.end_packet; ++p) {
      cost += blocks + v.packets[p].bytes / 16;
    }
    return cost;
  }

  IngestedCapture& capture_;
  CaptureTracks tracks_;
  std::vector<HeldInputs> held_;
  std::vector<Placed> placed_;
  std::vector<std::vector<GopRow>> gops_;          // by track
  std::vector<std::vector<SegmentRow>> segments_;  // by track
  std::vector<std::uint64_t> last_cost_;           // by video
};

}  // namespace

ShardWriter::ShardWriter(std::string dir, std::uint64_t shard_bytes)
    : impl_(std::make_unique<Impl>()) {
  impl_->dir = std::move(dir);
  impl_->shard_bytes = shard_bytes;
}

ShardWriter::~ShardWriter() = default;

const format::CaptureIndexRows& ShardWriter::rows() const {
  return impl_->rows;
}

absl::StatusOr<WrittenCapture> ShardWriter::Add(IngestedCapture& capture) {
  Impl& w = *impl_;
  auto& rows = w.rows;
  const auto capture_row = static_cast<std::uint32_t>(rows.captures.size());
  const auto first_track = static_cast<std::uint32_t>(rows.tracks.size());
  PENSTOCK_ASSIGN_OR_RETURN(auto tracks, MakeTracks(capture));
  CaptureWriter writer(capture, std::move(tracks));
  for (std::size_t t = 0; t < writer.tracks().rows.size(); ++t) {
    writer.tracks().rows[t].capture = capture_row;
    rows.tracks.push_back(writer.tracks().rows[t]);
    w.names.push_back(writer.tracks().written[t].name);
    w.schemas.push_back(writer.tracks().written[t].schema);
  }
  format::CaptureRow row{};
  row.id = capture.source.id;
  row.first_track = first_track;
  row.track_count = static_cast<std::uint32_t>(writer.tracks().rows.size());
  row.first_extent = rows.extents.size();
  row.duration_ns = writer.tracks().duration_ns;

  const auto& placed = writer.placed();
  for (std::size_t i = 0; i < placed.size();) {
    PENSTOCK_RETURN_IF_ERROR(w.OpenShard());
    const auto shard = static_cast<std::uint32_t>(rows.shards.size());
    if (w.open.empty() || w.open.back().global != capture_row) {
      OpenCapture open{capture_row, row.id, capture.source.mapping.title, {}, {}};
      for (std::uint32_t t = 0; t < row.track_count; ++t) {
        open.tracks.push_back({first_track + t, {}, {}});
      }
      w.open.push_back(std::move(open));
    }
    OpenCapture& open = w.open.back();
    const auto in_shard = static_cast<std::uint32_t>(w.open.size() - 1);
    const std::uint64_t offset = w.file->size();
    // The extent takes GOPs until it is large enough; its time range ends
    // where the next GOP begins.
    std::size_t end = i, bytes = 0;
    while (end < placed.size() && bytes < format::kExtentBytesMin) {
      const auto& v = capture.videos[placed[end].video];
      const auto& g = v.gops[placed[end].gop];
      for (std::uint32_t p = g.first_packet; p < g.end_packet; ++p) {
        bytes += v.packets[p].bytes + sizeof(format::PacketRow);
      }
      ++end;
    }
    TimeRange range;
    if (i > 0) range.begin_ns = placed[i].first_ns;
    if (end < placed.size()) range.end_ns = placed[end].first_ns;

    std::vector<std::vector<SegmentRow>>& segments = writer.segments();
    std::vector<std::size_t> before(segments.size());
    for (std::size_t t = 0; t < segments.size(); ++t) before[t] = segments[t].size();
    std::vector<std::uint8_t> extent;
    PENSTOCK_RETURN_IF_ERROR(
        writer.AppendSides(range, in_shard, extent, offset));
    for (std::size_t t = 0; t < segments.size(); ++t) {
      for (std::size_t k = before[t]; k < segments[t].size(); ++k) {
        segments[t][k].shard = shard;
        segments[t][k].track = first_track + static_cast<std::uint32_t>(t);
        open.tracks[t].segments.push_back(segments[t][k]);
      }
    }
    for (; i < end; ++i) {
      const std::uint32_t video = placed[i].video;
      PENSTOCK_RETURN_IF_ERROR(writer.AppendGop(
          placed[i], w.CodecIndex(capture.videos[video].stream.codec), in_shard,
          extent, offset));
      GopRow& g = writer.gops()[video].back();
      g.shard = shard;
      g.track = first_track + video;
      open.tracks[video].gops.push_back(g);
    }
    extent.resize(std::max(extent.size(), format::kExtentBytesMin));
    extent.resize((extent.size() + format::kExtentAlignment - 1) /
                  format::kExtentAlignment * format::kExtentAlignment);
    const format::ExtentRow extent_row{capture_row,    shard,
                                       offset,         extent.size(),
                                       range.begin_ns, range.end_ns};
    rows.extents.push_back(extent_row);
    open.extents.push_back(extent_row);
    PENSTOCK_RETURN_IF_ERROR(w.file->Append(extent));
    if (w.file->size() >= w.shard_bytes) PENSTOCK_RETURN_IF_ERROR(w.CloseShard());
  }

  row.extent_count = rows.extents.size() - row.first_extent;
  for (std::uint32_t t = 0; t < row.track_count; ++t) {
    auto& track = rows.tracks[first_track + t];
    track.first_gop = rows.gops.size();
    track.gop_count = writer.gops()[t].size();
    rows.gops.insert(rows.gops.end(), writer.gops()[t].begin(),
                     writer.gops()[t].end());
    track.first_segment = rows.segments.size();
    track.segment_count = writer.segments()[t].size();
    rows.segments.insert(rows.segments.end(), writer.segments()[t].begin(),
                         writer.segments()[t].end());
    track.first_run = rows.runs.size();
    for (format::RunRow run : writer.tracks().runs[t]) {
      run.track = first_track + t;
      rows.runs.push_back(run);
    }
    track.run_count = rows.runs.size() - track.first_run;
  }
  rows.captures.push_back(row);
  return WrittenCapture{writer.tracks().written, writer.tracks().spans};
}

absl::Status ShardWriter::Finish() { return impl_->CloseShard(); }

}  // namespace penstock::import
