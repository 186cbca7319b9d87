// penstock-plan-loops: the hot loops of the plan, alone, for a counter of
// instructions (loadtest/instructions.sh).
//
//   penstock-plan-loops index N COUNT     permuted indices of [0, N)
//   penstock-plan-loops step FIRST COUNT  steps from FIRST on, 10^9 windows
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "common/plan/planner.h"
#include "common/random/permutation.h"

namespace penstock::loadtest {
namespace {

constexpr std::uint32_t kCaptures = 20'000;
constexpr std::uint64_t kFrames = 50'000;  // windows of one frame
constexpr std::uint32_t kSources = 300;
constexpr std::uint64_t kGlobalBatch = 1000;

format::CaptureIndexRows Generate() {
  format::CaptureIndexRows out;
  for (std::uint32_t i = 0; i < kCaptures; ++i) {
    format::CaptureRow capture{};
    capture.first_track = i;
    capture.track_count = 1;
    out.captures.push_back(capture);
    format::TrackRow track{};
    track.capture = i;
    track.kind = format::TrackKind::kVideo;
    track.rows = kFrames;
    track.first_run = i;
    track.run_count = 1;
    out.tracks.push_back(track);
    format::RunRow run{};
    run.track = i;
    run.end_frame = kFrames;
    out.runs.push_back(run);
  }
  return out;
}

std::uint64_t Indices(std::uint64_t n, std::uint64_t count) {
  const random::Permutation p(n, random::MakeKey(Seed{1}, "loadtest"));
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) sum += p.At(i % n);
  return sum;
}

absl::StatusOr<std::uint64_t> Steps(std::uint64_t first, std::uint64_t count) {
  const format::CaptureIndexRows rows = Generate();
  plan::FeedSpec feed;
  feed.name = "loops";
  feed.global_batch = kGlobalBatch;
  std::vector<plan::SourceInput> inputs(kSources);
  for (std::uint32_t i = 0; i < kSources; ++i) {
    plan::SourceSpec s;
    s.name = absl::StrFormat("s%03d", i);
    s.dataset = "generated";
    s.weight.nanos = (1 + i % 7) * plan::kOne.nanos;
    feed.sources.push_back(s);
    inputs[i].index = format::ViewOf(rows);
  }
  feed.outputs.push_back({"times", plan::TimesOutput{}});
  for (std::uint32_t i = 0; i < kCaptures; ++i) {
    inputs[i % kSources].captures.push_back({i, i});
  }
  auto planner = plan::Planner::Create(std::move(feed), std::move(inputs));
  if (!planner.ok()) return planner.status();
  std::uint64_t sum = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    auto batch = planner->PlanStep({first + i});
    if (!batch.ok()) return batch.status();
    for (const plan::Sample& s : batch->samples) sum += s.start_frame;
  }
  return sum;
}

}  // namespace
}  // namespace penstock::loadtest

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: %s index|step N COUNT\n", argv[0]);
    return 2;
  }
  const std::uint64_t n = std::strtoull(argv[2], nullptr, 10);
  const std::uint64_t count = std::strtoull(argv[3], nullptr, 10);
  absl::StatusOr<std::uint64_t> sum =
      std::string_view(argv[1]) == "index" ? penstock::loadtest::Indices(n, count)
                                           : penstock::loadtest::Steps(n, count);
  if (!sum.ok()) {
    std::fprintf(stderr, "%s: %s\n", argv[0],
                 std::string(sum.status().message()).c_str());
    return 1;
  }
  std::printf("%llu\n", static_cast<unsigned long long>(*sum));
  return 0;
}
