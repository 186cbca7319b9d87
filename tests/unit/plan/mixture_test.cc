#include "common/plan/mixture.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "common/random/prf.h"
#include "tests/support/seed.h"

namespace penstock::plan {
namespace {

// Random weights, from very uneven to equal, some of them zero.
std::vector<Decimal> RandomWeights(const random::Key& key, std::uint64_t test) {
  std::vector<Decimal> out;
  const std::uint64_t count = 1 + random::DrawBelow(key, test, 40);
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t at = (test << 16) + i;
    const std::uint64_t top = std::uint64_t{1}
                              << (10 + random::DrawBelow(key, at, 12));
    out.push_back({500 + random::DrawBelow(key, at, top)});
    if (i > 0 && random::DrawBelow(key, at, 7) == 0) out.back().nanos = 0;
  }
  return out;
}

struct Law {
  double prefix = 0, window = 0;  // largest distance from weight * length
};

// Over two periods, exactly, for one source. The distance of a window is the
// difference of two prefix distances, so its largest is that of the extremes.
Law Measure(const Mixture& m, std::uint32_t source) {
  std::int64_t low = 0, high = 0, count = 0;
  for (std::int64_t n = 1; n <= 2 * std::int64_t{kMixturePeriod}; ++n) {
    count += m.At(static_cast<std::uint64_t>(n - 1)).source == source;
    const std::int64_t off =
        count * kMixturePeriod - n * std::int64_t{m.quota(source)};
    low = std::min(low, off);
    high = std::max(high, off);
  }
  const double q = kMixturePeriod;
  return {static_cast<double>(std::max(-low, high)) / q,
          static_cast<double>(high - low) / q};
}

TEST_CASE("B-23: every prefix within 1 of weight times N, any window within 2",
          "[plan][property]") {
  const std::uint64_t seed = test::SeedFromEnv();
  INFO("replay with PENSTOCK_TEST_SEED=" << seed);
  const random::Key key = random::MakeKey(Seed{seed}, "test.mixture");
  for (std::uint64_t t = 0; t < 8; ++t) {
    const auto rounding = RoundWeights(RandomWeights(key, t));
    if (!rounding.ok()) continue;
    const Mixture m(rounding.quotas);
    for (std::uint32_t s = 0; s < rounding.quotas.size(); ++s) {
      const Law law = Measure(m, s);
      INFO("case " << t << ", source " << s << ", quota " << m.quota(s));
      CHECK(law.prefix < 1.0);
      CHECK(law.window < 2.0);
    }
  }
}

TEST_CASE("mixture: rank, position and count agree", "[plan][property]") {
  const Mixture m(std::vector<std::uint32_t>{6554, 13107, 0, 45875});
  std::vector<std::uint64_t> seen(4, 0);
  for (std::uint64_t p = 0; p < 3 * kMixturePeriod; ++p) {
    const Mixture::Slot slot = m.At(p);
    REQUIRE(slot.rank == seen[slot.source]);
    REQUIRE(m.PositionOf(slot.source, slot.rank) == p);
    if (p % 977 == 0) {
      for (std::uint32_t s = 0; s < 4; ++s) {
        REQUIRE(m.CountBefore(s, p) == seen[s]);
      }
    }
    ++seen[slot.source];
  }
  CHECK(seen[2] == 0);
}

TEST_CASE("mixture: far positions are as near ones", "[plan]") {
  const Mixture m(std::vector<std::uint32_t>{1, 65535});
  const std::uint64_t far = std::uint64_t{1} << 60;
  CHECK(m.At(far).rank == m.CountBefore(m.At(far).source, far));
  CHECK(m.PositionOf(0, far / kMixturePeriod) == far + m.PositionOf(0, 0));
}

TEST_CASE("B-23: a zero weight is never drawn", "[plan]") {
  const std::vector<Decimal> weights = {{0}, {1}, {0}, {2}};
  const Mixture m(RoundWeights(weights).quotas);
  for (std::uint64_t p = 0; p < kMixturePeriod; ++p) {
    REQUIRE(m.At(p).source % 2 == 1);
  }
}

}  // namespace
}  // namespace penstock::plan
