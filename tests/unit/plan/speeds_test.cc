// Shares of ranks that declare speeds, against tests/golden/plan/speeds.json and
// over every small world. Behaviours: B-27 (each sample to exactly one rank).
#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <string>

#include "common/plan/cut.h"
#include "common/plan/data_ranks.h"
#include "tests/unit/plan/golden_index.h"

namespace penstock::plan {
namespace {

using Json = nlohmann::json;

std::vector<Decimal> SpeedsOf(const std::string& text) {
  const auto world = static_cast<std::uint32_t>(
      std::count(text.begin(), text.end(), ',') + 1);
  return ParseSpeeds(text, world).value();
}

TEST_CASE("golden: speeds", "[plan][golden]") {
  const Json golden = test::ReadGolden("speeds.json");
  for (const Json& c : golden.at("counts")) {
    INFO(c.dump());
    REQUIRE(MicrobatchesBySpeed(c.at("microbatches"), SpeedsOf(c.at("speeds"))) ==
            c.at("counts").get<std::vector<std::uint64_t>>());
  }
  for (const Json& c : golden.at("cuts")) {
    INFO(c.dump());
    const auto speeds = SpeedsOf(c.at("speeds"));
    const DataRanks ranks{static_cast<std::uint32_t>(speeds.size()), 0, speeds};
    const CutRule rule{
        c.at("mode") == "strided" ? CutMode::kStrided : CutMode::kMegatron,
        c.at("microbatch"), Uneven::kMask};
    const auto cut = CutBatch(rule, c.at("batch"), c.at("there"), ranks);
    REQUIRE(cut.ok());
    CHECK(cut->units == c.at("units").get<std::uint64_t>());
    CHECK(cut->ranks == c.at("ranks").get<std::vector<std::vector<std::uint64_t>>>());
  }
}

TEST_CASE("B-27: with speeds every sample goes to one rank, in every cut",
          "[plan][exhaustive]") {
  for (std::uint32_t world = 2; world <= 5; ++world) {
    for (std::uint32_t digits = 0; digits < 1u << (2 * world); ++digits) {
      DataRanks ranks{world, 2, {}};
      for (std::uint32_t r = 0; r < world; ++r) {
        ranks.speeds.push_back({(1 + (digits >> 2 * r & 3)) * kOne.nanos});
      }
      for (const auto mode : {CutMode::kStrided, CutMode::kMegatron,
                              CutMode::kBalanced, CutMode::kLocal}) {
        for (const std::uint64_t micro : {0u, 2u}) {
          const std::uint64_t batch = 5 + digits % 7;
          std::vector<std::uint64_t> costs;
          std::vector<std::uint32_t> homes;
          for (std::uint64_t i = 0; i < batch; ++i) {
            costs.push_back(1 + i * i % 5);
            homes.push_back(static_cast<std::uint32_t>(i % ranks.nodes()));
          }
          const CutRule rule{mode, micro, Uneven::kMask};
          const auto cut = CutBatch(rule, batch, batch, ranks, costs, homes);
          REQUIRE(cut.ok());
          if (micro != 0) REQUIRE(cut->units % micro == 0);
          std::set<std::uint64_t> seen;
          for (std::uint32_t r = 0; r < world; ++r) {
            REQUIRE(cut->ranks[r].size() <= cut->units);
            seen.insert(cut->ranks[r].begin(), cut->ranks[r].end());
            // Never less for who is faster.
            for (std::uint32_t s = 0; s < world; ++s) {
              if (ranks.speeds[s] < ranks.speeds[r]) {
                REQUIRE(cut->ranks[s].size() <=
                        cut->ranks[r].size() + (micro == 0 ? 0 : micro - 1));
              }
            }
          }
          REQUIRE(seen.size() == batch);
        }
      }
    }
  }
}

TEST_CASE("speeds: alike are none, and as one world shares", "[plan]") {
  CHECK(ParseSpeeds("", 3)->empty());
  CHECK(ParseSpeeds(" 2.0, 2 ,2.00", 3)->empty());
  CHECK(FormatSpeeds(*ParseSpeeds("1, 0.50 ,3.", 3)) == "1,0.5,3");
  const std::vector<Decimal> alike(7, kOne);
  for (std::uint64_t n = 0; n < 40; ++n) {
    const auto counts = MicrobatchesBySpeed(n, alike);
    REQUIRE(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0}) == n);
    REQUIRE(counts.front() - counts.back() <= 1);
  }
}

TEST_CASE("speeds: what is refused names the rank", "[plan]") {
  const auto says = [](const absl::Status& status, const char* text) {
    INFO(status.message());
    CHECK(std::string(status.message()).find(text) != std::string::npos);
  };
  for (const char* bad : {"1,0", "1,-1", "1,", "1,nan", "1,1e3", ",1", "1;2"}) {
    INFO(bad);
    CHECK(ParseSpeeds(bad, 2).status().code() == absl::StatusCode::kInvalidArgument);
  }
  says(ParseSpeeds("1,0", 2).status(), "data rank 1");
  says(ParseSpeeds("1,2,3", 2).status(), "3 speeds");
  const DataRanks ranks{2, 0, *ParseSpeeds("1,2", 2)};
  says(UnitsOfRank({}, 6, ranks).status(), "uneven: mask");
  CutRule lanes{.uneven = Uneven::kMask, .lanes = 4};
  says(UnitsOfRank(lanes, 8, ranks).status(), "no lanes");
}

}  // namespace
}  // namespace penstock::plan
