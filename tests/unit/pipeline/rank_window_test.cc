#include "server/pipeline/rank_window.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <random>

#include "tests/support/seed.h"

namespace penstock::pipeline {
namespace {

constexpr std::uint64_t kSlot = 4096;

RankWindow Window(std::uint32_t ranks, std::uint32_t window) {
  return RankWindow(
      shm::SlotTable::Create(kSlot * ranks * window, kSlot).value(), ranks,
      window);
}

TEST_CASE("rank window: a slot goes round", "[pipeline]") {
  RankWindow w = Window(1, 2);
  w.Join(10, 0, 5);
  CHECK(w.RanksFor(5) == std::vector<std::uint32_t>{0});
  const auto slot = w.Lease(0, 5).value();
  CHECK(w.Coming(0, 5));
  CHECK(w.RanksFor(5).empty());
  CHECK_FALSE(w.Take(10, 0, 5).has_value());  // not published yet
  w.Publish(0, 5, slot);
  CHECK(w.Take(10, 0, 5) == slot);
  CHECK(w.Take(10, 0, 5) == slot);  // again: the same batch (B-2)
  CHECK(w.HeldBy(0) == 1);
  SECTION("acknowledged, then released") {
    w.Ack(0, 6);
    CHECK(w.slots().free_count() == 1);
    w.Release(10, slot);
  }
  SECTION("released, then acknowledged") {
    w.Release(10, slot);
    CHECK(w.slots().free_count() == 1);
    CHECK(w.Coming(0, 5));
    w.Ack(0, 6);
  }
  SECTION("acknowledged, then the client is gone") {
    w.Ack(0, 6);
    w.Leave(10);
  }
  CHECK(w.slots().free_count() == 2);
  CHECK(w.ranks()[0].leases == 0);
  CHECK_FALSE(w.Take(10, 0, 5).has_value());
}

TEST_CASE("B-2: a batch that was not acknowledged is there for the next session",
          "[pipeline]") {
  RankWindow w = Window(1, 2);
  w.Join(10, 0, 0);
  const auto slot = w.Lease(0, 0).value();
  w.Publish(0, 0, slot);
  REQUIRE(w.Take(10, 0, 0) == slot);
  w.Leave(10);
  CHECK(w.slots().free_count() == 1);
  w.Join(11, 0, 0);
  CHECK(w.Take(11, 0, 0) == slot);
}

TEST_CASE("rank window: a step that was trained meanwhile is not kept",
          "[pipeline]") {
  RankWindow w = Window(1, 2);
  w.Join(10, 0, 0);
  const auto slot = w.Lease(0, 0).value();
  w.Ack(0, 1);
  w.Publish(0, 0, slot);
  CHECK(w.slots().free_count() == 2);
  CHECK_FALSE(w.Coming(0, 0));
}

TEST_CASE("B-11: a silent rank blocks itself only, and is named", "[pipeline]") {
  RankWindow w = Window(2, 2);
  w.Join(10, 0, 0);
  w.Join(11, 1, 0);
  for (std::uint64_t step = 0; step < 2; ++step) {
    w.Publish(0, step, w.Lease(0, step).value());
    REQUIRE(w.Take(10, 0, step).has_value());
  }
  CHECK_THAT(w.Blocked({0}), Catch::Contains("data rank 0") &&
                                 Catch::Contains("2 of its 2"));
  CHECK_THAT(w.Blocked({0, 1}), Catch::Contains("data rank 0"));
  // The other one goes on for ever.
  for (std::uint64_t step = 0; step < 50; ++step) {
    REQUIRE(w.Blocked({1}).empty());
    w.Publish(1, step, w.Lease(1, step).value());
    const auto slot = w.Take(11, 1, step);
    REQUIRE(slot.has_value());
    w.Ack(1, step + 1);
    w.Release(11, *slot);
  }
}

TEST_CASE("rank window: steps are made for ranks that are there and want them",
          "[pipeline]") {
  RankWindow w = Window(3, 2);
  CHECK(w.Unknown() == std::vector<std::uint32_t>{0, 1, 2});
  w.Join(10, 0, 4);
  w.Join(12, 2, 7);
  CHECK(w.Unknown() == std::vector<std::uint32_t>{1});
  CHECK(w.RanksFor(4) == std::vector<std::uint32_t>{0});
  CHECK(w.RanksFor(7) == std::vector<std::uint32_t>{0, 2});
  CHECK(w.RanksFor(3).empty());
  w.Want(0, 8);
  CHECK(w.RanksFor(7) == std::vector<std::uint32_t>{2});
  w.Join(11, 1, 9);
  CHECK(w.LowestWanted() == 7);
}

// What the window must be, from the law: a lease lives while anyone holds it.
struct Lease {
  shm::SlotRef slot;
  std::uint32_t rank;
  std::uint64_t step;
  bool making = true, published = false;
  std::vector<shm::HolderId> holders;
};
struct Model {
  std::vector<Lease> leases;
  std::vector<std::uint64_t> acked, next_step;
  std::vector<shm::SlotRef> old;  // leases that are over

  void Drop(std::size_t i, shm::HolderId holder) {
    auto& h = leases[i].holders;
    h.erase(std::remove(h.begin(), h.end(), holder), h.end());
  }
  void Sweep() {
    for (auto it = leases.begin(); it != leases.end();) {
      if (!it->holders.empty()) {
        ++it;
        continue;
      }
      old.push_back(it->slot);
      it = leases.erase(it);
    }
  }
};

struct World {
  RankWindow real;
  Model model;
};

constexpr std::uint32_t kRanks = 2, kWindow = 2;
// Sessions 10 and 11 are of rank 0, 12 of rank 1.
constexpr std::pair<shm::HolderId, std::uint32_t> kSessions[] = {
    {10, 0}, {11, 0}, {12, 1}};

using Action = std::function<void(World&)>;

std::vector<Action> ActionsAt(const World& w) {
  std::vector<Action> out;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    if (w.real.Blocked({rank}).empty()) {
      out.push_back([rank](World& x) {
        const std::uint64_t step = x.model.next_step[rank]++;
        const auto slot = x.real.Lease(rank, step);
        REQUIRE(slot.ok());  // B-11: never short of slots inside the window
        x.model.leases.push_back(
            {*slot, rank, step, true, false, {RankWindow::kDaemon}});
      });
    }
    out.push_back([rank](World& x) {
      auto& acked = x.model.acked[rank];
      x.real.Ack(rank, ++acked);
      for (std::size_t i = 0; i < x.model.leases.size(); ++i) {
        Lease& l = x.model.leases[i];
        if (l.rank == rank && l.published && l.step < acked) {
          l.published = false;
          x.model.Drop(i, RankWindow::kDaemon);
        }
      }
    });
  }
  for (std::size_t i = 0; i < w.model.leases.size(); ++i) {
    if (!w.model.leases[i].making) continue;
    out.push_back([i](World& x) {
      Lease& l = x.model.leases[i];
      x.real.Publish(l.rank, l.step, l.slot);
      l.making = false;
      l.published = l.step >= x.model.acked[l.rank];
      if (!l.published) x.model.Drop(i, RankWindow::kDaemon);
    });
  }
  for (const auto& [session, rank] : kSessions) {
    for (std::size_t i = 0; i < w.model.leases.size(); ++i) {
      const Lease& l = w.model.leases[i];
      if (l.rank == rank && l.published) {
        out.push_back([i, session = session](World& x) {
          Lease& m = x.model.leases[i];
          REQUIRE(x.real.Take(session, m.rank, m.step) == m.slot);
          if (std::find(m.holders.begin(), m.holders.end(), session) ==
              m.holders.end()) {
            m.holders.push_back(session);
          }
        });
      }
      if (std::find(l.holders.begin(), l.holders.end(), session) !=
          l.holders.end()) {
        out.push_back([i, session = session](World& x) {
          x.real.Release(session, x.model.leases[i].slot);
          x.model.Drop(i, session);
        });
      }
    }
    out.push_back([session = session](World& x) {
      x.real.Leave(session);
      for (std::size_t i = 0; i < x.model.leases.size(); ++i) {
        x.model.Drop(i, session);
      }
    });
  }
  // Lies: a slot that the session does not hold, a lease that is over.
  out.push_back([](World& x) {
    for (const auto& slot : x.model.old) x.real.Release(10, slot);
    for (const Lease& l : x.model.leases) x.real.Release(99, l.slot);
    x.real.Release(10, {kSlot + 1, 1});
    x.real.Leave(99);
  });
  return out;
}

void Check(const World& w) {
  REQUIRE(w.real.slots().free_count() + w.model.leases.size() ==
          kRanks * kWindow);
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    std::uint32_t leases = 0;
    for (const Lease& l : w.model.leases) {
      leases += l.rank == rank;
      if (l.rank != rank) continue;
      REQUIRE(w.real.Coming(rank, l.step) == (l.making || l.published));
      for (const auto& [session, unused] : kSessions) {
        const bool holds = std::find(l.holders.begin(), l.holders.end(),
                                     session) != l.holders.end();
        REQUIRE(w.real.slots().Holds(l.slot, session) == holds);
      }
    }
    REQUIRE(w.real.ranks()[rank].leases == leases);
    REQUIRE(w.real.Blocked({rank}).empty() == (leases < kWindow));
  }
}

World Start() {
  World w{Window(kRanks, kWindow), {}};
  w.model.acked.assign(kRanks, 0);
  w.model.next_step.assign(kRanks, 0);
  for (const auto& [session, rank] : kSessions) w.real.Join(session, rank, 0);
  return w;
}

std::size_t Explore(const World& w, int depth) {
  Check(w);
  if (depth == 0) return 1;
  std::size_t seen = 1;
  for (const Action& action : ActionsAt(w)) {
    World next = w;
    action(next);
    next.model.Sweep();
    seen += Explore(next, depth - 1);
  }
  return seen;
}

TEST_CASE("B-11: a slot is free exactly when acknowledged and let go by all, in "
          "every order of six events",
          "[pipeline][exhaustive]") {
  CHECK(Explore(Start(), 6) > 10'000);
}

TEST_CASE("B-11: so it is in long random orders", "[pipeline][property]") {
  const std::uint64_t seed = test::SeedFromEnv();
  INFO("replay with PENSTOCK_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int round = 0; round < 30; ++round) {
    World w = Start();
    for (int i = 0; i < 400; ++i) {
      const auto actions = ActionsAt(w);
      actions[random() % actions.size()](w);
      w.model.Sweep();
      Check(w);
      if (w.model.old.size() > 20) w.model.old.erase(w.model.old.begin());
    }
  }
}

}  // namespace
}  // namespace penstock::pipeline
