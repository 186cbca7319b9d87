// One contract for every job store.
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "server/store/job_store.h"
#include "tests/support/temp_dir.h"

namespace penstock::store {
namespace {

job::CreateJob Create(const std::string& name) {
  return {name, {0, "0a", "c1"}, {"d1"}, "5e", {1, "run-1", 4, 0}};
}

void CheckContract(JobStore& store) {
  auto none = store.Load("dust");
  REQUIRE(none.ok());
  CHECK_FALSE(none->has_value());

  auto first = store.Change("dust", 0, Create("dust"));
  REQUIRE(first.ok());
  CHECK(first->revision == 1);
  auto loaded = store.Load("dust");
  REQUIRE(loaded.ok());
  REQUIRE(loaded->has_value());
  CHECK((*loaded)->record == first->record);

  // A stale revision changes nothing and says "load again".
  CHECK(store.Change("dust", 0, Create("dust")).status().code() ==
        absl::StatusCode::kAborted);
  CHECK(store.Change("dust", 7, job::NameCheckpoint{1, "a", 1}).status().code() ==
        absl::StatusCode::kAborted);
  // An event that does not apply is its own error and changes nothing.
  CHECK(store.Change("dust", 1, job::NameCheckpoint{9, "a", 1}).status().code() ==
        absl::StatusCode::kFailedPrecondition);
  CHECK((*store.Load("dust"))->revision == 1);

  auto second = store.Change("dust", 1, job::NameCheckpoint{1, "a", 10});
  REQUIRE(second.ok());
  CHECK(second->revision == 2);
  CHECK(second->record.checkpoints.at("a") == 10);

  // Acknowledgements never go back, and belong to their generation.
  REQUIRE(store.PutAcks("dust", 1, {{0, 10}, {3, 12}}).ok());
  REQUIRE(store.PutAcks("dust", 1, {{0, 8}, {3, 13}}).ok());
  auto acks = store.LoadAcks("dust", 1);
  REQUIRE(acks.ok());
  REQUIRE(acks->size() == 2);
  CHECK((*acks)[0].next_step == 10);
  CHECK((*acks)[1].data_rank == 3);
  CHECK((*acks)[1].next_step == 13);
  CHECK(store.LoadAcks("dust", 2)->empty());

  REQUIRE(store.Change("arena", 0, Create("arena")).ok());
  CHECK(*store.List() == std::vector<std::string>{"arena", "dust"});
}

TEST_CASE("job store: contract, in memory", "[store][contract]") {
  CheckContract(*MakeMemoryStore());
}

TEST_CASE("job store: contract, SQLite", "[store][contract]") {
  test::TempDir dir;
  auto store = OpenSqliteStore(dir.path() + "/jobs.sqlite");
  REQUIRE(store.ok());
  CheckContract(**store);
}

TEST_CASE("SQLite store: what was answered is there after a reopen",
          "[store]") {
  test::TempDir dir;
  const std::string path = dir.path() + "/jobs.sqlite";
  {
    auto store = OpenSqliteStore(path);
    REQUIRE(store.ok());
    REQUIRE((*store)->Change("dust", 0, Create("dust")).ok());
    REQUIRE((*store)->PutAcks("dust", 1, {{1, 5}}).ok());
  }
  auto store = OpenSqliteStore(path);
  REQUIRE(store.ok());
  CHECK((*(*store)->Load("dust"))->record.job == "dust");
  CHECK((*store)->LoadAcks("dust", 1)->at(0).next_step == 5);
}

TEST_CASE("SQLite store: a killed writer loses nothing that it answered (B-34)",
          "[store]") {
  test::TempDir dir;
  const std::string path = dir.path() + "/jobs.sqlite";
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    auto store = OpenSqliteStore(path);
    if (!store.ok() || !(*store)->Change("dust", 0, Create("dust")).ok()) {
      ::_exit(1);
    }
    for (std::uint64_t k = 1;; ++k) {
      if (!(*store)
               ->Change("dust", k,
                        job::NameCheckpoint{1, "s" + std::to_string(k), k})
               .ok()) {
        ::_exit(1);
      }
      if (::write(ends[1], &k, sizeof(k)) != sizeof(k)) ::_exit(1);
    }
  }
  ::close(ends[1]);
  std::uint64_t answered = 0;
  while (answered < 40) {
    REQUIRE(::read(ends[0], &answered, sizeof(answered)) == sizeof(answered));
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ::close(ends[0]);
  auto store = OpenSqliteStore(path);
  REQUIRE(store.ok());
  const auto stored = (*store)->Load("dust");
  REQUIRE(stored.ok());
  CHECK((*stored)->record.checkpoints.size() >= answered);
}

TEST_CASE("SQLite store: errors name the file and what to do", "[store]") {
  test::TempDir dir;
  SECTION("a folder that is not there") {
    const auto status = OpenSqliteStore(dir.path() + "/no/jobs.sqlite").status();
    CHECK(status.code() == absl::StatusCode::kPermissionDenied);
    CHECK(std::string(status.message()).find("jobs.sqlite") !=
          std::string::npos);
  }
  SECTION("a file that is no store") {
    std::ofstream(dir.path() + "/jobs.sqlite") << std::string(5000, 'x');
    CHECK(OpenSqliteStore(dir.path() + "/jobs.sqlite").status().code() ==
          absl::StatusCode::kDataLoss);
  }
  SECTION("a second opener is refused") {
    auto first = OpenSqliteStore(dir.path() + "/jobs.sqlite");
    REQUIRE(first.ok());
    CHECK_FALSE(OpenSqliteStore(dir.path() + "/jobs.sqlite").ok());
  }
}

}  // namespace
}  // namespace penstock::store
