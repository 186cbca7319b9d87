#ifndef PENSTOCK_SERVER_DATASET_MAPPED_FILE_H_
#define PENSTOCK_SERVER_DATASET_MAPPED_FILE_H_

#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"

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

 private:
  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
};

// The whole of a small file.
//
// kResourceExhausted: larger than `bytes_max`; others: from errno
absl::StatusOr<std::string> ReadSmallFile(const std::string& path,
                                          std::uint64_t bytes_max);

}  // namespace penstock::dataset

#endif  // PENSTOCK_SERVER_DATASET_MAPPED_FILE_H_
