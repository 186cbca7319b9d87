#ifndef PENSTOCK_COMMON_TYPES_IDS_H_
#define PENSTOCK_COMMON_TYPES_IDS_H_

#include <array>
#include <compare>
#include <cstdint>

namespace penstock {

// An integer that means one thing. Two of them mix only where the code says so.
template <typename Tag, typename T>
struct StrongInt {
  T value = 0;
  friend constexpr auto operator<=>(const StrongInt&,
                                    const StrongInt&) = default;
};

using Step = StrongInt<struct StepTag, std::uint64_t>;    // optimizer step, from 0
using Epoch = StrongInt<struct EpochTag, std::uint64_t>;  // pass over one source
using Seed = StrongInt<struct SeedTag, std::uint64_t>;    // root of all randomness
using Rank = StrongInt<struct RankTag, std::uint32_t>;    // trainer process
using Generation = StrongInt<struct GenerationTag, std::uint64_t>;

// SHA-256 of what the name says; printed as 64 hex digits.
using Digest256 = std::array<std::uint8_t, 32>;

// XXH3-128, high half first.
struct Digest128 {
  std::uint64_t high = 0;
  std::uint64_t low = 0;
  friend constexpr auto operator<=>(const Digest128&,
                                    const Digest128&) = default;
};

}  // namespace penstock

#endif  // PENSTOCK_COMMON_TYPES_IDS_H_
