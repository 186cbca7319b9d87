#ifndef PENSTOCK_SERVER_CLI_OUTPUT_FILE_H_
#define PENSTOCK_SERVER_CLI_OUTPUT_FILE_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace penstock::cli {

// Writes a file that a user asked for: beside it first, then renamed, so that the
// old file stays whole until the new one is. Makes no folder.
//
// kInvalidArgument: something else than a file is there
// Errors:           from errno
absl::Status WriteOutputFile(const std::string& path, std::string_view text);

}  // namespace penstock::cli

#endif  // PENSTOCK_SERVER_CLI_OUTPUT_FILE_H_
