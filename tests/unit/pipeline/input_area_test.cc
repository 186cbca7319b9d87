#include "server/pipeline/input_area.h"

#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "tests/support/seed.h"

namespace penstock::pipeline {
namespace {

constexpr std::uint64_t kPage = InputArea::kPage;

TEST_CASE("input area: places are whole pages inside", "[pipeline]") {
  InputArea area(10 * kPage + 17);
  CHECK(area.bytes() == 10 * kPage);
  CHECK(area.Allocate(1) == std::uint64_t{0});
  CHECK(area.Allocate(kPage) == kPage);
  CHECK(area.Allocate(kPage + 1) == 2 * kPage);
  CHECK(area.used() == 4 * kPage);
  CHECK_FALSE(area.Allocate(6 * kPage + 1).has_value());
  CHECK(area.Allocate(6 * kPage) == 4 * kPage);
  CHECK_FALSE(area.Allocate(1).has_value());
}

TEST_CASE("input area: what can never fit is not given", "[pipeline]") {
  InputArea area(4 * kPage);
  for (const std::uint64_t bytes :
       {4 * kPage + 1, std::uint64_t{1} << 63, UINT64_MAX - kPage + 2,
        UINT64_MAX}) {
    CAPTURE(bytes);
    CHECK_FALSE(area.Allocate(bytes).has_value());
  }
  CHECK(area.used() == 0);
  InputArea none(kPage - 1);
  CHECK_FALSE(none.Allocate(1).has_value());
}

TEST_CASE("input area: places never overlap; everything freed merges back",
          "[pipeline][property]") {
  const std::uint64_t seed = test::SeedFromEnv();
  INFO("replay with PENSTOCK_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  struct Place {
    std::uint64_t offset, bytes;
  };
  for (int round = 0; round < 40; ++round) {
    const std::uint64_t pages = 1 + random() % 64;
    InputArea area(pages * kPage);
    std::vector<Place> held;
    auto free_one = [&] {
      const std::size_t at = random() % held.size();
      area.Free(held[at].offset, held[at].bytes);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
    };
    for (int i = 0; i < 300; ++i) {
      if (!held.empty() && random() % 2 == 0) {
        free_one();
      } else if (const std::uint64_t bytes = 1 + random() % (8 * kPage);
                 const auto offset = area.Allocate(bytes)) {
        const std::uint64_t end = *offset + (bytes + kPage - 1) / kPage * kPage;
        REQUIRE(*offset % kPage == 0);
        REQUIRE(end <= area.bytes());
        for (const Place& p : held) {
          const std::uint64_t p_end =
              p.offset + (p.bytes + kPage - 1) / kPage * kPage;
          REQUIRE((end <= p.offset || p_end <= *offset));
        }
        held.push_back({*offset, bytes});
      }
      std::uint64_t used = 0;
      for (const Place& p : held) used += (p.bytes + kPage - 1) / kPage * kPage;
      REQUIRE(area.used() == used);
    }
    while (!held.empty()) free_one();
    REQUIRE(area.used() == 0);
    // One piece again: all of it fits at once.
    REQUIRE(area.Allocate(area.bytes()) == std::uint64_t{0});
  }
}

}  // namespace
}  // namespace penstock::pipeline
