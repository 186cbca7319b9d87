#include "server/dataset/selection_cache.h"

#include <catch2/catch.hpp>
#include <filesystem>
#include <thread>
#include <vector>

#include "server/dataset/plan_source.h"
#include "tests/unit/dataset/small_dataset.h"

namespace penstock::dataset {
namespace {

namespace fs = std::filesystem;

// A feed with what a cache has to keep: groups, buckets, a view per stage.
std::string Yaml(const std::string& more = "", const std::string& filter = "") {
  return "name: f\nglobal_batch: 4\n" + more +
         "sources:\n- name: a\n  dataset: data\n  filter: \"" + filter +
         "\"\n  view: {frames: 10, track: cam}\n" +
         (more.starts_with("mode") ? "" : "  strata: {by: [condition.weather]}\n") +
         "- name: b\n  dataset: data\n  view: {frames: 10, stride: 2, hop: 5}\n"
         "outputs:\n- {name: x, video: {width: 8, height: 8}}\n";
}
const char kStages[] =
    "stages:\n- {step: 5, sources: [{name: b, view: {frames: 10, hop: 7}}]}\n";
const char kEvaluation[] = "mode: evaluation\n";

struct World {
  test::TempDir dir;
  std::string id = test::WriteDataset(
      dir / "data", {"doom", "wolf", "quake", "doom", "hexen", "wolf"});
  SelectionCache cache{.dir = dir / "cache", .captures_min = 1};

  absl::StatusOr<OpenedFeed> Open(const std::string& yaml,
                                  const SelectionCache& with) {
    return OpenFeed(yaml, "f.yaml", dir.path(), with);
  }
  OpenedFeed Fresh(const std::string& yaml) {
    return Open(yaml, {.dir = ""}).value();
  }
  std::vector<std::string> Files() const {
    std::vector<std::string> out;
    if (!fs::exists(cache.dir)) return out;
    for (const auto& f : fs::directory_iterator(cache.dir)) {
      out.push_back(f.path().string());
    }
    return out;
  }
};

// Everything that a trainer sees of the first steps, as text.
std::string PlanOf(const OpenedFeed& feed) {
  std::string out = hash::Hex(feed.selection_digest);
  for (const OpenedSource& s : feed.sources) {
    for (const std::uint32_t c : s.captures) out += " " + std::to_string(c);
    for (const std::uint32_t t : s.tracks) out += " " + std::to_string(t);
  }
  for (const std::string& n : feed.notes) out += "\n" + n;
  for (std::uint64_t step = 0; step < 12; ++step) {
    const auto batch = feed.PlanStep({step});
    if (!batch.ok()) return out + "\n" + std::string(batch.status().message());
    for (const plan::Sample& s : batch->samples) {
      out += "\n" + feed.IdOf(s) + " " + feed.StratumOf(s) + " " +
             std::to_string(s.start_frame) + "+" + std::to_string(s.frames);
    }
  }
  return out;
}

TEST_CASE("selection cache: what is read back plans as what was made", "[dataset]") {
  World w;
  for (const std::string& yaml :
       {Yaml(), Yaml(kStages), Yaml(kEvaluation), Yaml("", "title != 'doom'")}) {
    INFO(yaml);
    const std::string fresh = PlanOf(w.Fresh(yaml));
    const auto first = w.Open(yaml, w.cache);
    REQUIRE(first.status().message() == "");
    CHECK_FALSE(first->cached);
    const auto second = w.Open(yaml, w.cache);
    REQUIRE(second.status().message() == "");
    CHECK(second->cached);
    CHECK(PlanOf(*first) == fresh);
    CHECK(PlanOf(*second) == fresh);
  }
}

TEST_CASE("selection cache: buckets and short windows are kept too",
          "[dataset]") {
  World w;
  const std::string yaml =
      "name: f\nglobal_batch: 2\n"
      "buckets:\n- {name: s, frames: 4, width: 8, height: 8, samples: 2}\n"
      "- {name: l, frames: 300, width: 8, height: 8}\n"
      "sources:\n- {name: a, dataset: data, view: {frames: 300, min_frames: 2, "
      "hop: 7}}\n"
      "outputs:\n- {name: x, video: {}}\n";
  const auto fresh = w.Open(yaml, {.dir = ""});
  REQUIRE(fresh.status().message() == "");
  REQUIRE(w.Open(yaml, w.cache).ok());
  const auto second = w.Open(yaml, w.cache);
  CHECK(second->cached);
  CHECK(PlanOf(*second) == PlanOf(*fresh));
}

TEST_CASE("selection cache: damage anywhere is made good, never another plan",
          "[dataset]") {
  World w;
  const std::string yaml = Yaml();
  const std::string fresh = PlanOf(w.Fresh(yaml));
  REQUIRE(w.Open(yaml, w.cache).ok());
  REQUIRE(w.Files().size() == 1);
  const std::string file = w.Files()[0];
  const std::string good = test::ReadAll(file);
  const auto rebuilt = [&](const std::string& bytes) {
    test::WriteAll(file, bytes);
    const auto feed = w.Open(yaml, w.cache);
    REQUIRE(feed.status().message() == "");
    REQUIRE_FALSE(feed->cached);
    REQUIRE(test::ReadAll(file) == good);
    return feed->selection_digest;
  };
  SECTION("a flipped byte") {
    for (std::size_t at = 0; at < good.size(); at += 1 + at / 64) {
      INFO("byte " << at);
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 0x10);
      rebuilt(bad);
    }
  }
  SECTION("cut off, empty, longer") {
    for (std::size_t n = 0; n < good.size(); n += 1 + n / 16) rebuilt(good.substr(0, n));
    rebuilt(good + std::string(8, '\0'));
  }
  SECTION("a folder in its place") {
    fs::remove(file);
    fs::create_directory(file);
    const auto feed = w.Open(yaml, w.cache);
    CHECK(PlanOf(*feed).starts_with(fresh.substr(0, 64)));
    CHECK(feed->notes.size() == 2);
  }
}

TEST_CASE("selection cache: rows that lie are refused though their sum is right",
          "[dataset]") {
  World w;
  const OpenedFeed feed = w.Fresh(Yaml());
  const auto& lineage = *feed.planner->stream()->lineages()[1];
  const auto& index = feed.sources[1].dataset->index();
  const auto rows = lineage.strata()[0].pool.buckets()[0].view.rows();
  const auto& spec = feed.feed().sources[1].view;
  const auto made = [&](const plan::ViewRows& r) {
    return plan::View::FromRows(spec, r, index, nullptr, "a").status().code();
  };
  CHECK(made(rows) == absl::StatusCode::kOk);
  std::vector<plan::ViewSlot> slots(rows.slots.begin(), rows.slots.end());
  std::vector<plan::ViewPiece> pieces(rows.pieces.begin(), rows.pieces.end());
  plan::ViewRows bad = rows;
  bad.slots = slots;
  bad.pieces = pieces;
  SECTION("a capture outside") { slots[1].capture = 6; }
  SECTION("a track outside") { slots[1].track = 6; }
  SECTION("no stride") { slots[0].stride = 0; }
  SECTION("a piece of no slot") { pieces[2].slot = 6; }
  SECTION("captures out of order") { std::swap(pieces[0].slot, pieces.back().slot); }
  SECTION("pieces out of order") { pieces[2].first = pieces[1].first; }
  SECTION("a first piece that is not") { pieces[0].first = 1; }
  SECTION("more pieces than windows") { bad.size = pieces.back().first; }
  SECTION("a start that no track has") { pieces[0].start = std::uint64_t{1} << 40; }
  SECTION("windows without pieces") { bad.pieces = {}; }
  SECTION("longer windows than the view's") { bad.high = spec.frames + 1; }
  CHECK(made(bad) == absl::StatusCode::kDataLoss);
}

TEST_CASE("selection cache: what it depends on makes another file or a new one",
          "[dataset]") {
  World w;
  REQUIRE(w.Open(Yaml(), w.cache).ok());
  SECTION("another filter, seed or view: another file") {
    CHECK_FALSE(w.Open(Yaml("", "frames > 100"), w.cache)->cached);
    CHECK_FALSE(w.Open(Yaml("seed: 7\n"), w.cache)->cached);
    CHECK_FALSE(w.Open(Yaml(kStages), w.cache)->cached);
    CHECK(w.Files().size() == 4);
    CHECK(w.Open(Yaml(), w.cache)->cached);
  }
  SECTION("what is made of the samples: the same") {
    std::string yaml = Yaml();
    yaml.replace(yaml.find("width: 8"), 8, "width: 9");
    CHECK(w.Open(yaml, w.cache)->cached);
  }
  SECTION("another dataset in the folder") {
    fs::remove_all(w.dir / "data");
    test::WriteDataset(w.dir / "data", {"doom", "wolf"});
    const auto feed = w.Open(Yaml(), w.cache);
    CHECK_FALSE(feed->cached);
    CHECK(feed->sources[0].captures.size() == 2);
    CHECK(w.Files().size() == 2);
  }
  SECTION("the same dataset, its index touched: selected again") {
    const fs::path index = w.dir / "data/captures.pidx";
    fs::last_write_time(index, fs::last_write_time(index) + std::chrono::seconds(1));
    CHECK_FALSE(w.Open(Yaml(), w.cache)->cached);
    CHECK(w.Open(Yaml(), w.cache)->cached);
    CHECK(w.Files().size() == 1);
  }
  SECTION("a damaged manifest is refused, whatever is kept") {
    std::string text = test::ReadAll(w.dir / "data/manifest.json");
    text[text.find("uncertified")] = 'U';
    test::WriteAll(w.dir / "data/manifest.json", text);
    CHECK(w.Open(Yaml(), w.cache).status().code() == absl::StatusCode::kDataLoss);
  }
  SECTION("a dataset of another id than the feed names") {
    std::string yaml = Yaml();
    yaml.insert(yaml.find("  filter"), "  dataset_id: 0123456789ab\n");
    CHECK(w.Open(yaml, w.cache).status().code() ==
          absl::StatusCode::kFailedPrecondition);
  }
}

TEST_CASE("selection cache: a folder that cannot be written is a note", "[dataset]") {
  World w;
  test::WriteAll(w.dir / "file", "x");
  const auto feed = w.Open(Yaml(), {.dir = w.dir / "file/cache", .captures_min = 1});
  REQUIRE(feed.status().message() == "");
  CHECK(feed->notes.back().find("is not kept") != std::string::npos);
}

TEST_CASE("selection cache: small datasets leave no file", "[dataset]") {
  World w;
  w.cache.captures_min = 7;
  CHECK(w.Open(Yaml(), w.cache).ok());
  CHECK(w.Files().empty());
}

TEST_CASE("selection cache: many open at once, all get the plan", "[dataset]") {
  World w;
  const std::string fresh = PlanOf(w.Fresh(Yaml()));
  std::vector<std::string> plans(8);
  std::vector<std::thread> threads;
  for (std::string& plan : plans) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5; ++i) {
        const auto feed = w.Open(Yaml(), w.cache);
        plan = feed.ok() ? PlanOf(*feed) : std::string(feed.status().message());
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::string& plan : plans) CHECK(plan == fresh);
  CHECK(w.Files().size() == 1);
}

TEST_CASE("selection cache: what was opened from it can be asked for everything",
          "[dataset]") {
  World w;
  REQUIRE(w.Open(Yaml(), w.cache).ok());
  const auto feed = w.Open(Yaml(), w.cache);
  REQUIRE(feed->cached);
  const Dataset& d = *feed->sources[0].dataset;
  CHECK(d.id() == w.id);
  CHECK(d.Capture(1)->title == "wolf");
  CHECK(d.Select("title = 'doom'")->size() == 2);
  CHECK((*d.manifest())->id == w.id);
  CHECK(d.ShardPath(0).status().code() == absl::StatusCode::kOutOfRange);
}

TEST_CASE("selection cache: labels and tracks of few and of many are the same",
          "[dataset]") {
  World w;
  const auto d = Dataset::Open(w.dir / "data").value();
  const std::vector<std::uint32_t> all = {0, 1, 2, 3, 4, 5};
  const std::vector<std::string> by = {"title", "condition.weather", "fps",
                                       "resolution", "condition.none"};
  // The first call asks one by one no more; a dataset opened anew does.
  const auto many = d->Labels(all, by).value();
  const auto video = format::TrackKind::kVideo;
  const auto tracks = d->FindTracks(all, video, "cam").value();
  CHECK(many[1] == "wolf|sun|60|0x0|");
  std::vector<std::string> titles(100, "doom");
  for (std::size_t i = 0; i < 6; ++i) titles[i] = many[i].substr(0, many[i].find('|'));
  test::WriteDataset(w.dir / "large", titles);
  const auto large = Dataset::Open(w.dir / "large").value();
  CHECK(large->Labels(all, by).value() == many);
  CHECK(large->FindTracks(all, video, "cam").value() == tracks);
}

}  // namespace
}  // namespace penstock::dataset
