#include "server/dataset/sqlite.h"

#include <algorithm>
#include <cctype>

#include "absl/strings/str_cat.h"
#include "common/status/status.h"

namespace penstock::dataset {
namespace {

absl::StatusCode CodeOf(int sqlite_code) {
  switch (sqlite_code & 0xFF) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::StatusCode::kDataLoss;
    case SQLITE_CANTOPEN:
      return absl::StatusCode::kNotFound;
    case SQLITE_PERM:
    case SQLITE_READONLY:
      return absl::StatusCode::kPermissionDenied;
    case SQLITE_FULL:
    case SQLITE_NOMEM:
    case SQLITE_TOOBIG:
    case SQLITE_INTERRUPT:
      return absl::StatusCode::kResourceExhausted;
    case SQLITE_ERROR:
    case SQLITE_AUTH:
    case SQLITE_RANGE:
      return absl::StatusCode::kInvalidArgument;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

// A path as the path part of a file: URI.
std::string UriPath(const std::string& path) {
  static constexpr char kHex[] = "0123456789ABCDEF";
  std::string out;
  for (unsigned char c : path) {
    if (std::isalnum(c) || c == '/' || c == '.' || c == '-' || c == '_') {
      out += static_cast<char>(c);
    } else {
      out += {'%', kHex[c >> 4], kHex[c & 15]};
    }
  }
  return out;
}

}  // namespace

absl::Status SqliteError(sqlite3* db, int code, std::string_view where) {
  const char* words = db != nullptr ? sqlite3_errmsg(db) : sqlite3_errstr(code);
  return absl::Status(CodeOf(code),
                      absl::StrCat(std::string(where), ": ", words));
}

absl::StatusOr<DbPtr> OpenDb(const std::string& uri, int flags) {
  sqlite3* raw = nullptr;
  const int rc = sqlite3_open_v2(uri.c_str(), &raw, flags, nullptr);
  DbPtr db(raw);  // SQLite gives a handle even when it fails
  if (rc != SQLITE_OK) return SqliteError(db.get(), rc, uri);
  sqlite3_extended_result_codes(db.get(), 1);
  return db;
}

absl::StatusOr<DbPtr> OpenCatalogDb(const std::string& path) {
  PENSTOCK_ASSIGN_OR_RETURN(
      DbPtr db,
      OpenDb(absl::StrCat("file:", UriPath(path), "?immutable=1&mode=ro"),
             SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX));
  sqlite3_db_config(db.get(), SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(db.get(), SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(db.get(), SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0,
                    nullptr);
  sqlite3_db_config(db.get(), SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  // "abc" is a column or an error, never silently a text.
  sqlite3_db_config(db.get(), SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
  sqlite3_limit(db.get(), SQLITE_LIMIT_LENGTH, 64 << 20);
  sqlite3_limit(db.get(), SQLITE_LIMIT_SQL_LENGTH, 1 << 20);
  sqlite3_limit(db.get(), SQLITE_LIMIT_ATTACHED, 0);
  sqlite3_limit(db.get(), SQLITE_LIMIT_EXPR_DEPTH, 200);
  PENSTOCK_RETURN_IF_ERROR(
      Execute(db.get(), "PRAGMA cell_size_check=ON; PRAGMA mmap_size=0;"));
  return db;
}

absl::Status Execute(sqlite3* db, const char* sql) {
  const int rc = sqlite3_exec(db, sql, nullptr, nullptr, nullptr);
  return rc == SQLITE_OK ? absl::OkStatus() : SqliteError(db, rc, sql);
}

absl::StatusOr<Statement> Statement::Prepare(sqlite3* db,
                                             std::string_view sql) {
  sqlite3_stmt* raw = nullptr;
  const int rc = sqlite3_prepare_v2(
      db, sql.data(), static_cast<int>(sql.size()), &raw, nullptr);
  if (rc != SQLITE_OK) return SqliteError(db, rc, sql.substr(0, 200));
  Statement out;
  out.statement_.reset(raw);
  return out;
}

Statement& Statement::Bind(std::int64_t v) {
  bind_error_ |= sqlite3_bind_int64(statement_.get(), next_++, v);
  return *this;
}

Statement& Statement::Bind(double v) {
  bind_error_ |= sqlite3_bind_double(statement_.get(), next_++, v);
  return *this;
}

Statement& Statement::Bind(std::string_view v) {
  bind_error_ |= sqlite3_bind_text64(statement_.get(), next_++, v.data(),
                                     v.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
  return *this;
}

absl::StatusOr<bool> Statement::Step() {
  sqlite3* db = sqlite3_db_handle(statement_.get());
  if (bind_error_ != SQLITE_OK) return SqliteError(db, bind_error_, "bind");
  const int rc = sqlite3_step(statement_.get());
  if (rc == SQLITE_ROW) return true;
  if (rc == SQLITE_DONE) return false;
  const char* sql = sqlite3_sql(statement_.get());
  return SqliteError(db, rc, std::string_view(sql).substr(0, 200));
}

absl::Status Statement::Run() {
  absl::Status status;
  for (;;) {
    auto row = Step();
    status = row.status();
    if (!row.ok() || !*row) break;
  }
  Reset();
  return status;
}

void Statement::Reset() {
  sqlite3_reset(statement_.get());
  sqlite3_clear_bindings(statement_.get());
  next_ = 1;
  bind_error_ = SQLITE_OK;
}

std::int64_t Statement::Int(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double Statement::Real(int column) const {
  return sqlite3_column_double(statement_.get(), column);
}

std::string Statement::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(
      sqlite3_column_text(statement_.get(), column));
  return text == nullptr ? ""
                         : std::string(text, sqlite3_column_bytes(
                                                 statement_.get(), column));
}

}  // namespace penstock::dataset
