#include "common/plan/view.h"

#include <catch2/catch.hpp>

#include "tests/unit/plan/small_world.h"

namespace penstock::plan {
namespace {

absl::StatusOr<View> Make(const ViewSpec& spec,
                          const format::CaptureIndexRows& rows) {
  return View::Create(spec, format::ViewOf(rows), test::AllOf(rows), "source");
}

bool Says(const absl::Status& status, const std::string& text) {
  UNSCOPED_INFO(status.message());
  return std::string(status.message()).find(text) != std::string::npos;
}

TEST_CASE("view: windows never cross runs", "[plan][property]") {
  test::TrackShape t;
  t.rows = 100;
  t.runs = {{0, 9}, {10, 33}, {33, 40}, {41, 100}};
  t.gops = {{100, 0}};
  const auto rows = test::MakeIndex(std::vector{t, t});
  for (std::uint64_t frames : {1, 2, 5, 9}) {
    for (std::uint64_t stride : {1, 2, 3}) {
      for (std::uint64_t hop : {0, 1, 4}) {
        const ViewSpec spec{.frames = frames, .stride = stride, .hop = hop};
        auto view = Make(spec, rows);
        REQUIRE(view.ok());
        for (std::uint64_t i = 0; i < view->size(); ++i) {
          const Window w = view->At(i);
          const std::uint64_t last = w.start_frame + (frames - 1) * stride;
          bool inside = false;
          for (auto [b, e] : t.runs) {
            inside = inside || (w.start_frame >= b && last < e);
          }
          REQUIRE(inside);
        }
      }
    }
  }
}

TEST_CASE("view: a window longer than every run says what would fit",
          "[plan]") {
  const auto rows = test::MakeIndex(std::vector<std::uint64_t>{30, 77, 50});
  auto view = Make({.frames = 20, .stride = 5}, rows);
  REQUIRE(view.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(Says(view.status(), "longest run 77 frames"));
  CHECK(Says(view.status(), "at least 96 frames"));
  CHECK(Says(view.status(), "frames: 16 or fewer"));
  CHECK(Make({.frames = 16, .stride = 5}, rows).ok());
}

TEST_CASE("view: aligned windows start on entries, not on lead frames",
          "[plan]") {
  test::TrackShape t;
  t.rows = 60;
  t.runs = {{5, 60}};
  t.gops = {{10, 0}, {10, 3}, {2, 2}, {18, 0}, {20, 1}};
  const auto rows = test::MakeIndex(std::vector{t});
  auto view = Make({.frames = 4, .align = Align::kGop}, rows);
  REQUIRE(view.ok());
  std::vector<std::uint64_t> starts;
  for (std::uint64_t i = 0; i < view->size(); ++i) {
    starts.push_back(view->At(i).start_frame);
  }
  CHECK(starts == std::vector<std::uint64_t>{13, 22, 41});
  // Frame 22 is the last entry that 38 frames fit behind.
  CHECK(Make({.frames = 38, .align = Align::kGop}, rows)->size() == 1);
  CHECK(Says(Make({.frames = 48, .align = Align::kGop}, rows).status(),
             "verified entry"));
}

TEST_CASE("view: fps needs a constant rate that it divides", "[plan]") {
  test::TrackShape t;
  t.rows = 100;
  t.runs = {{0, 100}};
  t.gops = {{100, 0}};
  const ViewSpec spec{.frames = 4, .stride = 0, .fps = {20, 1}};
  CHECK(Make(spec, test::MakeIndex(std::vector{t}))->At(0).stride == 3);
  t.rate_num = 50;
  CHECK(Says(Make(spec, test::MakeIndex(std::vector{t})).status(),
             "does not divide"));
  t.rate_num = 10;
  CHECK_FALSE(Make(spec, test::MakeIndex(std::vector{t})).ok());
  t.rate_num = 60;
  t.constant = false;
  CHECK(Says(Make(spec, test::MakeIndex(std::vector{t})).status(),
             "no constant rate"));
}

TEST_CASE("view: rows outside the index are data loss", "[plan]") {
  auto rows = test::MakeIndex(std::vector<std::uint64_t>{30, 40});
  SECTION("runs") { rows.tracks[1].run_count = 7; }
  SECTION("runs that wrap") { rows.tracks[1].first_run = UINT64_MAX; }
  SECTION("gops") { rows.tracks[1].first_gop = 3; }
  SECTION("a run past the frames") { rows.runs[1].end_frame = 41; }
  SECTION("a run that ends before it begins") { rows.runs[1].begin_frame = 41; }
  SECTION("another kind") { rows.tracks[1].kind = format::TrackKind::kAudio; }
  SECTION("another capture") { rows.tracks[1].capture = 0; }
  CHECK(Make({.frames = 1}, rows).status().code() ==
        absl::StatusCode::kDataLoss);
}

TEST_CASE("B-14: a source that selects nothing is an error", "[plan]") {
  const auto rows = test::MakeIndex(std::vector<std::uint64_t>{30});
  CHECK(Says(View::Create({}, format::ViewOf(rows), {}, "source x").status(),
             "selects no capture"));
}

}  // namespace
}  // namespace penstock::plan
