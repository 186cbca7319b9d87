#include "common/layout/axis_weights.h"

#include <algorithm>
#include <cstdlib>

namespace penstock::layout {
namespace {

constexpr std::int64_t kOne = 1 << 14;

std::int64_t FloorDiv(std::int64_t a, std::int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

struct Taps {
  std::uint32_t first = 0;
  std::vector<std::int16_t> weight;
};

// Triangle of half width `radius` around `centre`, both in units of 1/scale
// samples; samples outside [0, in) are left out.
Taps TriangleTaps(std::int64_t centre, std::int64_t radius, std::int64_t scale,
                  std::int64_t in) {
  // First and last i with |i * scale - centre| < radius.
  const std::int64_t lo =
      std::max<std::int64_t>(0, FloorDiv(centre - radius, scale) + 1);
  const std::int64_t hi =
      std::min(in - 1, -FloorDiv(-(centre + radius), scale) - 1);
  std::vector<std::int64_t> raw;
  std::int64_t total = 0;
  for (std::int64_t i = lo; i <= hi; ++i) {
    raw.push_back(radius - std::abs(i * scale - centre));
    total += raw.back();
  }
  Taps taps;
  taps.first = static_cast<std::uint32_t>(lo);
  std::int64_t left = kOne;
  for (std::int64_t w : raw) {
    // raw < 2^31 and kOne = 2^14: no overflow.
    taps.weight.push_back(static_cast<std::int16_t>(w * kOne / total));
    left -= taps.weight.back();
  }
  const auto peak = std::max_element(raw.begin(), raw.end()) - raw.begin();
  taps.weight[peak] = static_cast<std::int16_t>(taps.weight[peak] + left);
  return taps;
}

}  // namespace

AxisWeights MakeAxisWeights(std::uint32_t luma, std::uint32_t out,
                            Sampling sampling) {
  const std::int64_t n = luma, m = out;
  const bool half = sampling != Sampling::kLuma;
  AxisWeights a;
  a.in = half ? (luma + 1) / 2 : luma;
  a.out = out;
  // Centre of output o in luma samples: ((2o + 1)n - m) / 2m; in the plane's
  // own samples the same over 4m, moved by a quarter when it lies between.
  const std::int64_t scale = half ? 4 * m : 2 * m;
  const std::int64_t radius = std::max(scale, 2 * n);
  std::vector<Taps> all(out);
  std::size_t widest = 1;
  for (std::int64_t o = 0; o < m; ++o) {
    std::int64_t centre = (2 * o + 1) * n - m;
    if (sampling == Sampling::kHalfBetween) centre -= m;
    all[o] = TriangleTaps(centre, radius, scale, a.in);
    widest = std::max(widest, all[o].weight.size());
  }
  a.taps = static_cast<std::uint32_t>((widest + 3) / 4 * 4);
  a.first.resize(out);
  a.weight.assign(std::size_t{out} * a.taps, 0);
  a.identity = a.in == a.out;
  for (std::uint32_t o = 0; o < out; ++o) {
    a.first[o] = all[o].first;
    std::copy(all[o].weight.begin(), all[o].weight.end(),
              a.weight.begin() + std::size_t{o} * a.taps);
    a.identity = a.identity && all[o].weight[0] == kOne && all[o].first == o;
  }
  return a;
}

}  // namespace penstock::layout
