#include "server/cli/output_file.h"

#include <sys/stat.h>

#include <cstdint>
#include <span>

#include "common/status/status.h"
#include "server/dataset/cache_file.h"

namespace penstock::cli {
namespace {

// A rename would put a file in the place of a device, a pipe or a link.
absl::Status CheckPlace(const std::string& path) {
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0 || S_ISREG(info.st_mode)) {
    return absl::OkStatus();
  }
  return MakeError(absl::StatusCode::kInvalidArgument,
                   {.where = path,
                    .what = "cannot be replaced by a file",
                    .found = S_ISDIR(info.st_mode) ? "a folder" : "no regular file",
                    .expected = "a regular file, or nothing",
                    .action = "name another file"});
}

}  // namespace

absl::Status WriteOutputFile(const std::string& path, std::string_view text) {
  PENSTOCK_RETURN_IF_ERROR(CheckPlace(path));
  // The rights that any new file has.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return dataset::ReplaceFile(
      path, {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()},
      0666 & ~mask);
}

}  // namespace penstock::cli
