#include "server/dataset/filter.h"

#include <algorithm>
#include <array>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/status/status.h"

namespace penstock::dataset {
namespace {

// What a filter sees as `captures`: no source path (it is not in the dataset
// id, so a filter on it would not be pure), conditions as a JSON object.
constexpr char kBefore[] =
    "WITH captures AS (SELECT ord,id,title,session,player,licence,duration_s,"
    "frames,width,height,fps,damaged,(SELECT json_group_object(key,value) FROM "
    "(SELECT key,value FROM conditions WHERE capture=c.ord ORDER BY key)) AS "
    "conditions FROM main.captures AS c) SELECT ord FROM captures WHERE (";
constexpr char kAfter[] = "\n) ORDER BY ord";

// Pure functions only, equal on every build of SQLite. Sorted.
constexpr std::array<std::string_view, 31> kFunctions = {
    "->",           "->>",
    "abs",          "char",
    "coalesce",     "count",
    "glob",         "hex",
    "ifnull",       "iif",
    "instr",        "json_array_length",
    "json_extract", "json_group_object",
    "json_type",    "length",
    "like",         "lower",
    "ltrim",        "max",
    "min",          "nullif",
    "replace",      "round",
    "rtrim",        "sign",
    "substr",       "sum",
    "trim",         "typeof",
    "upper"};
static_assert(std::is_sorted(kFunctions.begin(), kFunctions.end()));

constexpr int kProgressEvery = 1000;  // SQLite instructions
constexpr std::uint64_t kInstructions = 20'000'000;
constexpr std::uint64_t kInstructionsPerCapture = 2'000;

struct Guard {
  std::string denied;      // what the authorizer refused first
  std::uint64_t left = 0;  // progress calls
};

bool MayRead(std::string_view table, std::string_view column) {
  if (table == "captures") return column != "source";
  if (table == "spans") return column != "detector" && column != "version";
  return table == "conditions" || table == "tracks";
}

bool Known(std::string_view function) {
  std::string name(function);
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return std::binary_search(kFunctions.begin(), kFunctions.end(), name);
}

int Authorize(void* user, int action, const char* a, const char* b, const char*,
              const char*) {
  const std::string_view first = a == nullptr ? "" : a;
  const std::string_view second = b == nullptr ? "" : b;
  std::string refused;
  switch (action) {
    case SQLITE_SELECT:
      return SQLITE_OK;
    case SQLITE_READ:
      if (MayRead(first, second)) return SQLITE_OK;
      refused =
          absl::StrCat("column ", std::string(first), ".", std::string(second));
      break;
    case SQLITE_FUNCTION:
      if (Known(second)) return SQLITE_OK;
      refused = absl::StrCat("function ", std::string(second), "()");
      break;
    default:
      refused = absl::StrCat("SQLite action ", action, " ", std::string(first));
  }
  auto* guard = static_cast<Guard*>(user);
  if (guard->denied.empty()) guard->denied = refused;
  return SQLITE_DENY;
}

int Progress(void* user) {
  auto* guard = static_cast<Guard*>(user);
  if (guard->left == 0) return 1;
  --guard->left;
  return 0;
}

// Sets the guards for the time of one query.
class Guarded {
 public:
  Guarded(sqlite3* db, Guard* guard) : db_(db) {
    sqlite3_set_authorizer(db, Authorize, guard);
    sqlite3_progress_handler(db, kProgressEvery, Progress, guard);
    length_ = sqlite3_limit(db, SQLITE_LIMIT_LENGTH, 1 << 20);
  }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() {
    sqlite3_set_authorizer(db_, nullptr, nullptr);
    sqlite3_progress_handler(db_, 0, nullptr, nullptr);
    sqlite3_limit(db_, SQLITE_LIMIT_LENGTH, length_);
  }

 private:
  sqlite3* db_;
  int length_;
};

// End of a quoted text that starts at `at`, or npos. A doubled quote closes one
// text and opens the next: the same to us.
std::size_t SkipQuoted(std::string_view text, std::size_t at) {
  const char close = text[at] == '[' ? ']' : text[at];
  return text.find(close, at + 1);
}

// What makes `filter` more or less than one expression, or empty. It is put
// between parentheses: it must not close them, end the statement or hide them.
std::string WhyNotExpression(std::string_view filter) {
  if (filter.size() > kFilterBytesMax) return "longer than 64 KiB";
  int depth = 0;
  for (std::size_t i = 0; i < filter.size(); ++i) {
    const char c = filter[i];
    const char next = i + 1 < filter.size() ? filter[i + 1] : ' ';
    if (c == '\'' || c == '"' || c == '`' || c == '[') {
      i = SkipQuoted(filter, i);
      if (i == std::string_view::npos) return "a quote is not closed";
    } else if (c == '(') {
      ++depth;
    } else if (c == ')' && --depth < 0) {
      return "a closing parenthesis too many";
    } else if (c == ';' || c == '\0' || c == '?') {
      return "statements and parameters are not allowed";
    } else if ((c == '-' && next == '-') || (c == '/' && next == '*')) {
      return "comments are not allowed";
    }
  }
  return depth == 0 ? "" : "a parenthesis is not closed";
}

absl::Status Refused(absl::StatusCode code, std::string_view filter,
                     std::string what) {
  return MakeError(
      code,
      {.where = "filter",
       .what = std::move(what),
       .found = std::string(filter.substr(0, 300)),
       .expected = "a predicate over captures(ord, id, title, session, player, "
                   "licence, duration_s, frames, width, height, fps, damaged, "
                   "conditions ->> 'key'), with pure functions only",
       .action = "correct the filter in the feed"});
}

// Names the reason of a failed prepare or step.
absl::Status Explain(sqlite3* db, const absl::Status& status,
                     std::string_view filter, const Guard& guard) {
  if (!guard.denied.empty()) {
    return Refused(absl::StatusCode::kInvalidArgument, filter,
                   guard.denied + " is not allowed in a filter");
  }
  if (status.code() == absl::StatusCode::kResourceExhausted) {
    return Refused(status.code(), filter,
                   "the filter needs more work or memory than its limit");
  }
  return Refused(status.code(), filter, sqlite3_errmsg(db));
}

absl::StatusOr<std::vector<std::uint32_t>> Run(sqlite3* db,
                                               const std::string& sql) {
  PENSTOCK_ASSIGN_OR_RETURN(Statement s, Statement::Prepare(db, sql));
  std::vector<std::uint32_t> out;
  for (;;) {
    PENSTOCK_ASSIGN_OR_RETURN(bool row, s.Step());
    if (!row) return out;
    out.push_back(static_cast<std::uint32_t>(s.Int(0)));
  }
}

}  // namespace

absl::StatusOr<std::vector<std::uint32_t>> SelectCaptures(
    sqlite3* db, std::string_view filter, std::uint64_t capture_count) {
  if (std::string why = WhyNotExpression(filter); !why.empty()) {
    return Refused(absl::StatusCode::kInvalidArgument, filter, why);
  }
  Guard guard{.left =
                  (kInstructions + kInstructionsPerCapture * capture_count) /
                  kProgressEvery};
  Guarded guarded(db, &guard);
  auto out = Run(db, absl::StrCat(kBefore, std::string(filter), kAfter));
  if (!out.ok()) return Explain(db, out.status(), filter, guard);
  return out;
}

}  // namespace penstock::dataset
