#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <thread>

#include "tests/support/seed.h"
#include "tests/support/temp_dir.h"
#include "tests/unit/store/job_store_contract.h"

namespace penstock::store::test {
namespace {

std::map<std::uint32_t, std::uint64_t> Acks(JobStore& s, const std::string& job,
                                            std::uint64_t generation) {
  std::map<std::uint32_t, std::uint64_t> out;
  const auto acks = s.LoadAcks(job, generation).value();
  for (const auto& a : acks) {
    CHECK(out.emplace(a.data_rank, a.next_step).second);
  }
  return out;
}

void CheckCompareAndSwap(const StoreMaker& maker) {
  auto s = maker.open();
  CHECK_FALSE(s->Load("walk").value().has_value());
  // A job that does not exist is at revision 0.
  CHECK(s->Change("walk", 1, Create("walk")).status().code() ==
        absl::StatusCode::kAborted);
  const auto created = s->Change("walk", 0, Create("walk"));
  REQUIRE(created.ok());
  CHECK(created->record.generation.incarnation == "run-1");
  CHECK(s->Load("walk").value()->record == created->record);
  CHECK(s->Load("walk").value()->revision == created->revision);

  // Two that read the same revision: one wins, the other must look again.
  const auto second = s->Change("walk", created->revision, Open(2, 10));
  REQUIRE(second.ok());
  CHECK(second->revision > created->revision);
  const auto late = s->Change("walk", created->revision, Open(2, 20));
  CHECK(late.status().code() == absl::StatusCode::kAborted);
  CHECK_THAT(std::string(late.status().message()), Catch::Contains("walk"));
  CHECK(s->Load("walk").value()->record == second->record);
  CHECK(s->Change("walk", 0, Create("walk")).status().code() ==
        absl::StatusCode::kAborted);
}

void CheckRefusedWritesNothing(const StoreMaker& maker) {
  auto s = maker.open();
  const auto at = s->Change("walk", 0, Create("walk")).value();
  CHECK(s->Change("walk", at.revision, Create("walk")).status().code() ==
        absl::StatusCode::kAlreadyExists);
  CHECK(s->Change("walk", at.revision, Open(7, 0)).status().code() ==
        absl::StatusCode::kFailedPrecondition);
  CHECK(s->Change("other", 0, Open(1, 0)).status().code() ==
        absl::StatusCode::kFailedPrecondition);
  CHECK(s->Load("walk").value()->revision == at.revision);
  CHECK_FALSE(s->Load("other").value().has_value());
  CHECK(s->List().value() == std::vector<std::string>{"walk"});
  // And the store lives on.
  CHECK(s->Change("walk", at.revision, Open(2, 0)).ok());
}

void CheckAcks(const StoreMaker& maker) {
  auto s = maker.open();
  CHECK(Acks(*s, "walk", 1).empty());
  REQUIRE(s->PutAcks("walk", 1, {{0, 5}, {1, 7}}).ok());
  REQUIRE(s->PutAcks("walk", 1, {{0, 3}, {1, 9}, {2, 0}}).ok());
  CHECK(Acks(*s, "walk", 1) ==
        std::map<std::uint32_t, std::uint64_t>{{0, 5}, {1, 9}, {2, 0}});
  REQUIRE(s->PutAcks("walk", 1, {{3, 2}, {3, 8}, {3, 4}}).ok());
  CHECK(Acks(*s, "walk", 1)[3] == 8);
  // Of one job and one generation only.
  CHECK(Acks(*s, "walk", 2).empty());
  CHECK(Acks(*s, "run", 1).empty());
  REQUIRE(s->PutAcks("walk", 2, {{0, 1}}).ok());
  CHECK(Acks(*s, "walk", 2)[0] == 1);
  CHECK(Acks(*s, "walk", 1)[0] == 5);
  CHECK(s->PutAcks("walk", 1, {}).ok());
}

void CheckList(const StoreMaker& maker) {
  auto s = maker.open();
  CHECK(s->List().value().empty());
  for (const char* name : {"b", "a", "B", "a.1"}) {
    REQUIRE(s->Change(name, 0, Create(name)).ok());
  }
  CHECK(s->List().value() == std::vector<std::string>{"B", "a", "a.1", "b"});
}

void CheckRacers(const StoreMaker& maker) {
  auto s = maker.open();
  REQUIRE(s->Change("walk", 0, Create("walk")).ok());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int done = 0; done < 10;) {
        const auto now = s->Load("walk").value().value();
        const job::NameCheckpoint e{
            1, "c" + std::to_string(t) + "-" + std::to_string(done), 1};
        if (s->Change("walk", now.revision, e).ok()) ++done;
      }
    });
  }
  for (auto& t : threads) t.join();
  CHECK(s->Load("walk").value()->record.checkpoints.size() == 40);
}

void CheckReopened(const StoreMaker& maker) {
  if (!maker.durable) return;
  std::optional<StoredJob> before;
  {
    auto s = maker.open();
    auto at = s->Change("walk", 0, Create("walk")).value();
    at = s->Change("walk", at.revision, job::NameCheckpoint{1, "a", 4}).value();
    before = s->Change("walk", at.revision, Open(2, 4)).value();
    REQUIRE(s->PutAcks("walk", 2, {{0, 6}}).ok());
  }
  auto s = maker.open();
  const auto after = s->Load("walk").value();
  REQUIRE(after.has_value());
  CHECK(after->record == before->record);
  CHECK(after->revision == before->revision);
  CHECK(Acks(*s, "walk", 2)[0] == 6);
  CHECK(s->List().value() == std::vector<std::string>{"walk"});
}

// Random operations against a model.
void CheckModel(const StoreMaker& maker, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  auto s = maker.open();
  std::map<std::string, StoredJob> model;
  for (int i = 0; i < 300; ++i) {
    const std::string name(1, static_cast<char>('a' + random() % 3));
    const StoredJob now = model.contains(name) ? model[name] : StoredJob{};
    const std::uint64_t revision = now.revision - (random() % 4 == 0 ? 1 : 0);
    job::Event event = Create(name);
    if (random() % 3 != 0) {
      event = Open(now.record.generation.number + 1, random() % 50);
    }
    const auto got = s->Change(name, revision, event);
    const auto expected = job::Apply(now.record, event);
    if (revision != now.revision) {
      REQUIRE(got.status().code() == absl::StatusCode::kAborted);
    } else if (!expected.ok()) {
      REQUIRE(got.status().code() == expected.status().code());
    } else {
      REQUIRE(got.ok());
      REQUIRE(got->record == *expected);
      model[name] = *got;
    }
    if (maker.durable && random() % 40 == 0) {
      s.reset();
      s = maker.open();
    }
    for (const auto& [job, stored] : model) {
      const auto loaded = s->Load(job).value();
      REQUIRE(loaded.has_value());
      REQUIRE(loaded->record == stored.record);
      REQUIRE(loaded->revision == stored.revision);
    }
  }
}

}  // namespace

void CheckContract(const StoreMaker& maker) {
  INFO(maker.name);
  SECTION("compare-and-swap") { CheckCompareAndSwap(maker); }
  SECTION("what is refused is not written") { CheckRefusedWritesNothing(maker); }
  SECTION("acknowledgements never go back") { CheckAcks(maker); }
  SECTION("names are listed in order") { CheckList(maker); }
  SECTION("racers lose no change") { CheckRacers(maker); }
  SECTION("what was written is there after opening again") {
    CheckReopened(maker);
  }
  SECTION("random operations equal a model") {
    const std::uint64_t seed = penstock::test::SeedFromEnv();
    INFO("replay with PENSTOCK_TEST_SEED=" << seed);
    CheckModel(maker, seed);
  }
}

TEST_CASE("store contract: in memory", "[store][contract]") {
  CheckContract({"memory", [] { return MakeMemoryStore(); }, false});
}

TEST_CASE("store contract: SQLite", "[store][contract]") {
  penstock::test::TempDir dir;
  CheckContract(
      {"sqlite",
       [&] { return OpenSqliteStore(dir / "jobs.sqlite").value(); }, true});
}

}  // namespace penstock::store::test
