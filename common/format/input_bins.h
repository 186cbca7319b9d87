#ifndef PENSTOCK_COMMON_FORMAT_INPUT_BINS_H_
#define PENSTOCK_COMMON_FORMAT_INPUT_BINS_H_

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "common/format/block.h"

namespace penstock::format {

// State bits of a key or button in an interval.
inline constexpr std::uint8_t kHeldAnyTime = 1;
inline constexpr std::uint8_t kHeldAtEnd = 2;
inline constexpr std::uint8_t kPressed = 4;
inline constexpr std::uint8_t kReleased = 8;

// The inputs of one half-open time interval.
struct InputInterval {
  std::map<std::uint32_t, std::uint8_t> keys;  // code -> state bits, non-zero
  std::int64_t dx = 0, dy = 0, wheel = 0;      // sums
  std::uint32_t events = 0;
};

// Bins the rows of an events track into [boundaries[i], boundaries[i+1]).
// `blocks` are consecutive blocks of the track in time order; the first holds
// or precedes boundaries[0], so that what is held then is known. A tap shorter
// than an interval keeps its pressed and held bits (B-40).
//
// Returns boundaries.size() - 1 intervals (none for fewer than two).
std::vector<InputInterval> BinInputs(std::span<const BlockView> blocks,
                                     std::span<const std::int64_t> boundaries);

}  // namespace penstock::format

#endif  // PENSTOCK_COMMON_FORMAT_INPUT_BINS_H_
