#include "common/job/attach.h"

#include <catch2/catch.hpp>

namespace penstock::job {
namespace {

constexpr char kOrder[] =
    "67c764c1f9dcace5482f33580ea363183a6889b3c10bd1ddc8ef4e8686ff2650";

AttachIntent Intent() {
  AttachIntent i;
  i.job = "dust";
  i.incarnation = "run-1";
  i.resume = "new";
  i.data_world = 4;
  i.order_digest = kOrder;
  i.content_digest = "c1";
  i.selection_digest = "5e";
  i.dataset_ids = {"d1", "d2"};
  return i;
}

JobRecord Opened(const AttachIntent& intent) {
  const auto d = DecideAttach(nullptr, intent);
  REQUIRE(d.ok());
  REQUIRE(d->event);
  auto record = Apply({}, *d->event);
  REQUIRE(record.ok());
  return *record;
}

std::string CursorText(std::uint64_t step, const std::string& job = "dust") {
  Cursor c;
  c.job = job;
  c.feed = std::string(kOrder).substr(0, 32);
  c.datasets = DatasetsDigest({"d1", "d2"}, "5e").substr(0, 32);
  c.next_step = step;
  return EncodeCursor(c);
}

void CheckNames(const absl::Status& status, const std::string& field,
                const std::string& found, const std::string& expected) {
  const std::string text(status.message());
  INFO(text);
  CHECK(text.find(field) != std::string::npos);
  CHECK(text.find(found) != std::string::npos);
  CHECK(text.find(expected) != std::string::npos);
  CHECK(text.find("do  ") != std::string::npos);
}

TEST_CASE("cursor: one value, one text, small, without a rank (B-3, B-7)",
          "[job]") {
  const std::string text = CursorText(1234);
  CHECK(text.size() <= 256);
  const auto back = ParseCursor(text);
  REQUIRE(back.ok());
  CHECK(EncodeCursor(*back) == text);
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::string cut = text.substr(0, i);
    CHECK_FALSE(ParseCursor(cut).ok());
    cut += " " + text.substr(i);
    CHECK_FALSE(ParseCursor(cut).ok());  // not the canonical text
  }
  CHECK_FALSE(ParseCursor(CursorText(1) + "}").ok());
}

TEST_CASE("attach: a new job", "[job]") {
  SECTION("new starts at 0") {
    const auto d = DecideAttach(nullptr, Intent());
    REQUIRE(d.ok());
    CHECK(d->start_step == 0);
  }
  SECTION("resume must be given; nonsense is named") {
    AttachIntent i = Intent();
    for (const char* text : {"", "latest", "step:", "step:x", "step:-1", "new "}) {
      i.resume = text;
      CHECK(DecideAttach(nullptr, i).status().code() ==
            absl::StatusCode::kInvalidArgument);
    }
  }
  SECTION("an empty store takes the trainer's cursor and says so") {
    AttachIntent i = Intent();
    i.resume = CursorText(77);
    const auto d = DecideAttach(nullptr, i);
    REQUIRE(d.ok());
    CHECK(d->start_step == 77);
    REQUIRE(d->notes.size() == 1);
    CHECK(d->notes[0].find("77") != std::string::npos);
  }
}

TEST_CASE("attach: a foreign cursor is an error that names the field (B-4)",
          "[job]") {
  AttachIntent i = Intent();
  i.resume = CursorText(77, "other");
  CheckNames(DecideAttach(nullptr, i).status(), "job", "other", "dust");
  i = Intent();
  i.resume = CursorText(77);
  i.order_digest[0] = 'f';
  CheckNames(DecideAttach(nullptr, i).status(), "feed", "67c764", "f7c764");
  i = Intent();
  i.resume = CursorText(77);
  i.dataset_ids = {"d1", "d3"};
  CheckNames(DecideAttach(nullptr, i).status(), "datasets",
             DatasetsDigest({"d1", "d2"}, "5e").substr(0, 32),
             DatasetsDigest({"d1", "d3"}, "5e").substr(0, 32));
}

TEST_CASE("attach: the same incarnation joins, nothing is evaluated again",
          "[job]") {
  const JobRecord record = Opened(Intent());
  AttachIntent i = Intent();
  i.resume = "step:999";
  const auto d = DecideAttach(&record, i);
  REQUIRE(d.ok());
  CHECK_FALSE(d->event);
  CHECK(d->start_step == 0);
  SECTION("others must agree, field by field") {
    i.data_world = 8;
    CheckNames(DecideAttach(&record, i).status(), "data ranks", "8", "4");
    i = Intent();
    i.ranks_per_node = 2;
    CheckNames(DecideAttach(&record, i).status(), "data ranks on a node", "2",
               "0");
    i = Intent();
    i.speeds = "1,1,1,0.5";
    CheckNames(DecideAttach(&record, i).status(), "speeds", "1,1,1,0.5",
               "all alike");
    i = Intent();
    i.cp = "head_tail/2";
    CheckNames(DecideAttach(&record, i).status(), "context-parallel",
               "head_tail/2", "off");
    i = Intent();
    i.content_digest = "c2";
    CheckNames(DecideAttach(&record, i).status(), "content", "c2", "c1");
    i = Intent();
    i.order_digest = "0000";
    CheckNames(DecideAttach(&record, i).status(), "order", "0000", kOrder);
    i = Intent();
    i.dataset_ids = {"d1", "d9"};
    CheckNames(DecideAttach(&record, i).status(), "dataset 1", "d9", "d2");
    i = Intent();
    i.selection_digest = "77";
    CheckNames(DecideAttach(&record, i).status(), "selection", "77", "5e");
  }
}

TEST_CASE("attach: a new incarnation opens the next generation", "[job]") {
  const JobRecord record = Opened(Intent());
  AttachIntent i = Intent();
  i.incarnation = "run-2";
  i.data_world = 2;
  i.ranks_per_node = 1;
  i.speeds = "1,3";
  i.cp = "contiguous/8";
  SECTION("new refuses an existing job") {
    CHECK(DecideAttach(&record, i).status().code() ==
          absl::StatusCode::kAlreadyExists);
  }
  SECTION("from the trainer's cursor, at any world size (B-6)") {
    i.resume = CursorText(40);
    const auto d = DecideAttach(&record, i);
    REQUIRE(d.ok());
    CHECK(d->start_step == 40);
    const auto next = Apply(record, *d->event);
    REQUIRE(next.ok());
    CHECK(next->generation.data_world == 2);
    CHECK(next->generation.ranks_per_node == 1);
    CHECK(next->generation.speeds == "1,3");
    CHECK(next->generation.cp == "contiguous/8");
    CHECK(record.generation.ranks_per_node == 0);
    CHECK(next->generation.number == 2);
    SECTION("the old incarnation is fenced") {
      const auto status = DecideAttach(&*next, Intent()).status();
      CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
      CheckNames(status, "fenced", "run-1", "run-2");
    }
    SECTION("a resume of a resume stands where it says (B-1)") {
      i.incarnation = "run-3";
      i.resume = CursorText(60);
      const auto again = DecideAttach(&*next, i);
      REQUIRE(again.ok());
      CHECK(again->start_step == 60);
    }
  }
  SECTION("while ranks are connected only with takeover") {
    i.resume = "step:5";
    i.live_ranks = 3;
    CheckNames(DecideAttach(&record, i).status(), "connected", "3 ranks",
               "takeover");
    i.takeover = true;
    CHECK(DecideAttach(&record, i).ok());
  }
}

}  // namespace
}  // namespace penstock::job
