// The local cut against tests/golden/plan/local.json, and over every small world.
// Behaviours: B-6 (the node map changes who gets a unit, never which units).
#include "common/plan/local_cut.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <set>

#include "common/plan/cut.h"
#include "common/plan/planner.h"
#include "common/random/prf.h"
#include "tests/support/seed.h"
#include "tests/unit/plan/golden_index.h"

namespace penstock::plan {
namespace {

using Json = nlohmann::json;

std::vector<std::uint64_t> Room(std::uint64_t units, const DataRanks& ranks) {
  return RoomOfRanks({CutMode::kLocal, 0, Uneven::kMask}, units, units, ranks);
}

TEST_CASE("golden: homes and local cuts", "[plan][golden]") {
  const Json golden = test::ReadGolden("local.json");
  // Captures of ten GOPs, no extents: GOPs stand for them.
  std::vector<test::TrackShape> tracks(6);
  for (auto& t : tracks) {
    t.rows = 100;
    t.runs = {{0, 100}};
    t.gops.assign(10, {10, 0});
  }
  const auto rows = test::MakeIndex(tracks);
  for (const Json& c : golden.at("homes")) {
    const std::uint32_t capture = c.at("capture");
    const Sample s{.capture = capture, .track = capture,
                   .start_frame = 10 * c.at("extent").get<std::uint64_t>() + 3};
    CHECK(HomeOf(s, format::ViewOf(rows), c.at("nodes")) ==
          c.at("home").get<std::uint32_t>());
  }
  for (const Json& c : golden.at("cuts")) {
    INFO(c.dump());
    const auto homes = c.at("homes").get<std::vector<std::uint32_t>>();
    const DataRanks ranks{c.at("world"), c.at("ranks_per_node")};
    CHECK(LocalRanks(homes, ranks, Room(homes.size(), ranks)) ==
          c.at("ranks").get<std::vector<std::uint32_t>>());
  }
}

TEST_CASE("local cut: every small world", "[plan][local]") {
  const random::Key key = random::MakeKey(Seed{test::SeedFromEnv()}, "test.local");
  std::uint64_t at = 0;
  for (std::uint32_t world = 1; world <= 8; ++world) {
    for (std::uint32_t per_node = 0; per_node <= 8; ++per_node) {
      const DataRanks ranks{world, per_node};
      for (std::size_t units = 0; units <= 24; ++units) {
        INFO("seed " << test::SeedFromEnv() << " world " << world << " per node "
                     << per_node << " units " << units);
        std::vector<std::uint32_t> homes(units), strided(units);
        for (std::size_t i = 0; i < units; ++i) {
          homes[i] = static_cast<std::uint32_t>(
              random::DrawBelow(key, at++, ranks.nodes()));
          strided[i] = static_cast<std::uint32_t>(i % world);
        }
        const auto cut = LocalRanks(homes, ranks, Room(units, ranks));
        REQUIRE(cut.size() == units);
        std::vector<std::uint64_t> count(world), at_home(ranks.nodes()),
            wanted(ranks.nodes()), room(ranks.nodes());
        for (std::size_t i = 0; i < units; ++i) {
          ++count.at(cut[i]);
          ++wanted[homes[i]];
          if (ranks.NodeOf(cut[i]) == homes[i]) ++at_home[homes[i]];
        }
        for (std::uint32_t r = 0; r < world; ++r) {
          const auto share = static_cast<std::uint64_t>(
              std::count(strided.begin(), strided.end(), r));
          REQUIRE(count[r] == share);
          room[ranks.NodeOf(r)] += share;
        }
        // As many as there is room for are at home: no cut has more.
        for (std::uint32_t n = 0; n < ranks.nodes(); ++n) {
          REQUIRE(at_home[n] == std::min(wanted[n], room[n]));
        }
        REQUIRE(HomeShare(homes, cut, ranks) >= HomeShare(homes, strided, ranks));
      }
    }
  }
}

TEST_CASE("local cut: the home is that of the extent of the first frame",
          "[plan][local]") {
  // Three extents in two shards, two GOPs each.
  test::TrackShape track;
  track.rows = 60;
  track.runs = {{0, 60}};
  track.gops.assign(6, {10, 0});
  auto rows = test::MakeIndex(std::vector<test::TrackShape>{track});
  const std::uint32_t shard[] = {3, 3, 3, 3, 4, 4};
  const std::uint64_t offset[] = {8288,          8692, 1 << 20,
                                  (1 << 20) + 7, 4096, 5000};
  for (std::size_t g = 0; g < 6; ++g) {
    rows.gops[g].shard = shard[g];
    rows.gops[g].offset = offset[g];
  }
  rows.extents = {{0, 3, 8192, 4096, 0, 1},
                  {0, 3, 1 << 20, 4096, 1, 2},
                  {0, 4, 4096, 4096, 2, 3}};
  rows.captures[0].extent_count = 3;
  const auto homes = [&](std::uint64_t frame, std::uint32_t frames) {
    std::vector<std::uint32_t> out;
    for (std::uint32_t nodes = 1; nodes <= 40; ++nodes) {
      out.push_back(HomeOf({.start_frame = frame, .frames = frames},
                           format::ViewOf(rows), nodes));
    }
    return out;
  };
  CHECK(homes(0, 1) == homes(19, 1));
  CHECK(homes(0, 1) == homes(19, 30));
  CHECK(homes(20, 1) == homes(39, 1));
  CHECK(homes(40, 1) == homes(59, 1));
  CHECK(homes(0, 1) != homes(20, 1));
  CHECK(homes(20, 1) != homes(40, 1));
}

TEST_CASE("local cut: few extents move when a node is added", "[plan][local]") {
  const auto rows = test::MakeIndex(std::vector<std::uint64_t>(200, 50));
  int moved = 0;
  for (std::uint32_t c = 0; c < 200; ++c) {
    const Sample s{.capture = c, .track = c};
    const auto four = HomeOf(s, format::ViewOf(rows), 4);
    const auto five = HomeOf(s, format::ViewOf(rows), 5);
    REQUIRE((five == four || five == 4));
    moved += five == 4 ? 1 : 0;
  }
  CHECK(moved > 20);
  CHECK(moved < 65);
}

TEST_CASE("local cut: the planner's ranks have the whole batch", "[plan][local]") {
  const auto rows = test::MakeIndex(std::vector<std::uint64_t>(20, 50));
  FeedSpec feed = test::MakeFeed(test::SeedFromEnv(), 21, {1});
  feed.cut = CutMode::kLocal;
  feed.uneven = Uneven::kMask;
  const auto planner =
      Planner::Create(feed, {{format::ViewOf(rows), test::AllOf(rows), {}}});
  REQUIRE(planner.ok());
  const auto batch = planner->PlanStep({5});
  for (const DataRanks& ranks :
       {DataRanks{1, 0}, DataRanks{4, 2}, DataRanks{5, 2}}) {
    const auto cut = planner->Cut(*batch, ranks);
    REQUIRE(cut.ok());
    std::set<std::uint64_t> seen;
    for (const auto& units : cut->ranks) {
      REQUIRE(units.size() <= cut->units);
      seen.insert(units.begin(), units.end());
    }
    REQUIRE(seen.size() == 21);
  }
}

}  // namespace
}  // namespace penstock::plan
