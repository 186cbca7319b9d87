#ifndef PENSTOCK_SERVER_PIPELINE_INPUT_AREA_H_
#define PENSTOCK_SERVER_PIPELINE_INPUT_AREA_H_

#include <cstdint>
#include <map>
#include <optional>

namespace penstock::pipeline {

// Places for compressed blocks in the input memory of a job: first fit, in
// pages, neighbours merged when they are given back.
//
// Threading: one owner. Touches no memory: offsets only.
class InputArea {
 public:
  static constexpr std::uint64_t kPage = 4096;

  explicit InputArea(std::uint64_t bytes) : bytes_(bytes / kPage * kPage) {
    if (bytes_ > 0) free_[0] = bytes_;
  }

  // Offset of `bytes` rounded up to pages; empty when there is no room now.
  std::optional<std::uint64_t> Allocate(std::uint64_t bytes);
  // Gives back what Allocate(bytes) returned.
  void Free(std::uint64_t offset, std::uint64_t bytes);

  std::uint64_t bytes() const { return bytes_; }
  std::uint64_t used() const { return used_; }

 private:
  static std::uint64_t Pages(std::uint64_t bytes) {
    return (bytes + kPage - 1) / kPage * kPage;
  }
  std::uint64_t bytes_, used_ = 0;
  std::map<std::uint64_t, std::uint64_t> free_;  // offset -> bytes
};

}  // namespace penstock::pipeline

#endif  // PENSTOCK_SERVER_PIPELINE_INPUT_AREA_H_
