#include "server/dataset/shard_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_format.h"
#include "common/status/status.h"

namespace penstock::dataset {

absl::StatusOr<std::unique_ptr<ShardReader>> ShardReader::Open(
    std::string path) {
  // O_NONBLOCK: opening a pipe would wait for its writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return MakeError(absl::StatusCode::kDataLoss,
                     {.where = path,
                      .what = "the shard cannot be opened",
                      .found = std::strerror(errno),
                      .expected = "the file that the manifest lists",
                      .action = "copy the dataset again from its origin"});
  }
  std::unique_ptr<ShardReader> reader(new ShardReader(std::move(path), fd));
  PENSTOCK_RETURN_IF_ERROR(reader->Init());
  return reader;
}

ShardReader::~ShardReader() { ::close(fd_); }

absl::Status ShardReader::Init() {
  struct stat st;
  if (::fstat(fd_, &st) != 0) return ErrnoError(errno, path_);
  if (!S_ISREG(st.st_mode)) {
    return MakeError(absl::StatusCode::kDataLoss,
                     {.where = path_,
                      .what = "not a regular file",
                      .found = "a folder, device, pipe or socket",
                      .expected = "a shard",
                      .action = "copy the dataset again from its origin"});
  }
  bytes_ = static_cast<std::uint64_t>(st.st_size);
  if (bytes_ < format::kShardHeaderBytes + format::kShardTrailerBytes) {
    return MakeError(absl::StatusCode::kDataLoss,
                     {.where = path_,
                      .what = "too short for a shard",
                      .found = absl::StrFormat("%d bytes", bytes_),
                      .expected = "a header and a trailer at least",
                      .action = "copy the dataset again from its origin"});
  }
  PENSTOCK_ASSIGN_OR_RETURN(const auto header,
                            Read(0, format::kShardHeaderBytes));
  if (auto s = format::CheckShardHeader(header); !s.ok()) {
    return Annotate(s, path_);
  }
  PENSTOCK_ASSIGN_OR_RETURN(
      const auto trailer,
      Read(bytes_ - format::kShardTrailerBytes, format::kShardTrailerBytes));
  auto place = format::ParseShardTrailer(trailer, bytes_);
  if (!place.ok()) return Annotate(place.status(), path_);
  PENSTOCK_ASSIGN_OR_RETURN(const auto footer, Read(place->offset, place->bytes));
  auto parsed = format::ParseShardFooter(footer, *place);
  if (!parsed.ok()) return Annotate(parsed.status(), path_);
  footer_ = *std::move(parsed);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::uint8_t>> ShardReader::Read(
    std::uint64_t offset, std::uint64_t bytes) const {
  if (offset > bytes_ || bytes > bytes_ - offset) {
    return MakeError(absl::StatusCode::kDataLoss,
                     {.where = path_,
                      .what = "the file ends before the range does",
                      .found = absl::StrFormat("%d bytes", bytes_),
                      .expected = absl::StrFormat("%d+%d", offset, bytes),
                      .action = "copy the dataset again from its origin"});
  }
  std::vector<std::uint8_t> out(bytes);
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n =
        ::pread(fd_, out.data() + done, bytes - done, offset + done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoError(errno, path_);
    if (n == 0)
      return MakeError(
          absl::StatusCode::kDataLoss,
          {.where = path_,
           .what = "the shard became shorter while it was read",
           .found = absl::StrFormat("its end at %d", offset + done),
           .expected = absl::StrFormat("%d bytes at %d", bytes, offset),
           .action = "copy the dataset again from its origin"});
    done += static_cast<std::size_t>(n);
  }
  return out;
}

absl::StatusOr<std::vector<format::BlockView>> ParseBlocks(
    std::span<const std::uint8_t> bytes, std::uint64_t shard_offset,
    const std::string& path) {
  std::vector<format::BlockView> blocks;
  for (std::size_t at = 0; at < bytes.size();) {
    auto block = format::ParseBlock(bytes.subspan(at));
    if (!block.ok()) {
      return Annotate(block.status(),
                      absl::StrFormat("%s, byte %d", path, shard_offset + at));
    }
    at += block->bytes;
    blocks.push_back(*std::move(block));
  }
  return blocks;
}

}  // namespace penstock::dataset
