#include "server/worker/job_runner.h"

#include <catch2/catch.hpp>

#include <algorithm>

#include "common/hash/hash.h"
#include "tests/unit/worker/clip.h"

namespace penstock::worker {
namespace {

using shm::JobReason;

const char* const kH264 =
    PENSTOCK_SOURCE_DIR "/tests/data/captures/freedoom2-map01/video.mp4";
const char* const kHevc =
    PENSTOCK_SOURCE_DIR "/tests/data/captures/freedoom1-e1m1/video.mkv";

struct Bench {
  explicit Bench(const test::Clip& c, std::uint64_t arena_bytes = 4u << 20)
      : clip(c), arena(arena_bytes, 0xEE), runner(arena, clip.input) {}

  shm::WorkerReply Run(const shm::DecodeJob& job) {
    digests.assign(job.targets.size(), {});
    return runner.Run(job, [&](std::uint32_t target, const Digest128& d) {
      digests[target] = d;
      return true;
    });
  }
  Digest128 ArenaDigest() const { return hash::Xxh3_128(arena); }

  const test::Clip& clip;
  std::vector<std::uint8_t> arena;
  std::vector<Digest128> digests;
  JobRunner runner;
};

TEST_CASE("worker: any choice of frames equals the linear decode (B-37)",
          "[worker]") {
  for (const char* path : {kH264, kHevc}) {
    INFO(path);
    const test::Clip clip = test::LoadClip(path, {.packets_max = 60});
    REQUIRE(clip.frame_count == 60);
    Bench all(clip), some(clip);
    std::vector<std::uint32_t> frames(60);
    for (std::uint32_t i = 0; i < 60; ++i) frames[i] = i;
    const auto t = test::SmallRgb(clip);
    const auto done = all.Run(test::JobFor(clip, frames, {t}));
    INFO(shm::TextOf(done.text));
    REQUIRE(done.reason == JobReason::kOk);
    CHECK(done.frames_done == 60);
    CHECK(done.frames_decoded == 60);
    const auto linear = all.digests;
    CHECK(std::adjacent_find(linear.begin(), linear.end()) == linear.end());

    // The same runner goes on: nothing of an earlier job shows in a later one.
    for (const std::vector<std::uint32_t>& pick :
         {std::vector<std::uint32_t>{59}, {0}, {31, 7, 30}, {5, 6, 4}, {58}}) {
      const auto reply = some.Run(test::JobFor(clip, pick, {t}));
      REQUIRE(reply.reason == JobReason::kOk);
      CHECK(reply.frames_done == pick.size());
      for (std::size_t i = 0; i < pick.size(); ++i) {
        CHECK(some.digests[i] == linear[pick[i]]);
      }
    }
    CHECK(some.Run(test::JobFor(clip, {0}, {t})).frames_decoded < 10);
  }
}

TEST_CASE("worker: several outputs and copies of one frame share its decode",
          "[worker]") {
  const test::Clip clip = test::LoadClip(kH264, {.packets_max = 20});
  Bench bench(clip);
  auto rgb = test::SmallRgb(clip), gray = rgb;
  gray.colour = layout::Colour::kGray;
  auto job = test::JobFor(clip, {3, 3, 9}, {rgb, gray});
  REQUIRE(bench.Run(job).reason == JobReason::kOk);
  CHECK(bench.digests[0] == bench.digests[2]);
  CHECK(bench.digests[1] == bench.digests[3]);
  CHECK(bench.digests[0] != bench.digests[4]);
  // Digests are of the bytes that lie there; nothing else was touched.
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < job.targets.size(); ++i) {
    const auto& t = job.targets[i];
    const auto n = layout::FrameBytes(job.transforms[t.transform]);
    CHECK(hash::Xxh3_128(std::span(bench.arena).subspan(t.destination, n)) ==
          bench.digests[i]);
    end = t.destination + n;
  }
  CHECK(std::all_of(bench.arena.begin() + static_cast<std::ptrdiff_t>(end),
                    bench.arena.end(), [](auto b) { return b == 0xEE; }));
}

TEST_CASE("worker: what is wrong is named and never delivered", "[worker]") {
  test::ClipOptions options{.packets_max = 20, .packets_per_block = 5};
  SECTION("a hash that differs") {
    options.spoil_frame = 7;
    const test::Clip clip = test::LoadClip(kH264, options);
    Bench bench(clip);
    const auto before = bench.ArenaDigest();
    auto job = test::JobFor(clip, {7}, {test::SmallRgb(clip)});
    const auto reply = bench.Run(job);
    CHECK(reply.reason == JobReason::kHashDiffers);
    CHECK(shm::TextOf(reply.text).find("frame 7") == 0);
    CHECK(bench.ArenaDigest() == before);
  }
  const test::Clip clip = test::LoadClip(kH264, options);
  const auto t = test::SmallRgb(clip);
  SECTION("a hash that only the target names") {
    Bench bench(clip);
    auto job = test::JobFor(clip, {2}, {t});
    job.targets[0].hash = 12345;
    CHECK(bench.Run(job).reason == JobReason::kHashDiffers);
  }
  SECTION("a flipped bit in a block") {
    test::Clip bad = clip;
    bad.input[bad.blocks[1].offset + 400] ^= 4;
    Bench bench(bad);
    const auto reply = bench.Run(test::JobFor(bad, {9}, {t}));
    CHECK(reply.reason == JobReason::kBlockDamaged);
    CHECK(shm::TextOf(reply.text).find("block 1 of the job") == 0);
  }
  SECTION("a frame that is not there") {
    Bench bench(clip);
    const auto reply = bench.Run(test::JobFor(clip, {4, 1000}, {t}));
    CHECK(reply.reason == JobReason::kFrameMissing);
    CHECK(reply.frames_done == 1);
    CHECK(shm::TextOf(reply.text).find("frame 1000") == 0);
  }
  SECTION("a job that does not begin at an entry") {
    Bench bench(clip);
    auto job = test::JobFor(clip, {12}, {t});
    job.blocks.erase(job.blocks.begin());
    const auto reason = bench.Run(job).reason;
    CHECK((reason == JobReason::kFrameMissing ||
           reason == JobReason::kHashDiffers));
  }
  SECTION("a destination or a block outside its area") {
    Bench bench(clip);
    auto job = test::JobFor(clip, {1}, {t}, bench.arena.size() - 100);
    CHECK(bench.Run(job).reason == JobReason::kBadJob);
    job = test::JobFor(clip, {1}, {t});
    job.blocks[0].offset = clip.input.size();
    CHECK(bench.Run(job).reason == JobReason::kBadJob);
  }
  SECTION("a codec or a matrix that is not handled") {
    Bench bench(clip);
    auto job = test::JobFor(clip, {1}, {t});
    job.codec.codec = "h263";
    CHECK(bench.Run(job).reason == JobReason::kUnsupported);
    job = test::JobFor(clip, {1}, {t});
    job.transforms[0].matrix = 7;
    CHECK(bench.Run(job).reason == JobReason::kUnsupported);
    job.transforms[0].matrix = 2;
    CHECK(bench.Run(job).reason == JobReason::kBadJob);
  }
  SECTION("more CPU time than allowed") {
    Bench bench(clip);
    auto job = test::JobFor(clip, {19}, {t});
    job.cpu_limit_ns = 1;
    CHECK(bench.Run(job).reason == JobReason::kCpuLimit);
  }
}

TEST_CASE("worker: mutated blocks with a right CRC end as a verdict",
          "[worker][property]") {
  const test::Clip clip = test::LoadClip(kH264, {.packets_max = 12});
  const auto t = test::SmallRgb(clip);
  const auto parsed = format::ParseBlock(clip.input);
  REQUIRE(parsed.ok());
  std::uint32_t x = 1, refused = 0;
  for (int round = 0; round < 60; ++round) {
    std::vector<std::uint8_t> payload(parsed->payload.begin(),
                                      parsed->payload.end());
    for (int flips = 0; flips < 20; ++flips) {
      x = x * 1664525u + 1013904223u;
      payload[x % payload.size()] ^= 1u << (x >> 29);
    }
    test::Clip bad = clip;
    bad.input = format::EncodeBlock({.kind = format::TrackKind::kVideo},
                                    parsed->table, parsed->header.entries,
                                    payload);
    Bench bench(bad);
    const auto reply = bench.Run(test::JobFor(bad, {0, 5, 11}, {t}));
    refused += reply.reason != JobReason::kOk;
    if (reply.reason != JobReason::kOk) {
      CHECK((reply.reason == JobReason::kHashDiffers ||
             reply.reason == JobReason::kFrameMissing));
    }
  }
  CHECK(refused > 50);
}

}  // namespace
}  // namespace penstock::worker
