#include "server/dataset/labels.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_format.h"
#include "common/status/status.h"

namespace penstock::dataset {
namespace {

constexpr std::string_view kCondition = "condition.";

// The value of one column of a capture, by its own statement.
class Column {
 public:
  static absl::StatusOr<Column> Open(sqlite3* db, const std::string& name) {
    const bool condition = name.starts_with(kCondition);
    std::string sql = "SELECT value FROM conditions WHERE capture=? AND key=?";
    if (name == "resolution") {
      sql = "SELECT width||'x'||height FROM captures WHERE ord=?";
    } else if (!condition) {  // title, session, player, fps: CheckFeed
      sql = "SELECT " + name + " FROM captures WHERE ord=?";
    }
    PENSTOCK_ASSIGN_OR_RETURN(Statement s, Statement::Prepare(db, sql));
    return Column(std::move(s), name == "fps",
                  condition ? name.substr(kCondition.size()) : "");
  }

  absl::StatusOr<std::string> Of(std::uint32_t capture) {
    query_.Reset();
    query_.Bind(std::int64_t{capture});
    if (!key_.empty()) query_.Bind(key_);
    PENSTOCK_ASSIGN_OR_RETURN(const bool row, query_.Step());
    if (!row) return std::string();  // a condition that the capture lacks
    return real_ ? absl::StrFormat("%.6g", query_.Real(0)) : query_.Text(0);
  }

 private:
  Column(Statement query, bool real, std::string key)
      : query_(std::move(query)), real_(real), key_(std::move(key)) {}
  Statement query_;
  bool real_;
  std::string key_;
};

}  // namespace

absl::StatusOr<std::vector<std::string>> ReadLabels(
    sqlite3* db, std::span<const std::uint32_t> captures,
    std::span<const std::string> by) {
  std::vector<std::string> out(captures.size());
  for (std::size_t c = 0; c < by.size(); ++c) {
    PENSTOCK_ASSIGN_OR_RETURN(Column column, Column::Open(db, by[c]));
    for (std::size_t i = 0; i < captures.size(); ++i) {
      PENSTOCK_ASSIGN_OR_RETURN(const std::string value, column.Of(captures[i]));
      if (c > 0) out[i] += '|';
      out[i] += value;
    }
  }
  return out;
}

}  // namespace penstock::dataset
