#include "server/import/capture_reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "common/format/timing.h"
#include "common/status/status.h"

namespace penstock::import {

absl::StatusOr<std::unique_ptr<CaptureReader>> CaptureReader::OfDataset(
    const dataset::Dataset& dataset, std::uint32_t capture) {
  const auto& index = dataset.index();
  if (capture >= index.captures.size()) {
    return absl::OutOfRangeError(
        absl::StrFormat("capture %d of %d", capture, index.captures.size()));
  }
  auto reader = std::make_unique<CaptureReader>();
  reader->dataset_ = &dataset;
  PENSTOCK_ASSIGN_OR_RETURN(const auto records, dataset.TracksOf(capture));
  for (const auto& record : records) {
    ReadTrack t;
    t.row = index.tracks[record.ord];
    t.name = record.name;
    t.codec = record.codec;
    t.schema = record.schema;
    t.details = record.details;
    t.gops = index.GopsOf(t.row);
    t.segments = index.SegmentsOf(t.row);
    reader->tracks_.push_back(std::move(t));
  }
  return reader;
}

absl::StatusOr<std::unique_ptr<CaptureReader>> CaptureReader::OfShard(
    const dataset::ShardReader& shard, std::uint32_t capture) {
  const format::ShardFooter& f = shard.footer();
  if (capture >= f.captures.size()) {
    return absl::OutOfRangeError(
        absl::StrFormat("capture %d of %d", capture, f.captures.size()));
  }
  auto reader = std::make_unique<CaptureReader>();
  reader->alone_ = &shard;
  const auto& c = f.captures[capture];
  for (std::uint32_t i = 0; i < c.track_count; ++i) {
    const auto& track = f.tracks[c.first_track + i];
    ReadTrack t;
    t.row = track.row;
    t.name = track.name;
    t.schema = track.schema;
    t.gops = std::span(f.gops).subspan(t.row.first_gop, t.row.gop_count);
    t.segments =
        std::span(f.segments).subspan(t.row.first_segment, t.row.segment_count);
    if (!t.gops.empty()) t.codec = f.codecs[t.gops[0].codec].codec;
    reader->tracks_.push_back(std::move(t));
  }
  return reader;
}

const ReadTrack* CaptureReader::video() const {
  for (const auto& t : tracks_) {
    if (t.row.kind == format::TrackKind::kVideo) return &t;
  }
  return nullptr;
}

absl::StatusOr<const dataset::ShardReader*> CaptureReader::Shard(
    std::uint32_t shard) {
  if (alone_ != nullptr) return alone_;
  auto& slot = shards_[shard];
  if (!slot) {
    PENSTOCK_ASSIGN_OR_RETURN(const std::string path, dataset_->ShardPath(shard));
    PENSTOCK_ASSIGN_OR_RETURN(slot, dataset::ShardReader::Open(path));
  }
  return slot.get();
}

absl::StatusOr<CaptureReader::Loaded> CaptureReader::Load(std::uint32_t shard,
                                                          std::uint64_t offset,
                                                          std::uint64_t bytes) {
  PENSTOCK_ASSIGN_OR_RETURN(const auto* file, Shard(shard));
  Loaded loaded;
  PENSTOCK_ASSIGN_OR_RETURN(loaded.bytes, file->Read(offset, bytes));
  PENSTOCK_ASSIGN_OR_RETURN(
      loaded.blocks, dataset::ParseBlocks(loaded.bytes, offset, file->path()));
  return loaded;
}

absl::Status CaptureReader::ForEachFrame(
    const ReadTrack& track, std::uint64_t begin, std::uint64_t end,
    const std::function<void(const format::PacketRow&, const decode::Picture&)>&
        sink) {
  std::unique_ptr<decode::VideoDecoder> decoder;
  format::CodecParameters codec;
  for (std::size_t i = 0; i < track.gops.size(); ++i) {
    const format::GopRow& g = track.gops[i];
    const std::uint64_t b = std::max(begin, g.first_frame);
    const std::uint64_t e = std::min(end, g.first_frame + g.frame_count);
    if (b >= e) continue;
    // Lead frames need the GOPs before; `preroll` counts them.
    const bool lead = b < g.first_frame + g.lead_count;
    const std::size_t first = i - (lead ? std::min<std::size_t>(g.preroll, i) : 0);
    std::vector<Loaded> loaded;
    std::vector<format::BlockView> blocks;
    for (std::size_t k = first; k <= i; ++k) {
      const auto& row = track.gops[k];
      PENSTOCK_ASSIGN_OR_RETURN(auto l, Load(row.shard, row.offset, row.bytes));
      blocks.insert(blocks.end(), l.blocks.begin(), l.blocks.end());
      loaded.push_back(std::move(l));
    }
    PENSTOCK_ASSIGN_OR_RETURN(const auto* shard, Shard(g.shard));
    if (g.codec >= shard->footer().codecs.size()) {
      return MakeError(absl::StatusCode::kDataLoss,
                       {.where = shard->path(),
                        .what = "no such codec parameters",
                        .found = absl::StrFormat("number %d", g.codec),
                        .expected = absl::StrFormat(
                            "one of %d", shard->footer().codecs.size()),
                        .action = "run `penstock verify` on the dataset"});
    }
    const auto& wanted = shard->footer().codecs[g.codec];
    if (!decoder || !(codec == wanted)) {
      codec = wanted;
      PENSTOCK_ASSIGN_OR_RETURN(decoder, decode::VideoDecoder::Create(codec));
    }
    PENSTOCK_RETURN_IF_ERROR(Annotate(
        decode::DecodeFrames(*decoder, blocks, static_cast<std::uint32_t>(b),
                             static_cast<std::uint32_t>(e), sink),
        absl::StrFormat("%s, GOP at byte %d", shard->path(), g.offset)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::int64_t>> CaptureReader::FrameTimes(
    const ReadTrack& track, std::uint64_t begin, std::uint64_t end) {
  if (begin >= end || end > track.row.rows) {
    return MakeError(
        absl::StatusCode::kOutOfRange,
        {.where = "track " + track.name,
         .what = "no such frames",
         .found = absl::StrFormat("%d to %d", begin, end),
         .expected = absl::StrFormat("inside 0 to %d", track.row.rows),
         .action = "choose frames that the track has"});
  }
  std::vector<std::int64_t> times(end - begin + 1, track.row.end_ns);
  for (const auto& g : track.gops) {
    if (g.first_frame > end || g.first_frame + g.frame_count <= begin) continue;
    PENSTOCK_ASSIGN_OR_RETURN(const auto loaded,
                              Load(g.shard, g.offset, g.bytes));
    for (const auto& block : loaded.blocks) {
      for (const auto& p : block.Packets()) {
        if (p.frame == format::kNoFrame || p.frame < begin || p.frame > end) {
          continue;
        }
        const std::int64_t pts =
            format::PtsToNs(p.pts, track.row.time_base_num,
                            track.row.time_base_den) -
            track.row.origin_ns;
        times[p.frame - begin] = pts;
      }
    }
  }
  return times;
}

absl::StatusOr<std::vector<FrameInputs>> CaptureReader::Inputs(
    std::span<const std::int64_t> boundaries) {
  std::vector<FrameInputs> out(boundaries.size() - 1);
  for (const auto& track : tracks_) {
    if (track.row.kind != format::TrackKind::kEvents) continue;
    const auto schema = nlohmann::json::parse(track.schema, nullptr, false);
    std::vector<std::string> codes;
    if (schema.is_object() && schema.contains("codes")) {
      codes = schema["codes"].get<std::vector<std::string>>();
    }
    std::vector<Loaded> loaded;
    std::vector<format::BlockView> blocks;
    for (const auto& s : track.segments) {
      if (s.first_ns > boundaries.back() || s.end_ns <= boundaries.front()) {
        continue;
      }
      PENSTOCK_ASSIGN_OR_RETURN(auto l, Load(s.shard, s.offset, s.bytes));
      blocks.insert(blocks.end(), l.blocks.begin(), l.blocks.end());
      loaded.push_back(std::move(l));
    }
    const auto bins = format::BinInputs(blocks, boundaries);
    for (std::size_t i = 0; i < bins.size(); ++i) {
      for (const auto& [code, state] : bins[i].keys) {
        if ((state & (format::kHeldAnyTime | format::kPressed)) == 0) continue;
        if (!out[i].held.empty()) out[i].held += ' ';
        std::string name = code < codes.size() ? codes[code] : "?";
        if (name.starts_with("Key") && name.size() == 4) name = name.substr(3);
        out[i].held += name;
      }
      out[i].dx += bins[i].dx;
      out[i].dy += bins[i].dy;
      out[i].events += bins[i].events;
    }
  }
  return out;
}

}  // namespace penstock::import
