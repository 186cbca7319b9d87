#ifndef PENSTOCK_SERVER_DATASET_SQLITE_H_
#define PENSTOCK_SERVER_DATASET_SQLITE_H_

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

// Owners for SQLite's handles and a statement that binds and reads in order.
// Private to server/dataset.
namespace penstock::dataset {

struct CloseDb {
  void operator()(sqlite3* db) const noexcept { sqlite3_close_v2(db); }
};
using DbPtr = std::unique_ptr<sqlite3, CloseDb>;

struct FinalizeStatement {
  void operator()(sqlite3_stmt* s) const noexcept { sqlite3_finalize(s); }
};
using StatementPtr = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

// The connection's last error as a status. `where`: file or query.
absl::Status SqliteError(sqlite3* db, int code, std::string_view where);

// kNotFound, kUnavailable, …: SQLite's words and the path
absl::StatusOr<DbPtr> OpenDb(const std::string& uri, int flags);

// Opens a finished catalogue: read-only, immutable, defensive, schema not
// trusted, bounded lengths, mapped reads off.
absl::StatusOr<DbPtr> OpenCatalogDb(const std::string& path);

absl::Status Execute(sqlite3* db, const char* sql);

// A prepared statement; binds by position from 1, reads columns from 0.
class Statement {
 public:
  static absl::StatusOr<Statement> Prepare(sqlite3* db, std::string_view sql);

  Statement& Bind(std::int64_t v);
  Statement& Bind(double v);
  Statement& Bind(std::string_view v);

  // True while there is a row. Row by row: while (*step).
  absl::StatusOr<bool> Step();
  // Runs to the end and is ready for the next binds.
  absl::Status Run();
  void Reset();

  std::int64_t Int(int column) const;
  double Real(int column) const;
  std::string Text(int column) const;

 private:
  StatementPtr statement_;
  int next_ = 1;
  int bind_error_ = SQLITE_OK;
};

}  // namespace penstock::dataset

#endif  // PENSTOCK_SERVER_DATASET_SQLITE_H_
