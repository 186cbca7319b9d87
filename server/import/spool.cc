#include "server/import/spool.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "common/status/status.h"

namespace penstock::import {
namespace {
constexpr std::size_t kFlushBytes = 1 << 20;
}

absl::Status WriteAll(int fd, std::span<const std::uint8_t> bytes,
                      const std::string& where) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) {
        return MakeError(
            absl::StatusCode::kResourceExhausted,
            {.where = where,
             .what = "the disk is full: nothing was published, the output "
                     "folder is as it was before",
             .found = "no space left, or a quota or file size limit",
             .expected = "room for the dataset: about the size of the sources",
             .action = "free space or give --out on another disk, and run the "
                       "same command again"});
      }
      return ErrnoError(errno, where, "check the disk and run again");
    }
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Spool>> Spool::Create(const std::string& dir) {
  int fd = ::open(dir.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) {  // a file system without O_TMPFILE
    std::string name = dir + "/spool.XXXXXX";
    fd = ::mkostemp(name.data(), O_CLOEXEC);
    if (fd < 0) return ErrnoError(errno, dir, "check that it is writable");
    ::unlink(name.c_str());
  }
  return std::unique_ptr<Spool>(new Spool(fd));
}

Spool::~Spool() {
  if (map_ != nullptr) ::munmap(map_, map_bytes_);
  ::close(fd_);
}

absl::StatusOr<std::uint64_t> Spool::Append(
    std::span<const std::uint8_t> bytes) {
  const std::uint64_t at = bytes_;
  pending_.insert(pending_.end(), bytes.begin(), bytes.end());
  bytes_ += bytes.size();
  if (pending_.size() >= kFlushBytes) PENSTOCK_RETURN_IF_ERROR(Flush());
  return at;
}

absl::Status Spool::Flush() {
  PENSTOCK_RETURN_IF_ERROR(WriteAll(fd_, pending_, "spool of the import"));
  pending_.clear();
  return absl::OkStatus();
}

absl::StatusOr<std::span<const std::uint8_t>> Spool::Map() {
  PENSTOCK_RETURN_IF_ERROR(Flush());
  if (map_ == nullptr && bytes_ > 0) {
    void* p = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, fd_, 0);
    if (p == MAP_FAILED) return ErrnoError(errno, "mmap of the import's spool");
    map_ = p;
    map_bytes_ = bytes_;
  }
  return std::span(static_cast<const std::uint8_t*>(map_), map_bytes_);
}

}  // namespace penstock::import
