#include "server/cli/command.h"

#include <cstdio>
#include <string>

#include "common/status/status.h"

namespace penstock::cli {

int PrintError(const absl::Status& status) {
  const std::string text(status.message());
  std::fprintf(stderr, "penstock: %s\n", text.c_str());
  return ExitCodeOf(status);
}

}  // namespace penstock::cli
