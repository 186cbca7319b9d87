// The C++ against tests/golden/plan/plan.json, which restate.py makes from the
// documents alone.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "common/config/feed_file.h"
#include "common/hash/hash.h"
#include "common/plan/canonical.h"
#include "common/plan/cut.h"
#include "common/plan/planner.h"
#include "common/plan/strata.h"
#include "common/random/permutation.h"
#include "tests/unit/plan/golden_index.h"

namespace penstock::plan {
namespace {

using Json = nlohmann::json;
using U64s = std::vector<std::uint64_t>;

const Json& Golden() {
  static const Json golden = test::ReadGolden("plan.json");
  return golden;
}

format::CaptureIndexRows GoldenIndex() { return test::IndexOf(Golden()); }

TEST_CASE("golden: keys and draws", "[plan][golden]") {
  for (const Json& k : Golden().at("random").at("keys")) {
    const random::Key key = random::MakeKey(
        Seed{k.at("seed").get<std::uint64_t>()},
        k.at("domain").get<std::string>(), k.at("name").get<std::string>(),
        k.at("index").get<std::uint64_t>());
    CHECK(key.k0 == k.at("k0").get<std::uint64_t>());
    CHECK(key.k1 == k.at("k1").get<std::uint64_t>());
    for (const auto& d : k.at("draws").get<std::vector<U64s>>()) {
      CHECK(random::Draw(key, d[0], d[1]) == d[2]);
    }
  }
}

TEST_CASE("golden: bounded draws and permutations", "[plan][golden]") {
  const random::Key key = random::MakeKey(Seed{7}, "golden");
  for (const Json& b : Golden().at("random").at("below")) {
    const auto values = b.at("values").get<U64s>();
    for (std::size_t p = 0; p < values.size(); ++p) {
      CHECK(random::DrawBelow(key, p, b.at("n")) == values[p]);
    }
  }
  for (const Json& b : Golden().at("random").at("permutations")) {
    const random::Permutation p(b.at("n"), key);
    const auto values = b.at("values").get<U64s>();
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(p.At(i) == values[i]);
  }
  for (const Json& b : Golden().at("random").at("large")) {
    const random::Permutation p(b.at("n"), key);
    const auto at = b.at("at").get<U64s>(), values = b.at("values").get<U64s>();
    for (std::size_t i = 0; i < at.size(); ++i) CHECK(p.At(at[i]) == values[i]);
  }
}

TEST_CASE("golden: weights become quotas", "[plan][golden]") {
  for (const Json& c : Golden().at("weights")) {
    std::vector<Decimal> weights;
    for (const std::string text : c.at("weights")) {
      weights.push_back(ParseDecimal(text).value());
    }
    INFO(c.dump());
    const WeightRounding rounding = RoundWeights(weights);
    CHECK(rounding.ok() == !c.at("quotas").is_null());
    if (rounding.ok()) {
      CHECK(rounding.quotas ==
            c.at("quotas").get<std::vector<std::uint32_t>>());
    }
  }
}

TEST_CASE("golden: the mixture's schedule", "[plan][golden]") {
  for (const Json& c : Golden().at("mixture")) {
    const Mixture m(c.at("quotas").get<std::vector<std::uint32_t>>());
    const auto first = c.at("first").get<std::vector<std::uint32_t>>();
    hash::Sha256 sha;
    for (std::uint32_t p = 0; p < kMixturePeriod; ++p) {
      const std::uint32_t s = m.At(p).source;
      if (p < first.size()) CHECK(s == first[p]);
      const std::uint8_t bytes[] = {static_cast<std::uint8_t>(s),
                                    static_cast<std::uint8_t>(s >> 8)};
      sha.Update(hash::Bytes(bytes));
    }
    CHECK(hash::Hex(sha.Finish()) == c.at("sha256").get<std::string>());
  }
}

ViewSpec ViewOf(const Json& v) {
  ViewSpec out{.frames = v.at("frames"), .hop = v.value("hop", 0u)};
  out.stride = v.contains("fps") ? 0 : v.value("stride", 1u);
  if (v.contains("fps")) {
    out.fps = ParseFraction(v.at("fps").get<std::string>()).value();
  }
  if (v.value("align", "none") == "gop") out.align = Align::kGop;
  return out;
}

TEST_CASE("golden: views", "[plan][golden]") {
  const auto rows = GoldenIndex();
  for (const Json& c : Golden().at("views")) {
    INFO(c.at("view").dump());
    auto view = View::Create(ViewOf(c.at("view")), format::ViewOf(rows),
                             test::Selected(c.at("captures")), "golden");
    const Json& windows = c.at("windows");
    REQUIRE(view.ok() == !windows.is_null());
    if (!view.ok()) continue;
    REQUIRE(view->size() == windows.size());
    for (std::size_t i = 0; i < windows.size(); ++i) {
      const Window w = view->At(i);
      REQUIRE(Json{w.capture, w.start_frame, w.stride} == windows[i]);
    }
  }
}

TEST_CASE("golden: canonical forms and digests of feeds", "[plan][golden]") {
  for (const Json& c : Golden().at("feeds")) {
    auto feed = config::ParseFeed(c.at("yaml").get<std::string>(), "golden");
    REQUIRE(feed.status().message() == "");
    CHECK(CanonicalOrder(*feed) == c.at("order").get<std::string>());
    CHECK(CanonicalContent(*feed) == c.at("content").get<std::string>());
    CHECK(hash::Hex(OrderDigest(*feed)) ==
          c.at("order_digest").get<std::string>());
    CHECK(hash::Hex(ContentDigest(*feed)) ==
          c.at("content_digest").get<std::string>());
  }
}

TEST_CASE("golden: planned steps", "[plan][golden]") {
  const auto rows = GoldenIndex();
  for (const Json& c : Golden().at("feeds")) {
    auto feed = config::ParseFeed(c.at("yaml").get<std::string>(), "golden");
    REQUIRE(feed.ok());
    std::vector<SourceInput> inputs;
    for (std::size_t i = 0; i < c.at("captures").size(); ++i) {
      inputs.push_back({format::ViewOf(rows), test::Selected(c.at("captures")[i]),
                        c.at("labels")[i].get<std::vector<std::string>>()});
    }
    auto planner = Planner::Create(*feed, inputs);
    REQUIRE(planner.status().message() == "");
    for (std::uint32_t s = 0; s < inputs.size(); ++s) {
      if (planner->SourceSize(s) == 0) continue;  // never drawn
      CHECK(planner->SourceSize(s) == c.at("sizes")[s].get<std::uint64_t>());
    }
    const auto total = planner->TotalSteps();
    CHECK((total ? Json(*total) : Json(nullptr)) == c.at("total_steps"));
    for (const Json& step : c.at("steps")) {
      auto batch = planner->PlanStep({step.at("step").get<std::uint64_t>()});
      REQUIRE(batch.ok());
      CHECK(batch->data_step == step.at("data_step").get<std::uint64_t>());
      CHECK(batch->global_batch == step.at("units").get<std::uint64_t>());
      CHECK(*planner->CountsBefore({step.at("step").get<std::uint64_t>()}) ==
            step.at("counts").get<U64s>());
      Json samples = Json::array();
      for (const Sample& s : batch->samples) {
        samples.push_back({s.source, planner->StratumOf(s), s.epoch.value, s.index, s.capture,
                           s.start_frame, s.stride});
      }
      CHECK(samples == step.at("samples"));
    }
  }
}

TEST_CASE("golden: cut and sample ids", "[plan][golden]") {
  for (const Json& c : Golden().at("cut")) {
    const CutRule rule{c.at("mode") == "megatron" ? CutMode::kMegatron
                                                  : CutMode::kStrided,
                       c.at("micro"), Uneven::kMask};
    auto cut = CutBatch(rule, c.at("batch"), c.at("samples"),
                        {c.at("world").get<std::uint32_t>()});
    REQUIRE(cut.ok());
    CHECK(cut->units == c.at("units").get<std::uint64_t>());
    CHECK(cut->ranks == c.at("ranks").get<std::vector<U64s>>());
  }
  for (const Json& c : Golden().at("tempered")) {
    CHECK(TemperedShare(c.at("value"), c.at("largest"),
                        *ParseDecimal(c.at("temperature").get<std::string>())) ==
          c.at("share").get<std::uint64_t>());
  }
  const Json& c = Golden().at("sample_id");
  Digest256 id;
  REQUIRE(hash::ParseHex(c.at("capture").get<std::string>(), id));
  const Sample s{.epoch = {c.at("epoch")},
                 .index = c.at("index"),
                 .start_frame = c.at("start"),
                 .stride = c.at("stride"),
                 .frames = c.at("frames")};
  CHECK(SampleId(s, c.at("source").get<std::string>(),
                 c.at("stratum").get<std::string>(),
                 id) == c.at("id").get<std::string>());
}

}  // namespace
}  // namespace penstock::plan
