#include <sqlite3.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/support/temp_dir.h"
#include "tests/unit/store/job_store_contract.h"

namespace penstock::store {
namespace {

using penstock::test::TempDir;
using test::Create;
using test::Open;

// Runs SQL on a closed store.
void Sql(const std::string& path, const std::string& sql) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
  char* error = nullptr;
  const int rc = sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &error);
  INFO((error ? error : ""));
  CHECK(rc == SQLITE_OK);
  sqlite3_free(error);
  sqlite3_close(db);
}

TEST_CASE("sqlite store: a second opener is refused", "[store]") {
  TempDir dir;
  const std::string path = dir / "jobs.sqlite";
  auto first = OpenSqliteStore(path).value();
  SECTION("before anything is written") {}
  SECTION("with a job in it") {
    REQUIRE(first->Change("walk", 0, Create("walk")).ok());
  }
  const auto second = OpenSqliteStore(path);
  CHECK(second.status().code() == absl::StatusCode::kFailedPrecondition);
  CHECK_THAT(std::string(second.status().message()),
             Catch::Contains(path) && Catch::Contains("another process"));
  // So is another process.
  const pid_t child = ::fork();
  if (child == 0) {
    const auto third = OpenSqliteStore(path);
    ::_exit(third.status().code() == absl::StatusCode::kFailedPrecondition ? 0
                                                                           : 1);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(status == 0);
  // The owner has lost nothing, and gives it free.
  CHECK(first->Change("run", 0, Create("run")).ok());
  first.reset();
  CHECK(OpenSqliteStore(path).value()->Load("run").value().has_value());
}

TEST_CASE("B-34: what is committed survives a kill -9 of the owner", "[store]") {
  TempDir dir;
  const std::string path = dir / "jobs.sqlite";
  const pid_t child = ::fork();
  if (child == 0) {
    auto s = OpenSqliteStore(path);
    if (!s.ok()) ::_exit(1);
    auto at = (*s)->Change("walk", 0, Create("walk"));
    if (!at.ok() || !(*s)->Change("walk", at->revision, Open(2, 9)).ok()) {
      ::_exit(1);
    }
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
  const auto job = OpenSqliteStore(path).value()->Load("walk").value();
  REQUIRE(job.has_value());
  CHECK(job->record.generation.start_step == 9);
}

TEST_CASE("sqlite store: the journal replays to the record", "[store]") {
  TempDir dir;
  const std::string path = dir / "jobs.sqlite";
  {
    auto s = OpenSqliteStore(path).value();
    auto at = s->Change("walk", 0, Create("walk")).value();
    at = s->Change("walk", at.revision, job::NameCheckpoint{1, "a", 3}).value();
    (void)s->Change("walk", at.revision, Open(2, 3)).value();
  }
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
  sqlite3_stmt* st = nullptr;
  REQUIRE(sqlite3_prepare_v2(db,
                             "SELECT j.revision,j.kind,j.record=b.record FROM "
                             "journal j, jobs b ORDER BY j.revision",
                             -1, &st, nullptr) == SQLITE_OK);
  std::vector<int> revisions, kinds;
  int last_same = 0;
  while (sqlite3_step(st) == SQLITE_ROW) {
    revisions.push_back(sqlite3_column_int(st, 0));
    kinds.push_back(sqlite3_column_int(st, 1));
    last_same = sqlite3_column_int(st, 2);
  }
  sqlite3_finalize(st);
  sqlite3_close(db);
  CHECK(revisions == std::vector{1, 2, 3});
  CHECK(kinds == std::vector{0, 2, 1});
  CHECK(last_same == 1);
}

TEST_CASE("sqlite store: a damaged record is named, others still load",
          "[store]") {
  TempDir dir;
  const std::string path = dir / "jobs.sqlite";
  {
    auto s = OpenSqliteStore(path).value();
    REQUIRE(s->Change("walk", 0, Create("walk")).ok());
    REQUIRE(s->Change("run", 0, Create("run")).ok());
  }
  SECTION("cut off") {
    Sql(path, "UPDATE jobs SET record=substr(record,1,20) WHERE job='walk'");
  }
  SECTION("empty") { Sql(path, "UPDATE jobs SET record=x'' WHERE job='walk'"); }
  SECTION("other bytes") {
    Sql(path, "UPDATE jobs SET record=zeroblob(200) WHERE job='walk'");
  }
  auto s = OpenSqliteStore(path).value();
  const auto walk = s->Load("walk");
  CHECK(walk.status().code() == absl::StatusCode::kDataLoss);
  CHECK_THAT(std::string(walk.status().message()),
             Catch::Contains(path) && Catch::Contains("job walk") &&
                 Catch::Contains("job record"));
  // Nothing is written over it.
  CHECK(s->Change("walk", 0, Create("walk")).status().code() ==
        absl::StatusCode::kDataLoss);
  CHECK(s->Change("walk", 1, Open(2, 0)).status().code() ==
        absl::StatusCode::kDataLoss);
  CHECK(s->Load("run").value().has_value());
  CHECK(s->List().value().size() == 2);
}

TEST_CASE("sqlite store: a file that is no store is refused", "[store]") {
  TempDir dir;
  const std::string path = dir / "jobs.sqlite";
  penstock::test::WriteAll(path, std::string(8192, 'x'));
  const auto s = OpenSqliteStore(path);
  CHECK(s.status().code() == absl::StatusCode::kDataLoss);
  CHECK_THAT(std::string(s.status().message()), Catch::Contains(path));
}

TEST_CASE("sqlite store: a folder that is not there is named", "[store]") {
  TempDir dir;
  const std::string path = dir / "none/jobs.sqlite";
  const auto s = OpenSqliteStore(path);
  CHECK(s.status().code() == absl::StatusCode::kPermissionDenied);
  CHECK_THAT(std::string(s.status().message()),
             Catch::Contains(path) && Catch::Contains("state_dir"));
}

TEST_CASE("sqlite store: rights that do not allow writing are named at open",
          "[store]") {
  TempDir dir;
  const std::string path = dir / "jobs.sqlite";
  bool with_file = false;
  SECTION("a folder") {}
  SECTION("a file") { with_file = true; }
  if (with_file) {
    REQUIRE(OpenSqliteStore(path).value()->Change("walk", 0, Create("walk")).ok());
    std::filesystem::permissions(path, std::filesystem::perms(0444));
  }
  std::filesystem::permissions(dir.path(), std::filesystem::perms(0555));
  // Root may write everywhere: look at it as nobody would.
  if (::geteuid() == 0) ::setfsuid(65534);
  const auto s = OpenSqliteStore(path);
  if (::geteuid() == 0) ::setfsuid(0);
  std::filesystem::permissions(dir.path(), std::filesystem::perms(0755));
  CHECK(s.status().code() == absl::StatusCode::kPermissionDenied);
  CHECK_THAT(std::string(s.status().message()),
             Catch::Contains(path) && Catch::Contains("state_dir"));
}

TEST_CASE("sqlite store: after a failed write it promises nothing more",
          "[store]") {
  TempDir dir;
  const std::string path = dir / "jobs.sqlite";
  {
    auto s = OpenSqliteStore(path).value();
    REQUIRE(s->Change("walk", 0, Create("walk")).ok());
  }
  SECTION("of a record") { Sql(path, "DROP TABLE journal; CREATE TABLE journal(x)"); }
  SECTION("of acknowledgements") { Sql(path, "DROP TABLE acks; CREATE TABLE acks(x)"); }
  auto s = OpenSqliteStore(path).value();
  const bool acks = s->LoadAcks("walk", 1).status().ok() == false;
  const absl::Status first =
      acks ? s->PutAcks("walk", 1, {{0, 1}})
           : s->Change("walk", 1, Open(2, 0)).status();
  REQUIRE_FALSE(first.ok());
  for (const absl::Status& later :
       {s->Load("walk").status(), s->List().status(),
        s->Change("walk", 1, Open(2, 0)).status()}) {
    CHECK(later.code() == first.code());
    CHECK_THAT(std::string(later.message()),
               Catch::StartsWith(std::string(first.message())) &&
                   Catch::Contains("start the daemon again"));
  }
  // Nothing of the failed change is there.
  s.reset();
  CHECK(OpenSqliteStore(path).value()->Load("walk").value()->revision == 1);
}

TEST_CASE("sqlite store: a full disk loses nothing and is over when there is room",
          "[store]") {
  TempDir dir;
  if (::mount("none", dir.path().c_str(), "tmpfs", 0, "size=512k") != 0) {
    WARN("skipped: mounting a tmpfs is refused");
    return;
  }
  {
    auto s = OpenSqliteStore(dir / "jobs.sqlite").value();
    REQUIRE(s->Change("walk", 0, Create("walk")).ok());
    {
      std::ofstream fill(dir / "fill", std::ios::binary);
      const std::string page(4096, 'x');
      while (fill.write(page.data(), 4096).flush()) {
      }
    }
    const absl::Status full = s->Change("walk", 1, Open(2, 0)).status();
    CHECK(full.code() == absl::StatusCode::kInternal);
    CHECK_THAT(std::string(full.message()), Catch::Contains("full"));
    CHECK_FALSE(s->PutAcks("walk", 1, {{0, 1}}).ok());
    CHECK(s->Load("walk").value()->revision == 1);
    std::filesystem::remove(dir / "fill");
    CHECK(s->PutAcks("walk", 1, {{0, 1}}).ok());
    CHECK(s->Change("walk", 1, Open(2, 0)).ok());
  }
  CHECK(::umount(dir.path().c_str()) == 0);
}

}  // namespace
}  // namespace penstock::store
