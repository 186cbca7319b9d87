#include "common/plan/cut.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <string>

namespace penstock::plan {
namespace {

const CutRule kStrict;
CutRule Mask(CutMode mode, std::uint64_t micro) {
  return {mode, micro, Uneven::kMask};
}

TEST_CASE("B-27: every sample goes to exactly one rank, for every small world",
          "[plan][exhaustive]") {
  for (auto mode : {CutMode::kStrided, CutMode::kMegatron}) {
    for (std::uint32_t world = 1; world <= 8; ++world) {
      for (std::uint64_t batch = 1; batch <= 24; ++batch) {
        for (std::uint64_t micro = 0; micro <= 4; ++micro) {
          for (std::uint64_t samples = 0; samples <= batch; ++samples) {
            auto cut = CutBatch(Mask(mode, micro), batch, samples, {world});
            REQUIRE(cut.ok());
            REQUIRE(cut->units * world >= batch);
            if (micro != 0) REQUIRE(cut->units % micro == 0);
            std::set<std::uint64_t> seen;
            double scales = 0;
            for (const auto& items : cut->ranks) {
              REQUIRE(items.size() <= cut->units);
              REQUIRE(std::is_sorted(items.begin(), items.end()));
              seen.insert(items.begin(), items.end());
              scales += LossScale(items.size(), samples, world);
            }
            REQUIRE(seen.size() == samples);
            if (samples > 0) {
              REQUIRE(*seen.rbegin() == samples - 1);
              REQUIRE(std::abs(scales - world) < 1e-9);
            }
          }
        }
      }
    }
  }
}

TEST_CASE("cut: without masks the shares are equal", "[plan][exhaustive]") {
  for (auto mode : {CutMode::kStrided, CutMode::kMegatron}) {
    for (std::uint32_t world = 1; world <= 16; ++world) {
      for (std::uint64_t share = 1; share <= 6; ++share) {
        auto cut = CutBatch({mode, 0, Uneven::kError}, world * share,
                            world * share, {world});
        REQUIRE(cut.ok());
        REQUIRE(cut->units == share);
        for (const auto& items : cut->ranks) REQUIRE(items.size() == share);
      }
    }
  }
}

TEST_CASE("cut: Megatron's item is m*mbs*D + d*mbs + j", "[plan]") {
  auto cut = CutBatch({CutMode::kMegatron, 2, Uneven::kError}, 12, 12, {3});
  REQUIRE(cut.ok());
  CHECK(cut->ranks[1] == std::vector<std::uint64_t>{2, 3, 8, 9});
}

TEST_CASE("cut: a world that does not fit names those that do", "[plan]") {
  const auto says = [](const absl::Status& status, const char* text) {
    UNSCOPED_INFO(status.message());
    return std::string(status.message()).find(text) != std::string::npos;
  };
  const auto uneven = UnitsOfRank(kStrict, 12, {5}).status();
  CHECK(says(uneven, "global batch 10 or 15 for this world"));
  CHECK(says(uneven, "world 4 or 6 for this batch"));
  const auto large = UnitsOfRank(kStrict, 4, {6}).status();
  CHECK(says(large, "global batch 6 for this world"));
  CHECK(says(large, "world 4 for this batch"));
  const CutRule fours{CutMode::kStrided, 4, Uneven::kError};
  const auto micro = UnitsOfRank(fours, 24, {4}).status();
  CHECK(says(micro, "microbatches of 4"));
  CHECK(says(micro, "global batch 16 or 32"));
  CHECK(says(micro, "world 3 or 6"));
  CHECK(*UnitsOfRank(fours, 24, {6}) == 4);
  CHECK_FALSE(UnitsOfRank(fours, 24, {0}).ok());
}

}  // namespace
}  // namespace penstock::plan
