#include "server/dataset/cache_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "common/status/status.h"

namespace penstock::dataset {
namespace {

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && value[0] == '/' ? value : "";
}

absl::Status Refused(int error_number, const std::string& path) {
  return ErrnoError(error_number, path,
                    "check that the folder is there and may be written to, and that "
                    "the disk has room");
}

absl::Status WriteAll(int fd, std::span<const std::uint8_t> bytes,
                      const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return Refused(errno, path);
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return absl::OkStatus();
}

}  // namespace

std::string CacheFolder() {
  if (std::string dir = Variable("CACHE_DIRECTORY"); !dir.empty()) return dir;
  if (std::string dir = Variable("XDG_CACHE_HOME"); !dir.empty()) {
    return dir + "/penstock";
  }
  const std::string home = Variable("HOME");
  return home.empty() ? "" : home + "/.cache/penstock";
}

absl::Status ReplaceFile(const std::string& path, std::span<const std::uint8_t> bytes,
                         mode_t rights) {
  std::string temporary = path + ".XXXXXX";
  const int fd = ::mkostemp(temporary.data(), O_CLOEXEC);
  if (fd < 0) return Refused(errno, path);
  absl::Status status = WriteAll(fd, bytes, path);
  if (status.ok() && (::fchmod(fd, rights) != 0 || ::fsync(fd) != 0)) {
    status = Refused(errno, path);
  }
  if (::close(fd) != 0 && status.ok()) status = Refused(errno, path);
  if (status.ok() && std::rename(temporary.c_str(), path.c_str()) != 0) {
    status = Refused(errno, path);
  }
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

absl::Status KeepFile(const std::string& path, std::span<const std::uint8_t> bytes) {
  const auto folder = std::filesystem::path(path).parent_path();
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return Refused(error.value(), folder.string());
  return ReplaceFile(path, bytes, 0600);
}

}  // namespace penstock::dataset
