#include "server/app/dir_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "absl/strings/str_format.h"
#include "common/status/status.h"

namespace penstock::app {

absl::StatusOr<std::unique_ptr<DirLock>> DirLock::Take(const std::string& dir,
                                                       const char* what) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  const std::string action =
      absl::StrFormat("set %s to a folder that this user may write", what);
  if (error) return ErrnoError(error.value(), std::string(what) + " " + dir, action);
  const std::string path = dir + "/penstockd.lock";
  const int fd = ::open(path.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0640);
  if (fd < 0) return ErrnoError(errno, std::string(what) + " " + path, action);
  std::unique_ptr<DirLock> lock(new DirLock(fd));
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    char pid[32] = {};
    const ssize_t n = ::pread(fd, pid, sizeof(pid) - 1, 0);
    return MakeError(
        absl::StatusCode::kFailedPrecondition,
        {.where = std::string(what) + " " + dir,
         .what = "another penstockd owns this folder",
         .found = "pid " + std::string(pid, n > 0 ? static_cast<std::size_t>(n) : 0),
         .expected = "one daemon for each folder",
         .action = "end that daemon, or give this one other folders"});
  }
  const std::string pid = std::to_string(::getpid());
  if (::ftruncate(fd, 0) != 0 ||
      ::pwrite(fd, pid.data(), pid.size(), 0) !=
          static_cast<ssize_t>(pid.size())) {
    return ErrnoError(errno, path, action);
  }
  return lock;
}

DirLock::~DirLock() { ::close(fd_); }

}  // namespace penstock::app
