#include "server/pipeline/side_tensors.h"

#include <algorithm>
#include <bit>
#include <catch2/catch.hpp>
#include <cstring>

namespace penstock::pipeline {
namespace {

using format::BlockHeader;
using format::BlockView;
using format::EventKind;
using format::EventRow;
using format::TableRow;
using format::TrackKind;

constexpr std::uint8_t kValid = 128, kAny = 1, kEnd = 2, kDown = 4, kUp = 8;

EventRow Event(std::int64_t t, EventKind kind, std::uint32_t code,
               std::int32_t value, std::int32_t value_y = 0) {
  EventRow r{};
  r.t_ns = t;
  r.kind = kind;
  r.code = code;
  r.value = value;
  r.value_y = value_y;
  return r;
}

std::vector<std::uint8_t> Events(const std::vector<EventRow>& rows) {
  BlockHeader h;
  h.kind = TrackKind::kEvents;
  return EncodeBlock(h, format::TableBytes(rows),
                     static_cast<std::uint32_t>(rows.size()), {});
}

// A value and whether it is known.
struct Cell {
  std::int64_t bits;
  bool known = true;
};
std::vector<std::uint8_t> Table(const std::vector<std::int64_t>& times,
                                const std::vector<std::vector<Cell>>& columns,
                                bool carried = false) {
  std::vector<TableRow> rows;
  for (const auto t : times) {
    rows.push_back({t, static_cast<std::int64_t>(rows.size())});
  }
  std::vector<std::uint8_t> payload;
  for (const auto& column : columns) {
    for (const Cell& c : column) {
      const auto* p = reinterpret_cast<const std::uint8_t*>(&c.bits);
      payload.insert(payload.end(), p, p + 8);
    }
    for (const Cell& c : column) payload.push_back(c.known ? 1 : 0);
  }
  BlockHeader h;
  h.kind = TrackKind::kTicks;
  h.flags = carried ? format::kBlockCarried : 0;
  return EncodeBlock(h, format::TableBytes(rows),
                     static_cast<std::uint32_t>(rows.size()), payload);
}

// frame_t_action_t: frame i with the inputs until the next frame.
SampleTimes Forward(std::vector<std::int64_t> frames, std::int64_t end) {
  SampleTimes t;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    t.starts.push_back(frames[i]);
    t.begins.push_back(frames[i]);
    t.ends.push_back(i + 1 < frames.size() ? frames[i + 1] : end);
    t.valid.push_back(true);
  }
  return t;
}

// frame_t_action_t_minus_1 at the start of a track: no interval leads to frame 0.
SampleTimes Backward(const std::vector<std::int64_t>& frames) {
  SampleTimes t;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    t.starts.push_back(frames[i]);
    t.begins.push_back(frames[i == 0 ? 0 : i - 1]);
    t.ends.push_back(frames[i]);
    t.valid.push_back(i > 0);
  }
  return t;
}

template <typename T>
std::vector<T> Fill(OutputKind kind, const SideTrack& track,
                    const std::vector<std::vector<std::uint8_t>>& blocks,
                    const SampleTimes& times, std::size_t count) {
  std::vector<BlockView> views;
  for (const auto& b : blocks) views.push_back(format::ParseBlock(b).value());
  OutputSpec output;
  output.kind = kind;
  // Every byte must be written, whatever was there.
  std::vector<std::uint8_t> out(count * sizeof(T), 0xEE);
  std::vector<std::uint8_t> again(count * sizeof(T), 0x11);
  FillSide(output, &track, views, times, out);
  FillSide(output, &track, views, times, again);
  CHECK(out == again);
  std::vector<T> values(count);
  std::memcpy(values.data(), out.data(), out.size());
  return values;
}

using Bits = std::vector<std::uint8_t>;
using Blocks = std::vector<std::vector<std::uint8_t>>;

TEST_CASE("keys: pairing decides which interval a frame gets (B-40)",
          "[pipeline]") {
  const Blocks blocks = {Events({Event(12, EventKind::kKey, 3, 1),
                                      Event(14, EventKind::kKey, 3, 0),
                                      Event(25, EventKind::kKey, 3, 1)})};
  const SideTrack track{0, {3}, {}, {}};
  SECTION("the interval that the frame begins") {
    CHECK(Fill<std::uint8_t>(OutputKind::kKeys, track, blocks,
                             Forward({0, 10, 20}, 30), 3) ==
          Bits{kValid, kValid | kDown | kUp | kAny, kValid | kDown | kAny | kEnd});
  }
  SECTION("the interval that led to the frame; the first has none") {
    CHECK(Fill<std::uint8_t>(OutputKind::kKeys, track, blocks,
                             Backward({0, 10, 20}), 3) ==
          Bits{0, kValid, kValid | kDown | kUp | kAny});
  }
}

TEST_CASE("keys: unknown is never no-op", "[pipeline]") {
  const Blocks blocks = {Events({Event(1, EventKind::kKey, 0, 1)})};
  const SideTrack track{0, {0, -1}, {}, {}};
  // An interval that does not exist has no valid bit, even while a key is down.
  SampleTimes t = Forward({0, 10}, 20);
  t.valid = {true, false};
  CHECK(Fill<std::uint8_t>(OutputKind::kKeys, track, blocks, t, 4) ==
        Bits{kValid | kDown | kAny | kEnd, kValid, 0, 0});
}

TEST_CASE("keys: what is held when the first block begins is held",
          "[pipeline]") {
  EventRow held = Event(0, EventKind::kKey, 2, 1);
  held.flags = format::kEventHeld;
  const SideTrack track{0, {2, 5}, {}, {}};
  CHECK(Fill<std::uint8_t>(
            OutputKind::kKeys, track,
            {Events({held}), Events({held, Event(15, EventKind::kKey, 2, 0)})},
            Forward({0, 10}, 20), 4) ==
        Bits{kValid | kAny | kEnd, kValid, kValid | kAny | kUp, kValid});
}

TEST_CASE("keys: frames apart get their own intervals", "[pipeline]") {
  const Blocks blocks = {Events({Event(3, EventKind::kKey, 0, 1),
                                      Event(13, EventKind::kKey, 0, 0),
                                      Event(22, EventKind::kKey, 0, 1)})};
  SampleTimes t;
  t.starts = t.begins = {0, 20};
  t.ends = {10, 30};
  t.valid = {true, true};
  CHECK(Fill<std::uint8_t>(OutputKind::kKeys, {0, {0}, {}, {}}, blocks, t, 2) ==
        Bits{kValid | kDown | kAny | kEnd, kValid | kDown | kAny | kEnd});
}

TEST_CASE("mouse: sums, wheel and validity", "[pipeline]") {
  const Blocks blocks = {
      Events({Event(1, EventKind::kMouseRel, 0, 3, -2),
              Event(2, EventKind::kMouseRel, 0, 4, -1),
              Event(3, EventKind::kWheel, 0, -1),
              Event(4, EventKind::kMouseAbs, 0, 100, 100),
              Event(10, EventKind::kMouseRel, 0, 9, 9)})};
  SampleTimes t = Forward({0, 10, 20}, 30);
  t.valid[1] = false;
  CHECK(Fill<std::int32_t>(OutputKind::kMouse, {}, blocks, t, 12) ==
        std::vector<std::int32_t>{7, -3, -1, 1,   // sums
                                  0, 0, 0, 0,     // unknown
                                  0, 0, 0, 1});   // known: nothing moved
}

TEST_CASE("mouse: sums are saturated, not wrapped", "[pipeline]") {
  const Blocks blocks = {
      Events({Event(1, EventKind::kMouseRel, 0, INT32_MAX, INT32_MIN),
              Event(2, EventKind::kMouseRel, 0, INT32_MAX, INT32_MIN)})};
  CHECK(Fill<std::int32_t>(OutputKind::kMouse, {}, blocks, Forward({0}, 10),
                           4) ==
        std::vector<std::int32_t>{INT32_MAX, INT32_MIN, 0, 1});
}

TEST_CASE("columns: the last row before the interval ends, known or not",
          "[pipeline]") {
  const auto half = std::bit_cast<std::int64_t>(0.5);
  const auto two = std::bit_cast<std::int64_t>(2.0);
  const Blocks blocks = {
      Table({5, 12, 20}, {{{100}, {90}, {80}}, {{half}, {0, false}, {two}}})};
  const SideTrack track{0, {1, 0}, {true, false}, {}};
  SECTION("frame_t_action_t") {
    CHECK(Fill<float>(OutputKind::kColumns, track, blocks,
                      Forward({0, 10, 20}, 30), 12) ==
          std::vector<float>{0.5f, 100, 1, 1,  //
                             0, 90, 0, 1,      // the value is unknown
                             2, 80, 1, 1});
  }
  SECTION("a row at the end of the interval belongs to the next") {
    CHECK(Fill<float>(OutputKind::kColumns, {0, {0}, {false}, {}}, blocks,
                      Forward({0, 12}, 20), 4) ==
          std::vector<float>{100, 1, 90, 1});
  }
  SECTION("frame_t_action_t_minus_1") {
    CHECK(Fill<float>(OutputKind::kColumns, {0, {0}, {false}, {}}, blocks,
                      Backward({0, 10, 20}), 6) ==
          std::vector<float>{0, 0, 100, 1, 90, 1});
  }
  SECTION("before the first row nothing is known") {
    CHECK(Fill<float>(OutputKind::kColumns, {0, {0}, {false}, {}}, blocks,
                      Forward({0, 5}, 6), 4) ==
          std::vector<float>{0, 0, 100, 1});
  }
  SECTION("no rows at all") {
    CHECK(Fill<float>(OutputKind::kColumns, {0, {0}, {false}, {}}, {},
                      Forward({0}, 5), 2) == std::vector<float>{0, 0});
  }
  SECTION("a column that the block does not have") {
    CHECK(Fill<float>(OutputKind::kColumns, {0, {7}, {false}, {}}, blocks,
                      Forward({0}, 10), 2) == std::vector<float>{0, 0});
  }
}

TEST_CASE("columns: nothing is known where ticks are missing or have ended",
          "[pipeline]") {
  const auto block = Table({0, 10, 20, 80}, {{{1}, {2}, {3}, {4}}});
  const auto view = format::ParseBlock(block);
  REQUIRE(view.ok());
  const std::vector<BlockView> blocks = {*view};
  OutputSpec output;
  output.kind = OutputKind::kColumns;
  SideTrack track;
  track.index = {0};
  track.floating = {false};
  std::vector<float> out(5 * 2);
  auto fill = [&] {
    FillSide(output, &track, blocks, Forward({0, 25, 50, 75, 90}, 200),
             {reinterpret_cast<std::uint8_t*>(out.data()), out.size() * 4});
  };
  // Interval ends: 25, 50, 75, 90, 200.
  fill();
  CHECK(out == std::vector<float>{3, 1, 3, 1, 3, 1, 4, 1, 4, 1});
  track.hold_ns = 15;  // a tick and a half
  fill();
  CHECK(out == std::vector<float>{3, 1, 0, 0, 0, 0, 4, 1, 0, 0});
  track.hold_ns = INT64_MAX;
  track.known_until_ns = 130;
  fill();
  CHECK(out == std::vector<float>{3, 1, 3, 1, 3, 1, 4, 1, 0, 0});
}

TEST_CASE("columns: the carried row of a later block is no news", "[pipeline]") {
  // The row at 5 is said again when the second block begins at 10.
  const Blocks blocks = {Table({5}, {{{100}}}),
                              Table({5, 15}, {{{100}, {90}}}, true)};
  const SideTrack track{0, {0}, {false}, {}};
  CHECK(Fill<float>(OutputKind::kColumns, track, blocks, Forward({0, 10}, 20),
                    4) == std::vector<float>{100, 1, 90, 1});
  // Alone it is how the block knows what was before.
  CHECK(Fill<float>(OutputKind::kColumns, track, {blocks[1]},
                    Forward({10, 14}, 15), 4) ==
        std::vector<float>{100, 1, 100, 1});
}

TEST_CASE("times: a frame shows at its own start", "[pipeline]") {
  CHECK(Fill<std::int64_t>(OutputKind::kTimes, {}, {}, Forward({-5, 10}, 20), 2) ==
        std::vector<std::int64_t>{-5, 10});
  CHECK(Fill<std::int64_t>(OutputKind::kTimes, {}, {}, Backward({0, 10}), 2) ==
        std::vector<std::int64_t>{0, 10});
}

}  // namespace
}  // namespace penstock::pipeline
