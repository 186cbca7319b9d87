#include "server/dataset/plan_source.h"

#include <catch2/catch.hpp>
#include <vector>

#include "tests/unit/dataset/small_dataset.h"

namespace penstock::dataset {
namespace {

struct World {
  test::TempDir dir;
  std::string id = test::WriteDataset(dir / "data", {"doom", "wolf", "quake"});

  std::string Yaml(const std::string& filter, const std::string& more = "") {
    return "name: f\nglobal_batch: 4\nsources:\n- name: a\n  dataset: data\n" +
           more + "  filter: \"" + filter +
           "\"\n  view: {frames: 10, track: cam}\n"
           "outputs:\n- {name: x, video: {width: 8, height: 8}}\n";
  }
  absl::StatusOr<OpenedFeed> Open(const std::string& yaml) {
    test::WriteAll(dir / "f.yaml", yaml);
    return OpenFeedFile(dir / "f.yaml");
  }
};

bool Has(const absl::Status& status, const std::string& part) {
  UNSCOPED_INFO(status.message());
  return std::string(status.message()).find(part) != std::string::npos;
}

TEST_CASE("opened feed: dataset beside the feed, selection, plan, digests",
          "[dataset]") {
  World w;
  auto feed = w.Open(w.Yaml("title != 'wolf'"));
  REQUIRE(feed.status().message() == "");
  const auto captures = feed->sources[0].captures;
  CHECK(std::vector(captures.begin(), captures.end()) ==
        std::vector<std::uint32_t>{0, 2});
  CHECK(feed->planner->SourceSize(0) == 10 + 30);
  auto batch = feed->planner->PlanStep({0});
  REQUIRE(batch.ok());
  const plan::Sample& s = batch->samples[0];
  CHECK(feed->IdOf(s).starts_with("a:0:" + std::to_string(s.index) + "@"));
  // The order digest says which feed, the selection digest which captures.
  auto other = w.Open(w.Yaml("title != 'doom'"));
  CHECK(other->order_digest == feed->order_digest);
  CHECK_FALSE(other->selection_digest == feed->selection_digest);
}

TEST_CASE("opened feed: a dataset of another id names both", "[dataset]") {
  World w;
  CHECK(w.Open(w.Yaml("", "  dataset_id: " + w.id.substr(0, 12) + "\n")).ok());
  const auto status =
      w.Open(w.Yaml("", "  dataset_id: 0123456789ab\n")).status();
  CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
  CHECK(Has(status, w.id));
  CHECK(Has(status, "0123456789ab"));
}

TEST_CASE("B-14: a filter that keeps nothing is an error", "[dataset]") {
  World w;
  CHECK(Has(w.Open(w.Yaml("frames < 0")).status(), "selects no capture"));
}

TEST_CASE("B-24: the same dataset in two sources is reported", "[dataset]") {
  World w;
  const std::string yaml =
      "name: f\nglobal_batch: 4\nsources:\n"
      "- {name: a, dataset: data, view: {frames: 10}}\n"
      "- {name: b, dataset: ./data, filter: frames > 100, view: {frames: 10}}\n"
      "outputs:\n- {name: x, video: {width: 8, height: 8}}\n";
  auto feed = w.Open(yaml);
  REQUIRE(feed.status().message() == "");
  REQUIRE(feed->notes.size() == 1);
  CHECK(feed->notes[0].find("\"a\" and \"b\"") != std::string::npos);
  CHECK(feed->notes[0].find("2 captures are in both") != std::string::npos);
}

TEST_CASE("opened feed: errors say which source", "[dataset]") {
  World w;
  CHECK(Has(w.Open(w.Yaml("titel = 1")).status(), "source \"a\""));
  std::string yaml = w.Yaml("");
  yaml.replace(yaml.find("cam"), 3, "kam");
  CHECK(Has(w.Open(yaml).status(), "no track \"kam\""));
  yaml = w.Yaml("");
  yaml.replace(yaml.find("data\n"), 4, "nowhere");
  CHECK(Has(w.Open(yaml).status(), "nowhere"));
}

}  // namespace
}  // namespace penstock::dataset
