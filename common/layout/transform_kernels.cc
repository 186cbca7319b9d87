#include "common/layout/transform_kernels.h"

// Sanitizers and ifunc resolvers do not mix; clang before 16 has no clones.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define PENSTOCK_CLONES __attribute__((target_clones("avx2", "default")))
#else
#define PENSTOCK_CLONES
#endif

namespace penstock::layout::kernels {
namespace {

constexpr std::uint32_t kPiece = 64;  // columns whose sums stay in registers

inline __attribute__((always_inline)) std::uint8_t Clamp8(std::int32_t v) {
  return static_cast<std::uint8_t>(v < 0 ? 0 : v > 255 ? 255 : v);
}

inline __attribute__((always_inline)) void VerticalPiece(
    const std::uint8_t* in, std::ptrdiff_t stride, const std::int16_t* weight,
    std::uint32_t taps, std::uint32_t width, std::int16_t* out) {
  std::int32_t sum[kPiece] = {};
  for (std::uint32_t k = 0; k < taps; ++k) {
    const std::int32_t w = weight[k];
    const std::uint8_t* row = in + k * stride;
    for (std::uint32_t x = 0; x < width; ++x) {
      sum[x] += w * std::int32_t{row[x]};
    }
  }
  for (std::uint32_t x = 0; x < width; ++x) {
    out[x] = static_cast<std::int16_t>((sum[x] + 128) >> 8);
  }
}

template <std::uint32_t kTaps>
inline __attribute__((always_inline)) void HorizontalFixed(
    const std::int16_t* in, const std::uint32_t* first,
    const std::int16_t* weight, std::uint32_t count, std::int16_t* out) {
  for (std::uint32_t o = 0; o < count; ++o) {
    const std::int16_t* t = in + first[o];
    const std::int16_t* w = weight + std::size_t{o} * kTaps;
    std::int32_t sum = 8192;
    for (std::uint32_t k = 0; k < kTaps; ++k) {
      sum += std::int32_t{w[k]} * std::int32_t{t[k]};
    }
    out[o] = static_cast<std::int16_t>(sum >> 14);
  }
}

}  // namespace

PENSTOCK_CLONES void Vertical(const std::uint8_t* in, std::ptrdiff_t stride,
                              const std::int16_t* weight, std::uint32_t taps,
                              std::uint32_t width, std::int16_t* out) {
  std::uint32_t x = 0;
  for (; x + kPiece <= width; x += kPiece) {
    VerticalPiece(in + x, stride, weight, taps, kPiece, out + x);
  }
  if (x < width) {
    VerticalPiece(in + x, stride, weight, taps, width - x, out + x);
  }
}

PENSTOCK_CLONES void Horizontal(const std::int16_t* in,
                                const std::uint32_t* first,
                                const std::int16_t* weight, std::uint32_t taps,
                                std::uint32_t count, std::int16_t* out) {
  if (taps == 4) return HorizontalFixed<4>(in, first, weight, count, out);
  if (taps == 8) return HorizontalFixed<8>(in, first, weight, count, out);
  if (taps == 16) return HorizontalFixed<16>(in, first, weight, count, out);
  for (std::uint32_t o = 0; o < count; ++o) {
    const std::int16_t* t = in + first[o];
    const std::int16_t* w = weight + std::size_t{o} * taps;
    std::int32_t sum = 8192;
    for (std::uint32_t k = 0; k < taps; ++k) {
      sum += std::int32_t{w[k]} * std::int32_t{t[k]};
    }
    out[o] = static_cast<std::int16_t>(sum >> 14);
  }
}

PENSTOCK_CLONES void ToRgb(const std::int16_t* __restrict y,
                           const std::int16_t* __restrict u,
                           const std::int16_t* __restrict v,
                           const std::int32_t* c, std::uint32_t count,
                           std::uint8_t* __restrict r,
                           std::uint8_t* __restrict g,
                           std::uint8_t* __restrict b) {
  const std::int32_t cy = c[0], y0 = c[1], crv = c[2], cgu = c[3], cgv = c[4],
                     cbu = c[5];
  for (std::uint32_t x = 0; x < count; ++x) {
    const std::int32_t l = cy * (y[x] - y0) + (1 << 18);
    const std::int32_t cb = u[x] - (128 << 6), cr = v[x] - (128 << 6);
    r[x] = Clamp8((l + crv * cr) >> 19);
    g[x] = Clamp8((l - cgu * cb - cgv * cr) >> 19);
    b[x] = Clamp8((l + cbu * cb) >> 19);
  }
}

PENSTOCK_CLONES void ToGray(const std::int16_t* __restrict y,
                            const std::int32_t* c, std::uint32_t count,
                            std::uint8_t* __restrict out) {
  const std::int32_t cy = c[0], y0 = c[1];
  for (std::uint32_t x = 0; x < count; ++x) {
    out[x] = Clamp8((cy * (y[x] - y0) + (1 << 18)) >> 19);
  }
}

PENSTOCK_CLONES void Interleave(const std::uint8_t* __restrict r,
                                const std::uint8_t* __restrict g,
                                const std::uint8_t* __restrict b,
                                std::uint32_t count,
                                std::uint8_t* __restrict out) {
  for (std::uint32_t x = 0; x < count; ++x) {
    out[3 * x] = r[x];
    out[3 * x + 1] = g[x];
    out[3 * x + 2] = b[x];
  }
}

}  // namespace penstock::layout::kernels
