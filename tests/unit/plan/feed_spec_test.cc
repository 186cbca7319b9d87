#include "common/plan/feed_spec.h"

#include <catch2/catch.hpp>

#include "common/plan/weights.h"
#include "tests/unit/plan/small_world.h"

namespace penstock::plan {
namespace {

std::string FirstField(const FeedSpec& feed) {
  const auto faults = CheckFeed(feed);
  return faults.empty() ? "" : faults[0].field;
}

TEST_CASE("decimal: exact, and back", "[plan]") {
  CHECK(ParseDecimal("0.30")->nanos == 300'000'000);
  CHECK(FormatDecimal(*ParseDecimal("0.30")) == "0.3");
  CHECK(FormatDecimal(*ParseDecimal("12.")) == "12");
  CHECK(FormatDecimal(*ParseDecimal("999999999.000000001")) ==
        "999999999.000000001");
  for (const char* bad : {"", "-1", "+1", ".5", "1e3", "0x1", "1.2.3", "1,5",
                          "nan", "1 ", "1234567890", "0.1234567891"}) {
    INFO(bad);
    CHECK_FALSE(ParseDecimal(bad).ok());
  }
}

TEST_CASE("fraction: in lowest terms", "[plan]") {
  CHECK(*ParseFraction("29.97") == Fraction{2997, 100});
  CHECK(*ParseFraction("60000/2002") == Fraction{30000, 1001});
  for (const char* bad : {"0", "0/1", "1/0", "/2", "1/", "1/2/3", "-1/2"}) {
    INFO(bad);
    CHECK_FALSE(ParseFraction(bad).ok());
  }
}

TEST_CASE("quota: printed with seven digits", "[plan]") {
  CHECK(FormatQuota(19661) == "0.3000031 (19661/65536)");
  CHECK(FormatQuota(65536) == "1.0000000 (65536/65536)");
  CHECK(FormatQuota(0) == "0.0000000 (0/65536)");
}

TEST_CASE("feed: each fault names its field", "[plan]") {
  FeedSpec feed = test::MakeFeed(1, 4, {1, 1});
  REQUIRE(FirstField(feed) == "");
  SECTION("B-24: the same source twice says which") {
    feed.sources[1].name = "a";
    const auto faults = CheckFeed(feed);
    REQUIRE(faults.size() == 1);
    CHECK(faults[0].field == "sources[1].name");
    CHECK(faults[0].problem.what == "the name \"a\" is taken by sources[0]");
  }
  SECTION("no batch") {
    feed.global_batch = 0;
    CHECK(FirstField(feed) == "global_batch");
  }
  SECTION("microbatch") {
    feed.microbatch = 3;
    CHECK(FirstField(feed) == "microbatch");
  }
  SECTION("no frames") {
    feed.sources[1].view.frames = 0;
    CHECK(FirstField(feed) == "sources[1].view.frames");
  }
  SECTION("stride and fps") {
    feed.sources[0].view.fps = {20, 1};
    CHECK(FirstField(feed) == "sources[0].view.stride");
  }
  SECTION("all weights zero") {
    feed.sources[0].weight = feed.sources[1].weight = {0};
    CHECK(FirstField(feed) == "sources");
  }
  SECTION("a weight that rounds to nothing") {
    feed.sources[0].weight = {1};
    CHECK(FirstField(feed) == "sources[0].weight");
  }
  SECTION("no outputs") {
    feed.outputs.clear();
    CHECK(FirstField(feed) == "outputs");
  }
  SECTION("an output without size") {
    feed.outputs[0].kind = VideoOutput{.width = 8};
    CHECK(FirstField(feed) == "outputs[0].video.height");
  }
  SECTION("a key twice") {
    feed.outputs[0].kind = KeysOutput{"", {"KeyW", "KeyW"}};
    CHECK(FirstField(feed) == "outputs[0].keys.keys[1]");
  }
  SECTION("a short dataset id") {
    feed.sources[0].dataset_id = "abc";
    CHECK(FirstField(feed) == "sources[0].dataset_id");
  }
  SECTION("a name that would break sample ids") {
    feed.sources[0].name = "a:b";
    CHECK(FirstField(feed) == "sources[0].name");
  }
  CHECK_FALSE(CheckFeedStatus(feed).ok());
}

}  // namespace
}  // namespace penstock::plan
