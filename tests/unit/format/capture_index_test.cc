#include "common/format/capture_index.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "tests/unit/format/samples.h"

namespace penstock::format {
namespace {

using test::Bytes;

TEST_CASE("capture index: what is encoded is mapped", "[format]") {
  const auto rows = test::IndexOf(test::MakeShard());
  const Bytes file = EncodeCaptureIndex(rows);
  REQUIRE(CheckCaptureIndex(file).ok());
  const auto v = OpenCaptureIndex(file);
  REQUIRE(v.ok());
  REQUIRE(v->captures.size() == 1);
  CHECK(v->captures[0].id == test::DigestOf(1));
  CHECK(v->TracksOf(v->captures[0]).size() == 4);
  CHECK(v->GopsOf(v->tracks[0]).size() == 1);
  CHECK(v->RunsOf(v->tracks[0])[0].end_frame == 2);
  CHECK(v->SegmentsOf(v->tracks[2])[0].track == 2);
  CHECK(v->shards[0].sha256 == test::DigestOf(7));
  CHECK(EncodeCaptureIndex(rows) == file);
}

TEST_CASE("capture index: an empty one is an index", "[format]") {
  const Bytes file = EncodeCaptureIndex({});
  CHECK(CheckCaptureIndex(file).ok());
  CHECK(OpenCaptureIndex(file)->captures.empty());
}

TEST_CASE("B-15: a capture index with any one bit flipped is refused",
          "[format]") {
  const Bytes good = EncodeCaptureIndex(test::IndexOf(test::MakeShard()));
  std::vector<std::size_t> accepted;
  for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
    Bytes bad = good;
    bad[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
    if (CheckCaptureIndex(bad).code() != absl::StatusCode::kDataLoss) {
      accepted.push_back(bit / 8);
    }
  }
  CHECK(accepted.empty());
}

TEST_CASE("B-15: a capture index cut off at any byte, or longer, is refused",
          "[format]") {
  Bytes good = EncodeCaptureIndex(test::IndexOf(test::MakeShard()));
  std::size_t accepted = 0;
  for (std::size_t n = 0; n < good.size(); ++n) {
    accepted += CheckCaptureIndex(std::span(good).first(n)).ok();
  }
  CHECK(accepted == 0);
  good.resize(good.size() + 64);
  CHECK_FALSE(CheckCaptureIndex(good).ok());
}

// Encodes the rows after `change` and says what the check finds.
std::string Found(void (*change)(CaptureIndexRows&)) {
  auto rows = test::IndexOf(test::MakeShard());
  change(rows);
  const auto status = CheckCaptureIndex(EncodeCaptureIndex(rows));
  return status.ok() ? "" : std::string(status.message());
}

TEST_CASE("capture index: rows that contradict each other are named",
          "[format]") {
  struct Case {
    void (*change)(CaptureIndexRows&);
    const char* where;
  };
  const Case cases[] = {
      {[](CaptureIndexRows& r) { r.captures.push_back(r.captures[0]); },
       "captures, row 1"},
      {[](CaptureIndexRows& r) { r.captures[0].first_track = 1; },
       "captures, row 0"},
      {[](CaptureIndexRows& r) { r.captures[0].track_count = 3; },
       "belong to no capture"},
      {[](CaptureIndexRows& r) { r.captures[0].extent_count = 2; },
       "captures, row 0"},
      {[](CaptureIndexRows& r) { r.tracks[1].capture = 1; }, "tracks, row 1"},
      {[](CaptureIndexRows& r) { r.tracks[0].time_base_den = 0; },
       "tracks, row 0: time base"},
      {[](CaptureIndexRows& r) { r.tracks[0].gop_count = 0; }, "tracks, row 1"},
      {[](CaptureIndexRows& r) { r.tracks[0].rows = 4; },
       "tracks, row 0: frames of its GOPs"},
      {[](CaptureIndexRows& r) { r.gops[0].first_frame = 1; },
       "gops, row 0: frames do not tile"},
      {[](CaptureIndexRows& r) { r.gops[0].preroll = 1; }, "gops, row 0"},
      {[](CaptureIndexRows& r) { r.gops[0].lead_count = 4; }, "gops, row 0"},
      {[](CaptureIndexRows& r) { r.gops[0].shard = 1; }, "gops, row 0"},
      {[](CaptureIndexRows& r) { r.gops[0].offset = UINT64_MAX; },
       "gops, row 0"},
      {[](CaptureIndexRows& r) { r.runs[0].end_frame = 4; }, "runs, row 0"},
      {[](CaptureIndexRows& r) { r.runs[0].end_frame = 0; }, "runs, row 0"},
      {[](CaptureIndexRows& r) { r.segments[1].rows_before = 1; },
       "segments, row 1"},
      {[](CaptureIndexRows& r) { r.segments[0].shard = 7; },
       "segments, row 0"},
      {[](CaptureIndexRows& r) { r.extents[0].capture = 1; },
       "extents, row 0"},
      {[](CaptureIndexRows& r) { r.extents[0].bytes = UINT64_MAX; },
       "extents, row 0"},
  };
  CHECK(Found([](CaptureIndexRows&) {}).empty());
  for (const Case& c : cases) {
    CAPTURE(c.where);
    CHECK_THAT(Found(c.change), Catch::Contains(c.where));
  }
}

TEST_CASE("capture index: a track that another capture owns is named",
          "[format]") {
  auto rows = test::IndexOf(test::MakeShard());
  rows.captures.push_back(rows.captures[0]);
  rows.captures[1].id = test::DigestOf(200);
  rows.captures[1].first_track = 4;
  rows.captures[1].track_count = 0;
  rows.captures[1].first_extent = 1;
  rows.captures[1].extent_count = 0;
  REQUIRE(CheckCaptureIndex(EncodeCaptureIndex(rows)).ok());
  SECTION("track") { rows.tracks[2].capture = 1; }
  SECTION("extent") { rows.extents[0].capture = 1; }
  CHECK(CheckCaptureIndex(EncodeCaptureIndex(rows)).code() ==
        absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace penstock::format
