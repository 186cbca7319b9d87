#include "server/pipeline/rank_window.h"

#include <catch2/catch.hpp>

namespace penstock::pipeline {
namespace {

RankWindow Make(std::uint32_t ranks, std::uint32_t window) {
  auto slots = shm::SlotTable::Create(std::uint64_t{4096} * ranks * window, 4096);
  REQUIRE(slots.ok());
  return RankWindow(*std::move(slots), ranks, window);
}

// Makes and publishes a step for the ranks that want it.
void Produce(RankWindow& w, std::uint64_t step) {
  for (std::uint32_t r : w.RanksFor(step)) {
    const auto slot = w.Lease(r, step);
    REQUIRE(slot.ok());
    w.Publish(r, step, *slot);
  }
}

TEST_CASE("rank window: a slot is free only when acknowledged and released",
          "[pipeline]") {
  RankWindow w = Make(1, 2);
  w.Join(10, 0, 0);
  Produce(w, 0);
  const auto slot = w.Take(10, 0, 0);
  REQUIRE(slot);
  CHECK(w.slots().free_count() == 1);
  SECTION("released first") {
    w.Release(10, *slot);
    CHECK(w.slots().free_count() == 1);  // the daemon holds it for a restart
    w.Ack(0, 1);
    CHECK(w.slots().free_count() == 2);
  }
  SECTION("acknowledged first") {
    w.Ack(0, 1);
    CHECK(w.slots().free_count() == 1);  // the rank still reads it
    w.Release(10, *slot);
    CHECK(w.slots().free_count() == 2);
  }
  SECTION("the process is gone") {
    w.Ack(0, 1);
    w.Leave(10);
    CHECK(w.slots().free_count() == 2);
  }
  SECTION("a foreign session cannot release it") {
    w.Ack(0, 1);
    w.Release(11, *slot);
    CHECK(w.slots().free_count() == 1);
  }
  CHECK(w.ranks()[0].leases == 2 - w.slots().free_count());
}

TEST_CASE("rank window: a rank that restarts finds its batch again (B-2)",
          "[pipeline]") {
  RankWindow w = Make(1, 3);
  w.Join(10, 0, 0);
  Produce(w, 0);
  const auto first = w.Take(10, 0, 0);
  REQUIRE(first);
  w.Leave(10);  // killed before it acknowledged
  w.Join(11, 0, 0);
  const auto again = w.Take(11, 0, 0);
  REQUIRE(again);
  CHECK(*again == *first);
}

TEST_CASE("rank window: a stopped rank holds only its own window (B-11)",
          "[pipeline]") {
  RankWindow w = Make(2, 3);
  w.Join(10, 0, 0);
  w.Join(11, 1, 0);
  std::uint64_t step = 0;
  // Rank 1 takes nothing; rank 0 goes on until production stops.
  for (; w.Blocked(w.RanksFor(step)).empty(); ++step) {
    Produce(w, step);
    const auto slot = w.Take(10, 0, step);
    REQUIRE(slot);
    w.Release(10, *slot);
    w.Ack(0, step + 1);
    w.Want(0, step + 1);
  }
  CHECK(step == 3);
  CHECK(w.Blocked(w.RanksFor(step)).find("data rank 1") != std::string::npos);
  CHECK(w.ranks()[0].leases == 0);
  // It goes on: nothing is lost.
  for (std::uint64_t s = 0; s < 3; ++s) {
    const auto slot = w.Take(11, 1, s);
    REQUIRE(slot);
    w.Release(11, *slot);
    w.Ack(1, s + 1);
    w.Want(1, s + 1);
  }
  CHECK(w.Blocked(w.RanksFor(step)).empty());
}

TEST_CASE("rank window: steps are made for those that want them", "[pipeline]") {
  RankWindow w = Make(3, 4);
  w.Join(10, 0, 5);
  CHECK(w.Unknown() == std::vector<std::uint32_t>{1, 2});
  w.Join(11, 1, 6);
  w.Join(12, 2, UINT64_MAX);  // wants nothing
  CHECK(w.LowestWanted() == 5);
  CHECK(w.RanksFor(5) == std::vector<std::uint32_t>{0});
  CHECK(w.RanksFor(6) == std::vector<std::uint32_t>{0, 1});
  Produce(w, 5);
  CHECK(w.RanksFor(5).empty());
  CHECK(w.Coming(0, 5));
  CHECK_FALSE(w.Coming(1, 5));
  SECTION("what was trained meanwhile is given back at once") {
    const auto slot = w.Lease(1, 6);
    REQUIRE(slot.ok());
    w.Ack(1, 7);
    w.Publish(1, 6, *slot);
    CHECK_FALSE(w.Take(11, 1, 6));
    CHECK(w.ranks()[1].leases == 0);
  }
}

// Every order of take, release, ack and leave of one slot by two sessions (tp
// ranks share a coordinate): free exactly when nobody is left.
TEST_CASE("rank window: exhaustive small world of one slot", "[pipeline]") {
  enum Op { kTakeA, kTakeB, kReleaseA, kReleaseB, kAck, kLeaveA, kLeaveB, kOps };
  for (int code = 0; code < 7 * 7 * 7 * 7 * 7; ++code) {
    RankWindow w = Make(1, 1);
    w.Join(10, 0, 0);
    w.Join(11, 0, 0);
    Produce(w, 0);
    const shm::SlotRef slot = w.ranks()[0].published.at(0);
    bool daemon = true, a = false, b = false;
    int rest = code;
    for (int i = 0; i < 5; ++i, rest /= kOps) {
      switch (static_cast<Op>(rest % kOps)) {
        case kTakeA: a = w.Take(10, 0, 0).has_value() || a; break;
        case kTakeB: b = w.Take(11, 0, 0).has_value() || b; break;
        case kReleaseA: w.Release(10, slot); a = false; break;
        case kReleaseB: w.Release(11, slot); b = false; break;
        case kAck: w.Ack(0, 1); daemon = false; break;
        case kLeaveA: w.Leave(10); a = false; break;
        case kLeaveB: w.Leave(11); b = false; break;
        case kOps: break;
      }
      const bool free = w.slots().free_count() == 1;
      INFO("code " << code << ", operation " << i);
      REQUIRE(free == !(daemon || a || b));
      REQUIRE(w.ranks()[0].leases == (free ? 0u : 1u));
    }
  }
}

}  // namespace
}  // namespace penstock::pipeline
