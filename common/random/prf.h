#ifndef PENSTOCK_COMMON_RANDOM_PRF_H_
#define PENSTOCK_COMMON_RANDOM_PRF_H_

#include <cstdint>
#include <string_view>

#include "common/types/ids.h"

// Randomness keyed by position: no state, no counter, any draw at once. The
// exact arithmetic is in README.md and is part of the plan version.
namespace penstock::random {

struct Key {
  std::uint64_t k0 = 0;
  std::uint64_t k1 = 0;
  friend bool operator==(const Key&, const Key&) = default;
};

// The key of one use of randomness: `domain` names the use ("plan.order"),
// `name` and `index` the thing (source name, epoch). Different arguments give
// unrelated keys.
Key MakeKey(Seed seed, std::string_view domain, std::string_view name = {},
            std::uint64_t index = 0);

inline constexpr std::uint64_t kGolden = 0x9E3779B97F4A7C15;
inline constexpr std::uint64_t kMul1 = 0xBF58476D1CE4E5B9;
inline constexpr std::uint64_t kMul2 = 0x94D049BB133111EB;

// A bijection of 64-bit values.
constexpr std::uint64_t Mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * kMul1;
  x = (x ^ (x >> 27)) * kMul2;
  return x ^ (x >> 31);
}

// 64 random bits at `position`; `attempt` gives further ones at the same place.
constexpr std::uint64_t Draw(const Key& key, std::uint64_t position,
                             std::uint64_t attempt = 0) {
  return Mix(Mix(position + key.k0) ^ (key.k1 + attempt * kGolden));
}

// The high half of a 128-bit product.
constexpr std::uint64_t MulHigh(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<std::uint64_t>((static_cast<Wide>(a) * b) >> 64);
}

// A value of [0, bound), every one equally likely; bound > 0.
//
// Takes the attempts 0, 1, … until the product's low half passes the threshold
// (Lemire); ends with probability 1, on average after less than 2 draws.
constexpr std::uint64_t DrawBelow(const Key& key, std::uint64_t position,
                                  std::uint64_t bound) {
  const std::uint64_t threshold = (0 - bound) % bound;
  for (std::uint64_t attempt = 0;; ++attempt) {
    const std::uint64_t x = Draw(key, position, attempt);
    if (x * bound >= threshold) return MulHigh(x, bound);
  }
}

}  // namespace penstock::random

#endif  // PENSTOCK_COMMON_RANDOM_PRF_H_
