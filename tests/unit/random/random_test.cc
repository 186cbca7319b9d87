#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <set>
#include <vector>

#include "common/random/permutation.h"
#include "common/random/prf.h"
#include "tests/support/seed.h"

namespace penstock::random {
namespace {

TEST_CASE("key: every argument counts, and lengths separate them", "[random]") {
  const Key base = MakeKey(Seed{1}, "plan.order", "a", 0);
  CHECK(base == MakeKey(Seed{1}, "plan.order", "a", 0));
  CHECK_FALSE(base == MakeKey(Seed{2}, "plan.order", "a", 0));
  CHECK_FALSE(base == MakeKey(Seed{1}, "plan.order", "b", 0));
  CHECK_FALSE(base == MakeKey(Seed{1}, "plan.order", "a", 1));
  CHECK_FALSE(base == MakeKey(Seed{1}, "plan.ordera", "", 0));
}

TEST_CASE("draw below: stays below, reaches all, is even", "[random]") {
  const std::uint64_t seed = test::SeedFromEnv();
  INFO("replay with PENSTOCK_TEST_SEED=" << seed);
  const Key key = MakeKey(Seed{seed}, "test.bounded");
  for (std::uint64_t bound : {1u, 2u, 3u, 7u, 100u}) {
    std::vector<int> count(bound, 0);
    const int draws = 1000 * static_cast<int>(bound);
    for (int i = 0; i < draws; ++i) ++count.at(DrawBelow(key, i, bound));
    // Six standard deviations of a binomial count around 1000.
    for (int c : count) CHECK(std::abs(c - 1000) < 190);
  }
  const std::uint64_t large = (std::uint64_t{1} << 63) + 1;
  for (int i = 0; i < 1000; ++i) CHECK(DrawBelow(key, i, large) < large);
}

TEST_CASE("permutation: a bijection with its inverse for every n <= 300",
          "[random][property]") {
  const std::uint64_t seed = test::SeedFromEnv();
  INFO("replay with PENSTOCK_TEST_SEED=" << seed);
  for (std::uint64_t n = 1; n <= 300; ++n) {
    const Permutation p(n, MakeKey(Seed{seed}, "test.permutation", "", n));
    std::set<std::uint64_t> seen;
    bool good = true;
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint64_t v = p.At(i);
      good = good && v < n && p.IndexOf(v) == i;
      seen.insert(v);
    }
    INFO("n=" << n);
    CHECK(good);
    CHECK(seen.size() == n);
  }
}

TEST_CASE("permutation: inverse at sizes up to 2^63", "[random][property]") {
  const std::uint64_t seed = test::SeedFromEnv();
  INFO("replay with PENSTOCK_TEST_SEED=" << seed);
  const Key draws = MakeKey(Seed{seed}, "test.index");
  for (int bits = 8; bits <= 63; ++bits) {
    for (int off : {-1, 0, 1}) {
      if (bits == 63 && off == 1) continue;
      const std::uint64_t n = (std::uint64_t{1} << bits) + off;
      const Permutation p(n, MakeKey(Seed{seed}, "test.permutation", "", n));
      for (int i = 0; i < 50; ++i) {
        const std::uint64_t at = i == 0 ? n - 1 : DrawBelow(draws, i, n);
        const std::uint64_t v = p.At(at);
        INFO("n=" << n << " i=" << at);
        REQUIRE(v < n);
        REQUIRE(p.IndexOf(v) == at);
      }
    }
  }
}

TEST_CASE("permutation: small orders are spread over all orders", "[random]") {
  const std::uint64_t seed = test::SeedFromEnv();
  INFO("replay with PENSTOCK_TEST_SEED=" << seed);
  std::set<std::vector<std::uint64_t>> orders;
  for (std::uint64_t epoch = 0; epoch < 2000; ++epoch) {
    const Permutation p(5, MakeKey(Seed{seed}, "test.small", "", epoch));
    std::vector<std::uint64_t> order;
    for (std::uint64_t i = 0; i < 5; ++i) order.push_back(p.At(i));
    orders.insert(order);
  }
  CHECK(orders.size() == 120);
}

TEST_CASE("permutation: neighbours land far apart", "[random]") {
  const std::uint64_t n = 1'000'003;
  const Permutation p(n, MakeKey(Seed{7}, "test.far"));
  double distance = 0;
  const int draws = 20000;
  for (int i = 0; i < draws; ++i) {
    distance += std::abs(static_cast<double>(p.At(i + 1)) -
                         static_cast<double>(p.At(i)));
  }
  // Two uniform points lie n/3 apart on average; 4 deviations are 0.7 %.
  CHECK(distance / draws / static_cast<double>(n) ==
        Approx(1.0 / 3).epsilon(0.02));
}

TEST_CASE("permutation: speed", "[.][benchmark][random]") {
  const Permutation p(1'000'000'000, MakeKey(Seed{7}, "test.speed"));
  std::uint64_t sum = 0;
  const auto begin = std::clock();
  const int count = 20'000'000;
  for (int i = 0; i < count; ++i) sum += p.At(i);
  const double s = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  WARN(count / s / 1e6 << " M indices/s, sum " << sum);
}

}  // namespace
}  // namespace penstock::random
