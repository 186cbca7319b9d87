#include "common/plan/canonical.h"

#include <catch2/catch.hpp>

#include "common/plan/json_text.h"
#include "tests/unit/plan/small_world.h"

namespace penstock::plan {
namespace {

TEST_CASE("order digest: changes with which samples, not with what is made",
          "[plan]") {
  const FeedSpec base = test::MakeFeed(1, 4, {1, 2});
  FeedSpec feed = base;
  SECTION("unchanged by what does not choose samples") {
    feed.name = "other";
    feed.microbatch = 2;
    feed.sources[0].dataset = "elsewhere";
    feed.sources[0].weight.nanos *= 2;  // the same quotas
    feed.sources[1].weight.nanos *= 2;
    feed.sources[0].view.hop = 1;  // the default, said
    feed.outputs[0].name = "t";
    feed.sources[0].view.pairing = Pairing::kFrameTActionTMinus1;
    CHECK(OrderDigest(feed) == OrderDigest(base));
    CHECK_FALSE(ContentDigest(feed) == ContentDigest(base));
    return;
  }
  SECTION("seed") { feed.seed.value = 2; }
  SECTION("batch") { feed.global_batch = 8; }
  SECTION("epochs") { feed.epochs = 1; }
  SECTION("order") { feed.order = OrderMode::kSequential; }
  SECTION("weight") { feed.sources[0].weight.nanos *= 2; }
  SECTION("name") { feed.sources[1].name = "c"; }
  SECTION("hop") { feed.sources[0].view.hop = 2; }
  SECTION("align") { feed.sources[0].view.align = Align::kGop; }
  SECTION("track") { feed.sources[0].view.track = "cam"; }
  CHECK_FALSE(OrderDigest(feed) == OrderDigest(base));
}

TEST_CASE("json text: sorted, compact, escaped", "[plan]") {
  CHECK(
      JsonObject().Number("b", 18446744073709551615u).Text("a", "x").Render() ==
      R"({"a":"x","b":18446744073709551615})");
  CHECK(JsonString(std::string("\"\\\b\f\n\r\t\x01\x1f\x7f/é", 13)) ==
        "\"\\\"\\\\\\b\\f\\n\\r\\t\\u0001\\u001f\x7f/é\"");
  CHECK(JsonStrings({}) == "[]");
}

}  // namespace
}  // namespace penstock::plan
