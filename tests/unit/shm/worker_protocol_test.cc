#include "common/shm/worker_protocol.h"

#include <catch2/catch.hpp>

#include "common/shm/fd_socket.h"

namespace penstock::shm {
namespace {

DecodeJob SampleJob() {
  DecodeJob job;
  job.id = 77;
  job.codec = {.codec = "h264", .pixel_format = "yuv420p",
               .extradata = {1, 2, 3}, .profile = 100, .level = 31,
               .width = 640, .height = 480};
  job.blocks = {{0, 4096}, {8192, 100}};
  job.transforms = {{.src_width = 640, .src_height = 480, .width = 16,
                     .height = 9},
                    {.src_width = 640, .src_height = 480, .matrix = 6,
                     .full_range = true, .rotation = 1090, .width = 8,
                     .height = 8, .layout = layout::PixelLayout::kThwc,
                     .colour = layout::Colour::kGray,
                     .resize = layout::Resize::kLetterbox}};
  job.targets = {{5, 0, 0, 99}, {6, 1, 432, 0}, {5, 1, 500, 0}};
  job.cpu_limit_ns = 5'000'000'000;
  return job;
}

TEST_CASE("job: parse of encode is the job", "[shm][property]") {
  const DecodeJob job = SampleJob();
  auto bytes = EncodeJob(job);
  REQUIRE(bytes.ok());
  auto back = ParseJob(*bytes);
  REQUIRE(back.ok());
  CHECK(*back == job);
}

TEST_CASE("job: cut, extended or mutated bytes never crash the parser",
          "[shm]") {
  const auto bytes = *EncodeJob(SampleJob());
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    REQUIRE_FALSE(ParseJob(std::span(bytes).first(n)).ok());
  }
  auto longer = bytes;
  longer.push_back(0);
  CHECK_FALSE(ParseJob(longer).ok());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (std::uint8_t flip : {0x01, 0x80, 0xFF}) {
      auto mutated = bytes;
      mutated[i] ^= flip;
      auto job = ParseJob(mutated);
      if (job.ok()) (void)CheckJob(*job, 1000, 10000);
    }
  }
}

TEST_CASE("job: what lies outside an area or overlaps is refused", "[shm]") {
  const DecodeJob good = SampleJob();
  REQUIRE(CheckJob(good, 564, 8292).ok());
  auto refused = [](DecodeJob job, std::uint64_t arena, std::uint64_t input) {
    return CheckJob(job, arena, input).code() ==
           absl::StatusCode::kInvalidArgument;
  };
  CHECK(refused(good, 563, 8292));
  CHECK(refused(good, 564, 8291));
  DecodeJob job = good;
  SECTION("overflow") {
    job.targets[0].destination = UINT64_MAX - 100;
    CHECK(refused(job, 564, 8292));
    job = good;
    job.blocks[0] = {UINT64_MAX, 2};
    CHECK(refused(job, 564, 8292));
  }
  SECTION("overlap") {
    job.targets[1].destination = 431;
    CHECK(refused(job, 5000, 8292));
  }
  SECTION("no such transform") {
    job.targets[1].transform = 2;
    CHECK(refused(job, 5000, 8292));
    CHECK_FALSE(EncodeJob(job).ok());
  }
  SECTION("nothing to do") {
    job.targets.clear();
    CHECK(refused(job, 5000, 8292));
  }
  SECTION("one more than the bounds") {
    job.targets.resize(kJobTargetsMax + 1);
    CHECK_FALSE(EncodeJob(job).ok());
  }
}

TEST_CASE("job: one at every bound fits a socket of default size", "[shm]") {
  DecodeJob job = SampleJob();
  job.codec.extradata.resize(kExtradataBytesMax);
  job.blocks.resize(kJobBlocksMax, {0, 64});
  job.transforms.resize(kJobTransformsMax, job.transforms[0]);
  job.targets.resize(kJobTargetsMax, job.targets[0]);
  auto bytes = EncodeJob(job);
  REQUIRE(bytes.ok());
  CHECK(bytes->size() > 170'000);
  auto pair = SocketPair();
  REQUIRE(pair.ok());
  REQUIRE(SendMessage(pair->first.get(), *bytes, {}, /*wait=*/false).ok());
  std::vector<std::uint8_t> out(kJobBytesMax);
  auto got = ReceiveMessage(pair->second.get(), out);
  REQUIRE(got.ok());
  CHECK(*ParseJob(std::span(out).first(got->bytes)) == job);
}

TEST_CASE("text fields: bounded, printable, terminated", "[shm]") {
  char field[8];
  PutText("abc\n\x1b[31mdefgh", field);
  CHECK(TextOf(field) == "abc  [3");
  const char hostile[4] = {'a', '\x07', 'b', 'c'};  // no terminator
  CHECK(TextOf(hostile) == "a bc");
}

}  // namespace
}  // namespace penstock::shm
