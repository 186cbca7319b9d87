#ifndef PENSTOCK_COMMON_LAYOUT_TRANSFORM_KERNELS_H_
#define PENSTOCK_COMMON_LAYOUT_TRANSFORM_KERNELS_H_

#include <cstddef>
#include <cstdint>

// The straight loops of a transform, compiled for several instruction sets (one
// is picked at start-up) and always optimised. Integers only, so every version
// gives the same bits.
namespace penstock::layout::kernels {

// out[x] = (sum of weight[k] * in[k * stride + x] + 128) >> 8, x in [0, width).
void Vertical(const std::uint8_t* in, std::ptrdiff_t stride,
              const std::int16_t* weight, std::uint32_t taps,
              std::uint32_t width, std::int16_t* out);

// out[o] = (sum of weight[o * taps + k] * in[first[o] + k] + 8192) >> 14.
// Reads up to `taps` values from first[o] on, also behind the used ones.
void Horizontal(const std::int16_t* in, const std::uint32_t* first,
                const std::int16_t* weight, std::uint32_t taps,
                std::uint32_t count, std::int16_t* out);

// Q6 Y, U, V to bytes; `c` is cy, y0, crv, cgu, cgv, cbu (README, "Colour").
void ToRgb(const std::int16_t* y, const std::int16_t* u, const std::int16_t* v,
           const std::int32_t* c, std::uint32_t count, std::uint8_t* r,
           std::uint8_t* g, std::uint8_t* b);
void ToGray(const std::int16_t* y, const std::int32_t* c, std::uint32_t count,
            std::uint8_t* out);

// r, g, b, r, g, b, … from three rows.
void Interleave(const std::uint8_t* r, const std::uint8_t* g,
                const std::uint8_t* b, std::uint32_t count, std::uint8_t* out);

}  // namespace penstock::layout::kernels

#endif  // PENSTOCK_COMMON_LAYOUT_TRANSFORM_KERNELS_H_
