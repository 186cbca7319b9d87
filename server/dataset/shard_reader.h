#ifndef PENSTOCK_SERVER_DATASET_SHARD_READER_H_
#define PENSTOCK_SERVER_DATASET_SHARD_READER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/format/shard.h"

namespace penstock::dataset {

// A shard opened by path for tools and for footers: plain pread, one range at a
// time. The daemon's payload reads go through server/io.
//
// Threading: const calls from any thread.
class ShardReader {
 public:
  // Reads header, trailer and footer, and checks them.
  //
  // kNotFound, kPermissionDenied: the file
  // kDataLoss: what is damaged or cut off, and where
  static absl::StatusOr<std::unique_ptr<ShardReader>> Open(std::string path);
  ~ShardReader();
  ShardReader(const ShardReader&) = delete;
  ShardReader& operator=(const ShardReader&) = delete;

  const std::string& path() const { return path_; }
  const format::ShardFooter& footer() const { return footer_; }
  std::uint64_t bytes() const { return bytes_; }

  // kDataLoss: the file ends before the range does
  absl::StatusOr<std::vector<std::uint8_t>> Read(std::uint64_t offset,
                                                 std::uint64_t bytes) const;

 private:
  ShardReader(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
  absl::Status Init();

  std::string path_;
  int fd_;
  std::uint64_t bytes_ = 0;
  format::ShardFooter footer_;
};

// The blocks that lie back to back in `bytes`, which they view.
//
// kDataLoss: as format::ParseBlock, with the offset of the block in the shard
absl::StatusOr<std::vector<format::BlockView>> ParseBlocks(
    std::span<const std::uint8_t> bytes, std::uint64_t shard_offset,
    const std::string& path);

}  // namespace penstock::dataset

#endif  // PENSTOCK_SERVER_DATASET_SHARD_READER_H_
