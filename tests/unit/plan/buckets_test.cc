// Microbatches of buckets over many small worlds. Behaviours: B-6, B-23, B-25.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>
#include <tuple>

#include "common/plan/planner.h"
#include "common/random/prf.h"
#include "tests/support/seed.h"
#include "tests/unit/plan/small_world.h"

namespace penstock::plan {
namespace {

// Captures of some sizes and lengths, buckets of two sizes and two lengths.
struct World {
  format::CaptureIndexRows rows;
  FeedSpec feed;
};

World RandomWorld(std::uint64_t number, std::uint64_t epochs) {
  const random::Key key =
      random::MakeKey(Seed{test::SeedFromEnv()}, "test.buckets", "", number);
  std::uint64_t at = 0;
  const auto draw = [&](std::uint64_t n) { return random::DrawBelow(key, at++, n); };
  World out;
  std::vector<test::TrackShape> tracks;
  for (std::uint64_t i = 0, n = 4 + draw(5); i < n; ++i) {
    test::TrackShape t;
    t.rows = 8 + draw(90);
    t.runs = {{0, t.rows}};
    t.gops = {{static_cast<std::uint32_t>(t.rows), 0}};
    t.width = i % 2 == 0 ? 640 : 320;
    t.height = i % 2 == 0 ? 360 : 240;
    tracks.push_back(t);
  }
  out.rows = test::MakeIndex(tracks);
  out.feed = test::MakeFeed(number, 1 + draw(5), {1 + draw(3), 1 + draw(3)}, epochs);
  for (SourceSpec& s : out.feed.sources) {
    s.view.frames = 8;
    s.view.min_frames = 2;
    s.view.hop = 3 + draw(6);
  }
  out.feed.buckets = {{"wide", 8, 64, 36, Fraction{0, 1}, 1 + draw(4)},
                      {"wide-short", 5, 64, 36, Fraction{0, 1}, 1 + draw(4)},
                      {"square", 8, 64, 48, Fraction{0, 1}, 1 + draw(4)}};
  return out;
}

using Place = std::tuple<std::uint32_t, std::uint32_t, std::uint64_t, std::uint32_t>;
Place PlaceOf(const Sample& s) { return {s.source, s.capture, s.start_frame, s.frames}; }

// A world may have no short samples at all: then the feed is refused.
std::optional<Planner> Make(const World& w) {
  auto planner = Planner::Create(
      w.feed, {{format::ViewOf(w.rows), test::AllOf(w.rows), {}},
               {format::ViewOf(w.rows), test::AllOf(w.rows), {}}});
  if (planner.ok()) return *std::move(planner);
  REQUIRE(planner.status().message().find("no sample of any source") !=
          std::string::npos);
  return std::nullopt;
}

TEST_CASE("buckets: one shape a microbatch, whole, nothing too long",
          "[plan][buckets]") {
  int worlds = 0;
  for (std::uint64_t n = 0; n < 60; ++n) {
    INFO("seed " << test::SeedFromEnv() << " world " << n);
    const World w = RandomWorld(n, 0);
    const auto planner = Make(w);
    if (!planner) continue;
    ++worlds;
    for (std::uint64_t k = 0; k < 30; ++k) {
      const auto batch = planner->PlanStep({k});
      REQUIRE(batch.ok());
      REQUIRE(batch->units.size() == w.feed.global_batch);
      std::uint64_t at = 0;
      for (const Unit& u : batch->units) {
        const BucketSpec& b = w.feed.buckets[u.shape];
        REQUIRE(u.first == at);
        REQUIRE(u.samples == b.samples);
        at += u.samples;
        for (std::uint64_t i = u.first; i < at; ++i) {
          const Sample& s = batch->samples[i];
          REQUIRE(s.frames <= b.frames);
          const auto all = BucketsOf(w.feed.buckets, w.rows.tracks[s.track]);
          REQUIRE(std::find(all.begin(), all.end(), u.shape) != all.end());
          // The shortest of the track's buckets that holds it.
          for (const std::uint32_t other : all) {
            if (w.feed.buckets[other].frames < b.frames) {
              REQUIRE(w.feed.buckets[other].frames < s.frames);
            }
          }
        }
      }
      REQUIRE(at == batch->samples.size());
    }
  }
  CHECK(worlds > 30);
}

TEST_CASE("buckets: every pass has each sample once, none starves",
          "[plan][buckets]") {
  for (std::uint64_t n = 0; n < 60; ++n) {
    INFO("seed " << test::SeedFromEnv() << " world " << n);
    const World w = RandomWorld(n, 0);
    const auto planner = Make(w);
    if (!planner) continue;
    // Draws of a sample by (source, bucket): complete passes, and one begun.
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::map<Place, std::uint64_t>>
        draws;
    std::map<std::uint32_t, std::set<Place>> seen;
    const std::uint64_t steps =
        40 * (planner->SourceSize(0) + planner->SourceSize(1)) / w.feed.global_batch;
    for (std::uint64_t k = 0; k < steps; ++k) {
      const auto batch = planner->PlanStep({k});
      REQUIRE(batch.ok());
      for (const Sample& s : batch->samples) {
        const std::uint64_t before = draws[{s.source, s.shape}][PlaceOf(s)]++;
        REQUIRE(s.epoch.value == before);
        seen[s.source].insert(PlaceOf(s));
      }
    }
    for (std::uint32_t source = 0; source < 2; ++source) {
      REQUIRE(seen[source].size() == planner->SourceSize(source));
      // All buckets of the source go at one pace: passes within one microbatch and
      // one pass of each other.
      double least = 1e300, most = 0;
      for (const auto& [key, of] : draws) {
        if (key.first != source) continue;
        double sum = 0;
        for (const auto& [place, times] : of) sum += static_cast<double>(times);
        const double passes = sum / static_cast<double>(of.size());
        const double slack =
            static_cast<double>(w.feed.buckets[key.second].samples) /
            static_cast<double>(of.size());
        least = std::min(least, passes + slack);
        most = std::max(most, passes - slack);
        const auto [low, high] = std::minmax_element(
            of.begin(), of.end(),
            [](const auto& a, const auto& b) { return a.second < b.second; });
        REQUIRE(high->second - low->second <= 1);
      }
      REQUIRE(most - least <= 1.0);
    }
  }
}

TEST_CASE("buckets: sources are counted in microbatches, seek equals walk",
          "[plan][buckets]") {
  for (std::uint64_t n = 0; n < 30; ++n) {
    INFO("seed " << test::SeedFromEnv() << " world " << n);
    const World w = RandomWorld(n, 0);
    const auto planner = Make(w), again = Make(w);
    if (!planner) continue;
    std::vector<std::uint64_t> counts(2);
    for (std::uint64_t k = 0; k < 50; ++k) {
      REQUIRE(*planner->CountsBefore({k}) == counts);
      const auto asked = planner->AskedBefore({k});
      for (std::size_t s = 0; s < 2; ++s) {
        REQUIRE(std::abs((*asked)[s] - static_cast<double>(counts[s])) < 1.0 + 1e-6);
      }
      const auto batch = planner->PlanStep({k});
      for (const Unit& u : batch->units) ++counts[batch->samples[u.first].source];
    }
    for (std::uint64_t k = 50; k-- > 0;) {  // in another order
      REQUIRE(again->PlanStep({k})->samples == planner->PlanStep({k})->samples);
    }
  }
}

TEST_CASE("buckets: evaluation has every sample once", "[plan][buckets]") {
  for (std::uint64_t n = 0; n < 40; ++n) {
    INFO("seed " << test::SeedFromEnv() << " world " << n);
    World w = RandomWorld(n, 0);
    w.feed.mode = Mode::kEvaluation;
    for (SourceSpec& s : w.feed.sources) s.weight = kOne;
    const auto planner = Make(w);
    if (!planner) continue;
    std::set<Place> seen;
    for (std::uint64_t k = 0; k < *planner->TotalSteps(); ++k) {
      const auto batch = planner->PlanStep({k});
      REQUIRE(batch.ok());
      for (const Sample& s : batch->samples) REQUIRE(seen.insert(PlaceOf(s)).second);
    }
    REQUIRE(seen.size() == planner->SourceSize(0) + planner->SourceSize(1));
  }
}

TEST_CASE("buckets: one that nothing goes to is refused", "[plan][buckets]") {
  World w = RandomWorld(1, 0);
  w.feed.buckets.push_back({"tall", 8, 36, 640, Fraction{0, 1}, 1});
  const auto planner = Planner::Create(
      w.feed, {{format::ViewOf(w.rows), test::AllOf(w.rows), {}},
               {format::ViewOf(w.rows), test::AllOf(w.rows), {}}});
  CHECK(planner.status().message().find("bucket \"tall\"") != std::string::npos);
}

}  // namespace
}  // namespace penstock::plan
