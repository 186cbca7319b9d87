#include "server/pipeline/side_tensors.h"

#include <bit>
#include <catch2/catch.hpp>
#include <cstring>

namespace penstock::pipeline {
namespace {

using format::EventKind;
using format::EventRow;

EventRow Event(std::int64_t t, EventKind kind, std::uint32_t code, int v,
               int y = 0) {
  EventRow row{};
  row.t_ns = t;
  row.kind = kind;
  row.code = code;
  row.value = v;
  row.value_y = y;
  return row;
}

std::vector<std::uint8_t> EventBlock(const std::vector<EventRow>& rows) {
  format::BlockHeader header;
  header.kind = format::TrackKind::kEvents;
  return format::EncodeBlock(header, format::TableBytes(rows),
                             static_cast<std::uint32_t>(rows.size()), {});
}

SampleTimes Frames(std::vector<std::int64_t> starts, std::int64_t end) {
  SampleTimes t;
  t.starts = starts;
  t.begins = starts;
  t.ends.assign(starts.begin() + 1, starts.end());
  t.ends.push_back(end);
  t.valid.assign(starts.size(), true);
  return t;
}

TEST_CASE("keys: taps, holds and edges of an interval (B-40)", "[pipeline]") {
  std::vector<EventRow> rows = {
      Event(5, EventKind::kKey, 0, 1),   // held from before the window
      Event(101, EventKind::kKey, 1, 1), Event(102, EventKind::kKey, 1, 0),
      Event(200, EventKind::kKey, 0, 0),  // exactly at a boundary: frame 1
      Event(299, EventKind::kKey, 2, 1)};
  rows[0].flags = format::kEventHeld;
  const auto bytes = EventBlock(rows);
  const auto block = format::ParseBlock(bytes);
  REQUIRE(block.ok());
  const SideTrack track{0, {0, 1, 2, -1}, {}, {}};
  const OutputSpec output{.name = "k", .kind = OutputKind::kKeys,
                          .names = {"a", "b", "c", "d"}};
  std::vector<std::uint8_t> out(3 * 4);
  FillSide(output, &track, {&*block, 1}, Frames({100, 200, 300}, 400), out);
  const std::uint8_t expected[12] = {
      128 | 1 | 2, 128 | 1 | 4 | 8, 128, 128,          // a held, b tapped
      128 | 1 | 8, 128, 128 | 1 | 2 | 4, 128,          // a released, c pressed
      128, 128, 128 | 1 | 2, 128};                      // c still held
  CHECK(std::memcmp(out.data(), expected, 12) == 0);
}

TEST_CASE("keys: where there is no interval the value is unknown, not a no-op",
          "[pipeline]") {
  const auto bytes = EventBlock({Event(150, EventKind::kKey, 0, 1)});
  const auto block = format::ParseBlock(bytes);
  SampleTimes times;  // what led to each frame
  times.starts = {100, 200};
  times.begins = {100, 100};
  times.ends = {100, 200};
  times.valid = {false, true};
  const SideTrack track{0, {0}, {}, {}};
  const OutputSpec output{.name = "k", .kind = OutputKind::kKeys, .names = {"a"}};
  std::vector<std::uint8_t> out(2, 99);
  FillSide(output, &track, {&*block, 1}, times, out);
  CHECK(out[0] == 0);
  CHECK(out[1] == (128 | 1 | 2 | 4));
}

TEST_CASE("mouse: sums of an interval, with its flag", "[pipeline]") {
  const auto bytes = EventBlock({Event(99, EventKind::kMouseRel, 0, 100, 100),
                                 Event(100, EventKind::kMouseRel, 0, 3, -4),
                                 Event(150, EventKind::kMouseRel, 0, 5, 1),
                                 Event(199, EventKind::kWheel, 0, -2),
                                 Event(200, EventKind::kMouseRel, 0, 7, 7)});
  const auto block = format::ParseBlock(bytes);
  const OutputSpec output{.name = "m", .kind = OutputKind::kMouse};
  const SideTrack track;
  std::vector<std::uint8_t> out(2 * 16);
  FillSide(output, &track, {&*block, 1}, Frames({100, 200}, 300), out);
  std::int32_t v[8];
  std::memcpy(v, out.data(), 32);
  const std::int32_t expected[8] = {8, -3, -2, 1, 7, 7, 0, 1};
  CHECK(std::memcmp(v, expected, 32) == 0);
}

TEST_CASE("columns: the last row before the end, unknown is flagged",
          "[pipeline]") {
  const std::vector<format::TableRow> rows = {{90, 0}, {150, 1}, {250, 2}};
  std::vector<std::uint8_t> payload;
  auto column = [&](std::vector<std::int64_t> values,
                    std::vector<std::uint8_t> valid) {
    const auto* p = reinterpret_cast<const std::uint8_t*>(values.data());
    payload.insert(payload.end(), p, p + 24);
    payload.insert(payload.end(), valid.begin(), valid.end());
  };
  column({10, 20, 30}, {1, 1, 1});
  column({std::bit_cast<std::int64_t>(0.5), 0, std::bit_cast<std::int64_t>(2.5)},
         {1, 0, 1});
  format::BlockHeader header;
  header.kind = format::TrackKind::kTicks;
  const auto bytes =
      format::EncodeBlock(header, format::TableBytes(rows), 3, payload);
  const auto block = format::ParseBlock(bytes);
  REQUIRE(block.ok());
  const SideTrack track{0, {0, 1}, {false, true}, {}};
  const OutputSpec output{.name = "c", .kind = OutputKind::kColumns,
                          .names = {"a", "b"}};
  std::vector<std::uint8_t> out(3 * 4 * 4);
  FillSide(output, &track, {&*block, 1}, Frames({50, 100, 200}, 300), out);
  float v[12];
  std::memcpy(v, out.data(), sizeof(v));
  const float expected[12] = {10, 0.5f, 1, 1, 20, 0, 1, 0, 30, 2.5f, 1, 1};
  CHECK(std::memcmp(v, expected, sizeof(v)) == 0);
}

TEST_CASE("times: ns of each frame", "[pipeline]") {
  const OutputSpec output{.name = "t", .kind = OutputKind::kTimes};
  std::vector<std::uint8_t> out(16);
  FillSide(output, nullptr, {}, Frames({7, 9}, 11), out);
  std::int64_t v[2];
  std::memcpy(v, out.data(), 16);
  CHECK(v[0] == 7);
  CHECK(v[1] == 9);
}

}  // namespace
}  // namespace penstock::pipeline
