#ifndef PENSTOCK_COMMON_STATUS_STATUS_H_
#define PENSTOCK_COMMON_STATUS_STATUS_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns early with the status of `expr` when it is not OK.
#define PENSTOCK_RETURN_IF_ERROR(expr)              \
  do {                                              \
    if (auto _st = (expr); !_st.ok()) return _st;   \
  } while (false)

#define PENSTOCK_STATUS_CONCAT_(a, b) a##b
#define PENSTOCK_STATUS_CONCAT(a, b) PENSTOCK_STATUS_CONCAT_(a, b)

// Evaluates a StatusOr; returns its error or moves its value into `lhs`.
#define PENSTOCK_ASSIGN_OR_RETURN(lhs, expr) \
  PENSTOCK_ASSIGN_OR_RETURN_(                \
      PENSTOCK_STATUS_CONCAT(_status_or_, __LINE__), lhs, expr)
#define PENSTOCK_ASSIGN_OR_RETURN_(tmp, lhs, expr) \
  auto tmp = (expr);                               \
  if (!tmp.ok()) return std::move(tmp).status();   \
  lhs = *std::move(tmp)

namespace penstock {

// The five parts of an error that a person can act on. `found`, `expected` and
// `action` are left empty where they do not exist.
struct Problem {
  std::string where;     // file:line, shard and offset, rank and step, address
  std::string what;      // what is wrong, in one clause
  std::string found;     // what was seen
  std::string expected;  // what would have been right
  std::string action;    // what to do next
};

// "where: what; found …; expected …; do: …" under the given code.
absl::Status MakeError(absl::StatusCode code, const Problem& problem);

// `status` with `where` put in front of its message; OK stays OK.
absl::Status Annotate(const absl::Status& status, std::string_view where);

// errno as a status with all five parts; without an action a general one.
absl::Status ErrnoError(int error_number, std::string_view where,
                        std::string_view action = "");

// The process exit code of DESIGN §9 for an error: 1 the answer is no (bad
// data), 2 usage or configuration, 3 environment; 0 for OK.
int ExitCodeOf(const absl::Status& status);

}  // namespace penstock

#endif  // PENSTOCK_COMMON_STATUS_STATUS_H_
