#include "common/layout/expand.h"

#include <catch2/catch.hpp>

#include <bit>
#include <cmath>

namespace penstock::layout {
namespace {

TEST_CASE("expand: rounds once, for every byte", "[layout]") {
  for (const auto& [scale, bias] :
       {std::pair{kUnitScale, 0.0f}, std::pair{kSignedScale, -1.0f},
        std::pair{1.0f / 0.229f / 255.0f, -0.485f / 0.229f}}) {
    for (int v = 0; v < 256; ++v) {
      // 8 + 24 bits: the product is exact in double, and so is the sum here up
      // to one rounding that lies far below a float's.
      const long double exact =
          static_cast<long double>(v) * scale + static_cast<long double>(bias);
      CHECK(std::bit_cast<std::uint32_t>(
                ExpandUnit(static_cast<std::uint8_t>(v), scale, bias)) ==
            std::bit_cast<std::uint32_t>(static_cast<float>(exact)));
    }
  }
}

TEST_CASE("expand: the ends of the usual ranges", "[layout]") {
  CHECK(ExpandUnit(0, kUnitScale, 0.0f) == 0.0f);
  CHECK(ExpandUnit(255, kUnitScale, 0.0f) == 1.0f);
  CHECK(ExpandUnit(0, kSignedScale, -1.0f) == -1.0f);
  CHECK(ExpandUnit(255, kSignedScale, -1.0f) == std::nextafter(1.0f, 2.0f));
}

}  // namespace
}  // namespace penstock::layout
