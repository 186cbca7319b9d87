// Strata, stages, limits and skipped steps over many small worlds.
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <set>

#include "common/plan/planner.h"
#include "common/random/prf.h"
#include "tests/support/seed.h"
#include "tests/unit/plan/small_world.h"

namespace penstock::plan {
namespace {

// Sources of one-frame windows; labels of captures where a source has strata.
struct World {
  std::vector<format::CaptureIndexRows> rows;
  std::vector<std::vector<std::string>> labels;

  std::vector<SourceInput> Inputs() const {
    std::vector<SourceInput> out;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      out.push_back({format::ViewOf(rows[i]), test::AllOf(rows[i]),
                     i < labels.size() ? labels[i] : std::vector<std::string>{}});
    }
    return out;
  }
};

World WorldOf(const std::vector<std::vector<std::uint64_t>>& lengths) {
  World out;
  for (const auto& l : lengths) out.rows.push_back(test::MakeIndex(l));
  return out;
}

Planner Make(const FeedSpec& feed, const World& world) {
  auto planner = Planner::Create(feed, world.Inputs());
  REQUIRE(planner.status().message() == "");
  return *std::move(planner);
}

std::vector<Sample> Walk(const Planner& planner, std::uint64_t begin,
                         std::uint64_t end) {
  std::vector<Sample> out;
  for (std::uint64_t k = begin; k < end; ++k) {
    auto batch = planner.PlanStep({k});
    REQUIRE(batch.status().message() == "");
    out.insert(out.end(), batch->samples.begin(), batch->samples.end());
  }
  return out;
}

FeedSpec Stratified(StrataMode mode) {
  FeedSpec feed = test::MakeFeed(test::SeedFromEnv(), 8, {1, 1});
  feed.sources[0].strata.by = {"title"};
  feed.sources[0].strata.mode = mode;
  if (mode == StrataMode::kTemperature) {
    feed.sources[0].strata.temperature.nanos = 2 * kOne.nanos;
  }
  return feed;
}

TEST_CASE("B-23: strata keep within 1 of their share, any window within 2",
          "[plan][property]") {
  World world = WorldOf({{40, 7, 300, 90}, {50}});
  world.labels = {{"a", "b", "c", "a"}};
  for (auto mode : {StrataMode::kProportional, StrataMode::kUniform,
                    StrataMode::kTemperature}) {
    const Planner planner = Make(Stratified(mode), world);
    const auto& strata = planner.schedule().lineages()[0]->strata();
    REQUIRE(strata.size() == 3);
    std::uint64_t sum = 0;
    for (const auto& s : strata) sum += s.quota;
    REQUIRE(sum == kMixturePeriod);
    if (mode == StrataMode::kUniform) CHECK(strata[0].quota - 21845 <= 1);
    std::vector<std::uint64_t> counts(3);
    std::vector<std::vector<std::uint64_t>> prefixes;
    for (const Sample& s : Walk(planner, 0, 500)) {
      if (s.source != 0) continue;
      ++counts[s.stratum];
      prefixes.push_back(counts);
      const double n = static_cast<double>(prefixes.size());
      for (std::size_t i = 0; i < 3; ++i) {
        const double share = strata[i].quota * n / kMixturePeriod;
        REQUIRE(std::abs(static_cast<double>(counts[i]) - share) < 1.0 + 1e-9);
      }
    }
    for (std::size_t at = 0; at + 64 < prefixes.size(); ++at) {
      for (std::size_t i = 0; i < 3; ++i) {
        const double share = strata[i].quota * 64.0 / kMixturePeriod;
        const auto in = prefixes[at + 64][i] - prefixes[at][i];
        REQUIRE(std::abs(static_cast<double>(in) - share) < 2.0 + 1e-9);
      }
    }
  }
}

TEST_CASE("strata: every pass over a stratum has each window once",
          "[plan][property]") {
  World world = WorldOf({{5, 3, 4}, {6}});
  world.labels = {{"a", "b", "a"}};
  const Planner planner = Make(Stratified(StrataMode::kUniform), world);
  std::map<std::tuple<std::uint32_t, std::uint64_t>, std::set<std::uint64_t>> seen;
  std::map<std::tuple<std::uint32_t, std::uint64_t>, std::size_t> drawn;
  std::map<std::uint32_t, std::uint64_t> last;
  for (const Sample& s : Walk(planner, 0, 60)) {
    if (s.source != 0) continue;
    REQUIRE(s.epoch.value >= last[s.stratum]);  // passes come in order
    last[s.stratum] = s.epoch.value;
    seen[{s.stratum, s.epoch.value}].insert(s.index);
    ++drawn[{s.stratum, s.epoch.value}];
  }
  for (const auto& [key, count] : drawn) {
    REQUIRE(seen[key].size() == count);
    const auto [stratum, epoch] = key;
    if (epoch < last[stratum]) REQUIRE(count == (stratum == 0 ? 9u : 3u));
  }
}

TEST_CASE("B-25: a stage keeps the order of sources that it does not touch",
          "[plan][property]") {
  const World world = WorldOf({{50}, {60}, {70}});
  const auto order_of = [](const std::vector<Sample>& all, std::uint32_t source) {
    std::vector<std::uint64_t> out;
    for (const Sample& s : all) {
      if (s.source == source && out.size() < 90) {
        out.push_back(s.epoch.value * 1000 + s.index);
      }
    }
    return out;
  };
  FeedSpec feed = test::MakeFeed(test::SeedFromEnv(), 12, {1, 2, 1});
  const auto plain = Walk(Make(feed, world), 0, 60);
  for (std::uint64_t at = 1; at <= 12; ++at) {
    feed.stages = {{at, 7, {{"b", Decimal{5 * kOne.nanos}, std::nullopt}}},
                   {at + 3, 0, {{"c", Decimal{}, std::nullopt}}},
                   {at + 5, 20, {{"c", kOne, std::nullopt}}}};
    const auto staged = Walk(Make(feed, world), 0, 60);
    for (std::uint32_t s = 0; s < 3; ++s) {
      REQUIRE(order_of(staged, s) == order_of(plain, s));
    }
  }
}

TEST_CASE("stages: another view begins a new epoch, the others go on",
          "[plan]") {
  const World world = WorldOf({{50}, {60}});
  FeedSpec feed = test::MakeFeed(1, 10, {1, 1});
  ViewSpec other = feed.sources[0].view;
  other.hop = 5;
  feed.stages = {{13, 0, {{"a", std::nullopt, other}}}};
  const Planner planner = Make(feed, world);
  const auto before = Walk(planner, 0, 13), after = Walk(planner, 13, 15);
  for (const Sample& s : before) REQUIRE(s.epoch.value <= 1);
  for (const Sample& s : after) {  // 65 draws of 50 windows began epochs 0 and 1
    if (s.source == 0) {
      REQUIRE(s.epoch.value == 2);
      REQUIRE(s.start_frame % 5 == 0);
    }
  }
}

TEST_CASE("B-10: limits of sources end or leave the mixture, for all alike",
          "[plan][property]") {
  const std::uint64_t seed = test::SeedFromEnv();
  INFO("replay with PENSTOCK_TEST_SEED=" << seed);
  const random::Key key = random::MakeKey(Seed{seed}, "test.limits");
  for (std::uint64_t t = 0; t < 60; ++t) {
    const auto draw = [&](std::uint64_t i, std::uint64_t n) {
      return 1 + random::DrawBelow(key, t * 16 + i, n);
    };
    const World world = WorldOf({{draw(0, 60)}, {draw(1, 60)}, {draw(2, 60)}});
    const std::uint64_t batch = draw(3, 6);
    FeedSpec feed =
        test::MakeFeed(seed, batch, {draw(4, 4), draw(5, 4), draw(6, 4)});
    feed.exhaustion = Exhaustion::kRenormalise;
    feed.sources[0].epochs = draw(7, 3);
    feed.sources[1].epochs = draw(8, 3);
    feed.sources[2].epochs = draw(9, 3);
    auto planner = Planner::Create(feed, world.Inputs());
    if (!planner.ok()) continue;  // less than a batch
    REQUIRE(planner->TotalSteps().has_value());
    std::map<std::uint32_t, std::uint64_t> counts;
    for (const Sample& s : Walk(*planner, 0, *planner->TotalSteps())) {
      REQUIRE(s.epoch.value < feed.sources[s.source].epochs);
      ++counts[s.source];
    }
    for (std::uint32_t s = 0; s < 3; ++s) {  // at most a batch is left of each
      const std::uint64_t all =
          feed.sources[s].epochs * world.rows[s].tracks[0].rows;
      REQUIRE(counts[s] <= all);
      REQUIRE(all - counts[s] < batch);
    }
  }
}

TEST_CASE("skip: skipped steps are left out and nothing else moves", "[plan]") {
  const World world = WorldOf({{50}, {60}});
  FeedSpec feed = test::MakeFeed(4, 6, {1, 2});
  const Planner plain = Make(feed, world);
  feed.skip = {{2, 5}, {7, 8}};
  const Planner skipping = Make(feed, world);
  std::uint64_t data = 0;
  for (std::uint64_t k = 0; k < 20; ++k, ++data) {
    if (data == 2) data = 5;
    if (data == 7) data = 8;
    REQUIRE(skipping.DataStep({k}) == data);
    REQUIRE(Walk(skipping, k, k + 1) == Walk(plain, data, data + 1));
  }
}

TEST_CASE("B-28: evaluation has every sample once in every small world",
          "[plan][exhaustive]") {
  for (std::uint64_t a = 1; a <= 7; ++a) {
    for (std::uint64_t b = 1; b <= 7; ++b) {
      for (std::uint64_t batch = 1; batch <= 9; ++batch) {
        FeedSpec feed = test::MakeFeed(3, batch, {1, 1});
        feed.mode = Mode::kEvaluation;
        const Planner planner = Make(feed, WorldOf({{a}, {b}}));
        REQUIRE(planner.TotalSteps() == (a + b + batch - 1) / batch);
        std::set<std::pair<std::uint32_t, std::uint64_t>> seen;
        const auto all = Walk(planner, 0, *planner.TotalSteps());
        for (const Sample& s : all) seen.insert({s.source, s.index});
        REQUIRE(all.size() == a + b);
        REQUIRE(seen.size() == a + b);
        REQUIRE(planner.PlanStep({*planner.TotalSteps() - 1})->global_batch == batch);
      }
    }
  }
}

}  // namespace
}  // namespace penstock::plan
