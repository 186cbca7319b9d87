#ifndef PENSTOCK_COMMON_SHM_MAPPING_H_
#define PENSTOCK_COMMON_SHM_MAPPING_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"

namespace penstock::shm {

enum class Access { kRead, kReadWrite };

// A MAP_SHARED mapping of a whole descriptor; unmapped when dropped.
class Mapping {
 public:
  // Maps exactly `bytes`, which must be the size of the file behind `fd`. The
  // descriptor may be closed afterwards.
  //
  // kInvalidArgument: the file has another size, or bytes is 0
  // kPermissionDenied: a sealed file, and kReadWrite asked for
  static absl::StatusOr<Mapping> Map(int fd, std::uint64_t bytes,
                                     Access access, std::string_view what);
  Mapping() = default;
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping() { Unmap(); }
  void Unmap();

  std::uint8_t* data() const { return data_; }
  std::uint64_t size() const { return bytes_; }
  std::span<std::uint8_t> bytes() const { return {data_, bytes_}; }

 private:
  std::uint8_t* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

// Makes the pages of [data, data + bytes) present in this process without
// touching them (MADV_POPULATE_*, FEASIBILITY §0). Where the kernel has no such
// advice this does nothing: the pages come by faults. Widens to whole pages.
void Populate(const std::uint8_t* data, std::uint64_t bytes, Access access);

}  // namespace penstock::shm

#endif  // PENSTOCK_COMMON_SHM_MAPPING_H_
