#include "server/import/staging.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "common/hash/hash.h"
#include "common/status/status.h"
#include "server/import/spool.h"

namespace penstock::import {
namespace {

namespace fs = std::filesystem;

absl::Status SyncFolder(const std::string& dir) {
  const int fd = ::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return ErrnoError(errno, dir);
  const int rc = ::fsync(fd);
  const int error = errno;
  ::close(fd);
  if (rc != 0) return ErrnoError(error, "fsync " + dir);
  return absl::OkStatus();
}

std::string ParentOf(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

absl::Status CheckOut(const std::string& out) {
  std::error_code error;
  const auto status = fs::symlink_status(out, error);
  if (!fs::exists(status)) return absl::OkStatus();
  if (fs::is_directory(status) && fs::is_empty(out, error) && !error) {
    return absl::OkStatus();
  }
  return MakeError(
      absl::StatusCode::kAlreadyExists,
      {.where = out,
       .what = "the output is there already",
       .found = fs::exists(out + "/manifest.json", error) ? "a dataset version"
                                                   : "a file or folder",
       .expected = "a path that does not exist: versions never change",
       .action = "give another --out"});
}

}  // namespace

absl::StatusOr<std::unique_ptr<Staging>> Staging::Create(std::string out) {
  while (out.size() > 1 && out.back() == '/') out.pop_back();
  PENSTOCK_RETURN_IF_ERROR(CheckOut(out));
  const std::string dir = out + ".importing";
  if (::mkdir(dir.c_str(), 0755) != 0 && errno != EEXIST) {
    return ErrnoError(errno, dir,
                      "check that the parent of --out exists and is writable");
  }
  const int lock = ::open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock < 0) return ErrnoError(errno, dir, "check its rights");
  if (::flock(lock, LOCK_EX | LOCK_NB) != 0) {
    ::close(lock);
    return MakeError(absl::StatusCode::kFailedPrecondition,
                     {.where = dir,
                      .what = "another import is writing here",
                      .found = "a lock that another process holds",
                      .expected = "one import a folder",
                      .action = "wait for it, or give another --out"});
  }
  std::unique_ptr<Staging> staging(new Staging(out, dir, lock));
  std::error_code error;
  for (const auto& e : fs::directory_iterator(dir, error)) {
    fs::remove_all(e.path(), error);  // left by an import that was killed
  }
  if (error) return ErrnoError(error.value(), dir, "remove it by hand");
  if (::mkdir((dir + "/shards").c_str(), 0755) != 0) {
    return ErrnoError(errno, dir + "/shards");
  }
  return staging;
}

Staging::~Staging() {
  if (!published_) {
    std::error_code error;
    fs::remove_all(dir_, error);
  }
  ::close(lock_);
}

absl::Status Staging::Publish() {
  PENSTOCK_RETURN_IF_ERROR(SyncFolder(dir_ + "/shards"));
  PENSTOCK_RETURN_IF_ERROR(SyncFolder(dir_));
  if (::rename(dir_.c_str(), out_.c_str()) != 0) {
    return ErrnoError(errno, "rename " + dir_ + " to " + out_);
  }
  published_ = true;
  return SyncFolder(ParentOf(out_));
}

absl::Status WriteFileSynced(const std::string& path, std::string_view bytes) {
  const int fd =
      ::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoError(errno, path);
  absl::Status status = WriteAll(fd, hash::AsBytes(bytes), path);
  if (status.ok() && ::fsync(fd) != 0) {
    status = ErrnoError(errno, "fsync " + path);
  }
  ::close(fd);
  return status;
}

}  // namespace penstock::import
