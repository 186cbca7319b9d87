#include "common/plan/cut.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>
#include <string>

namespace penstock::plan {
namespace {

TEST_CASE("B-27: every item goes to exactly one rank, in equal shares",
          "[plan][exhaustive]") {
  for (std::uint32_t world = 1; world <= 16; ++world) {
    for (std::uint64_t share = 1; share <= 6; ++share) {
      auto ranks = AssignToRanks(world * share, 0, world);
      REQUIRE(ranks.ok());
      std::set<std::uint64_t> seen;
      for (const auto& items : *ranks) {
        REQUIRE(items.size() == share);
        REQUIRE(std::is_sorted(items.begin(), items.end()));
        seen.insert(items.begin(), items.end());
      }
      REQUIRE(seen.size() == world * share);
      REQUIRE(*seen.rbegin() == world * share - 1);
    }
  }
}

TEST_CASE("cut: a world that does not fit names those that do", "[plan]") {
  const auto says = [](const absl::Status& status, const char* text) {
    UNSCOPED_INFO(status.message());
    return std::string(status.message()).find(text) != std::string::npos;
  };
  const auto uneven = CheckCut(12, 0, 5);
  CHECK(says(uneven, "global batch 10 or 15 for this world"));
  CHECK(says(uneven, "world 4 or 6 for this batch"));
  const auto large = CheckCut(4, 0, 6);
  CHECK(says(large, "global batch 6 for this world"));
  CHECK(says(large, "world 4 for this batch"));
  const auto micro = CheckCut(24, 4, 4);
  CHECK(says(micro, "microbatches of 4"));
  CHECK(says(micro, "global batch 16 or 32"));
  CHECK(says(micro, "world 3 or 6"));
  CHECK(CheckCut(24, 4, 6).ok());
  CHECK_FALSE(CheckCut(24, 4, 0).ok());
}

TEST_CASE("cut: a rank outside the world is out of range", "[plan]") {
  CHECK(ItemsOfRank(12, 0, 4, Rank{3}).ok());
  CHECK(ItemsOfRank(12, 0, 4, Rank{4}).status().code() ==
        absl::StatusCode::kOutOfRange);
}

}  // namespace
}  // namespace penstock::plan
