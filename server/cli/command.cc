#include "server/cli/command.h"

#include <cstdio>
#include <string>

#include "absl/strings/str_format.h"
#include "common/status/status.h"

namespace penstock::cli {

int PrintError(const absl::Status& status) {
  const std::string text(status.message());
  std::fprintf(stderr, "penstock: %s\n", text.c_str());
  return ExitCodeOf(status);
}

absl::Status CheckRank(std::uint32_t rank, std::uint32_t world) {
  if (rank < world) return absl::OkStatus();
  return MakeError(absl::StatusCode::kOutOfRange,
                   {.where = "--rank",
                    .what = "no such data rank",
                    .found = absl::StrFormat("rank %d of %d", rank, world),
                    .expected = absl::StrFormat("0 to %d", world - 1),
                    .action = "correct --rank or --world"});
}

}  // namespace penstock::cli
