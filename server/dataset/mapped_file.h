#ifndef PENSTOCK_SERVER_DATASET_MAPPED_FILE_H_
#define PENSTOCK_SERVER_DATASET_MAPPED_FILE_H_

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "common/types/ids.h"

namespace penstock::dataset {

// A file mapped read-only; the file must not be cut while it is mapped (a
// dataset version never changes after its publication).
class MappedFile {
 public:
  // kNotFound, kPermissionDenied, …: from errno; an empty file maps to no bytes
  static absl::StatusOr<MappedFile> Open(const std::string& path);
  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::uint8_t> bytes() const { return {data_, size_}; }
  // Gives the pages that were read back to the page cache; they are mapped again
  // when they are needed.
  void Release() const;

 private:
  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

// Size and XXH3-128 of a file, read in parts. Calls `use` with each part and the
// end of the one before it, at least `overlap` bytes where there are as many.
struct FileDigest {
  std::uint64_t bytes = 0;
  Digest128 xxh3{};
};
absl::StatusOr<FileDigest> DigestFile(
    const std::string& path, std::size_t overlap,
    const std::function<void(std::string_view)>& use);

// The whole of a small file.
//
// kResourceExhausted: larger than `bytes_max`; others: from errno
absl::StatusOr<std::string> ReadSmallFile(const std::string& path,
                                          std::uint64_t bytes_max);

}  // namespace penstock::dataset

#endif  // PENSTOCK_SERVER_DATASET_MAPPED_FILE_H_
