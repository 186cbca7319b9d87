#include "common/shm/slot_table.h"

#include <catch2/catch.hpp>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace penstock::shm {
namespace {

// The law, restated: who was given a slot and has neither released it nor died.
struct Model {
  std::map<std::uint64_t, std::pair<std::uint64_t, std::set<HolderId>>> leases;
};

// Every word of length `depth` over all operations of a world with `slots`
// slots and `holders` holders, against the model after every letter.
class Explorer {
 public:
  Explorer(std::size_t slots, HolderId holders)
      : slots_(slots), holders_(holders) {}

  void Run(const SlotTable& table, const Model& model,
           const std::vector<SlotRef>& seen, int depth) {
    ++states_;
    Check(table, model);
    if (depth == 0) return;
    for (HolderId h = 1; h <= holders_; ++h) {
      Acquire(table, model, seen, h, depth);
      Drop(table, model, seen, h, depth);
      for (const SlotRef slot : seen) {
        Add(table, model, seen, slot, h, depth);
        Release(table, model, seen, slot, h, depth);
      }
    }
  }
  std::size_t states() const { return states_; }

 private:
  static bool Live(const Model& m, SlotRef s) {
    auto it = m.leases.find(s.offset);
    return it != m.leases.end() && it->second.first == s.generation;
  }
  void Acquire(SlotTable t, Model m, std::vector<SlotRef> seen, HolderId h,
               int depth) {
    auto slot = t.Acquire(h);
    Require(slot.ok() == (m.leases.size() < slots_), "acquire");
    if (slot.ok()) {
      Require(m.leases.count(slot->offset) == 0, "a held slot was given");
      for (const SlotRef s : seen) Require(!(s == *slot), "a lease repeats");
      m.leases[slot->offset] = {slot->generation, {h}};
      seen.push_back(*slot);
    }
    Run(t, m, seen, depth - 1);
  }
  void Add(SlotTable t, Model m, const std::vector<SlotRef>& seen, SlotRef s,
           HolderId h, int depth) {
    const bool expected =
        Live(m, s) && m.leases[s.offset].second.count(h) == 0;
    Require(t.AddHolder(s, h).ok() == expected, "add");
    if (expected) m.leases[s.offset].second.insert(h);
    Run(t, m, seen, depth - 1);
  }
  void Release(SlotTable t, Model m, const std::vector<SlotRef>& seen,
               SlotRef s, HolderId h, int depth) {
    const bool expected =
        Live(m, s) && m.leases[s.offset].second.count(h) != 0;
    Require(t.Release(s, h).ok() == expected, "release");
    if (expected) {
      m.leases[s.offset].second.erase(h);
      if (m.leases[s.offset].second.empty()) m.leases.erase(s.offset);
    }
    Run(t, m, seen, depth - 1);
  }
  void Drop(SlotTable t, Model m, const std::vector<SlotRef>& seen, HolderId h,
            int depth) {
    std::size_t freed = 0;
    for (auto it = m.leases.begin(); it != m.leases.end();) {
      it->second.second.erase(h);
      if (it->second.second.empty()) {
        it = m.leases.erase(it);
        ++freed;
      } else {
        ++it;
      }
    }
    Require(t.DropHolder(h) == freed, "drop");
    Run(t, m, seen, depth - 1);
  }
  void Check(const SlotTable& t, const Model& m) {
    Require(t.free_count() == slots_ - m.leases.size(), "free count");
    for (HolderId h = 1; h <= holders_; ++h) {
      std::size_t held = 0;
      for (const auto& [offset, lease] : m.leases) {
        const bool holds = lease.second.count(h) != 0;
        Require(t.Holds({offset, lease.first}, h) == holds, "holds");
        held += holds;
      }
      Require(t.HeldBy(h) == held, "held by");
    }
  }
  static void Require(bool ok, const char* what) {
    if (!ok) FAIL(what);
  }

  std::size_t slots_;
  HolderId holders_;
  std::size_t states_ = 0;
};

TEST_CASE("slots: free exactly when every holder released or is gone, in every "
          "small world (B-11)", "[shm][exhaustive]") {
  struct World { std::size_t slots; HolderId holders; int depth; };
  for (const World& w : {World{1, 1, 8}, World{1, 3, 5}, World{2, 2, 5},
                         World{3, 1, 6}, World{2, 3, 4}}) {
    auto table = SlotTable::Create(w.slots * 4096, 4096);
    REQUIRE(table.ok());
    REQUIRE(table->slot_count() == w.slots);
    Explorer explorer(w.slots, w.holders);
    explorer.Run(*table, {}, {}, w.depth);
    CHECK(explorer.states() > 1000);
  }
}

TEST_CASE("slots: a silent holder keeps its own slots and no others (B-11)",
          "[shm]") {
  constexpr HolderId kSilent = 1, kLively = 2;
  auto table = SlotTable::Create(4 * 4096, 4096);
  REQUIRE(table.ok());
  REQUIRE(table->Acquire(kSilent).ok());
  for (int i = 0; i < 10000; ++i) {
    auto slot = table->Acquire(kLively);
    REQUIRE(slot.ok());
    REQUIRE(table->Release(*slot, kLively).ok());
  }
  CHECK(table->HeldBy(kSilent) == 1);
  CHECK(table->DropHolder(kSilent) == 1);
  CHECK(table->free_count() == 4);
}

TEST_CASE("slots: wrong references are named errors without effect", "[shm]") {
  auto table = SlotTable::Create(3 * 8192 + 100, 5000);
  REQUIRE(table.ok());
  CHECK(table->slot_bytes() == 8192);
  CHECK(table->slot_count() == 3);
  auto slot = table->Acquire(7);
  REQUIRE(slot.ok());
  auto code = [&](SlotRef s, HolderId h) { return table->Release(s, h).code(); };
  const auto none = absl::StatusCode::kNotFound;
  CHECK(code({slot->offset, slot->generation + 1}, 7) == none);
  CHECK(code({slot->offset, 0}, 7) == none);
  CHECK(code({slot->offset + 1, slot->generation}, 7) == none);
  CHECK(code({slot->offset + 8192, slot->generation}, 7) == none);
  CHECK(code({slot->offset + 8192, 0}, 7) == none);  // a free slot
  CHECK(code({UINT64_MAX / 8192 * 8192, slot->generation}, 7) == none);
  CHECK(code(*slot, 8) == absl::StatusCode::kFailedPrecondition);
  CHECK(table->AddHolder(*slot, 7).code() == absl::StatusCode::kAlreadyExists);
  CHECK(table->Holds(*slot, 7));
  CHECK(code(*slot, 7) == absl::StatusCode::kOk);
  CHECK(code(*slot, 7) == none);  // twice
  CHECK(table->free_count() == 3);
}

TEST_CASE("slots: an arena too small for one slot is refused", "[shm]") {
  CHECK(SlotTable::Create(4096, 4097).status().code() ==
        absl::StatusCode::kInvalidArgument);
  CHECK(SlotTable::Create(5000, 4097).status().code() ==
        absl::StatusCode::kInvalidArgument);
  CHECK(SlotTable::Create(4096, 0).status().code() ==
        absl::StatusCode::kInvalidArgument);
  CHECK(SlotTable::Create(UINT64_MAX, UINT64_MAX).status().code() ==
        absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace penstock::shm
