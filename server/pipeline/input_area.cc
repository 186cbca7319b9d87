#include "server/pipeline/input_area.h"

#include <cassert>
#include <iterator>

namespace penstock::pipeline {

std::optional<std::uint64_t> InputArea::Allocate(std::uint64_t bytes) {
  if (bytes > bytes_) return std::nullopt;  // rounding up could wrap around
  bytes = Pages(bytes);
  for (auto it = free_.begin(); it != free_.end(); ++it) {
    if (it->second < bytes) continue;
    const auto [offset, size] = *it;
    free_.erase(it);
    if (size > bytes) free_[offset + bytes] = size - bytes;
    used_ += bytes;
    return offset;
  }
  return std::nullopt;
}

void InputArea::Free(std::uint64_t offset, std::uint64_t bytes) {
  bytes = Pages(bytes);
  used_ -= bytes;
  auto it = free_.emplace(offset, bytes).first;
  if (auto next = std::next(it);
      next != free_.end() && offset + bytes == next->first) {
    it->second += next->second;
    free_.erase(next);
  }
  if (it != free_.begin()) {
    auto before = std::prev(it);
    assert(before->first + before->second <= offset);
    if (before->first + before->second == offset) {
      before->second += it->second;
      free_.erase(it);
    }
  }
}

}  // namespace penstock::pipeline
