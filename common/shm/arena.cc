#include "common/shm/arena.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/str_format.h"
#include "common/status/status.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace penstock::shm {

const unsigned kArenaSeals =
    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;

BackgroundPopulate::BackgroundPopulate(std::span<const std::uint8_t> bytes,
                                       Access access)
    : thread_([this, bytes, access] {
        constexpr std::uint64_t kPiece = 4u << 20;
        for (std::uint64_t at = 0; at < bytes.size() && !stop_.load();
             at += kPiece) {
          Populate(bytes.data() + at,
                   std::min<std::uint64_t>(kPiece, bytes.size() - at), access);
        }
      }) {}

BackgroundPopulate::~BackgroundPopulate() {
  stop_.store(true);
  Wait();
}

void BackgroundPopulate::Wait() {
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<std::unique_ptr<Arena>> Arena::Create(std::uint64_t bytes) {
  if (bytes == 0) {
    return absl::InvalidArgumentError("arena: a size of 0 bytes was asked for");
  }
  UniqueFd fd(memfd_create("penstock", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd) return ErrnoError(errno, "arena: memfd_create");
  if (ftruncate(fd.get(), static_cast<off_t>(bytes)) != 0) {
    return MakeError(absl::StatusCode::kResourceExhausted,
                     {.where = "arena",
                      .what = "the system gives no shared memory of this size",
                      .found = std::strerror(errno),
                      .expected = absl::StrFormat("%d bytes", bytes),
                      .action = "make the arena smaller (arena_bytes, "
                                "prefetch_steps, global_batch) or the "
                                "process's file size and memory limits larger"});
  }
  PENSTOCK_ASSIGN_OR_RETURN(
      auto mapping, Mapping::Map(fd.get(), bytes, Access::kReadWrite, "arena"));
  return std::unique_ptr<Arena>(new Arena(std::move(fd), std::move(mapping)));
}

Arena::Arena(UniqueFd fd, Mapping mapping)
    : fd_(std::move(fd)), mapping_(std::move(mapping)) {}

Arena::~Arena() = default;

absl::Status Arena::Seal() {
  if (sealed_) return absl::OkStatus();
  if (fcntl(fd_.get(), F_ADD_SEALS, static_cast<int>(kArenaSeals)) != 0) {
    return ErrnoError(errno, "arena: F_ADD_SEALS",
                      "sealing against future writers needs Linux 5.1 or newer");
  }
  sealed_ = true;
  return absl::OkStatus();
}

void Arena::PopulateInBackground() {
  if (populate_ == nullptr) {
    populate_ =
        std::make_unique<BackgroundPopulate>(bytes(), Access::kReadWrite);
  }
}

void Arena::WaitPopulated() {
  if (populate_ != nullptr) populate_->Wait();
}

absl::StatusOr<std::unique_ptr<ReadOnlyMapping>> ReadOnlyMapping::Map(
    int fd, std::uint64_t bytes, bool populate) {
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0) {
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     {.where = "arena",
                      .what = "the descriptor is no sealed memory",
                      .found = "a descriptor without seals",
                      .expected = "sealed shared memory of the daemon",
                      .action = "connect to a penstockd of this version"});
  }
  if ((static_cast<unsigned>(seals) & kArenaSeals) != kArenaSeals) {
    return MakeError(
        absl::StatusCode::kFailedPrecondition,
        {.where = "arena",
         .what = "seals are missing: the memory could be changed or shrunk",
         .found = absl::StrFormat("seals 0x%x", seals),
         .expected = absl::StrFormat("at least 0x%x", kArenaSeals),
         .action = "connect to a penstockd of this version"});
  }
  PENSTOCK_ASSIGN_OR_RETURN(auto mapping,
                            Mapping::Map(fd, bytes, Access::kRead, "arena"));
  std::unique_ptr<ReadOnlyMapping> m(new ReadOnlyMapping(std::move(mapping)));
  if (populate) {
    m->populate_ =
        std::make_unique<BackgroundPopulate>(m->bytes(), Access::kRead);
  }
  return m;
}

absl::StatusOr<std::span<const std::uint8_t>> ReadOnlyMapping::Slice(
    std::uint64_t offset, std::uint64_t bytes) const {
  if (offset > size() || bytes > size() - offset) {
    return MakeError(
        absl::StatusCode::kOutOfRange,
        {.where = "arena",
         .what = "a range lies outside",
         .found = absl::StrFormat("bytes %d+%d", offset, bytes),
         .expected = absl::StrFormat("at most %d", size()),
         .action = "report it: a slot is never outside its arena"});
  }
  return this->bytes().subspan(offset, bytes);
}

}  // namespace penstock::shm
