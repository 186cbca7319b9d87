#include "common/status/status.h"

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace {

std::string Join(const Problem& p) {
  std::string text = p.where.empty() ? p.what : p.where + ": " + p.what;
  if (!p.found.empty()) text += "\n  found     " + p.found;
  if (!p.expected.empty()) text += "\n  expected  " + p.expected;
  if (!p.action.empty()) text += "\n  do        " + p.action;
  return text;
}

}  // namespace

absl::Status MakeError(absl::StatusCode code, const Problem& problem) {
  return absl::Status(code, Join(problem));
}

absl::Status Annotate(const absl::Status& status, std::string_view where) {
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat(std::string(where), ": ",
                                                  status.message()));
}

absl::Status ErrnoError(int error_number, std::string_view where,
                        std::string_view action) {
  // A limit on the size of files is as a full disk, not a wrong option.
  const absl::StatusCode code =
      error_number == EFBIG ? absl::StatusCode::kResourceExhausted
                            : absl::ErrnoToStatusCode(error_number);
  return MakeError(code,
                   {.where = std::string(where),
                    .what = "the system refuses it",
                    .found = std::strerror(error_number),
                    .expected = "no error",
                    .action = action.empty()
                                  ? "check that it is there, its rights and the "
                                    "limits of the process"
                                  : std::string(action)});
}

int ExitCodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return 0;
    case absl::StatusCode::kDataLoss:
      return 1;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented:
      return 2;
    default:
      return 3;
  }
}

}  // namespace penstock
