#include "common/shm/mapping.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include "absl/strings/str_format.h"
#include "common/status/status.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

namespace penstock::shm {

absl::StatusOr<Mapping> Mapping::Map(int fd, std::uint64_t bytes, Access access,
                                     std::string_view what) {
  struct stat st = {};
  if (fstat(fd, &st) != 0) {
    return ErrnoError(errno, absl::StrFormat("%s: fstat", what));
  }
  if (bytes == 0 || st.st_size < 0 ||
      static_cast<std::uint64_t>(st.st_size) != bytes) {
    return MakeError(absl::StatusCode::kInvalidArgument,
                     {.where = std::string(what),
                      .what = "shared memory of another size",
                      .found = absl::StrFormat("%d bytes", st.st_size),
                      .expected = absl::StrFormat("%d", bytes),
                      .action = "connect to a penstockd of this version"});
  }
  const int protection =
      access == Access::kRead ? PROT_READ : PROT_READ | PROT_WRITE;
  void* p = mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  if (p == MAP_FAILED) {
    return ErrnoError(errno, absl::StrFormat("%s: mmap of %d bytes", what, bytes));
  }
  Mapping m;
  m.data_ = static_cast<std::uint8_t*>(p);
  m.bytes_ = bytes;
  return m;
}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  if (this != &other) {
    Unmap();
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void Mapping::Unmap() {
  if (data_ != nullptr) munmap(data_, bytes_);
  data_ = nullptr;
  bytes_ = 0;
}

void Populate(const std::uint8_t* data, std::uint64_t bytes, Access access) {
  static const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(data) / page * page;
  const auto end = reinterpret_cast<std::uintptr_t>(data) + bytes;
  if (bytes == 0) return;
  // A failure (EINVAL before Linux 5.14, ENOMEM) leaves the pages to faults,
  // which report it where the bytes are used.
  (void)madvise(reinterpret_cast<void*>(begin), end - begin,
                access == Access::kRead ? MADV_POPULATE_READ
                                        : MADV_POPULATE_WRITE);
}

}  // namespace penstock::shm
