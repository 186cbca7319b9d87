#ifndef PENSTOCK_SERVER_IO_READ_ENGINE_H_
#define PENSTOCK_SERVER_IO_READ_ENGINE_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace penstock::io {

// O_DIRECT wants offset, length and address on this boundary.
inline constexpr std::size_t kReadAlignment = 4096;

// A file opened for reads through an engine; O_DIRECT where the file system
// takes it.
class ReadFile {
 public:
  // kInvalidArgument: not a regular file
  // kNotFound, kPermissionDenied, …: from errno
  static absl::StatusOr<std::shared_ptr<ReadFile>> Open(
      const std::string& path);
  ~ReadFile();
  ReadFile(const ReadFile&) = delete;
  ReadFile& operator=(const ReadFile&) = delete;

  int fd() const { return fd_; }
  bool direct() const { return direct_; }
  std::uint64_t bytes() const { return bytes_; }
  const std::string& path() const { return path_; }

 private:
  ReadFile(std::string path, int fd, bool direct, std::uint64_t bytes)
      : path_(std::move(path)), fd_(fd), direct_(direct), bytes_(bytes) {}
  std::string path_;
  int fd_;
  bool direct_;
  std::uint64_t bytes_;
};

// Reads [offset, offset + into.size()) into `into`. Offset, size and address
// are multiples of kReadAlignment. The file may end inside the range when at
// least `need` bytes were read.
struct ReadRequest {
  std::shared_ptr<ReadFile> file;
  std::uint64_t offset = 0;
  std::span<std::uint8_t> into;
  std::uint64_t need = 0;
  // Runs on the engine's thread: record and return. The buffer belongs to the
  // engine until then, also after a cancellation.
  std::function<void(absl::Status)> done;
};

struct ReadStats {
  std::uint64_t reads = 0, bytes = 0, short_reads = 0, errors = 0;
};

// Reads byte ranges of files, many at a time.
//
// Threading: Submit() from any thread; `done` on the engine's thread.
// Bounds: at most `depth` reads in the kernel and `backlog` waiting; then
//   Submit() returns kResourceExhausted and does not call `done`.
// Stopping: the destructor refuses new reads, waits until the kernel has
//   returned every buffer, and completes the backlog with kCancelled.
class ReadEngine {
 public:
  virtual ~ReadEngine() = default;
  // kResourceExhausted: the backlog is full; kInvalidArgument: not aligned
  virtual absl::Status Submit(ReadRequest request) = 0;
  virtual std::string backend() const = 0;  // "io_uring" or "pread"
  virtual ReadStats stats() const = 0;
};

enum class Backend { kAuto, kUring, kPread };

struct ReadEngineOptions {
  Backend backend = Backend::kAuto;
  unsigned depth = 32;
  unsigned backlog = 65536;
};

// kAuto takes io_uring, and the pread pool where the kernel or a sandbox
// refuses it; `why` (may be null) then says what was refused.
//
// kFailedPrecondition: kUring was asked for and is refused
absl::StatusOr<std::unique_ptr<ReadEngine>> StartReadEngine(
    const ReadEngineOptions& options, std::string* why);

}  // namespace penstock::io

#endif  // PENSTOCK_SERVER_IO_READ_ENGINE_H_
