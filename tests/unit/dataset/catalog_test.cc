#include "server/dataset/catalog.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/unit/dataset/small_dataset.h"

namespace penstock::dataset {
namespace {

TEST_CASE("catalog: rows read back give the same canonical text", "[dataset]") {
  test::TempDir dir;
  auto writer = CatalogWriter::Create(dir / "c.sqlite").value();
  REQUIRE(writer->AddCapture(test::CaptureOf(0, "doom \"é\"\n")).ok());
  REQUIRE(
      writer
          ->AddTrack(
              {.name = "cam", .kind = "video", .schema = R"({"b":1, "a":2})"})
          .ok());
  REQUIRE(writer->AddSpan({.kind = "z", .begin_ns = -1, .end_ns = 2}).ok());
  REQUIRE(writer->AddSpan({.kind = "a", .begin_ns = 7, .end_ns = 9}).ok());
  REQUIRE(writer->Finish().ok());
  const std::string rows = writer->CanonicalRows();
  CHECK(ReadCanonicalRows(dir / "c.sqlite").value() == rows);
  int files = 0;
  for (auto& f : std::filesystem::directory_iterator(dir.path())) {
    INFO(f.path());
    ++files;
  }
  CHECK(files == 1);  // no journal, no WAL
}

std::string RowsOf(const CaptureRecord& capture, const SpanRecord& span) {
  test::TempDir dir;
  auto writer = CatalogWriter::Create(dir / "c.sqlite").value();
  REQUIRE(writer->AddCapture(capture).ok());
  REQUIRE(writer->AddTrack({.name = "cam", .kind = "video"}).ok());
  REQUIRE(writer->AddSpan(span).ok());
  return writer->CanonicalRows();
}

TEST_CASE(
    "catalog: the id depends on what plans read, not on where it came from",
    "[dataset]") {
  const CaptureRecord base = test::CaptureOf(0, "doom");
  const SpanRecord span{.kind = "menu", .begin_ns = 1, .end_ns = 2};
  const std::string rows = RowsOf(base, span);
  CaptureRecord c = base;
  SpanRecord s = span;
  SECTION("source, detector and the order of conditions do not count") {
    c.source = "elsewhere";
    s.detector = "other";
    s.version = "2";
    std::swap(c.conditions[0], c.conditions[1]);
    CHECK(RowsOf(c, s) == rows);
    return;
  }
  SECTION("title") { c.title = "doom2"; }
  SECTION("condition") { c.conditions[0].second = "snow"; }
  SECTION("duration, by one bit") {
    c.duration_s = std::nextafter(c.duration_s, 99.0);
  }
  SECTION("span") { s.end_ns = 3; }
  CHECK(RowsOf(c, s) != rows);
}

TEST_CASE("catalog: refuses rows out of order, twice or not UTF-8",
          "[dataset]") {
  test::TempDir dir;
  auto writer = CatalogWriter::Create(dir / "c.sqlite").value();
  CHECK_FALSE(writer->AddCapture(test::CaptureOf(1, "x")).ok());
  CHECK_FALSE(writer->AddTrack({.name = "t"}).ok());
  CaptureRecord bad = test::CaptureOf(0, "x");
  SECTION("title") { bad.title = "\xff"; }
  SECTION("source") { bad.source = "\xff"; }
  SECTION("condition twice") { bad.conditions.push_back(bad.conditions[0]); }
  CHECK_FALSE(writer->AddCapture(bad).ok());
}

TEST_CASE("catalog: an unfinished file is removed, a finished one kept",
          "[dataset]") {
  test::TempDir dir;
  CatalogWriter::Create(dir / "c.sqlite").value().reset();
  CHECK_FALSE(std::filesystem::exists(dir / "c.sqlite"));
  REQUIRE(CatalogWriter::Create(dir / "c.sqlite").value()->Finish().ok());
  CHECK(CatalogWriter::Create(dir / "c.sqlite").status().code() ==
        absl::StatusCode::kAlreadyExists);
}

TEST_CASE("dataset id: parts cannot flow into each other", "[dataset]") {
  const std::uint8_t bytes[] = {1, 2, 3};
  const auto id = [](auto... a) { return hash::Hex(ComputeDatasetId(a...)); };
  const hash::Bytes all(bytes), two = all.first(2);
  CHECK(id("ab", "c", all, std::span<const Digest256>()) !=
        id("a", "bc", all, std::span<const Digest256>()));
  CHECK(id("a", "b", two, std::span<const Digest256>()) !=
        id("a", "b", all, std::span<const Digest256>()));
  const std::vector<Digest256> one(1), both(2);
  CHECK(SelectionDigest(one) != SelectionDigest(both));
}

}  // namespace
}  // namespace penstock::dataset
