#include "common/format/input_bins.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <random>
#include <set>

#include "tests/support/seed.h"

namespace penstock::format {
namespace {

EventRow Key(std::int64_t t, std::uint32_t code, bool down) {
  EventRow r{};
  r.t_ns = t;
  r.code = code;
  r.value = down ? 1 : 0;
  r.kind = EventKind::kKey;
  return r;
}

EventRow Move(std::int64_t t, std::int32_t dx, std::int32_t dy) {
  EventRow r{};
  r.t_ns = t;
  r.value = dx;
  r.value_y = dy;
  r.kind = EventKind::kMouseRel;
  return r;
}

EventRow Held(std::int64_t t, std::uint32_t code) {
  EventRow r = Key(t, code, true);
  r.flags = kEventHeld;
  return r;
}

// Blocks of an events track, with the bytes that they view.
class Track {
 public:
  void Add(const std::vector<EventRow>& rows) {
    BlockHeader h;
    h.kind = TrackKind::kEvents;
    bytes_.push_back(EncodeBlock(h, TableBytes(rows),
                                 static_cast<std::uint32_t>(rows.size()), {}));
  }
  std::vector<BlockView> Views() const {
    std::vector<BlockView> out;
    for (const auto& b : bytes_) out.push_back(*ParseBlock(b));
    return out;
  }

 private:
  std::vector<std::vector<std::uint8_t>> bytes_;
};

std::vector<InputInterval> Bin(const std::vector<EventRow>& rows,
                               const std::vector<std::int64_t>& boundaries) {
  Track track;
  track.Add(rows);
  return BinInputs(track.Views(), boundaries);
}

TEST_CASE("B-40: an event lands in the interval that contains it, for all cuts",
          "[format]") {
  // Every event time against every triple of boundaries.
  for (std::int64_t t = 0; t < 9; ++t) {
    for (std::int64_t a = 0; a < 9; ++a) {
      for (std::int64_t b = a; b < 9; ++b) {
        for (std::int64_t c = b; c < 9; ++c) {
          const auto bins = Bin({Move(t, 1, 2)}, {a, b, c});
          CAPTURE(t, a, b, c);
          REQUIRE(bins.size() == 2);
          REQUIRE(bins[0].dx == (a <= t && t < b ? 1 : 0));
          REQUIRE(bins[1].dx == (b <= t && t < c ? 1 : 0));
          REQUIRE(bins[0].events == static_cast<std::uint32_t>(bins[0].dx));
          REQUIRE(bins[1].dy == 2 * bins[1].dx);
        }
      }
    }
  }
}

TEST_CASE("B-40: a tap shorter than an interval survives", "[format]") {
  const auto bins = Bin({Key(12, 5, true), Key(13, 5, false)}, {0, 10, 20, 30});
  CHECK(bins[0].keys.empty());
  CHECK(bins[1].keys.at(5) == (kPressed | kReleased | kHeldAnyTime));
  CHECK(bins[2].keys.empty());
}

TEST_CASE("B-40: a key that is held is carried through every interval",
          "[format]") {
  const auto bins = Bin({Key(5, 5, true), Key(25, 5, false)}, {0, 10, 20, 30, 40});
  CHECK(bins[0].keys.at(5) == (kPressed | kHeldAnyTime | kHeldAtEnd));
  CHECK(bins[1].keys.at(5) == (kHeldAnyTime | kHeldAtEnd));
  CHECK(bins[2].keys.at(5) == (kReleased | kHeldAnyTime));
  CHECK(bins[3].keys.empty());
}

TEST_CASE("B-40: press and release exactly on a boundary belong to what begins",
          "[format]") {
  const auto down = Bin({Key(10, 5, true)}, {0, 10, 20});
  CHECK(down[0].keys.empty());
  CHECK(down[1].keys.at(5) == (kPressed | kHeldAnyTime | kHeldAtEnd));
  const auto up = Bin({Key(5, 5, true), Key(10, 5, false)}, {0, 10, 20});
  CHECK(up[0].keys.at(5) == (kPressed | kHeldAnyTime | kHeldAtEnd));
  CHECK(up[1].keys.at(5) == (kReleased | kHeldAnyTime));
}

TEST_CASE("input bins: what is held when the first block begins counts once",
          "[format]") {
  Track track;
  track.Add({Held(0, 5), Move(1, 1, 0)});
  // The second block repeats what is held then: not an event, and no news.
  track.Add({Held(10, 5), Held(10, 9), Key(15, 5, false)});
  const auto bins = BinInputs(track.Views(), std::vector<std::int64_t>{0, 10, 20});
  CHECK(bins[0].keys.at(5) == (kHeldAnyTime | kHeldAtEnd));
  CHECK(bins[0].events == 1);
  CHECK(bins[1].keys.at(5) == (kReleased | kHeldAnyTime));
  CHECK_FALSE(bins[1].keys.contains(9));
  CHECK(bins[1].events == 1);
}

TEST_CASE("input bins: fewer than two boundaries make no interval", "[format]") {
  CHECK(Bin({Move(1, 1, 1)}, {}).empty());
  CHECK(Bin({Move(1, 1, 1)}, {1}).empty());
  CHECK(Bin({}, {0, 10}).size() == 1);
}

struct World {
  std::vector<EventRow> rows;
  std::vector<std::int64_t> boundaries;
};

World RandomWorld(std::mt19937_64& random) {
  World w;
  std::int64_t t = 0;
  std::set<std::uint32_t> down;
  for (int i = 0; i < 60; ++i) {
    t += static_cast<std::int64_t>(random() % 4);
    if (random() % 2 == 0) {
      w.rows.push_back(Move(t, static_cast<std::int32_t>(random() % 9) - 4,
                            static_cast<std::int32_t>(random() % 9) - 4));
      continue;
    }
    const auto code = static_cast<std::uint32_t>(random() % 3);
    const bool press = !down.contains(code);
    w.rows.push_back(Key(t, code, press));
    if (press) down.insert(code); else down.erase(code);
  }
  std::int64_t at = static_cast<std::int64_t>(random() % 8) - 4;
  for (int i = 0; i < 12; ++i) {
    w.boundaries.push_back(at);
    at += static_cast<std::int64_t>(random() % 20);
  }
  return w;
}

// One interval from its definition, event by event.
InputInterval Restated(const World& w, std::int64_t begin, std::int64_t end) {
  InputInterval out;
  if (begin == end) return out;
  std::set<std::uint32_t> down;
  for (const auto& r : w.rows) {
    if (r.kind == EventKind::kKey && r.t_ns < begin) {
      if (r.value) down.insert(r.code); else down.erase(r.code);
    }
  }
  for (auto code : down) out.keys[code] |= kHeldAnyTime;
  for (const auto& r : w.rows) {
    if (r.t_ns < begin || r.t_ns >= end) continue;
    ++out.events;
    if (r.kind == EventKind::kMouseRel) {
      out.dx += r.value;
      out.dy += r.value_y;
    } else if (r.value) {
      out.keys[r.code] |= kPressed | kHeldAnyTime;
      down.insert(r.code);
    } else {
      out.keys[r.code] |= kReleased;
      down.erase(r.code);
    }
  }
  for (auto code : down) out.keys[code] |= kHeldAtEnd;
  return out;
}

TEST_CASE("B-40: intervals equal their definition; merging keeps sums and bits",
          "[format][property]") {
  const std::uint64_t seed = penstock::test::SeedFromEnv();
  INFO("replay with PENSTOCK_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 500; ++round) {
    CAPTURE(round);
    const World w = RandomWorld(random);
    const auto bins = Bin(w.rows, w.boundaries);
    REQUIRE(bins.size() == w.boundaries.size() - 1);
    for (std::size_t i = 0; i < bins.size(); ++i) {
      const std::int64_t begin = w.boundaries[i], end = w.boundaries[i + 1];
      if (begin == end) {
        REQUIRE(bins[i].events == 0);
        continue;
      }
      const auto expected = Restated(w, begin, end);
      CAPTURE(i, begin, end);
      REQUIRE(bins[i].keys == expected.keys);
      REQUIRE(bins[i].dx == expected.dx);
      REQUIRE(bins[i].dy == expected.dy);
      REQUIRE(bins[i].events == expected.events);
    }
    // Cut anywhere, also through blocks: the same whole.
    const auto whole = Bin(w.rows, {w.boundaries.front(), w.boundaries.back()});
    std::int64_t dx = 0, dy = 0;
    std::uint32_t events = 0;
    std::map<std::uint32_t, std::uint8_t> keys;
    for (const auto& b : bins) {
      dx += b.dx;
      dy += b.dy;
      events += b.events;
      for (const auto& [code, bits] : b.keys) {
        keys[code] |= bits & static_cast<std::uint8_t>(~kHeldAtEnd);
      }
    }
    REQUIRE(dx == whole[0].dx);
    REQUIRE(dy == whole[0].dy);
    REQUIRE(events == whole[0].events);
    for (const auto& [code, bits] : whole[0].keys) {
      if ((bits & ~kHeldAtEnd) == 0) continue;
      REQUIRE(keys[code] == (bits & ~kHeldAtEnd));
    }
  }
}

}  // namespace
}  // namespace penstock::format
