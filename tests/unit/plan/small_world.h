#ifndef PENSTOCK_TESTS_UNIT_PLAN_SMALL_WORLD_H_
#define PENSTOCK_TESTS_UNIT_PLAN_SMALL_WORLD_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/plan/planner.h"

namespace penstock::test {

struct TrackShape {
  std::uint32_t rate_num = 60, rate_den = 1;
  bool constant = true;
  std::uint64_t rows = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> runs;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> gops;  // frames, lead
  std::uint32_t width = 320, height = 180;
  std::uint16_t rotation = 0;
  std::vector<std::uint64_t> events;  // before each GOP; none: 0
};

// A capture index of one video track a capture; capture i has an id whose first
// byte is i.
inline format::CaptureIndexRows MakeIndex(
    const std::vector<TrackShape>& tracks) {
  format::CaptureIndexRows out;
  for (std::uint32_t i = 0; i < tracks.size(); ++i) {
    const TrackShape& s = tracks[i];
    format::CaptureRow capture{};
    capture.id[0] = static_cast<std::uint8_t>(i);
    capture.first_track = i;
    capture.track_count = 1;
    out.captures.push_back(capture);
    format::TrackRow t{};
    t.capture = i;
    t.kind = format::TrackKind::kVideo;
    t.flags = s.constant ? format::kTrackConstantRate : 0;
    t.rate_num = s.rate_num;
    t.rate_den = s.rate_den;
    t.rows = s.rows;
    t.end_ns = static_cast<std::int64_t>(s.rows) * 16'666'667;
    t.width = s.width;
    t.height = s.height;
    t.rotation = s.rotation;
    t.first_run = out.runs.size();
    t.run_count = s.runs.size();
    t.first_gop = out.gops.size();
    t.gop_count = s.gops.size();
    for (auto [b, e] : s.runs) {
      format::RunRow run{};
      run.track = i;
      run.begin_frame = b;
      run.end_frame = e;
      out.runs.push_back(run);
    }
    std::uint64_t frame = 0;
    for (auto [count, lead] : s.gops) {
      format::GopRow g{};
      g.track = i;
      g.first_frame = frame;
      g.frame_count = count;
      g.lead_count = lead;
      const std::size_t number = out.gops.size() - t.first_gop;
      g.events_before = number < s.events.size() ? s.events[number] : 0;
      frame += count;
      out.gops.push_back(g);
    }
    out.tracks.push_back(t);
  }
  return out;
}

// Captures of one run each, with these numbers of frames.
inline format::CaptureIndexRows MakeIndex(
    const std::vector<std::uint64_t>& lengths) {
  std::vector<TrackShape> tracks;
  for (std::uint64_t n : lengths) {
    TrackShape t;
    t.rows = n;
    t.runs = {{0, n}};
    t.gops = {{static_cast<std::uint32_t>(n), 0}};
    tracks.push_back(t);
  }
  return MakeIndex(tracks);
}

inline std::vector<plan::SelectedCapture> AllOf(
    const format::CaptureIndexRows& rows) {
  std::vector<plan::SelectedCapture> out;
  for (std::uint32_t i = 0; i < rows.captures.size(); ++i)
    out.push_back({i, i});
  return out;
}

// A feed whose sources are named a, b, … with one-frame windows.
inline plan::FeedSpec MakeFeed(std::uint64_t seed, std::uint64_t global_batch,
                               const std::vector<std::uint64_t>& weights,
                               std::uint64_t epochs = 0) {
  plan::FeedSpec feed;
  feed.name = "test";
  feed.seed = Seed{seed};
  feed.global_batch = global_batch;
  feed.epochs = epochs;
  if (epochs != 0) feed.exhaustion = plan::Exhaustion::kStop;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    plan::SourceSpec s;
    s.name = std::string(1, static_cast<char>('a' + i));
    s.dataset = "dataset";
    s.weight.nanos = weights[i] * plan::kOne.nanos;
    feed.sources.push_back(s);
  }
  feed.outputs.push_back({"times", plan::TimesOutput{}});
  return feed;
}

}  // namespace penstock::test

#endif  // PENSTOCK_TESTS_UNIT_PLAN_SMALL_WORLD_H_
