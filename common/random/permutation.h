#ifndef PENSTOCK_COMMON_RANDOM_PERMUTATION_H_
#define PENSTOCK_COMMON_RANDOM_PERMUTATION_H_

#include <array>
#include <cstdint>

#include "common/random/prf.h"

namespace penstock::random {

// A keyed bijection of [0, n), for n from 1 to 2^63, in O(1) memory and time.
//
// A Feistel network over pairs (left, right) in [0, A) × [0, B) with A·B just
// above n; values of n and more are walked through again, which almost never
// happens for large n. See README.md for the arithmetic and the proof that a
// walk ends.
class Permutation {
 public:
  static constexpr int kRounds = 8;
  static constexpr std::uint64_t kSizeMax = std::uint64_t{1} << 63;

  // 1 <= n <= kSizeMax.
  Permutation(std::uint64_t n, const Key& key);

  std::uint64_t size() const { return n_; }

  // Where index i goes; i < size().
  std::uint64_t At(std::uint64_t i) const {
    do {
      i = Forward(i);
    } while (i >= n_);
    return i;
  }
  // The index that goes to `value`; value < size().
  std::uint64_t IndexOf(std::uint64_t value) const {
    do {
      value = Backward(value);
    } while (value >= n_);
    return value;
  }

 private:
  // A value of [0, bound) from the other half.
  std::uint64_t Round(int round, std::uint64_t half,
                      std::uint64_t bound) const {
    std::uint64_t x = (half + keys_[round]) * kMul1;
    x = (x ^ (x >> 32)) * kMul2;
    return MulHigh(x, bound);
  }

  std::uint64_t Forward(std::uint64_t i) const {
    std::uint64_t left = i / b_, right = i % b_;
    for (int r = 0; r < kRounds; r += 2) {
      left += Round(r, right, a_);
      left -= left >= a_ ? a_ : 0;
      right += Round(r + 1, left, b_);
      right -= right >= b_ ? b_ : 0;
    }
    return left * b_ + right;
  }

  std::uint64_t Backward(std::uint64_t i) const {
    std::uint64_t left = i / b_, right = i % b_;
    for (int r = kRounds - 2; r >= 0; r -= 2) {
      right += b_ - Round(r + 1, left, b_);
      right -= right >= b_ ? b_ : 0;
      left += a_ - Round(r, right, a_);
      left -= left >= a_ ? a_ : 0;
    }
    return left * b_ + right;
  }

  std::uint64_t n_, a_, b_;
  std::array<std::uint64_t, kRounds> keys_;
};

}  // namespace penstock::random

#endif  // PENSTOCK_COMMON_RANDOM_PERMUTATION_H_
