// The C++ against tests/golden/plan/units.json, which units_restate.py makes from
// the documents alone.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "common/config/feed_file.h"
#include "common/plan/pack_plan.h"
#include "common/plan/planner.h"
#include "common/plan/pool.h"
#include "tests/unit/plan/golden_index.h"

namespace penstock::plan {
namespace {

using Json = nlohmann::json;

const Json& Golden() {
  static const Json golden = test::ReadGolden("units.json");
  return golden;
}

format::CaptureIndexRows GoldenIndex() { return test::IndexOf(Golden()); }

Planner GoldenPlanner(const format::CaptureIndexRows& rows, const Json& c) {
  auto feed = config::ParseFeed(c.at("yaml").get<std::string>(), "golden");
  REQUIRE(feed.status().message() == "");
  auto planner = Planner::Create(*feed, test::InputsOf(rows, c.at("captures")));
  REQUIRE(planner.status().message() == "");
  return *std::move(planner);
}

TEST_CASE("golden: the buckets of a track", "[plan][golden]") {
  const auto rows = GoldenIndex();
  for (std::size_t l = 0; l < Golden().at("bucket_lists").size(); ++l) {
    std::vector<BucketSpec> buckets;
    for (const Json& b : Golden().at("bucket_lists")[l]) {
      buckets.push_back({b.at("name"), b.at("frames"), b.at("width"), b.at("height"),
                         ParseFraction(b.value("fps", "0/1")).value_or(Fraction{0, 1}),
                         b.at("samples")});
    }
    for (std::size_t t = 0; t < rows.tracks.size(); ++t) {
      CHECK(Json(BucketsOf(buckets, rows.tracks[t])) ==
            Golden().at("buckets_of")[l][t]);
    }
  }
}

TEST_CASE("golden: steps of microbatches", "[plan][golden]") {
  const auto rows = GoldenIndex();
  for (const Json& c : Golden().at("bucketed")) {
    const Planner planner = GoldenPlanner(rows, c);
    for (std::size_t k = 0; k < c.at("steps").size(); ++k) {
      auto batch = planner.PlanStep({k});
      REQUIRE(batch.ok());
      Json units = Json::array();
      for (const Unit& u : batch->units) {
        Json samples = Json::array();
        for (std::uint64_t i = u.first; i < u.first + u.samples; ++i) {
          const Sample& s = batch->samples[i];
          CHECK(s.shape == u.shape);
          samples.push_back({s.source, s.epoch.value, s.index, s.capture,
                             s.start_frame, s.frames});
        }
        units.push_back({u.shape, samples});
      }
      CHECK(units == c.at("steps")[k]);
    }
  }
}

TEST_CASE("golden: packs and their index", "[plan][golden]") {
  const auto rows = GoldenIndex();
  for (const Json& c : Golden().at("packed")) {
    INFO(c.at("yaml").get<std::string>());
    const Planner planner = GoldenPlanner(rows, c);
    auto packs = planner.MakePacks();
    REQUIRE(packs.ok());
    std::vector<Sample> samples;
    std::vector<Unit> units;
    const std::size_t count = c.at("packs").size();
    REQUIRE(packs->Read(0, count, &samples, &units).ok());
    REQUIRE(units.size() == count);
    for (std::size_t p = 0; p < count; ++p) {
      Json pack = Json::array();
      for (std::uint64_t i = units[p].first; i < units[p].first + units[p].samples;
           ++i) {
        const Sample& s = samples[i];
        pack.push_back({s.source, planner.StratumOf(s, &*packs), s.epoch.value,
                        s.index, s.capture, s.start_frame, s.frames, s.tokens});
      }
      REQUIRE(pack == c.at("packs")[p]);
    }
    REQUIRE(packs->Reach(count + 1).ok());
    const auto expected = c.at("counts").get<std::vector<std::uint32_t>>();
    REQUIRE(packs->windows() >= expected.size());
    CHECK(std::equal(expected.begin(), expected.end(), packs->counts().begin()));
    CHECK(packs->ended() == c.at("ended").get<bool>());
  }
}

}  // namespace
}  // namespace penstock::plan
