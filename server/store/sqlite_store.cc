#include <sqlite3.h>

#include <cerrno>
#include <mutex>

#include "absl/strings/str_format.h"
#include "common/status/status.h"
#include "server/store/job_store.h"

namespace penstock::store {
namespace {

constexpr char kSchema[] =
    "CREATE TABLE IF NOT EXISTS jobs("
    " job TEXT PRIMARY KEY, revision INTEGER NOT NULL, record BLOB NOT NULL)"
    " STRICT, WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS journal("
    " job TEXT NOT NULL, revision INTEGER NOT NULL, kind INTEGER NOT NULL,"
    " record BLOB NOT NULL, PRIMARY KEY(job, revision)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE IF NOT EXISTS acks("
    " job TEXT NOT NULL, generation INTEGER NOT NULL,"
    " data_rank INTEGER NOT NULL, next_step INTEGER NOT NULL,"
    " PRIMARY KEY(job, generation, data_rank)) STRICT, WITHOUT ROWID;";

struct DbClose {
  void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
};
struct StatementFinalize {
  void operator()(sqlite3_stmt* s) const noexcept { sqlite3_finalize(s); }
};
using DbPtr = std::unique_ptr<sqlite3, DbClose>;
using StatementPtr = std::unique_ptr<sqlite3_stmt, StatementFinalize>;

class SqliteStore final : public JobStore {
 public:
  SqliteStore(std::string path, DbPtr db)
      : path_(std::move(path)), db_(std::move(db)) {}

  absl::Status Init() {
    // One connection owns the file: no other process, no second connection.
    for (const char* sql :
         {"PRAGMA locking_mode=EXCLUSIVE", "PRAGMA journal_mode=WAL",
          "PRAGMA synchronous=FULL", "PRAGMA trusted_schema=OFF", kSchema}) {
      PENSTOCK_RETURN_IF_ERROR(Run(sql, "opening"));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::optional<StoredJob>> Load(
      const std::string& job) override {
    std::lock_guard lock(mutex_);
    PENSTOCK_RETURN_IF_ERROR(ended_);
    return LoadLocked(job);
  }

  absl::StatusOr<StoredJob> Change(const std::string& job,
                                   std::uint64_t revision,
                                   const job::Event& event) override {
    std::lock_guard lock(mutex_);
    PENSTOCK_RETURN_IF_ERROR(ended_);
    PENSTOCK_ASSIGN_OR_RETURN(const auto now, LoadLocked(job));
    if ((now ? now->revision : 0) != revision) {
      return absl::AbortedError("job " + job + ": changed meanwhile");
    }
    StoredJob next;
    PENSTOCK_ASSIGN_OR_RETURN(
        next.record, job::Apply(now ? now->record : job::JobRecord{}, event));
    next.revision = revision + 1;
    PENSTOCK_RETURN_IF_ERROR(End(Write(job, next, event)));
    return next;
  }

  absl::Status PutAcks(const std::string& job, std::uint64_t generation,
                       const std::vector<AckPosition>& acks) override {
    std::lock_guard lock(mutex_);
    PENSTOCK_RETURN_IF_ERROR(ended_);
    return End(PutAcksLocked(job, generation, acks));
  }

  absl::StatusOr<std::vector<AckPosition>> LoadAcks(
      const std::string& job, std::uint64_t generation) override {
    std::lock_guard lock(mutex_);
    PENSTOCK_RETURN_IF_ERROR(ended_);
    PENSTOCK_ASSIGN_OR_RETURN(
        auto s, Prepare("SELECT data_rank,next_step FROM acks WHERE job=?1 AND"
                        " generation=?2 ORDER BY data_rank"));
    BindText(s.get(), 1, job);
    sqlite3_bind_int64(s.get(), 2, static_cast<sqlite3_int64>(generation));
    std::vector<AckPosition> out;
    int rc;
    while ((rc = sqlite3_step(s.get())) == SQLITE_ROW) {
      out.push_back(
          {static_cast<std::uint32_t>(sqlite3_column_int64(s.get(), 0)),
           static_cast<std::uint64_t>(sqlite3_column_int64(s.get(), 1))});
    }
    if (rc != SQLITE_DONE) return Error("read");
    return out;
  }

  absl::StatusOr<std::vector<std::string>> List() override {
    std::lock_guard lock(mutex_);
    PENSTOCK_RETURN_IF_ERROR(ended_);
    PENSTOCK_ASSIGN_OR_RETURN(auto s,
                              Prepare("SELECT job FROM jobs ORDER BY job"));
    std::vector<std::string> names;
    int rc;
    while ((rc = sqlite3_step(s.get())) == SQLITE_ROW) {
      names.emplace_back(
          reinterpret_cast<const char*>(sqlite3_column_text(s.get(), 0)));
    }
    if (rc != SQLITE_DONE) return Error("read");
    return names;
  }

 private:
  absl::StatusOr<std::optional<StoredJob>> LoadLocked(const std::string& job) {
    PENSTOCK_ASSIGN_OR_RETURN(
        auto s, Prepare("SELECT revision,record FROM jobs WHERE job=?1"));
    BindText(s.get(), 1, job);
    const int rc = sqlite3_step(s.get());
    if (rc == SQLITE_DONE) return std::optional<StoredJob>();
    if (rc != SQLITE_ROW) return Error("read");
    StoredJob stored;
    stored.revision =
        static_cast<std::uint64_t>(sqlite3_column_int64(s.get(), 0));
    const auto* blob =
        static_cast<const std::uint8_t*>(sqlite3_column_blob(s.get(), 1));
    const auto bytes =
        static_cast<std::size_t>(sqlite3_column_bytes(s.get(), 1));
    auto record = job::DecodeRecord({blob, bytes});
    if (!record.ok()) return Annotate(record.status(), path_ + ", job " + job);
    stored.record = *std::move(record);
    return std::optional<StoredJob>(std::move(stored));
  }

  absl::Status PutAcksLocked(const std::string& job, std::uint64_t generation,
                             const std::vector<AckPosition>& acks) {
    PENSTOCK_RETURN_IF_ERROR(Run("BEGIN IMMEDIATE", "begin"));
    for (const auto& a : acks) {
      PENSTOCK_ASSIGN_OR_RETURN(
          auto s, Prepare("INSERT INTO acks VALUES(?1,?2,?3,?4) ON CONFLICT"
                          " DO UPDATE SET next_step=max(next_step,?4)"));
      BindText(s.get(), 1, job);
      sqlite3_bind_int64(s.get(), 2, static_cast<sqlite3_int64>(generation));
      sqlite3_bind_int64(s.get(), 3, a.data_rank);
      sqlite3_bind_int64(s.get(), 4, static_cast<sqlite3_int64>(a.next_step));
      PENSTOCK_RETURN_IF_ERROR(Step(s.get()));
    }
    return Run("COMMIT", "commit");
  }

  // Journal entry and record in one transaction.
  absl::Status Write(const std::string& job, const StoredJob& next,
                     const job::Event& event) {
    const auto blob = job::EncodeRecord(next.record);
    PENSTOCK_RETURN_IF_ERROR(Run("BEGIN IMMEDIATE", "begin"));
    for (const char* sql :
         {"INSERT INTO journal VALUES(?1,?2,?4,?3)",
          "INSERT INTO jobs VALUES(?1,?2,?3) ON CONFLICT DO UPDATE SET"
          " revision=?2,record=?3"}) {
      PENSTOCK_ASSIGN_OR_RETURN(auto s, Prepare(sql));
      BindText(s.get(), 1, job);
      sqlite3_bind_int64(s.get(), 2, static_cast<sqlite3_int64>(next.revision));
      sqlite3_bind_blob(s.get(), 3, blob.data(), static_cast<int>(blob.size()),
                        SQLITE_TRANSIENT);
      if (sqlite3_bind_parameter_count(s.get()) >= 4) {
        sqlite3_bind_int64(s.get(), 4,
                           static_cast<sqlite3_int64>(event.index()));
      }
      PENSTOCK_RETURN_IF_ERROR(Step(s.get()));
    }
    return Run("COMMIT", "commit");
  }

  absl::Status Error(const char* what) const {
    const int code = sqlite3_errcode(db_.get()) & 0xFF;
    const Problem problem{
        .where = path_,
        .what = absl::StrFormat("job store: %s failed", what),
        .found = sqlite3_errmsg(db_.get()),
        .expected = "a job store that can be read and written",
        .action =
            code == SQLITE_BUSY ? "another process has the store open; end it"
            : code == SQLITE_CORRUPT || code == SQLITE_NOTADB
                ? "the file is damaged or no job store: move it away; jobs go "
                  "on "
                  "from the state_dict of their trainers"
                : "check that the state directory is there, writable and not "
                  "full"};
    switch (code) {
      case SQLITE_BUSY:
      case SQLITE_LOCKED:
        return MakeError(absl::StatusCode::kFailedPrecondition, problem);
      case SQLITE_READONLY:
      case SQLITE_CANTOPEN:
      case SQLITE_PERM:
        return MakeError(absl::StatusCode::kPermissionDenied, problem);
      case SQLITE_CORRUPT:
      case SQLITE_NOTADB:
        return MakeError(absl::StatusCode::kDataLoss, problem);
      default:
        return MakeError(absl::StatusCode::kInternal, problem);
    }
  }

  // After a write. A full disk takes the transaction back and leaves the store
  // as it was: the next write may find room. Any other error leaves the outcome
  // unknown and ends the store: no later call pretends that it went well.
  absl::Status End(absl::Status status) {
    if (status.ok()) return status;
    const bool full = (sqlite3_errcode(db_.get()) & 0xFF) == SQLITE_FULL;
    const bool back =
        sqlite3_get_autocommit(db_.get()) != 0 ||
        sqlite3_exec(db_.get(), "ROLLBACK", nullptr, nullptr, nullptr) ==
            SQLITE_OK;
    if ((!full || !back) && ended_.ok()) {
      ended_ = absl::Status(status.code(),
                            std::string(status.message()) +
                                "; then start the daemon again");
    }
    return status;
  }

  absl::Status Run(const char* sql, const char* what) {
    if (sqlite3_exec(db_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
      return Error(what);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<StatementPtr> Prepare(const char* sql) {
    sqlite3_stmt* s = nullptr;
    if (sqlite3_prepare_v2(db_.get(), sql, -1, &s, nullptr) != SQLITE_OK) {
      return Error("prepare");
    }
    return StatementPtr(s);
  }

  absl::Status Step(sqlite3_stmt* s) {
    return sqlite3_step(s) == SQLITE_DONE ? absl::OkStatus() : Error("write");
  }

  static void BindText(sqlite3_stmt* s, int at, const std::string& text) {
    sqlite3_bind_text(s, at, text.data(), static_cast<int>(text.size()),
                      SQLITE_TRANSIENT);
  }

  std::string path_;
  DbPtr db_;
  std::mutex mutex_;
  absl::Status ended_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<JobStore>> OpenSqliteStore(
    const std::string& path) {
  sqlite3* raw = nullptr;
  const int rc = sqlite3_open_v2(
      path.c_str(), &raw,
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_FULLMUTEX,
      nullptr);
  auto store = std::make_unique<SqliteStore>(path, DbPtr(raw));
  if (rc != SQLITE_OK) {
    return MakeError(absl::StatusCode::kPermissionDenied,
                     {.where = path,
                      .what = "the job store cannot be opened",
                      .found = raw ? sqlite3_errmsg(raw) : "no memory",
                      .expected = "a writable state directory",
                      .action = "correct state_dir or its rights"});
  }
  if (sqlite3_db_readonly(raw, "main") == 1) {  // SQLite's silent way out
    return MakeError(absl::StatusCode::kPermissionDenied,
                     {.where = path,
                      .what = "the job store can only be read",
                      .found = "no right to write",
                      .expected = "a file that this user may write",
                      .action = "correct state_dir or its rights"});
  }
  PENSTOCK_RETURN_IF_ERROR(store->Init());
  return std::unique_ptr<JobStore>(std::move(store));
}

}  // namespace penstock::store
