#include "server/import/capture_ingest.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_format.h"
#include "common/format/timing.h"
#include "common/status/status.h"

namespace penstock::import {
namespace {

std::int64_t StreamNs(const demux::Stream& s, std::int64_t pts) {
  return format::PtsToNs(pts, static_cast<std::uint64_t>(s.time_base.num),
                         static_cast<std::uint64_t>(s.time_base.den));
}

// Demuxes the file once and hands every packet to its track.
absl::Status ReadContainer(IngestedCapture& capture,
                           const std::atomic<bool>& cancel) {
  const std::string& path = capture.source.video;
  PENSTOCK_ASSIGN_OR_RETURN(auto demuxer, demux::Demuxer::Open(path));
  capture.container = demuxer->container();
  std::map<int, std::unique_ptr<VideoIngest>> videos;
  std::map<int, std::unique_ptr<AudioIngest>> audios;
  const auto& streams = demuxer->streams();
  for (int i = 0; i < static_cast<int>(streams.size()); ++i) {
    const std::string where = absl::StrFormat("%s, stream %d", path, i);
    if (streams[i].kind == demux::StreamKind::kVideo) {
      PENSTOCK_ASSIGN_OR_RETURN(
          videos[i], VideoIngest::Create(streams[i], *capture.spool, where));
    } else if (streams[i].kind == demux::StreamKind::kAudio) {
      PENSTOCK_ASSIGN_OR_RETURN(
          audios[i], AudioIngest::Create(streams[i], *capture.spool, where));
    } else {
      capture.notes.push_back(absl::StrFormat("stream %d (%s) is not imported",
                                              i, streams[i].codec.codec));
    }
  }
  if (videos.empty()) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = path,
         .what = "a capture needs a video track",
         .found = absl::StrFormat("%d streams, none is video", streams.size()),
         .expected = "at least one video stream",
         .action = "remove the file from the sources"});
  }
  demux::Packet packet;
  for (;;) {
    if (cancel.load(std::memory_order_relaxed)) {
      return absl::CancelledError("import interrupted");
    }
    PENSTOCK_ASSIGN_OR_RETURN(const bool more, demuxer->Next(packet));
    if (!more) break;
    if (auto v = videos.find(packet.stream); v != videos.end()) {
      PENSTOCK_RETURN_IF_ERROR(v->second->Add(packet));
    } else if (auto a = audios.find(packet.stream); a != audios.end()) {
      PENSTOCK_RETURN_IF_ERROR(a->second->Add(packet));
    }
  }
  const auto complaints = demuxer->complaints();
  for (auto& [i, a] : audios) {
    PENSTOCK_ASSIGN_OR_RETURN(auto audio, a->Finish());
    if (audio.packets.empty()) {
      capture.notes.push_back(absl::StrFormat("stream %d has no audio", i));
      continue;
    }
    capture.audios.push_back(std::move(audio));
  }
  for (auto& [i, v] : videos) {
    PENSTOCK_ASSIGN_OR_RETURN(auto video, v->Finish(complaints));
    capture.videos.push_back(std::move(video));
  }
  return absl::OkStatus();
}

// Gives the rows of a per-frame table the times of their frames. Rows may be
// counted with the frames that were lost: then theirs are set aside, so that no
// later row moves.
absl::Status PairWithFrames(const std::string& path, IngestedCapture& capture,
                            ColumnTrack& track) {
  const IngestedVideo& v = capture.videos[0];
  const std::uint64_t rows = track.table.rows.size();
  const std::uint64_t frames = v.frames.size();
  std::vector<std::int64_t> times;
  for (const auto& f : v.frames) {
    times.push_back(CaptureNs(capture, v.stream, f.pts));
  }
  if (v.lost_frames > 0 && rows == frames + v.lost_frames) {
    for (const Hole& h : v.holes) {
      if (h.lost) times.push_back(CaptureNs(capture, v.stream, h.begin_pts));
    }
    std::sort(times.begin(), times.end());
    capture.notes.push_back(absl::StrFormat(
        "%s: rows count the %d lost frames; they keep their own times",
        track.mapping.name, v.lost_frames));
  }
  const std::uint64_t n = times.size();
  const std::uint64_t difference = rows > n ? rows - n : n - rows;
  if (difference > track.mapping.tail_max) {
    return MakeError(
        absl::StatusCode::kInvalidArgument,
        {.where = path,
         .what = rows > n ? "more rows than the video has frames"
                          : "fewer rows than the video has frames",
         .found = absl::StrFormat("%d rows", rows),
         .expected = absl::StrFormat("%d, one for each frame of %s", n,
                                     capture.source.video),
         .action = "correct the sidecar; when only the tail differs by one or "
                   "two, declare \"tail_max\" for this track"});
  }
  if (rows != n) {
    capture.notes.push_back(
        absl::StrFormat("%s: %d rows for %d frames, within tail_max",
                        track.mapping.name, rows, n));
  }
  const std::size_t keep = std::min<std::size_t>(rows, n);
  track.table.rows.resize(keep);
  for (auto& c : track.table.values) c.resize(keep);
  for (auto& c : track.table.valid) c.resize(keep);
  for (std::size_t i = 0; i < keep; ++i) track.table.rows[i].t_ns = times[i];
  return absl::OkStatus();
}

// Says where a table of ticks leaves the video without telemetry.
void NoteMissingTicks(IngestedCapture& capture, const ColumnTrack& track) {
  const IngestedVideo& v = capture.videos[0];
  const auto& last = v.frames.back();
  const std::int64_t video_end =
      CaptureNs(capture, v.stream, last.pts + last.duration);
  const auto& rows = track.table.rows;
  const std::string& name = track.mapping.name;
  if (rows.empty()) {
    capture.notes.push_back(name + ": no rows; every value is unknown");
    return;
  }
  constexpr double kSecond = 1e9;
  constexpr std::int64_t kGapNs = 1'000'000'000;
  if (video_end - rows.back().t_ns > kGapNs) {
    capture.notes.push_back(absl::StrFormat(
        "%s: ends at %.3f s, the video at %.3f s; unknown in between", name,
        static_cast<double>(rows.back().t_ns) / kSecond,
        static_cast<double>(video_end) / kSecond));
  }
  if (rows.front().t_ns > kGapNs) {
    capture.notes.push_back(absl::StrFormat(
        "%s: begins at %.3f s; unknown before", name,
        static_cast<double>(rows.front().t_ns) / kSecond));
  }
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].t_ns - rows[i - 1].t_ns <= kGapNs) continue;
    capture.notes.push_back(absl::StrFormat(
        "%s: no rows between %.3f s and %.3f s", name,
        static_cast<double>(rows[i - 1].t_ns) / kSecond,
        static_cast<double>(rows[i].t_ns) / kSecond));
    return;  // the first one says it
  }
}

absl::Status ReadSidecars(IngestedCapture& capture) {
  for (const SidecarMapping& m : capture.source.mapping.sidecars) {
    const std::string path = FolderOf(capture.source) + m.file;
    if (m.kind == format::TrackKind::kEvents) {
      PENSTOCK_ASSIGN_OR_RETURN(auto table, ReadEvents(path, m));
      capture.events.push_back({m, std::move(table)});
      continue;
    }
    PENSTOCK_ASSIGN_OR_RETURN(auto table, ReadColumns(path, m));
    ColumnTrack track{m, std::move(table)};
    if (m.kind == format::TrackKind::kFrames) {
      PENSTOCK_RETURN_IF_ERROR(PairWithFrames(path, capture, track));
    } else {
      NoteMissingTicks(capture, track);
    }
    capture.columns.push_back(std::move(track));
  }
  return absl::OkStatus();
}

}  // namespace

std::uint64_t IngestedCapture::LostFrames() const {
  std::uint64_t n = 0;
  for (const auto& v : videos) n += v.lost_frames;
  return n;
}

std::uint64_t IngestedCapture::DamagedFrames() const {
  std::uint64_t n = 0;
  for (const auto& v : videos) n += v.damaged_frames;
  return n;
}

std::int64_t CaptureNs(const IngestedCapture& capture,
                       const demux::Stream& stream, std::int64_t pts) {
  return StreamNs(stream, pts) - capture.origin_ns;
}

absl::StatusOr<IngestedCapture> IngestCapture(CaptureSource source,
                                              const std::string& spool_dir,
                                              const std::atomic<bool>& cancel) {
  IngestedCapture capture;
  capture.source = std::move(source);
  PENSTOCK_ASSIGN_OR_RETURN(capture.spool, Spool::Create(spool_dir));
  PENSTOCK_RETURN_IF_ERROR(ReadContainer(capture, cancel));
  const IngestedVideo& first = capture.videos[0];
  capture.origin_ns = StreamNs(first.stream, first.frames[0].pts);
  PENSTOCK_RETURN_IF_ERROR(ReadSidecars(capture));
  for (const auto& name : capture.source.undeclared) {
    capture.notes.push_back("file not declared in capture.json, not read: " +
                            name);
  }
  return capture;
}

}  // namespace penstock::import
