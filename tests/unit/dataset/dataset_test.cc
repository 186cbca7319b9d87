#include "server/dataset/dataset.h"

#include <sqlite3.h>

#include <catch2/catch.hpp>

#include "server/dataset/dataset_id.h"
#include "tests/unit/dataset/small_dataset.h"

namespace penstock::dataset {
namespace {

// Writes the manifest again for the files as they are now.
void Relist(const std::string& dir) {
  Manifest m =
      ParseManifest(test::ReadAll(dir + "/manifest.json"), "m").value();
  for (ManifestFile& f : m.files) {
    f.bytes = std::filesystem::file_size(dir + "/" + f.path);
  }
  test::WriteAll(dir + "/manifest.json", EncodeManifest(m).value());
}

void Sql(const std::string& path, const char* sql) {
  sqlite3* db = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
  CHECK(sqlite3_exec(db, sql, nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(db);
}

TEST_CASE("dataset: opens, names, tracks, selection", "[dataset]") {
  test::TempDir dir;
  const std::string id = test::WriteDataset(dir.path(), {"doom", "wolf"});
  auto d = Dataset::Open(dir.path());
  REQUIRE(d.status().message() == "");
  CHECK((*d)->id() == id);
  CHECK((*d)->index().captures.size() == 2);
  CHECK((*d)->Capture(1)->title == "wolf");
  CHECK((*d)->Capture(1)->conditions.size() == 2);
  CHECK((*d)->Capture(2).status().code() == absl::StatusCode::kOutOfRange);
  CHECK((*d)->Track(1)->name == "cam");
  CHECK((*d)->Track(2).status().code() == absl::StatusCode::kOutOfRange);
  CHECK((*d)->SpansOf(0)->size() == 1);
  CHECK((*d)->ShardPath(0).status().code() == absl::StatusCode::kOutOfRange);
  const std::vector<std::uint32_t> all = {0, 1};
  const auto video = format::TrackKind::kVideo;
  CHECK((*d)->FindTracks(all, video, "").value() == all);
  CHECK((*d)->FindTracks(all, video, "cam").value() == all);
  const auto none = (*d)->FindTracks(all, video, "kam").status();
  CHECK(none.code() == absl::StatusCode::kNotFound);
  CHECK(std::string(none.message()).find("cam (video)") != std::string::npos);
  CHECK_FALSE((*d)->FindTracks(all, format::TrackKind::kAudio, "").ok());
  const std::vector<Digest256> ids = {(*d)->index().captures[0].id,
                                      (*d)->index().captures[1].id};
  CHECK((*d)->DigestOf(all) == SelectionDigest(ids));
}

TEST_CASE("dataset: opening changes no byte and leaves no file", "[dataset]") {
  test::TempDir dir;
  test::WriteDataset(dir.path(), {"doom"});
  const std::string before = test::ReadAll(dir / "catalog.sqlite");
  CHECK(Dataset::Open(dir.path()).value()->Select("frames > 0").ok());
  CHECK(test::ReadAll(dir / "catalog.sqlite") == before);
  int files = 0;
  for (auto& f : std::filesystem::directory_iterator(dir.path())) {
    files += f.is_regular_file();
  }
  CHECK(files == 3);
}

TEST_CASE("dataset: paths with odd characters open", "[dataset]") {
  test::TempDir dir;
  const std::string odd = dir / "a?b#c %41 é";
  test::WriteDataset(odd, {"doom"});
  CHECK(Dataset::Open(odd).status().message() == "");
}

TEST_CASE("dataset: what is missing or damaged is named", "[dataset]") {
  test::TempDir dir;
  const std::string at = dir / "d";
  const auto fails = [&](absl::StatusCode code, const std::string& part) {
    const auto status = Dataset::Open(at).status();
    INFO(status.message());
    CHECK(status.code() == code);
    CHECK(std::string(status.message()).find(part) != std::string::npos);
  };
  fails(absl::StatusCode::kNotFound, "cannot be opened");
  std::filesystem::create_directory(at);
  fails(absl::StatusCode::kNotFound, "without manifest.json");
  test::WriteDataset(at, {"doom", "wolf"});
  SECTION("a flipped byte of the manifest") {
    std::string text = test::ReadAll(at + "/manifest.json");
    text[text.size() / 2] ^= 1;
    test::WriteAll(at + "/manifest.json", text);
    fails(absl::StatusCode::kDataLoss, "manifest.json");
  }
  SECTION("a cut index") {
    std::filesystem::resize_file(at + "/captures.pidx", 100);
    fails(absl::StatusCode::kDataLoss, "captures.pidx");
    Relist(at);
    fails(absl::StatusCode::kDataLoss, "captures.pidx");
  }
  SECTION("no catalogue") {
    std::filesystem::remove(at + "/catalog.sqlite");
    fails(absl::StatusCode::kDataLoss, "no file");
  }
  SECTION("a catalogue that is not SQLite") {
    test::WriteAll(at + "/catalog.sqlite", std::string(8192, 'x'));
    Relist(at);
    fails(absl::StatusCode::kDataLoss, "catalog.sqlite");
  }
  SECTION("a catalogue from before the indexes: opens and selects the same") {
    Sql(at + "/catalog.sqlite",
        "DROP INDEX captures_by_title; DROP INDEX captures_by_session; DROP INDEX "
        "captures_by_player; VACUUM");
    Relist(at);
    const auto old = Dataset::Open(at);
    REQUIRE(old.status().message() == "");
    CHECK((*old)->Select("title = 'wolf'").value() == std::vector<std::uint32_t>{1});
  }
  SECTION("a catalogue with a view that runs") {
    Sql(at + "/catalog.sqlite", "CREATE VIEW v AS SELECT random()");
    Relist(at);
    fails(absl::StatusCode::kDataLoss, "not a catalogue");
  }
}

}  // namespace
}  // namespace penstock::dataset
