#include "common/plan/planner.h"

#include <catch2/catch.hpp>
#include <ctime>
#include <map>
#include <set>
#include <tuple>

#include "common/plan/cut.h"
#include "common/random/prf.h"
#include "tests/support/seed.h"
#include "tests/unit/plan/small_world.h"

namespace penstock::plan {
namespace {

using Samples = std::vector<Sample>;

Planner Make(const FeedSpec& feed,
             const std::vector<const format::CaptureIndexRows*>& worlds) {
  std::vector<SourceInput> inputs;
  for (const auto* rows : worlds) {
    inputs.push_back({format::ViewOf(*rows), test::AllOf(*rows)});
  }
  auto planner = Planner::Create(feed, std::move(inputs));
  REQUIRE(planner.status().message() == "");
  return *std::move(planner);
}

Samples Walk(const Planner& planner, std::uint64_t begin, std::uint64_t end) {
  Samples out;
  for (std::uint64_t k = begin; k < end; ++k) {
    auto batch = planner.PlanStep({k});
    REQUIRE(batch.ok());
    out.insert(out.end(), batch->samples.begin(), batch->samples.end());
  }
  return out;
}

// The global order put together again from what the ranks of a world got.
Samples ThroughRanks(const Planner& planner, std::uint64_t steps,
                     std::uint32_t world) {
  Samples out;
  for (std::uint64_t k = 0; k < steps; ++k) {
    auto batch = planner.PlanStep({k});
    REQUIRE(batch.ok());
    Samples merged(batch->samples.size());
    auto cut =
        CutBatch({}, batch->global_batch, batch->samples.size(), {world});
    REQUIRE(cut.ok());
    for (std::uint32_t r = 0; r < world; ++r) {
      for (std::size_t j = 0; j < cut->ranks[r].size(); ++j) {
        merged[r + j * world] = batch->samples[cut->ranks[r][j]];
      }
    }
    out.insert(out.end(), merged.begin(), merged.end());
  }
  return out;
}

TEST_CASE("B-6: world size never changes the global order",
          "[plan][property]") {
  const std::uint64_t seed = test::SeedFromEnv();
  INFO("replay with PENSTOCK_TEST_SEED=" << seed);
  const auto one = test::MakeIndex(std::vector<std::uint64_t>{100, 30, 7});
  const auto two = test::MakeIndex(std::vector<std::uint64_t>{51, 52});
  const Planner planner = Make(test::MakeFeed(seed, 24, {3, 2}), {&one, &two});
  const Samples expected = Walk(planner, 0, 64);
  for (std::uint32_t world : {8, 6, 12, 1, 24}) {
    CHECK(ThroughRanks(planner, 64, world) == expected);
  }
}

TEST_CASE(
    "B-27: small worlds lose nothing and repeat nothing, for every D <= 4",
    "[plan][exhaustive]") {
  const std::uint64_t seed = test::SeedFromEnv();
  INFO("replay with PENSTOCK_TEST_SEED=" << seed);
  for (auto order : {OrderMode::kShuffle, OrderMode::kSequential}) {
    for (std::uint64_t samples = 1; samples <= 6; ++samples) {
      // One capture of all samples, and one capture for each.
      for (bool split : {false, true}) {
        const auto world =
            test::MakeIndex(split ? std::vector<std::uint64_t>(samples, 1)
                                  : std::vector<std::uint64_t>{samples});
        for (std::uint32_t d = 1; d <= 4; ++d) {
          for (std::uint64_t epochs = 1; epochs <= 5; ++epochs) {
            if (samples * epochs < d) continue;
            FeedSpec feed = test::MakeFeed(seed, d, {1}, epochs);
            feed.order = order;
            const Planner planner = Make(feed, {&world});
            const std::uint64_t steps = *planner.TotalSteps();
            INFO("samples " << samples << " D " << d << " epochs " << epochs);
            REQUIRE(steps == samples * epochs / d);
            std::map<std::uint64_t, std::map<std::uint64_t, int>> seen;
            const Samples all = ThroughRanks(planner, steps, d);
            for (const Sample& s : all) ++seen[s.epoch.value][s.index];
            for (std::uint64_t e = 0; e < all.size() / samples; ++e) {
              REQUIRE(seen[e].size() == samples);  // each once in a full pass
              for (auto [index, count] : seen[e]) REQUIRE(count == 1);
            }
            REQUIRE(planner.PlanStep({steps}).status().code() ==
                    absl::StatusCode::kOutOfRange);
          }
        }
      }
    }
  }
}

TEST_CASE("B-1, B-19: any step computed alone equals the walk, twice in a row",
          "[plan][property]") {
  const std::uint64_t seed = test::SeedFromEnv();
  INFO("replay with PENSTOCK_TEST_SEED=" << seed);
  const auto one = test::MakeIndex(std::vector<std::uint64_t>{13, 5});
  const auto two = test::MakeIndex(std::vector<std::uint64_t>{4});
  const FeedSpec feed = test::MakeFeed(seed, 6, {1, 3});
  const Samples whole = Walk(Make(feed, {&one, &two}), 0, 40);
  for (std::uint64_t cut = 0; cut <= 40; ++cut) {
    for (std::uint64_t again = cut; again <= 40; again += 7) {
      Samples joined = Walk(Make(feed, {&one, &two}), 0, cut);
      for (auto [b, e] :
           {std::pair{cut, again}, std::pair{again, std::uint64_t{40}}}) {
        const Samples part = Walk(Make(feed, {&one, &two}), b, e);
        joined.insert(joined.end(), part.begin(), part.end());
      }
      REQUIRE(joined == whole);
    }
  }
}

TEST_CASE("B-10, B-23: with several sources the data ends at one step for all",
          "[plan][property]") {
  const std::uint64_t seed = test::SeedFromEnv();
  INFO("replay with PENSTOCK_TEST_SEED=" << seed);
  const random::Key key = random::MakeKey(Seed{seed}, "test.end");
  for (std::uint64_t t = 0; t < 40; ++t) {
    const auto draw = [&](std::uint64_t i, std::uint64_t n) {
      return 1 + random::DrawBelow(key, t * 16 + i, n);
    };
    const auto one = test::MakeIndex(std::vector<std::uint64_t>{draw(0, 90)});
    const auto two = test::MakeIndex(std::vector<std::uint64_t>{draw(1, 90)});
    const std::uint64_t epochs = draw(2, 3), batch = draw(3, 4);
    FeedSpec feed =
        test::MakeFeed(seed, batch, {draw(4, 5), draw(5, 5)}, epochs);
    std::vector<SourceInput> inputs = {{format::ViewOf(one), test::AllOf(one)},
                                       {format::ViewOf(two), test::AllOf(two)}};
    auto planner = Planner::Create(feed, inputs);
    if (!planner.ok()) continue;  // ends before its first step
    const std::uint64_t steps = *planner->TotalSteps();
    for (const Sample& s : Walk(*planner, 0, steps)) {
      REQUIRE(s.epoch.value < epochs);
    }
    // One more step would begin an epoch too many.
    feed.epochs = 0;
    feed.exhaustion = Exhaustion::kRepeat;
    bool exceeds = false;
    for (const Sample& s :
         Walk(*Planner::Create(feed, inputs), steps, steps + 1)) {
      exceeds = exceeds || s.epoch.value >= epochs;
    }
    REQUIRE(exceeds);
  }
}

TEST_CASE("B-25: the order inside a source does not depend on the others",
          "[plan]") {
  const auto one = test::MakeIndex(std::vector<std::uint64_t>{50});
  const auto two = test::MakeIndex(std::vector<std::uint64_t>{60});
  const auto order_of_a = [](const Samples& all) {
    std::vector<std::uint64_t> out;
    for (const Sample& s : all) {
      if (s.source == 0 && out.size() < 100) out.push_back(s.index);
    }
    return out;
  };
  const auto alone =
      order_of_a(Walk(Make(test::MakeFeed(9, 10, {1}), {&one}), 0, 10));
  const auto mixed = order_of_a(
      Walk(Make(test::MakeFeed(9, 10, {1, 4}), {&one, &two}), 0, 60));
  CHECK(alone == mixed);
}

TEST_CASE("shuffle: epochs, seeds and names give other orders", "[plan]") {
  const auto world = test::MakeIndex(std::vector<std::uint64_t>{64});
  const auto order = [&](std::uint64_t seed, const std::string& name,
                         std::uint64_t step) {
    FeedSpec feed = test::MakeFeed(seed, 64, {1});
    feed.sources[0].name = name;
    std::vector<std::uint64_t> out;
    for (const Sample& s : Walk(Make(feed, {&world}), step, step + 1)) {
      out.push_back(s.index);
    }
    return out;
  };
  const std::set<std::vector<std::uint64_t>> orders = {
      order(1, "a", 0), order(1, "a", 1), order(2, "a", 0), order(1, "b", 0)};
  CHECK(orders.size() == 4);
  CHECK(order(1, "a", 0) == order(1, "a", 0));
}

TEST_CASE("planner: refuses what it cannot plan", "[plan]") {
  const auto world = test::MakeIndex(std::vector<std::uint64_t>{5});
  const SourceInput input{format::ViewOf(world), test::AllOf(world)};
  SECTION("a batch larger than the data") {
    auto p = Planner::Create(test::MakeFeed(1, 6, {1}, 1), {input});
    CHECK(std::string(p.status().message()).find("before the first step") !=
          std::string::npos);
  }
  SECTION("sources out of order") {
    FeedSpec feed = test::MakeFeed(1, 1, {1, 1});
    std::swap(feed.sources[0], feed.sources[1]);
    CHECK_FALSE(Planner::Create(feed, {input, input}).ok());
  }
  SECTION("a source never drawn may be empty") {
    CHECK(Planner::Create(test::MakeFeed(1, 1, {1, 0}),
                          {input, {format::ViewOf(world), {}}})
              .ok());
  }
  SECTION("steps past the largest") {
    auto p = Planner::Create(test::MakeFeed(1, 5, {1}), {input});
    REQUIRE(p.ok());
    CHECK(p->PlanStep({kStepMax - 1}).ok());
    CHECK(p->PlanStep({kStepMax}).status().code() ==
          absl::StatusCode::kOutOfRange);
  }
}

// Run by hand: plan_test "[benchmark]".
TEST_CASE("B-19: speed does not depend on the position", "[.][benchmark]") {
  const auto world =
      test::MakeIndex(std::vector<std::uint64_t>(100'000, 10'000));
  const auto begin = std::clock();
  const Planner planner = Make(test::MakeFeed(1, 4096, {1}), {&world});
  const auto created = std::clock();
  WARN("create, 10^9 samples in 10^5 captures: "
       << 1e3 * static_cast<double>(created - begin) / CLOCKS_PER_SEC << " ms");
  for (std::uint64_t step : {10u, 1'000u, 1'000'000u}) {
    const auto from = std::clock();
    for (std::uint64_t k = step; k < step + 100; ++k) {
      REQUIRE(planner.PlanStep({k}).ok());
    }
    WARN("step " << step << ": "
                 << 1e9 * static_cast<double>(std::clock() - from) /
                        CLOCKS_PER_SEC / (100 * 4096)
                 << " ns a sample");
  }
}

}  // namespace
}  // namespace penstock::plan
