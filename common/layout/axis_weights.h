#ifndef PENSTOCK_COMMON_LAYOUT_AXIS_WEIGHTS_H_
#define PENSTOCK_COMMON_LAYOUT_AXIS_WEIGHTS_H_

#include <cstdint>

#include "common/layout/transform.h"

namespace penstock::layout {

// How the samples of a plane lie on the luma samples of one axis.
enum class Sampling : std::uint8_t {
  kLuma,            // the luma samples themselves
  kHalfCosited,     // sample i lies on luma sample 2i
  kHalfBetween,     // sample i lies between luma samples 2i and 2i + 1
};

// Weights that take one axis of a plane of a picture with `luma` luma samples
// to `out` samples. README.md, "Weights".
AxisWeights MakeAxisWeights(std::uint32_t luma, std::uint32_t out,
                            Sampling sampling);

}  // namespace penstock::layout

#endif  // PENSTOCK_COMMON_LAYOUT_AXIS_WEIGHTS_H_
