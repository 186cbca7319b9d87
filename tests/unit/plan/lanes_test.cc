// Lanes against tests/golden/plan/lanes.json, and over many small worlds.
// Behaviours: B-6, B-23.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "common/config/feed_file.h"
#include "common/plan/planner.h"
#include "common/random/prf.h"
#include "tests/support/seed.h"
#include "tests/unit/plan/golden_index.h"

namespace penstock::plan {
namespace {

using Json = nlohmann::json;

TEST_CASE("golden: chunks of lanes", "[plan][golden]") {
  const Json golden = test::ReadGolden("lanes.json");
  const auto rows = test::IndexOf(golden);
  for (const Json& c : golden.at("feeds")) {
    INFO(c.at("yaml").get<std::string>());
    auto feed = config::ParseFeed(c.at("yaml").get<std::string>(), "golden");
    REQUIRE(feed.status().message() == "");
    auto planner = Planner::Create(*feed, test::InputsOf(rows, c.at("captures")));
    REQUIRE(planner.status().message() == "");
    for (std::size_t k = 0; k < c.at("steps").size(); ++k) {
      auto batch = planner->PlanStep({k});
      REQUIRE(batch.ok());
      Json step = Json::array();
      for (const Sample& s : batch->samples) {
        step.push_back({s.source, s.epoch.value, s.index, s.capture, s.start_frame,
                        s.reset ? 1 : 0});
      }
      REQUIRE(step == c.at("steps")[k]);
    }
    if (feed->exhaustion == Exhaustion::kStop) {
      CHECK(planner->TotalSteps() == c.at("steps").size());
    }
  }
}

struct World {
  format::CaptureIndexRows rows;
  FeedSpec feed;
};

World RandomWorld(std::uint64_t number) {
  const random::Key key =
      random::MakeKey(Seed{test::SeedFromEnv()}, "test.lanes", "", number);
  std::uint64_t at = 0;
  const auto draw = [&](std::uint64_t n) { return random::DrawBelow(key, at++, n); };
  std::vector<test::TrackShape> tracks;
  for (std::uint64_t i = 0, n = 6 + draw(8); i < n; ++i) {
    test::TrackShape t;
    t.rows = 4 + draw(60);
    const std::uint64_t cut = 4 + draw(60);
    t.runs = {{0, std::min(cut, t.rows)}};
    if (cut + 2 < t.rows) t.runs.push_back({cut + 2, t.rows});
    t.gops = {{static_cast<std::uint32_t>(t.rows), 0}};
    tracks.push_back(t);
  }
  World out;
  out.rows = test::MakeIndex(tracks);
  const std::uint64_t lanes = 1 + draw(6);
  out.feed = test::MakeFeed(number, lanes * (1 + draw(3)), {1});
  out.feed.sources[0].view.frames = 3;
  out.feed.lanes = lanes;
  return out;
}

Planner Make(const World& w) {
  std::vector<SourceInput> inputs(w.feed.sources.size(),
                                  {format::ViewOf(w.rows), test::AllOf(w.rows), {}});
  auto planner = Planner::Create(w.feed, inputs);
  REQUIRE(planner.status().message() == "");
  return *std::move(planner);
}

TEST_CASE("lanes: chunks in order, every chunk once a pass, resets where they are",
          "[plan][lanes]") {
  for (std::uint64_t n = 0; n < 80; ++n) {
    INFO("seed " << test::SeedFromEnv() << " world " << n);
    const World w = RandomWorld(n);
    const Planner planner = Make(w);
    std::map<std::uint64_t, std::optional<Sample>> last;  // of each lane
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::set<std::uint64_t>> of_pass;
    std::map<std::uint64_t, std::uint64_t> lane_of_window;
    const std::uint64_t steps = 6 * planner.SourceSize(0) / w.feed.global_batch + 2;
    for (std::uint64_t k = 0; k < steps; ++k) {
      const auto batch = planner.PlanStep({k});
      REQUIRE(batch.ok());
      for (std::uint64_t i = 0; i < batch->samples.size(); ++i) {
        const Sample& s = batch->samples[i];
        const std::uint64_t lane = i % w.feed.lanes;
        REQUIRE(of_pass[{lane, s.epoch.value}].insert(s.index).second);
        REQUIRE(lane_of_window.emplace(s.index, lane).first->second == lane);
        const std::optional<Sample>& before = last[lane];
        const auto& runs = w.rows.runs;
        const bool same_run =
            before && before->capture == s.capture &&
            s.start_frame == before->start_frame + 3 &&
            std::any_of(runs.begin(), runs.end(), [&](const format::RunRow& r) {
              return r.track == s.track && r.begin_frame <= before->start_frame &&
                     s.start_frame < r.end_frame;
            });
        REQUIRE(s.reset == !same_run);
        // A capture is left when it has ended only.
        if (before && before->capture == s.capture && before->epoch == s.epoch) {
          REQUIRE(s.index == before->index + 1);
        }
        last[lane] = s;
      }
    }
    REQUIRE(lane_of_window.size() == planner.SourceSize(0));
    std::map<std::uint64_t, std::uint64_t> whole;  // chunks of each lane
    for (const auto& [window, lane] : lane_of_window) ++whole[lane];
    for (const auto& [key, windows] : of_pass) {
      if (of_pass.contains({key.first, key.second + 1})) {
        REQUIRE(windows.size() == whole[key.first]);
      }
    }
  }
}

TEST_CASE("lanes: ranks that divide them keep each lane whole", "[plan][lanes]") {
  for (std::uint64_t n = 0; n < 40; ++n) {
    INFO("seed " << test::SeedFromEnv() << " world " << n);
    const World w = RandomWorld(n);
    const Planner planner = Make(w);
    for (std::uint32_t world = 1; world <= w.feed.lanes + 2; ++world) {
      const auto batch = planner.PlanStep({3});
      const auto cut = planner.Cut(*batch, {world});
      if (w.feed.lanes % world != 0) {
        REQUIRE(cut.status().message().find("cannot share") != std::string::npos);
        continue;
      }
      REQUIRE(cut.ok());
      for (std::uint32_t r = 0; r < world; ++r) {
        REQUIRE(cut->ranks[r].size() == w.feed.global_batch / world);
        for (const std::uint64_t i : cut->ranks[r]) {
          REQUIRE(i % w.feed.lanes % world == r);
        }
      }
    }
  }
}

TEST_CASE("lanes: sources have their share of every step", "[plan][lanes]") {
  World w;
  w.rows = test::MakeIndex(std::vector<std::uint64_t>(40, 30));
  w.feed = test::MakeFeed(3, 20, {5, 3, 2});
  for (SourceSpec& s : w.feed.sources) s.view.frames = 3;
  w.feed.lanes = 10;
  const Planner planner = Make(w);
  for (std::uint64_t k = 0; k < 50; ++k) {
    CHECK(*planner.CountsBefore({k}) ==
          std::vector<std::uint64_t>{10 * k, 6 * k, 4 * k});
    CHECK((*planner.AskedBefore({k}))[0] == Approx(10.0 * k));
  }
}

TEST_CASE("lanes: what they cannot be together with is refused", "[plan][lanes]") {
  const auto message = [](const World& w) {
    std::vector<SourceInput> inputs(w.feed.sources.size(),
                                    {format::ViewOf(w.rows), test::AllOf(w.rows), {}});
    return std::string(Planner::Create(w.feed, inputs).status().message());
  };
  World w;
  w.rows = test::MakeIndex(std::vector<std::uint64_t>(4, 30));
  w.feed = test::MakeFeed(3, 6, {1, 1});
  w.feed.lanes = 4;
  CHECK(message(w).find("a multiple of 4 (lanes)") != std::string::npos);
  w.feed.global_batch = 8;
  CHECK(message(w).empty());
  w.feed.sources[1].weight.nanos = kOne.nanos / 100;
  CHECK(message(w).find("gets no lane") != std::string::npos);
  w.feed.sources[1].weight.nanos = 0;
  CHECK(message(w).empty());
  w.feed.lanes = w.feed.global_batch = 5;
  CHECK(message(w).find("fewer captures than lanes") != std::string::npos);
  w.feed.lanes = w.feed.global_batch = 4;
  w.feed.cut = CutMode::kBalanced;
  CHECK(message(w).find("lanes and a cut other than strided") != std::string::npos);
}

}  // namespace
}  // namespace penstock::plan
