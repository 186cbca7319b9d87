#include "server/cli/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>

#include "common/status/status.h"

namespace penstock::cli {
namespace {

constexpr char kAction[] =
    "check that the folder is there and may be written to, and that the disk has room";

absl::Status Refused(int error_number, const std::string& path) {
  const absl::Status status = ErrnoError(error_number, path, kAction);
  // A limit on files is as a full disk, not a wrong option.
  return error_number == EFBIG
             ? absl::Status(absl::StatusCode::kResourceExhausted, status.message())
             : status;
}

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

absl::Status WriteAll(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Refused(errno, path);
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  // mkostemp leaves it to the owner; it gets the rights that any new file has.
  const mode_t mask = ::umask(0);
  ::umask(mask);
  if (::fchmod(fd, 0666 & ~mask) != 0 || ::fsync(fd) != 0) {
    return Refused(errno, path);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status WriteOutputFile(const std::string& path, std::string_view text) {
  PENSTOCK_RETURN_IF_ERROR(CheckPlace(path));
  std::string temporary = path + ".XXXXXX";
  const int fd = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return Refused(errno, path);
  absl::Status status = WriteAll(fd, text, path);
  if (::close(fd) != 0 && status.ok()) status = Refused(errno, path);
  if (status.ok() && std::rename(temporary.c_str(), path.c_str()) != 0) {
    status = Refused(errno, path);
  }
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

}  // namespace penstock::cli
