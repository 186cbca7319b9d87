#include "common/config/feed_file.h"

#include <catch2/catch.hpp>

namespace penstock::config {
namespace {

constexpr char kFeed[] =
    "name: demo\n"
    "global_batch: 8\n"
    "sources:\n"
    "  - name: b\n"
    "    dataset: data\n"
    "    weight: 0.3\n"
    "    view: {frames: 4, fps: 29.97}\n"
    "  - {name: a, dataset: data, view: {frames: 4}}\n"
    "outputs:\n"
    "  - name: x\n"
    "    video: {width: 8, height: 8}\n";

std::string With(const std::string& from, const std::string& to) {
  std::string text = kFeed;
  text.replace(text.find(from), from.size(), to);
  return std::string(ParseFeed(text, "f.yaml").status().message());
}

bool Has(const std::string& text, const std::string& part) {
  UNSCOPED_INFO(text);
  return text.find(part) != std::string::npos;
}

TEST_CASE("feed file: defaults resolved, sources by name", "[config]") {
  auto feed = ParseFeed(kFeed, "f.yaml");
  REQUIRE(feed.status().message() == "");
  REQUIRE(feed->sources.size() == 2);
  CHECK(feed->sources[0].name == "a");
  CHECK(feed->sources[0].weight == plan::kOne);
  CHECK(feed->sources[0].view.stride == 1);
  CHECK(feed->sources[1].view.stride == 0);
  CHECK(feed->sources[1].view.fps == plan::Fraction{2997, 100});
  CHECK(feed->order == plan::OrderMode::kShuffle);
}

TEST_CASE("feed file: faults of the values carry the position", "[config]") {
  CHECK(Has(With("0.3", "-0.3"),
            "f.yaml:6:13: sources[0].weight: negative number"));
  CHECK(Has(With("29.97", "x"), "f.yaml:7:28: sources[0].view.fps"));
  CHECK(Has(With("fps: 29.97", "fps: 30, stride: 2"),
            "f.yaml:7:40: sources[0].view.stride: stride and fps"));
  CHECK(Has(With("width: 8, ", ""), "f.yaml:11:12: outputs[0].video.width"));
  CHECK(Has(With("video: {width: 8, height: 8}", "name2: 3"), "unknown field"));
  CHECK(Has(With("    video: {width: 8, height: 8}\n", ""),
            "does not say what it is"));
  CHECK(Has(With("name: a,", "name: b,"),
            "f.yaml:8:12: sources[1].name: the name \"b\" is taken by "
            "sources[0]"));
  CHECK(
      Has(With("global_batch: 8\n", ""), "f.yaml: global_batch: out of range"));
}

TEST_CASE("feed file: all faults in one run", "[config]") {
  const std::string text =
      With("weight: 0.3\n    view: {frames: 4, fps: 29.97}",
           "weight: z\n    view: {frames: 0}");
  CHECK(Has(text, "sources[0].weight"));
  CHECK(Has(text, "sources[0].view.frames"));
}

TEST_CASE("feed file: a missing file says its path", "[config]") {
  auto feed = LoadFeed("/nowhere/feed.yaml");
  CHECK(feed.status().code() == absl::StatusCode::kNotFound);
  CHECK(Has(std::string(feed.status().message()), "/nowhere/feed.yaml"));
}

}  // namespace
}  // namespace penstock::config
