#include "server/dataset/labels.h"

#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/status/status.h"

namespace penstock::dataset {
namespace {

constexpr std::string_view kCondition = "condition.";

// What a column is read with; `value` of a row with its capture before it.
struct Query {
  std::string value, table = "captures", capture = "ord";
  std::string key;    // of a condition
  bool real = false;

  static Query Of(const std::string& name) {
    if (name.starts_with(kCondition)) {
      return {.value = "value", .table = "conditions", .capture = "capture",
              .key = name.substr(kCondition.size())};
    }
    if (name == "resolution") return {.value = "width||'x'||height"};
    return {.value = name, .real = name == "fps"};  // or title, …: CheckFeed
  }

  // `where`: a condition on the capture, or empty.
  absl::StatusOr<Statement> Prepare(sqlite3* db, std::string where) const {
    if (!key.empty()) where += where.empty() ? "key=?" : " AND key=?";
    return Statement::Prepare(
        db, absl::StrCat("SELECT ", capture, ",", value, " FROM ", table,
                         where.empty() ? "" : " WHERE ", where));
  }

  std::string Value(const Statement& s) const {
    return real ? absl::StrFormat("%.6g", s.Real(1)) : s.Text(1);
  }
};

}  // namespace

absl::StatusOr<TextColumn> ReadColumn(sqlite3* db, const std::string& name,
                                      std::uint64_t capture_count) {
  const Query query = Query::Of(name);
  PENSTOCK_ASSIGN_OR_RETURN(Statement s, query.Prepare(db, ""));
  if (!query.key.empty()) s.Bind(query.key);
  TextColumn out;
  out.values.emplace_back();
  out.codes.resize(capture_count);
  absl::flat_hash_map<std::string, std::uint32_t> known = {{"", 0}};
  for (;;) {
    PENSTOCK_ASSIGN_OR_RETURN(const bool row, s.Step());
    if (!row) return out;
    const auto capture = static_cast<std::uint64_t>(s.Int(0));
    if (capture >= capture_count) continue;
    std::string value = query.Value(s);
    const auto [at, added] = known.try_emplace(
        value, static_cast<std::uint32_t>(out.values.size()));
    if (added) out.values.push_back(std::move(value));
    out.codes[capture] = at->second;
  }
}

absl::StatusOr<std::vector<std::string>> ReadValues(
    sqlite3* db, const std::string& name,
    std::span<const std::uint32_t> captures) {
  const Query query = Query::Of(name);
  PENSTOCK_ASSIGN_OR_RETURN(Statement s, query.Prepare(db, query.capture + "=?"));
  std::vector<std::string> out;
  out.reserve(captures.size());
  for (const std::uint32_t capture : captures) {
    s.Reset();
    s.Bind(std::int64_t{capture});
    if (!query.key.empty()) s.Bind(query.key);
    PENSTOCK_ASSIGN_OR_RETURN(const bool row, s.Step());
    out.push_back(row ? query.Value(s) : "");
  }
  return out;
}

}  // namespace penstock::dataset
