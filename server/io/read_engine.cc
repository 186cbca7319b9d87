#include "server/io/read_engine.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_format.h"
#include "common/status/status.h"
#include "server/io/engines.h"

namespace penstock::io {

absl::StatusOr<std::shared_ptr<ReadFile>> ReadFile::Open(
    const std::string& path) {
  // Looked at first: opening a pipe would wait for its writer.
  struct stat st;
  if (::stat(path.c_str(), &st) == 0 && !S_ISREG(st.st_mode)) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     {.where = path,
                      .what = "not a regular file",
                      .found = "a folder, device, pipe or socket",
                      .expected = "a shard",
                      .action = "copy the dataset again from its origin"});
  }
  bool direct = true;
  int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
  if (fd < 0 && errno == EINVAL) {  // the file system has no O_DIRECT
    direct = false;
    fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  }
  if (fd < 0) {
    return ErrnoError(errno, path, "copy the dataset again from its origin");
  }
  if (::fstat(fd, &st) != 0) {
    const int error = errno;
    ::close(fd);
    return ErrnoError(error, path);
  }
  return std::shared_ptr<ReadFile>(
      new ReadFile(path, fd, direct, static_cast<std::uint64_t>(st.st_size)));
}

ReadFile::~ReadFile() { ::close(fd_); }

absl::Status CheckRequest(const ReadRequest& r) {
  const auto address = reinterpret_cast<std::uintptr_t>(r.into.data());
  if (r.file == nullptr || r.into.empty() || r.offset % kReadAlignment != 0 ||
      r.into.size() % kReadAlignment != 0 || address % kReadAlignment != 0) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "read of %d bytes at %d: offset, size and address must be multiples of "
        "%d",
        r.into.size(), r.offset, kReadAlignment));
  }
  return absl::OkStatus();
}

absl::Status FinishRead(const ReadRequest& r, std::uint64_t got) {
  if (got >= r.need) return absl::OkStatus();
  return MakeError(
      absl::StatusCode::kDataLoss,
      {.where = absl::StrFormat("%s, byte %d", r.file->path(), r.offset),
       .what = "the file ends before the range does",
       .found = absl::StrFormat("%d bytes", got),
       .expected = absl::StrFormat("%d", r.need),
       .action = "run `penstock verify` on the dataset"});
}

absl::StatusOr<std::unique_ptr<ReadEngine>> StartReadEngine(
    const ReadEngineOptions& options, std::string* why) {
  if (options.backend != Backend::kPread) {
    auto uring = StartUringEngine(options);
    if (uring.ok()) return uring;
    if (why != nullptr) *why = std::string(uring.status().message());
    if (options.backend == Backend::kUring) {
      return MakeError(
          absl::StatusCode::kFailedPrecondition,
          {.where = "io: io_uring",
           .what = "io_uring was asked for and is refused",
           .found = std::string(uring.status().message()),
           .expected = "a kernel and a sandbox that allow it",
           .action = "allow io_uring in the seccomp profile and in "
                     "kernel.io_uring_disabled, or set io: auto"});
    }
  }
  return StartPreadEngine(options);
}

}  // namespace penstock::io
