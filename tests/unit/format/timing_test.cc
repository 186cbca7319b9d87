#include "common/format/timing.h"

#include <catch2/catch.hpp>
#include <random>

#include "tests/support/seed.h"

namespace penstock::format {
namespace {

// Unsigned integers of 256 bits in 32-bit digits, schoolbook: nothing in common
// with the code under test.
struct Big {
  std::uint32_t d[8] = {};

  static Big Of(std::uint64_t v) {
    Big b;
    b.d[0] = static_cast<std::uint32_t>(v);
    b.d[1] = static_cast<std::uint32_t>(v >> 32);
    return b;
  }
  Big Times(std::uint64_t v) const {
    Big out;
    const Big m = Of(v);
    for (int i = 0; i < 8; ++i) {
      std::uint64_t carry = 0;
      for (int k = 0; i + k < 8; ++k) {
        const std::uint64_t x =
            std::uint64_t{d[i]} * m.d[k] + out.d[i + k] + carry;
        out.d[i + k] = static_cast<std::uint32_t>(x);
        carry = x >> 32;
      }
    }
    return out;
  }
  bool Bit(int i) const { return (d[i / 32] >> (i % 32)) & 1; }
  bool Less(const Big& o) const {
    for (int i = 7; i >= 0; --i) {
      if (d[i] != o.d[i]) return d[i] < o.d[i];
    }
    return false;
  }
  void Subtract(const Big& o) {
    std::uint64_t borrow = 0;
    for (int i = 0; i < 8; ++i) {
      const std::uint64_t x = std::uint64_t{d[i]} - o.d[i] - borrow;
      d[i] = static_cast<std::uint32_t>(x);
      borrow = (x >> 32) & 1;
    }
  }
  void ShiftIn(bool bit) {
    for (int i = 7; i > 0; --i) d[i] = d[i] << 1 | d[i - 1] >> 31;
    d[0] = d[0] << 1 | (bit ? 1u : 0u);
  }
};

// floor(value · num · 10^9 / den), saturated; by long division in bits.
std::int64_t Restated(std::int64_t value, std::uint64_t num, std::uint64_t den) {
  const bool negative = value < 0;
  const std::uint64_t size =
      negative ? ~static_cast<std::uint64_t>(value) + 1
               : static_cast<std::uint64_t>(value);
  const Big dividend = Big::Of(size).Times(num).Times(1'000'000'000);
  const Big divisor = Big::Of(den);
  Big quotient, rest;
  for (int i = 255; i >= 0; --i) {
    rest.ShiftIn(dividend.Bit(i));
    const bool fits = !rest.Less(divisor);
    if (fits) rest.Subtract(divisor);
    quotient.ShiftIn(fits);
  }
  bool whole = true;
  for (std::uint32_t digit : rest.d) whole = whole && digit == 0;
  bool big = false;
  for (int i = 2; i < 8; ++i) big = big || quotient.d[i] != 0;
  const std::uint64_t q =
      std::uint64_t{quotient.d[1]} << 32 | quotient.d[0];
  constexpr std::uint64_t kTop = 1ull << 63;
  if (!negative) {
    return big || q >= kTop ? INT64_MAX : static_cast<std::int64_t>(q);
  }
  if (big || q > kTop || (q == kTop && !whole)) return INT64_MIN;
  const std::uint64_t floored = q + (whole ? 0 : 1);
  return static_cast<std::int64_t>(~floored + 1);
}

TEST_CASE("pts to ns: known values", "[format]") {
  CHECK(PtsToNs(0, 1, 90000) == 0);
  CHECK(PtsToNs(1, 1, 90000) == 11111);
  CHECK(PtsToNs(-1, 1, 90000) == -11112);  // floor, not towards zero
  CHECK(PtsToNs(30, 1001, 30000) == 1'001'000'000);
  CHECK(PtsToNs(INT64_MAX, 1, 1) == INT64_MAX);
  CHECK(PtsToNs(INT64_MIN, 1, 1) == INT64_MIN);
  CHECK(PtsToNs(INT64_MAX, 1, 1'000'000'000) == INT64_MAX);
  CHECK(PtsToNs(INT64_MIN, 1, 1'000'000'000) == INT64_MIN);
}

TEST_CASE("pts to ns: equals big integers at every extreme", "[format]") {
  const std::int64_t values[] = {0, 1, -1, 2, -2, 3, 90000, -90001, INT64_MAX,
                                 INT64_MAX - 1, INT64_MIN, INT64_MIN + 1};
  const std::uint64_t scales[] = {1, 2, 3, 7, 1001, 15360, 90000, 1'000'000'000,
                                  999'999'999, UINT32_MAX, INT64_MAX,
                                  1ull << 63, UINT64_MAX - 1, UINT64_MAX};
  for (const auto value : values) {
    for (const auto num : scales) {
      for (const auto den : scales) {
        CAPTURE(value, num, den);
        REQUIRE(PtsToNs(value, num, den) == Restated(value, num, den));
      }
    }
  }
}

TEST_CASE("pts to ns: equals big integers for random values, in order",
          "[format][property]") {
  const std::uint64_t seed = penstock::test::SeedFromEnv();
  INFO("replay with PENSTOCK_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 20'000; ++i) {
    const auto value =
        static_cast<std::int64_t>(random()) >> (random() % 64);
    const std::uint64_t num = (random() >> (random() % 64)) | 1;
    const std::uint64_t den = (random() >> (random() % 64)) | 1;
    CAPTURE(value, num, den);
    REQUIRE(PtsToNs(value, num, den) == Restated(value, num, den));
    if (value != INT64_MAX) {
      REQUIRE(PtsToNs(value, num, den) <= PtsToNs(value + 1, num, den));
    }
  }
}

}  // namespace
}  // namespace penstock::format
