#ifndef PENSTOCK_COMMON_LAYOUT_EXPAND_H_
#define PENSTOCK_COMMON_LAYOUT_EXPAND_H_

#include <cmath>
#include <cstdint>

#include "common/layout/hd.h"

namespace penstock::layout {

// v * scale + bias, rounded once. Equal bits on host and device: the fma is
// explicit, so neither compiler has anything to contract. The client's kernel
// turns delivered bytes into floats with it.
PENSTOCK_HD inline float ExpandUnit(std::uint8_t v, float scale, float bias) {
#if defined(__CUDA_ARCH__)
  return __fmaf_rn(static_cast<float>(v), scale, bias);
#else
  return std::fma(static_cast<float>(v), scale, bias);
#endif
}

// The usual two: [0, 1], both ends exact, and [-1, 1], whose upper end is one
// float above 1 (2/255 has no exact float).
inline constexpr float kUnitScale = 1.0f / 255.0f;
inline constexpr float kSignedScale = 2.0f / 255.0f;

}  // namespace penstock::layout

#endif  // PENSTOCK_COMMON_LAYOUT_EXPAND_H_
