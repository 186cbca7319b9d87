#ifndef PENSTOCK_COMMON_SHM_ARENA_H_
#define PENSTOCK_COMMON_SHM_ARENA_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>

#include "absl/status/statusor.h"
#include "common/shm/mapping.h"
#include "common/shm/unique_fd.h"

namespace penstock::shm {

// Populates a mapping in pieces on its own thread, so that nobody pays first
// touch later. Stopping: the destructor, after the piece in progress (4 MiB).
class BackgroundPopulate {
 public:
  BackgroundPopulate(std::span<const std::uint8_t> bytes, Access access);
  ~BackgroundPopulate();
  BackgroundPopulate(const BackgroundPopulate&) = delete;
  BackgroundPopulate& operator=(const BackgroundPopulate&) = delete;
  // Blocks until everything is populated.
  void Wait();

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

// Anonymous shared memory (memfd) that this process writes: the arena of a job,
// or the area where the daemon puts what workers read.
//
// Threading: Create, Seal and destruction by one thread; bytes() from any.
// Ownership: descriptor and mapping; no name anywhere, gone with the last
//   process that holds it (B-34).
// Life: Create -> hand fd() to those who must write (AddArena of the worker
//   pool) -> Seal -> hand fd() to clients. After Seal nobody can map it for
//   writing again, resize it or write() to it, whatever their uid
//   (RELIABILITY finding 1); mappings made before, and their copies in forked
//   children, go on writing.
// Bounds: one mapping of `bytes`, one thread while populating.
class Arena {
 public:
  // kInvalidArgument: bytes is 0; kResourceExhausted or the errno's code:
  // the kernel refuses
  static absl::StatusOr<std::unique_ptr<Arena>> Create(std::uint64_t bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // F_SEAL_SHRINK | GROW | FUTURE_WRITE | SEAL. Idempotent.
  absl::Status Seal();
  bool sealed() const { return sealed_; }
  // Starts populating for writing; at most once.
  void PopulateInBackground();
  // Returns when the background thread is finished (at once without one).
  void WaitPopulated();

  int fd() const { return fd_.get(); }
  std::uint64_t size() const { return mapping_.size(); }
  std::span<std::uint8_t> bytes() const { return mapping_.bytes(); }

 private:
  Arena(UniqueFd fd, Mapping mapping);

  UniqueFd fd_;
  Mapping mapping_;
  bool sealed_ = false;
  std::unique_ptr<BackgroundPopulate> populate_;  // ends before the mapping
};

// A client's view of an arena.
//
// Map() checks what the client must know before it trusts the memory not to
// vanish under it: the exact size, and the seals (an unsealed file could be
// shrunk: SIGBUS). Content is never trusted as a length or an index.
class ReadOnlyMapping {
 public:
  // The descriptor may be closed afterwards. With `populate`, pages are made
  // present in the background.
  //
  // kInvalidArgument: another size; kFailedPrecondition: a seal is missing
  static absl::StatusOr<std::unique_ptr<ReadOnlyMapping>> Map(
      int fd, std::uint64_t bytes, bool populate = false);
  ReadOnlyMapping(const ReadOnlyMapping&) = delete;
  ReadOnlyMapping& operator=(const ReadOnlyMapping&) = delete;

  std::uint64_t size() const { return mapping_.size(); }
  std::span<const std::uint8_t> bytes() const { return mapping_.bytes(); }
  // [offset, offset + bytes), or kOutOfRange.
  absl::StatusOr<std::span<const std::uint8_t>> Slice(
      std::uint64_t offset, std::uint64_t bytes) const;

 private:
  explicit ReadOnlyMapping(Mapping mapping) : mapping_(std::move(mapping)) {}

  Mapping mapping_;
  std::unique_ptr<BackgroundPopulate> populate_;  // ends before the mapping
};

// The seals every arena carries before a client sees it.
extern const unsigned kArenaSeals;

}  // namespace penstock::shm

#endif  // PENSTOCK_COMMON_SHM_ARENA_H_
