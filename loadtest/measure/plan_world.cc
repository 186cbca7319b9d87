#include "loadtest/measure/plan_world.h"

#include "absl/strings/str_format.h"

namespace penstock::loadtest {

format::CaptureIndexRows GenerateIndex(std::uint32_t captures, std::uint32_t frames) {
  format::CaptureIndexRows out;
  for (std::uint32_t i = 0; i < captures; ++i) {
    format::CaptureRow capture{};
    capture.first_track = i;
    capture.track_count = 1;
    out.captures.push_back(capture);
    format::TrackRow track{};
    track.capture = i;
    track.kind = format::TrackKind::kVideo;
    track.rows = frames;
    track.first_run = track.first_gop = i;
    track.run_count = track.gop_count = 1;
    out.tracks.push_back(track);
    format::RunRow run{};
    run.track = i;
    run.end_frame = frames;
    out.runs.push_back(run);
    format::GopRow gop{};
    gop.track = i;
    gop.frame_count = frames;
    out.gops.push_back(gop);
  }
  return out;
}

plan::FeedSpec GenerateFeed(std::uint64_t global_batch) {
  plan::FeedSpec feed;
  feed.name = "scale";
  feed.global_batch = global_batch;
  for (std::uint32_t i = 0; i < kPlanSources; ++i) {
    plan::SourceSpec s;
    s.name = absl::StrFormat("s%03d", i);
    s.dataset = "generated";
    s.weight.nanos = (1 + i % 7) * plan::kOne.nanos;
    feed.sources.push_back(s);
  }
  feed.outputs.push_back({"times", plan::TimesOutput{}});
  return feed;
}

std::vector<plan::SourceInput> InputsOf(const format::CaptureIndexRows& rows) {
  std::vector<plan::SourceInput> out(kPlanSources);
  for (auto& input : out) input.index = format::ViewOf(rows);
  for (std::uint32_t i = 0; i < rows.captures.size(); ++i) {
    out[i % kPlanSources].captures.push_back({i, i});
  }
  return out;
}

}  // namespace penstock::loadtest
