#include "server/dataset/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/hash/hash.h"
#include "common/status/status.h"

namespace penstock::dataset {
namespace {

constexpr std::size_t kPartBytes = 256u << 10;

class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// Size of a regular file.
absl::StatusOr<std::uint64_t> SizeOf(const Fd& fd, const std::string& path) {
  struct stat st {};
  if (fd.get() < 0 || ::fstat(fd.get(), &st) != 0) {
    return ErrnoError(errno, path);
  }
  if (!S_ISREG(st.st_mode)) {
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     {.where = path,
                      .what = "not a regular file",
                      .found = "a folder, device, pipe or socket",
                      .expected = "a file of the dataset",
                      .action = "copy the dataset again from its origin"});
  }
  return static_cast<std::uint64_t>(st.st_size);
}

int OpenRead(const std::string& path) {
  // NONBLOCK: a FIFO under the name must not hang the open.
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

}  // namespace

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  Fd fd(OpenRead(path));
  PENSTOCK_ASSIGN_OR_RETURN(std::uint64_t size, SizeOf(fd, path));
  MappedFile file;
  if (size == 0) return file;
  void* p = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd.get(), 0);
  if (p == MAP_FAILED) return ErrnoError(errno, "mmap of " + path);
  file.data_ = static_cast<const std::uint8_t*>(p);
  file.size_ = size;
  return file;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::uint8_t*>(data_), size_);
}

void MappedFile::Release() const {
  if (data_ != nullptr) {
    ::madvise(const_cast<std::uint8_t*>(data_), size_, MADV_DONTNEED);
  }
}

absl::StatusOr<FileDigest> DigestFile(
    const std::string& path, std::size_t overlap,
    const std::function<void(std::string_view)>& use) {
  Fd fd(OpenRead(path));
  PENSTOCK_RETURN_IF_ERROR(SizeOf(fd, path).status());
  hash::Xxh3Stream xxh3;
  FileDigest out;
  std::string part(overlap + kPartBytes, '\0');
  std::size_t kept = 0;  // of the part before
  for (;;) {
    const ssize_t n = ::read(fd.get(), part.data() + kept, kPartBytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, path);
    if (n == 0) break;
    const std::string_view text(part.data(), kept + static_cast<std::size_t>(n));
    xxh3.Update(hash::AsBytes(text.substr(kept)));
    out.bytes += static_cast<std::uint64_t>(n);
    use(text);
    kept = std::min(overlap, text.size());
    part.replace(0, kept, text.substr(text.size() - kept));
  }
  out.xxh3 = xxh3.Digest();
  return out;
}

absl::StatusOr<std::string> ReadSmallFile(const std::string& path,
                                          std::uint64_t bytes_max) {
  Fd fd(OpenRead(path));
  PENSTOCK_ASSIGN_OR_RETURN(std::uint64_t size, SizeOf(fd, path));
  if (size > bytes_max) {
    return MakeError(absl::StatusCode::kResourceExhausted,
                     {.where = path,
                      .what = "the file is too large",
                      .found = absl::StrCat(size, " bytes"),
                      .expected = absl::StrCat("at most ", bytes_max),
                      .action = "copy the dataset again from its origin"});
  }
  std::string text(size, '\0');
  std::size_t at = 0;
  while (at < size) {
    const ssize_t n =
        ::pread(fd.get(), text.data() + at, size - at, static_cast<off_t>(at));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, path);
    if (n == 0) break;  // cut while we read; the parser will say so
    at += static_cast<std::size_t>(n);
  }
  text.resize(at);
  return text;
}

}  // namespace penstock::dataset
