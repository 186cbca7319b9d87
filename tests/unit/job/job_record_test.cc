#include "common/job/job_record.h"

#include <catch2/catch.hpp>

#include "common/hash/hash.h"

namespace penstock::job {
namespace {

CreateJob Create() {
  return {"dust", {0, "0a", "c1"}, {"d1", "d2"}, "5e", {1, "run-1", 4, 0}};
}

JobRecord Made(const std::vector<Event>& events) {
  JobRecord record;
  for (const Event& e : events) {
    auto next = Apply(record, e);
    REQUIRE(next.ok());
    record = *next;
  }
  return record;
}

TEST_CASE("job record: created once", "[job]") {
  const JobRecord record = Made({Create()});
  CHECK(record.job == "dust");
  CHECK(record.generation.number == 1);
  CHECK(Apply(record, Create()).status().code() ==
        absl::StatusCode::kAlreadyExists);
  CreateJob bad = Create();
  bad.job = "no/slash";
  CHECK(Apply({}, bad).status().code() == absl::StatusCode::kInvalidArgument);
}

TEST_CASE("job record: generations follow one another, the old are fenced",
          "[job]") {
  const JobRecord first = Made({Create()});
  const OpenGeneration second{{2, "run-2", 8, 100}, {100, "0a", "c1"}};
  const JobRecord record = Made({Create(), second});
  CHECK(record.generation.incarnation == "run-2");
  REQUIRE(record.fenced.size() == 1);
  CHECK(record.fenced[0].incarnation == "run-1");
  CHECK(record.revisions.size() == 1);
  SECTION("a number that does not follow is refused") {
    OpenGeneration late = second;
    late.generation.number = 2;
    CHECK(Apply(record, late).status().code() ==
          absl::StatusCode::kFailedPrecondition);
  }
  SECTION("another order digest is refused") {
    OpenGeneration other{{3, "run-3", 8, 100}, {100, "ff", "c1"}};
    const auto status = Apply(record, other).status();
    CHECK(status.code() == absl::StatusCode::kFailedPrecondition);
    CHECK(std::string(status.message()).find("ff") != std::string::npos);
    CHECK(std::string(status.message()).find("0a") != std::string::npos);
  }
  SECTION("another content is a revision from its step") {
    const OpenGeneration third{{3, "run-3", 8, 150}, {150, "0a", "c2"}};
    const auto revised = Apply(record, third);
    REQUIRE(revised.ok());
    REQUIRE(revised->revisions.size() == 2);
    CHECK(revised->revisions[1].from_step == 150);
    SECTION("and going back before it takes its place") {
      const OpenGeneration fourth{{4, "run-4", 8, 120}, {120, "0a", "c3"}};
      const auto back = Apply(*revised, fourth);
      REQUIRE(back.ok());
      REQUIRE(back->revisions.size() == 2);
      CHECK(back->revisions[1].content_digest == "c3");
    }
  }
}

TEST_CASE("job record: the newest fenced generations are kept, not all",
          "[job]") {
  JobRecord record = Made({Create()});
  for (std::uint64_t g = 2; g < kFencedMax + 10; ++g) {
    auto next = Apply(record, OpenGeneration{{g, "run-" + std::to_string(g), 1, g},
                                             {g, "0a", "c1"}});
    REQUIRE(next.ok());
    record = *next;
  }
  CHECK(record.fenced.size() == kFencedMax);
  CHECK(record.fenced.back().number + 1 == record.generation.number);
}

TEST_CASE("checkpoints: names are written once, repeats are the same (B-8)",
          "[job]") {
  const JobRecord record = Made({Create(), NameCheckpoint{1, "s500", 500}});
  CHECK(record.checkpoints.at("s500") == 500);
  const auto again = Apply(record, NameCheckpoint{1, "s500", 500});
  REQUIRE(again.ok());
  CHECK(*again == record);
  CHECK(Apply(record, NameCheckpoint{1, "s500", 501}).status().code() ==
        absl::StatusCode::kAlreadyExists);
  SECTION("a fenced generation may name what it trained before the fence") {
    const JobRecord fenced =
        Made({Create(), OpenGeneration{{2, "run-2", 4, 600}, {600, "0a", "c1"}}});
    CHECK(Apply(fenced, NameCheckpoint{1, "s600", 600}).ok());
    CHECK(Apply(fenced, NameCheckpoint{1, "s601", 601}).status().code() ==
          absl::StatusCode::kFailedPrecondition);
    CHECK(Apply(fenced, NameCheckpoint{7, "x", 1}).status().code() ==
          absl::StatusCode::kFailedPrecondition);
  }
}

TEST_CASE(
    "job record: an earlier one has all ranks alike, of version 1 on one node",
    "[job]") {
  const JobRecord record = Made({Create(), NameCheckpoint{1, "a", 5}});
  std::vector<std::uint8_t> bytes = EncodeRecord(record);
  // Before the map (4 bytes) the generation ended with start_step, before the
  // speeds and the cut (none: 4 bytes each) with the map; behind it lie the
  // lists of fenced generations and checkpoints and the ledger's count and
  // digest.
  const std::uint8_t version = GENERATE(1, 2);
  const std::ptrdiff_t behind = 4 + 4 + (4 + 1 + 8) + 8 + 4;
  const auto end = bytes.end() - 4 - behind;
  bytes.erase(end - (version == 1 ? 12 : 8), end);
  bytes[4] = version;
  bytes.resize(bytes.size() - 4);
  const std::uint32_t crc = hash::Crc32c(bytes);
  for (int i = 0; i < 4; ++i) {
    bytes.push_back(static_cast<std::uint8_t>(crc >> 8 * i));
  }
  const auto back = DecodeRecord(bytes);
  REQUIRE(back.ok());
  CHECK(*back == record);
}

TEST_CASE("job record: bytes and back; no flipped bit or cut passes",
          "[job]") {
  const JobRecord record =
      Made({Create(), NameCheckpoint{1, "a", 5}, NameCheckpoint{1, "b", 6},
            OpenGeneration{{2, "run-2", 2, 6, 4, "1,0.5", "striped/4"},
                           {6, "0a", "c9"}}});
  CHECK(record.generation.ranks_per_node == 4);
  CHECK(record.generation.speeds == "1,0.5");
  CHECK(record.generation.cp == "striped/4");
  const auto bytes = EncodeRecord(record);
  const auto back = DecodeRecord(bytes);
  REQUIRE(back.ok());
  CHECK(*back == record);
  CHECK(EncodeRecord(*back) == bytes);
  for (std::size_t i = 0; i < bytes.size() * 8; ++i) {
    auto flipped = bytes;
    flipped[i / 8] ^= static_cast<std::uint8_t>(1 << i % 8);
    CHECK(DecodeRecord(flipped).status().code() == absl::StatusCode::kDataLoss);
  }
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    CHECK_FALSE(DecodeRecord(std::span(bytes).first(n)).ok());
  }
}

}  // namespace
}  // namespace penstock::job
