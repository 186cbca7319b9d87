#include <catch2/catch.hpp>
#include <set>

#include "tests/unit/job/small_job.h"

namespace penstock::job {
namespace {

Cursor Small(std::uint64_t next_step = 7) {
  return {"walk", std::string(32, 'a'), std::string(32, 'd'), next_step};
}

TEST_CASE("B-3: a cursor is one text, and gives it back", "[job]") {
  const std::string text = EncodeCursor(Small());
  CHECK(text ==
        R"({"datasets":"dddddddddddddddddddddddddddddddd",)"
        R"("feed":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa","job":"walk",)"
        R"("next_step":7,"version":1})");
  const auto cursor = ParseCursor(text);
  REQUIRE(cursor.ok());
  CHECK(*cursor == Small());
  CHECK(EncodeCursor(*cursor) == text);
  for (std::uint64_t step : {std::uint64_t{0}, std::uint64_t{1} << 40,
                             UINT64_MAX}) {
    CHECK(ParseCursor(EncodeCursor(Small(step)))->next_step == step);
  }
}

TEST_CASE("B-3: any other spelling of a cursor is refused", "[job]") {
  const std::string text = EncodeCursor(Small());
  const auto refused = [](const std::string& bad) {
    return ParseCursor(bad).status().code() ==
           absl::StatusCode::kInvalidArgument;
  };
  SECTION("white space, another order, more fields") {
    CHECK(refused(" " + text));
    CHECK(refused(text + "\n"));
    CHECK(refused(R"({"job":"walk","feed":"a","datasets":"d","next_step":7,"version":1})"));
    CHECK(refused(text.substr(0, text.size() - 1) + R"(,"rank":0})"));
  }
  SECTION("another way to write the number") {
    auto with = [&](const std::string& number) {
      std::string s = text;
      return s.replace(s.find(":7,"), 3, ":" + number + ",");
    };
    REQUIRE_FALSE(refused(with("7")));
    for (const char* bad : {"07", "+7", "-7", "7.0", "7e0", "",
                            "18446744073709551616"}) {
      CAPTURE(bad);
      CHECK(refused(with(bad)));
    }
  }
  SECTION("another version") {
    std::string s = text;
    CHECK(refused(s.replace(s.find("version\":1"), 10, "version\":2")));
  }
  SECTION("cut off at any byte") {
    std::size_t accepted = 0;
    for (std::size_t n = 0; n < text.size(); ++n) {
      accepted += !refused(text.substr(0, n));
    }
    CHECK(accepted == 0);
  }
  SECTION("a flipped bit gives an error or another value, never the same") {
    std::size_t same = 0;
    for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
      std::string s = text;
      s[bit / 8] = static_cast<char>(s[bit / 8] ^ (1 << (bit % 8)));
      const auto c = ParseCursor(s);
      same += c.ok() && (*c == Small() || EncodeCursor(*c) != s);
    }
    CHECK(same == 0);
  }
}

TEST_CASE("B-7: a cursor knows no rank and stays small", "[job]") {
  Cursor largest = Small(UINT64_MAX);
  largest.job = std::string(kNameBytesMax, 'j');
  CHECK(EncodeCursor(largest).size() <= 256 + 32);
  CHECK(EncodeCursor(Small()).find("rank") == std::string::npos);
}

TEST_CASE("cursor: the datasets' digest tells order, ids and selection apart",
          "[job]") {
  const std::set<std::string> all = {
      DatasetsDigest({"a", "b"}, "s"), DatasetsDigest({"b", "a"}, "s"),
      DatasetsDigest({"ab"}, "s"),     DatasetsDigest({"a"}, "s"),
      DatasetsDigest({"a", "b"}, "t"), DatasetsDigest({}, "s"),
      DatasetsDigest({"a"}, "bs")};
  CHECK(all.size() == 7);
  for (const auto& d : all) CHECK(d.size() == 64);
}

}  // namespace
}  // namespace penstock::job
