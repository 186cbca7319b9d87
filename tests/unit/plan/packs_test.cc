// Packing, pack plans and the fill over many small worlds. Behaviours: B-5, B-26.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "common/plan/pack.h"
#include "common/plan/pack_fill.h"
#include "common/plan/pack_plan.h"
#include "common/plan/planner.h"
#include "common/random/prf.h"
#include "tests/support/seed.h"
#include "tests/unit/plan/small_world.h"

namespace penstock::plan {
namespace {

void CheckPacks(const std::vector<PackItem>& items, const PackLimits& limits,
                const std::vector<std::vector<std::uint32_t>>& packs) {
  std::vector<int> times(items.size());
  for (const auto& pack : packs) {
    REQUIRE(!pack.empty());
    REQUIRE(pack.size() <= limits.segments);
    REQUIRE(std::is_sorted(pack.begin(), pack.end()));
    std::uint64_t tokens = 0, frames = 0;
    for (const std::uint32_t i : pack) {
      tokens += items[i].tokens;
      frames += items[i].frames;
      ++times[i];
    }
    REQUIRE(tokens <= limits.tokens);
    REQUIRE(frames <= limits.frames);
  }
  REQUIRE(std::count(times.begin(), times.end(), 1) ==
          static_cast<std::ptrdiff_t>(items.size()));
}

// Best-fit decreasing as its definition says it, in quadratic time.
std::vector<std::vector<std::uint32_t>> Slow(const std::vector<PackItem>& items,
                                             const PackLimits& limits) {
  std::vector<std::uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) {
    return std::tie(items[b].tokens, items[b].frames) <
           std::tie(items[a].tokens, items[a].frames);
  });
  struct Open {
    std::uint64_t tokens = 0, frames = 0;
    std::vector<std::uint32_t> members;
  };
  std::vector<Open> open;
  for (const std::uint32_t i : order) {
    Open* best = nullptr;
    for (Open& p : open) {
      const bool fits = p.tokens + items[i].tokens <= limits.tokens &&
                        p.frames + items[i].frames <= limits.frames &&
                        p.members.size() < limits.segments;
      if (fits && (best == nullptr || p.tokens > best->tokens)) best = &p;
    }
    if (best == nullptr) best = &open.emplace_back();
    best->tokens += items[i].tokens;
    best->frames += items[i].frames;
    best->members.push_back(i);
  }
  std::vector<std::vector<std::uint32_t>> out;
  for (Open& p : open) {
    std::sort(p.members.begin(), p.members.end());
    out.push_back(p.members);
  }
  return out;
}

TEST_CASE("packing: every small window is packed as defined", "[plan][packs]") {
  const PackLimits limits{5, 4, 3};
  std::vector<PackItem> kinds;
  for (std::uint64_t t = 1; t <= 5; ++t) {
    for (std::uint64_t f = 1; f <= 2; ++f) kinds.push_back({t, f});
  }
  std::vector<std::size_t> at;
  std::uint64_t cases = 0;
  for (std::size_t n = 0; n <= 5; ++n) {
    at.assign(n, 0);
    for (bool more = true; more;) {
      std::vector<PackItem> items;
      for (const std::size_t k : at) items.push_back(kinds[k]);
      const auto packs = PackItems(items, limits);
      CheckPacks(items, limits, packs);
      REQUIRE(packs == Slow(items, limits));
      ++cases;
      more = false;
      for (std::size_t i = 0; i < n && !more; ++i) {
        more = ++at[i] < kinds.size();
        if (!more) at[i] = 0;
      }
    }
  }
  CHECK(cases == 111111);
}

TEST_CASE("packing: large windows, limits of every kind", "[plan][packs]") {
  const random::Key key =
      random::MakeKey(Seed{test::SeedFromEnv()}, "test.packs");
  std::uint64_t at = 0;
  const auto draw = [&](std::uint64_t n) { return random::DrawBelow(key, at++, n); };
  for (int round = 0; round < 200; ++round) {
    const PackLimits limits{1 + draw(400), 1 + draw(60), 1 + draw(12)};
    std::vector<PackItem> items(draw(300));
    for (PackItem& i : items) {
      i = {1 + draw(limits.tokens), 1 + draw(limits.frames)};
    }
    const auto packs = PackItems(items, limits);
    CheckPacks(items, limits, packs);
    REQUIRE(packs == Slow(items, limits));
  }
}

// Log-normal lengths whose mean is a quarter of the budget at most (B-26).
TEST_CASE("packing: log-normal lengths fill 0.99", "[plan][packs]") {
  const random::Key key = random::MakeKey(Seed{test::SeedFromEnv()}, "test.fill");
  for (const double sigma : {0.5, 0.7, 1.0, 1.4}) {
    constexpr std::uint64_t kBudget = 8192;
    std::vector<PackItem> items;
    double sum = 0;
    for (std::uint64_t i = 0; i < 4096; ++i) {
      const auto uniform = [&](std::uint64_t k) {
        return (static_cast<double>(random::DrawBelow(key, 2 * i + k, 1 << 30)) + 1) /
               ((1 << 30) + 2.0);
      };
      const double normal = std::sqrt(-2 * std::log(uniform(0))) *
                            std::cos(2 * std::acos(-1.0) * uniform(1));
      const double mean = std::log(kBudget / 4.0) - sigma * sigma / 2;
      const double length = std::clamp(std::exp(mean + sigma * normal), 1.0,
                                       static_cast<double>(kBudget));
      items.push_back({static_cast<std::uint64_t>(length), 1});
      sum += static_cast<double>(items.back().tokens);
    }
    const PackLimits limits{kBudget, 1 << 20, 1 << 14};
    const auto packs = PackItems(items, limits);
    CheckPacks(items, limits, packs);
    INFO("sigma " << sigma << " mean " << sum / 4096);
    CHECK(sum / (static_cast<double>(packs.size()) * kBudget) >= 0.99);
  }
}

struct World {
  format::CaptureIndexRows rows;
  FeedSpec feed;
  std::vector<SourceInput> Inputs() const {
    return {{format::ViewOf(rows), test::AllOf(rows), {}},
            {format::ViewOf(rows), test::AllOf(rows), {}}};
  }
};

World RandomWorld(std::uint64_t number, std::uint64_t epochs) {
  const random::Key key =
      random::MakeKey(Seed{test::SeedFromEnv()}, "test.packed", "", number);
  std::uint64_t at = 0;
  const auto draw = [&](std::uint64_t n) { return random::DrawBelow(key, at++, n); };
  World out;
  std::vector<std::uint64_t> lengths(3 + draw(4));
  for (auto& n : lengths) n = 4 + draw(60);
  out.rows = test::MakeIndex(lengths);
  out.feed = test::MakeFeed(number, 1 + draw(4), {1 + draw(3), 1 + draw(3)}, epochs);
  for (SourceSpec& s : out.feed.sources) {
    s.view.frames = 8;
    s.view.min_frames = 2;
    s.view.hop = 3 + draw(6);
  }
  out.feed.length = "10*frames";
  out.feed.packing.tokens = 80 + 8 * draw(20);
  out.feed.packing.window = 1 + draw(20);
  out.feed.packing.segments = 2 + draw(6);
  return out;
}

Planner Make(const World& w) {
  auto planner = Planner::Create(w.feed, w.Inputs());
  REQUIRE(planner.status().message() == "");
  return *std::move(planner);
}

std::vector<GlobalBatch> Walk(const Planner& planner, std::uint64_t steps) {
  auto packs = planner.MakePacks();
  REQUIRE(packs.ok());
  std::vector<GlobalBatch> out;
  for (std::uint64_t k = 0; k < steps; ++k) {
    auto batch = planner.PlanStep({k}, &*packs);
    if (batch.status().code() == absl::StatusCode::kOutOfRange) break;
    REQUIRE(batch.status().message() == "");
    out.push_back(*std::move(batch));
  }
  return out;
}

TEST_CASE("packs: each sample in exactly one pack per pass", "[plan][packs]") {
  for (std::uint64_t n = 0; n < 60; ++n) {
    INFO("seed " << test::SeedFromEnv() << " world " << n);
    const World w = RandomWorld(n, 0);
    const Planner planner = Make(w);
    std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t, std::uint64_t>,
             int>
        times;
    for (const GlobalBatch& batch : Walk(planner, 400)) {
      for (const Unit& u : batch.units) {
        REQUIRE(u.samples <= w.feed.packing.segments);
        std::uint64_t tokens = 0;
        for (std::uint64_t i = u.first; i < u.first + u.samples; ++i) {
          tokens += batch.samples[i].tokens;
        }
        REQUIRE(tokens <= w.feed.packing.tokens);
      }
      for (const Sample& s : batch.samples) {
        REQUIRE(++times[{s.source, s.epoch.value, s.capture, s.start_frame}] == 1);
      }
    }
    // All passes but the ones that the last packs are of are whole.
    for (std::uint32_t source = 0; source < 2; ++source) {
      std::map<std::uint64_t, std::uint64_t> of_pass;
      for (const auto& [key, count] : times) {
        if (std::get<0>(key) == source) ++of_pass[std::get<1>(key)];
      }
      REQUIRE(of_pass.size() > 1);
      const std::uint64_t open = w.feed.packing.window / planner.SourceSize(source) + 2;
      for (const auto& [pass, count] : of_pass) {
        if (pass + open < of_pass.size()) {
          REQUIRE(count == planner.SourceSize(source));
        }
      }
    }
  }
}

TEST_CASE("packs: seek equals walk, counting in batches too", "[plan][packs]") {
  for (std::uint64_t n = 0; n < 40; ++n) {
    INFO("seed " << test::SeedFromEnv() << " world " << n);
    World w = RandomWorld(n, 0);
    if (n % 2 == 1) {
      w.feed.stages.push_back(
          {.step = 9, .global_batch = 3,
           .sources = {{.name = "b", .weight = Decimal{5 * kOne.nanos}, .view = {}}}});
      w.feed.skip.push_back({4, 6});
    }
    const Planner planner = Make(w);
    const auto walked = Walk(planner, 40);
    REQUIRE(walked.size() == 40);
    // Counted ahead, several windows at once, as several threads would.
    auto ahead = planner.MakePacks();
    REQUIRE(ahead.ok());
    while (ahead->packs() < planner.UnitsBeforeStep({40})) {
      std::vector<std::uint32_t> counts;
      for (const PackWindow& window : ahead->Next(7)) {
        const auto packed = PackOne(*planner.plan_inputs(), *ahead->stream(), window);
        REQUIRE(packed.ok());
        counts.push_back(static_cast<std::uint32_t>(packed->packs.size()));
      }
      REQUIRE(ahead->Append(counts).ok());
    }
    // And from counts that were kept.
    auto kept = planner.MakePacks();
    REQUIRE(kept->Append(ahead->counts(), true).value() == ahead->counts().size());
    for (std::uint64_t k = 40; k-- > 0;) {
      for (PackPlan* packs : {&*ahead, &*kept}) {
        const auto batch = planner.PlanStep({k}, packs);
        REQUIRE(batch.ok());
        REQUIRE(batch->samples == walked[k].samples);
        REQUIRE(batch->units == walked[k].units);
      }
    }
  }
}

TEST_CASE("packs: the end of the data loses no sample", "[plan][packs]") {
  for (std::uint64_t n = 0; n < 60; ++n) {
    INFO("seed " << test::SeedFromEnv() << " world " << n);
    World w = RandomWorld(n, 0);
    w.feed.mode = Mode::kEvaluation;
    for (SourceSpec& s : w.feed.sources) s.weight = kOne;
    const Planner planner = Make(w);
    std::set<std::tuple<std::uint32_t, std::uint32_t, std::uint64_t>> seen;
    for (const GlobalBatch& batch : Walk(planner, 10000)) {
      for (const Sample& s : batch.samples) {
        REQUIRE(seen.insert({s.source, s.capture, s.start_frame}).second);
      }
    }
    REQUIRE(seen.size() == planner.SourceSize(0) + planner.SourceSize(1));
  }
}

TEST_CASE("packs: too long: split keeps every frame, truncate the first ones",
          "[plan][packs]") {
  for (const TooLong rule : {TooLong::kSplit, TooLong::kTruncate, TooLong::kError}) {
    World w = RandomWorld(3, 0);
    w.feed.packing.tokens = 30;  // three frames
    w.feed.packing.too_long = rule;
    auto planner = Planner::Create(w.feed, w.Inputs());
    if (rule == TooLong::kError) {
      REQUIRE(planner.ok());
      auto packs = planner->MakePacks();
      const absl::Status status = packs->Reach(1);
      CHECK(status.message().find("a sample is longer than a pack") !=
            std::string::npos);
      continue;
    }
    REQUIRE(planner.status().message() == "");
    std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>, std::set<int>>
        frames;
    for (const GlobalBatch& batch : Walk(*planner, 60)) {
      for (const Sample& s : batch.samples) {
        REQUIRE(s.frames <= 3);
        if (rule == TooLong::kTruncate) REQUIRE(s.piece == 0);
        auto& of = frames[{s.source, s.epoch.value, s.index}];
        for (std::uint32_t f = 0; f < s.frames; ++f) {
          REQUIRE(of.insert(static_cast<int>(s.start_frame + f)).second);
        }
      }
    }
    for (const auto& [key, of] : frames) {
      if (rule == TooLong::kTruncate) REQUIRE(of.size() <= 3);
    }
  }
}

TEST_CASE("packs: a budget that fits badly is said, with a better one",
          "[plan][packs]") {
  World w;
  w.rows = test::MakeIndex(std::vector<std::uint64_t>{400, 400});
  w.feed = test::MakeFeed(5, 2, {1, 1});
  for (SourceSpec& s : w.feed.sources) s.view.frames = 8;
  w.feed.length = "10*frames";  // every sample has 80 tokens
  w.feed.packing.tokens = 150;
  const Planner planner = Make(w);
  const auto fill = ExpectedFill(*planner.plan_inputs(), *planner.MakePacks());
  REQUIRE(fill.ok());
  CHECK(fill->fill == Approx(80.0 / 150).epsilon(1e-3));
  REQUIRE(fill->proposed != 0);
  w.feed.packing.tokens = fill->proposed;
  const Planner better = Make(w);
  CHECK(ExpectedFill(*better.plan_inputs(), *better.MakePacks())->fill >= 0.95);
}

}  // namespace
}  // namespace penstock::plan
