#ifndef PENSTOCK_COMMON_PLAN_PACK_H_
#define PENSTOCK_COMMON_PLAN_PACK_H_

#include <cstdint>
#include <span>
#include <vector>

// Bin packing of a window of samples.
namespace penstock::plan {

struct PackItem {
  std::uint64_t tokens = 1;
  std::uint64_t frames = 1;
};

// What one pack may hold; every item fits in one alone.
struct PackLimits {
  std::uint64_t tokens = 1, frames = 1, segments = 1;
};

// Best-fit decreasing: items by falling tokens, then frames, then index; each goes
// to the pack with the fewest tokens left that has room in every limit, of equal
// ones to the first opened, else opens one. Packs in the order they were opened, each
// one's items by index.
//
// O(n log n) unless most packs with tokens left have no room for frames or
// segments.
std::vector<std::vector<std::uint32_t>> PackItems(std::span<const PackItem> items,
                                                  const PackLimits& limits);

}  // namespace penstock::plan

#endif  // PENSTOCK_COMMON_PLAN_PACK_H_
