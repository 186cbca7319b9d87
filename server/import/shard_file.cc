#include "server/import/shard_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "common/status/status.h"
#include "server/import/spool.h"

namespace penstock::import {

absl::StatusOr<std::unique_ptr<ShardFile>> ShardFile::Create(std::string path) {
  const std::string partial = path + ".partial";
  const int fd =
      ::open(partial.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoError(errno, partial, "check that it is writable");
  std::unique_ptr<ShardFile> file(new ShardFile(std::move(path), fd));
  PENSTOCK_RETURN_IF_ERROR(file->Append(format::EncodeShardHeader()));
  return file;
}

ShardFile::~ShardFile() {
  if (fd_ >= 0) ::close(fd_);
}

absl::Status ShardFile::Append(std::span<const std::uint8_t> bytes) {
  PENSTOCK_RETURN_IF_ERROR(WriteAll(fd_, bytes, path_));
  sha_.Update(bytes);
  size_ += bytes.size();
  return absl::OkStatus();
}

absl::StatusOr<format::ShardRow> ShardFile::Finish(
    const format::ShardFooter& footer) {
  PENSTOCK_RETURN_IF_ERROR(Append(format::EncodeShardFooter(footer, size_)));
  if (::fsync(fd_) != 0) return ErrnoError(errno, "fsync " + path_);
  const int rc = ::close(fd_);
  fd_ = -1;
  if (rc != 0) return ErrnoError(errno, "close " + path_);
  if (::rename((path_ + ".partial").c_str(), path_.c_str()) != 0) {
    return ErrnoError(errno, "rename to " + path_);
  }
  return format::ShardRow{sha_.Finish(), size_};
}

}  // namespace penstock::import
