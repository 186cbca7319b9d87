#include "common/plan/balance.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "common/plan/cost.h"
#include "common/random/prf.h"
#include "tests/support/seed.h"
#include "tests/unit/plan/small_world.h"

namespace penstock::plan {
namespace {

TEST_CASE("B-29: balanced ranks are within 2 % of the lower bound, equal counts",
          "[plan][property]") {
  const std::uint64_t seed = test::SeedFromEnv();
  INFO("replay with PENSTOCK_TEST_SEED=" << seed);
  const random::Key key = random::MakeKey(Seed{seed}, "test.balance");
  std::uint64_t at = 0;
  const auto uniform = [&] {
    return (static_cast<double>(random::DrawBelow(key, at++, 1u << 30)) + 0.5) / (1u << 30);
  };
  for (std::uint32_t world : {2u, 8u, 64u}) {
    for (std::uint64_t share : {1u, 4u, 8u, 32u}) {
      for (double sigma : {0.2, 0.7, 1.2}) {
        std::vector<std::uint64_t> costs;
        for (std::uint64_t i = 0; i < world * share; ++i) {
          const double normal = std::sqrt(-2 * std::log(uniform())) *
                                std::cos(6.283185307179586 * uniform());
          costs.push_back(static_cast<std::uint64_t>(1e6 * std::exp(sigma * normal)));
        }
        const std::vector<std::uint64_t> room(world, share);
        const auto ranks = BalanceRanks(costs, room);
        std::vector<std::uint64_t> count(world);
        for (std::uint32_t r : ranks) ++count.at(r);
        REQUIRE(count == room);
        const auto report = ReportBalance(costs, ranks, world);
        INFO("world " << world << " share " << share << " sigma " << sigma
             << " " << report.max_over_mean << " bound " << report.lower_bound);
        REQUIRE(report.max_over_mean >= report.lower_bound - 1e-9);
        CHECK(report.max_over_mean <= (share == 4 ? 1.05 : 1.02) * report.lower_bound);
        REQUIRE(BalanceRanks(costs, room) == ranks);
      }
    }
  }
}

TEST_CASE("balance: every item goes where there is room",
          "[plan][exhaustive]") {
  for (std::uint32_t world = 1; world <= 8; ++world) {
    for (std::uint64_t n = 0; n <= 20; ++n) {
      std::vector<std::uint64_t> costs;
      for (std::uint64_t i = 0; i < n; ++i) costs.push_back(i * i % 7);
      std::vector<std::uint64_t> room(world), count(world);
      for (std::uint64_t i = 0; i < n; ++i) ++room[i * i % world];
      for (std::uint32_t r : BalanceRanks(costs, room)) ++count.at(r);
      REQUIRE(count == room);
    }
  }
}

TEST_CASE("balance: loads are in proportion to speeds", "[plan][property]") {
  const random::Key key =
      random::MakeKey(Seed{test::SeedFromEnv()}, "test.speeds");
  std::uint64_t at = 0;
  for (std::uint32_t world : {2u, 5u, 16u}) {
    std::vector<Decimal> speeds;
    std::vector<std::uint64_t> costs, room(world);
    for (std::uint32_t r = 0; r < world; ++r) {
      speeds.push_back({(1 + r % 3) * 500'000'000ull});
      room[r] = 16 * (1 + r % 3);
      for (std::uint64_t i = 0; i < room[r]; ++i) {
        costs.push_back(1000 + random::DrawBelow(key, at++, 9000));
      }
    }
    INFO("seed " << test::SeedFromEnv() << " world " << world);
    const auto ranks = BalanceRanks(costs, room, speeds);
    const auto report = ReportBalance(costs, ranks, world, speeds);
    REQUIRE(report.lower_bound < 1.01);
    REQUIRE(report.max_over_mean >= report.lower_bound - 1e-9);
    CHECK(report.max_over_mean <= 1.02 * report.lower_bound);
  }
  // Items that are alike cannot be more even than their counts.
  const std::vector<std::uint64_t> alike(5, 10), three_two = {3, 2};
  const auto report = ReportBalance(alike, BalanceRanks(alike, three_two), 2);
  CHECK(report.max_over_mean == Approx(1.2));
  CHECK(report.lower_bound == Approx(1.2));
}

TEST_CASE("cost: formulas", "[plan]") {
  const CostInputs in{.decode = 100, .frames = 8, .pixels = 1000, .bytes = 50,
                      .events = 3, .tokens = 7};
  const auto of = [&](const char* text) {
    auto f = CostFormula::Parse(text);
    INFO(text << ": " << f.status().message());
    REQUIRE(f.ok());
    return f->Of(in);
  };
  CHECK(of("decode") == 100);
  CHECK(of("decode + 0.5*events*2 - tokens") == 96);
  CHECK(of(" 2 * ( decode + bytes ) * frames ") == 2400);
  CHECK(of("tokens - pixels") == 0);
  CHECK(of("10 - 3 - 2") == 5);
  CHECK(of("pixels*pixels*pixels*pixels*pixels*pixels") == std::uint64_t{1} << 50);
  for (const char* bad : {"", "decode +", "decod", "(decode", "decode)", "1..2",
                          "decode / 2", "-decode", "2 decode", "1e3", "Decode"}) {
    INFO(bad);
    CHECK_FALSE(CostFormula::Parse(bad).ok());
  }
  CHECK_FALSE(CostFormula::Parse(std::string(100, '(') + "1" + std::string(100, ')')).ok());
  CHECK_FALSE(CostFormula::Parse(std::string(2000, '1')).ok());
}

TEST_CASE("cost: of a sample, from the GOPs it lies in", "[plan]") {
  test::TrackShape shape;
  shape.rows = 90;
  shape.runs = {{0, 90}};
  shape.gops = {{30, 0}, {30, 0}, {30, 0}};
  auto rows = test::MakeIndex(std::vector<test::TrackShape>{shape});
  rows.tracks[0].width = 32;
  rows.tracks[0].height = 16;
  for (std::uint32_t g = 0; g < 3; ++g) {
    rows.gops[g].bytes = 160 * (g + 1);
    rows.gops[g].cost_before = 1000 * g;
    rows.gops[g].events_before = 5 * g;
  }
  const auto of = [&](std::uint64_t start, std::uint32_t frames) {
    return CostInputsOf({.start_frame = start, .frames = frames},
                        format::ViewOf(rows));
  };
  CHECK(of(0, 30).decode == 1000);
  CHECK(of(0, 30).bytes == 160);
  CHECK(of(29, 2).decode == 2000);
  CHECK(of(29, 2).bytes == 480);
  CHECK(of(29, 2).events == 5);
  CHECK(of(60, 1).decode == 2 * 30 + 480 / 16);
  CHECK(of(0, 90).decode == 2000 + 2 * 30 + 480 / 16);
  CHECK(of(0, 8).pixels == 8 * 512);
}

}  // namespace
}  // namespace penstock::plan
