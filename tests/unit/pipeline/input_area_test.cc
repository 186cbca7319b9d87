#include "server/pipeline/input_area.h"

#include <catch2/catch.hpp>
#include <random>
#include <vector>

#include "tests/support/seed.h"

namespace penstock::pipeline {
namespace {

TEST_CASE("input area: places never overlap, and all comes back", "[pipeline]") {
  const std::uint64_t seed = test::SeedFromEnv();
  INFO("replay with PENSTOCK_TEST_SEED=" << seed);
  std::mt19937_64 random(seed);
  InputArea area(1 << 20);
  struct Place {
    std::uint64_t offset, bytes;
  };
  std::vector<Place> held;
  for (int i = 0; i < 5000; ++i) {
    if (!held.empty() && random() % 2 == 0) {
      const std::size_t k = random() % held.size();
      area.Free(held[k].offset, held[k].bytes);
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(k));
      continue;
    }
    const std::uint64_t bytes = 1 + random() % 100'000;
    const auto offset = area.Allocate(bytes);
    if (!offset) continue;
    CHECK(*offset % InputArea::kPage == 0);
    CHECK(*offset + bytes <= area.bytes());
    for (const Place& p : held) {
      CHECK((*offset + bytes <= p.offset || p.offset + p.bytes <= *offset));
    }
    held.push_back({*offset, bytes});
  }
  for (const Place& p : held) area.Free(p.offset, p.bytes);
  CHECK(area.used() == 0);
  CHECK(area.Allocate(1 << 20) == 0u);  // one piece again
  CHECK_FALSE(area.Allocate(1));
}

}  // namespace
}  // namespace penstock::pipeline
