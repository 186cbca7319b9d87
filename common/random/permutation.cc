#include "common/random/permutation.h"

#include <cassert>

namespace penstock::random {
namespace {

// The smallest r with r·r >= n, for n <= 2^63: in integers, because sqrt() of a
// double rounds.
std::uint64_t CeilSqrt(std::uint64_t n) {
  std::uint64_t root = 0;
  for (int bit = 31; bit >= 0; --bit) {
    const std::uint64_t larger = root | (std::uint64_t{1} << bit);
    if (larger * larger < n) root = larger;
  }
  return root + 1;  // root is the largest with root² < n
}

}  // namespace

Permutation::Permutation(std::uint64_t n, const Key& key)
    : n_(n), a_(CeilSqrt(n)), b_((n + a_ - 1) / a_) {
  assert(n >= 1 && n <= kSizeMax);
  for (int r = 0; r < kRounds; ++r) {
    keys_[r] = Draw(key, static_cast<std::uint64_t>(r));
  }
}

}  // namespace penstock::random
