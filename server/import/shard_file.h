#ifndef PENSTOCK_SERVER_IMPORT_SHARD_FILE_H_
#define PENSTOCK_SERVER_IMPORT_SHARD_FILE_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/format/shard.h"
#include "common/hash/hash.h"

namespace penstock::import {

// One shard being written: appends, hashes, and gets its final name at the end.
class ShardFile {
 public:
  // Creates PATH.partial and writes the header.
  static absl::StatusOr<std::unique_ptr<ShardFile>> Create(std::string path);
  ~ShardFile();
  ShardFile(const ShardFile&) = delete;
  ShardFile& operator=(const ShardFile&) = delete;

  std::uint64_t size() const { return size_; }
  absl::Status Append(std::span<const std::uint8_t> bytes);
  // Footer, fsync, rename. Gives the row of the shard section.
  absl::StatusOr<format::ShardRow> Finish(const format::ShardFooter& footer);

 private:
  ShardFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  std::string path_;
  int fd_;
  std::uint64_t size_ = 0;
  hash::Sha256 sha_;
};

}  // namespace penstock::import

#endif  // PENSTOCK_SERVER_IMPORT_SHARD_FILE_H_
