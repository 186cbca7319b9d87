#include "server/import/track_rows.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_format.h"
#include "common/hash/hash.h"
#include "common/status/status.h"

namespace penstock::import {
namespace {

using Json = nlohmann::json;
using format::TrackRow;

enum EndedBy : std::uint32_t { kGap = 1, kLost = 2, kDamage = 3 };

format::Chroma ChromaOf(const std::string& pixel_format) {
  auto has = [&](const char* s) {
    return pixel_format.find(s) != std::string::npos;
  };
  if (has("420") || has("nv12")) return format::Chroma::k420;
  if (has("422")) return format::Chroma::k422;
  if (has("444")) return format::Chroma::k444;
  if (has("gray")) return format::Chroma::k400;
  if (has("rgb") || has("bgr") || has("gbr")) return format::Chroma::kRgb;
  return format::Chroma::kUnknown;
}

// Maximal runs of undamaged frames without a hole between two of them.
std::vector<format::RunRow> RunsOf(const IngestedVideo& v) {
  std::vector<format::RunRow> runs;
  std::size_t hole = 0;
  std::uint64_t begin = 0;
  bool open = false;
  auto close = [&](std::uint64_t end, std::uint32_t reason) {
    if (open && end > begin) runs.push_back({0, reason, begin, end});
    open = false;
  };
  for (std::size_t i = 0; i < v.frames.size(); ++i) {
    std::uint32_t reason = 0;
    while (hole < v.holes.size() && v.holes[hole].begin_pts <= v.frames[i].pts) {
      reason = v.holes[hole].lost ? kLost : kGap;
      ++hole;
    }
    if (reason != 0) close(i, reason);
    if (v.frames[i].damaged) {
      close(i, kDamage);
    } else if (!open) {
      open = true;
      begin = i;
    }
  }
  close(v.frames.size(), 0);
  return runs;
}

class TrackMaker {
 public:
  explicit TrackMaker(const IngestedCapture& capture) : c_(capture) {}

  absl::StatusOr<CaptureTracks> Make() {
    for (std::size_t i = 0; i < c_.videos.size(); ++i) AddVideo(i);
    for (std::size_t i = 0; i < c_.audios.size(); ++i) AddAudio(i);
    for (std::size_t i = 0; i < c_.events.size(); ++i) AddEvents(i);
    for (std::size_t i = 0; i < c_.columns.size(); ++i) AddColumns(i);
    AddTexts("text", format::TrackKind::kText, "text", c_.source.mapping.texts);
    AddTexts("spans", format::TrackKind::kSpans, "spans", out_.spans);
    for (std::size_t i = 0; i < out_.written.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        if (out_.written[i].name == out_.written[k].name) {
          return MakeError(
              absl::StatusCode::kInvalidArgument,
              {.where = c_.source.mapping_file,
               .what = "two tracks of one name",
               .found = "\"" + out_.written[i].name + "\"",
               .expected = "names that differ from each other and from video, "
                           "audio, text and spans",
               .action = "rename one of them in capture.json"});
        }
      }
    }
    return std::move(out_);
  }

 private:
  TrackRow& Add(format::TrackKind kind, std::size_t index,
                WrittenTrack written) {
    TrackRow row{};
    row.kind = kind;
    row.ordinal = static_cast<std::uint16_t>(out_.rows.size());
    row.time_base_num = 1;
    row.time_base_den = 1'000'000'000;
    out_.rows.push_back(row);
    out_.places.push_back({index});
    out_.written.push_back(std::move(written));
    out_.runs.emplace_back();
    return out_.rows.back();
  }

  static std::string Numbered(const char* name, std::size_t i) {
    return i == 0 ? name : absl::StrFormat("%s%d", name, i + 1);
  }

  void AddVideo(std::size_t i) {
    const IngestedVideo& v = c_.videos[i];
    const demux::Stream& s = v.stream;
    const bool assumed = s.matrix == 2 || s.matrix == 3 || !s.range_known;
    std::uint64_t keyframes = 0, discarded = 0;
    for (const auto& p : v.packets) {
      if (p.flags & format::kPacketDiscard) ++discarded;
      if ((p.flags & format::kPacketEntry) && p.frame != format::kNoFrame) {
        ++keyframes;
      }
    }
    Json details = {
        {"pixel_format", s.codec.pixel_format},
        {"colour", assumed ? "assumed" : "declared"},
        {"entries", v.gops.size()},
        {"keyframes", keyframes},
        {"packets", v.packets.size()},
        {"discarded_packets", discarded},
        {"damaged_frames", v.damaged_frames},
        {"lost_frames", v.lost_frames},
        {"duplicate_frames", v.duplicate_frames},
        {"black_frames", v.black_frames},
        {"synthetic_times", v.synthetic_pts},
        {"constant_rate", v.constant_rate},
        {"container", c_.container},
        {"shown_width", s.rotation % 180 == 0 ? s.codec.width : s.codec.height},
        {"shown_height", s.rotation % 180 == 0 ? s.codec.height : s.codec.width},
        {"notes", v.notes}};
    TrackRow& row = Add(format::TrackKind::kVideo, i,
                        {Numbered("video", i), "video", s.codec.codec, "{}",
                         details.dump()});
    row.bit_depth = v.bit_depth;
    row.chroma = ChromaOf(s.codec.pixel_format);
    row.colour_matrix = s.matrix;
    row.colour_transfer = s.transfer;
    row.colour_primaries = s.primaries;
    if (v.constant_rate) row.flags |= format::kTrackConstantRate;
    if (v.synthetic_pts) row.flags |= format::kTrackSyntheticPts;
    if (assumed) row.flags |= format::kTrackAssumedColour;
    if (s.full_range) row.flags |= format::kTrackFullRange;
    if (v.damaged_frames + v.lost_frames > 0) row.flags |= format::kTrackDamaged;
    row.rotation =
        static_cast<std::uint16_t>(s.rotation + (s.mirrored ? 1000 : 0));
    row.time_base_num = static_cast<std::uint32_t>(s.time_base.num);
    row.time_base_den = static_cast<std::uint32_t>(s.time_base.den);
    row.width = s.codec.width;
    row.height = s.codec.height;
    if (v.constant_rate) {
      row.rate_num = static_cast<std::uint32_t>(s.average_rate.num);
      row.rate_den = static_cast<std::uint32_t>(s.average_rate.den);
    }
    row.rows = v.frames.size();
    row.origin_ns = c_.origin_ns;
    row.first_ns = CaptureNs(c_, s, v.frames.front().pts);
    row.end_ns =
        CaptureNs(c_, s, v.frames.back().pts + v.frames.back().duration);
    out_.duration_ns = std::max(out_.duration_ns, row.end_ns);
    out_.runs.back() = RunsOf(v);
    AddSpans(v);
  }

  void AddSpans(const IngestedVideo& v) {
    const demux::Stream& s = v.stream;
    for (const Hole& h : v.holes) {
      out_.spans.push_back({CaptureNs(c_, s, h.begin_pts),
                            CaptureNs(c_, s, h.end_pts), "",
                            h.lost ? "decoder" : "intervals",
                            h.lost ? "lost" : "gap"});
    }
    for (std::size_t i = 0; i < v.frames.size();) {
      if (!v.frames[i].damaged) {
        ++i;
        continue;
      }
      std::size_t end = i;
      while (end < v.frames.size() && v.frames[end].damaged) ++end;
      out_.spans.push_back(
          {CaptureNs(c_, s, v.frames[i].pts),
           CaptureNs(c_, s, v.frames[end - 1].pts + v.frames[end - 1].duration),
           "", "decoder", "damage"});
      i = end;
    }
  }

  void AddAudio(std::size_t i) {
    const IngestedAudio& a = c_.audios[i];
    const Json details = {{"source_codec", a.source_codec},
                          {"decoder", a.decoder},
                          {"channels", a.stream.codec.channels},
                          {"bits", a.stream.codec.bits},
                          {"gaps", a.gaps},
                          {"extradata", hash::Hex(a.stream.codec.extradata)},
                          {"notes", a.notes}};
    TrackRow& row = Add(format::TrackKind::kAudio, i,
                        {Numbered("audio", i), "audio", a.stream.codec.codec,
                         "{}", details.dump()});
    row.time_base_num = static_cast<std::uint32_t>(a.stream.time_base.num);
    row.time_base_den = static_cast<std::uint32_t>(a.stream.time_base.den);
    row.rate_num = a.stream.codec.sample_rate;
    row.rate_den = 1;
    row.rows = a.samples;
    row.origin_ns = c_.origin_ns;
    const auto pts = [](const format::PacketRow& p) {
      return p.pts == format::kNoPts ? 0 : p.pts;
    };
    row.first_ns = CaptureNs(c_, a.stream, pts(a.packets.front()));
    row.end_ns = CaptureNs(
        c_, a.stream, pts(a.packets.back()) + a.packets.back().duration);
  }

  void AddEvents(std::size_t i) {
    const EventTrack& e = c_.events[i];
    const Json schema = {{"codes", e.table.codes},
                         {"devices", e.table.devices},
                         {"source", e.mapping.source}};
    TrackRow& row =
        Add(format::TrackKind::kEvents, i,
            {e.mapping.name, "events", "penstock.events", schema.dump(), "{}"});
    row.rows = e.table.rows.size();
    if (!e.table.rows.empty()) {
      row.first_ns = e.table.rows.front().t_ns;
      row.end_ns = e.table.rows.back().t_ns + 1;
    }
  }

  void AddColumns(std::size_t i) {
    const ColumnTrack& t = c_.columns[i];
    Json columns = Json::array();
    for (const Column& c : t.mapping.columns) {
      columns.push_back({{"name", c.name},
                         {"type", c.floating ? "f64" : "i64"},
                         {"unit", c.unit}});
    }
    const bool ticks = t.mapping.kind == format::TrackKind::kTicks;
    TrackRow& row = Add(t.mapping.kind, i,
                        {t.mapping.name, ticks ? "ticks" : "frames",
                         "penstock.columns", Json{{"columns", columns}}.dump(),
                         "{}"});
    row.rows = t.table.rows.size();
    row.rate_num = static_cast<std::uint32_t>(t.mapping.rate_num);
    row.rate_den = static_cast<std::uint32_t>(t.mapping.rate_den);
    if (!t.table.rows.empty()) {
      row.first_ns = t.table.rows.front().t_ns;
      row.end_ns = t.table.rows.back().t_ns + 1;
    }
  }

  void AddTexts(const char* name, format::TrackKind kind, const char* kind_name,
                const std::vector<TextMapping>& texts) {
    if (texts.empty()) return;
    TrackRow& row = Add(kind, 0, {name, kind_name, "penstock.text", "{}", "{}"});
    row.rows = texts.size();
    row.first_ns = INT64_MAX;
    row.end_ns = INT64_MIN;
    for (const auto& t : texts) {
      row.first_ns = std::min(row.first_ns, t.start_ns);
      row.end_ns = std::max(row.end_ns, t.end_ns);
    }
  }

  const IngestedCapture& c_;
  CaptureTracks out_;
};

}  // namespace

absl::StatusOr<CaptureTracks> MakeTracks(const IngestedCapture& capture) {
  return TrackMaker(capture).Make();
}

}  // namespace penstock::import
