#include "common/format/shard.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "common/status/status.h"
#include "tests/unit/format/samples.h"

namespace penstock::format {
namespace {

using test::Bytes;

absl::StatusOr<ShardFooter> FooterOf(std::span<const std::uint8_t> file) {
  PENSTOCK_RETURN_IF_ERROR(CheckShardHeader(file));
  if (file.size() < kShardTrailerBytes) return absl::DataLossError("short");
  PENSTOCK_ASSIGN_OR_RETURN(
      const FooterPlace place,
      ParseShardTrailer(file.last(kShardTrailerBytes), file.size()));
  return ParseShardFooter(file.subspan(place.offset, place.bytes), place);
}

// The file with a footer of other values, under right checksums.
absl::StatusOr<ShardFooter> FooterWith(void (*change)(ShardFooter&)) {
  auto shard = test::MakeShard();
  change(shard.footer);
  const std::uint64_t offset = kShardHeaderBytes + test::kSmallExtentBytes;
  Bytes file(shard.bytes.begin(),
             shard.bytes.begin() + static_cast<std::ptrdiff_t>(offset));
  const Bytes end = EncodeShardFooter(shard.footer, offset);
  file.insert(file.end(), end.begin(), end.end());
  return FooterOf(file);
}

template <typename Row>
bool SameBytes(const std::vector<Row>& a, const std::vector<Row>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), a.size() * sizeof(Row)) == 0;
}

TEST_CASE("shard: the footer alone says what is in it", "[format]") {
  const auto shard = test::MakeShard();
  const auto footer = FooterOf(shard.bytes);
  REQUIRE(footer.ok());
  CHECK(footer->codecs == shard.footer.codecs);
  REQUIRE(footer->captures.size() == 1);
  CHECK(footer->captures[0].id == test::DigestOf(1));
  CHECK(footer->captures[0].title == "solarwolf");
  REQUIRE(footer->tracks.size() == 4);
  CHECK(footer->tracks[1].name == "input");
  CHECK(footer->tracks[1].schema == R"({"codes":["KeyA"]})");
  CHECK(footer->tracks[0].row.width == 64);
  CHECK(SameBytes(footer->gops, shard.footer.gops));
  CHECK(SameBytes(footer->segments, shard.footer.segments));
  CHECK(SameBytes(footer->extents, shard.footer.extents));
  CHECK(EncodeShardFooter(*footer, kShardHeaderBytes + test::kSmallExtentBytes) ==
        EncodeShardFooter(shard.footer, kShardHeaderBytes + test::kSmallExtentBytes));
}

TEST_CASE("B-15: header, footer and trailer with any one bit flipped are refused",
          "[format]") {
  const auto shard = test::MakeShard();
  const std::size_t body_end = kShardHeaderBytes + test::kSmallExtentBytes;
  std::size_t accepted = 0;
  auto flip = [&](std::size_t from, std::size_t to) {
    Bytes file = shard.bytes;
    for (std::size_t at = from; at < to; ++at) {
      for (int bit = 0; bit < 8; ++bit) {
        file[at] ^= static_cast<std::uint8_t>(1u << bit);
        const auto footer = FooterOf(file);
        accepted += footer.ok() ||
                    footer.status().code() != absl::StatusCode::kDataLoss;
        file[at] ^= static_cast<std::uint8_t>(1u << bit);
      }
    }
  };
  SECTION("header") { flip(0, kShardHeaderBytes); }
  SECTION("footer and trailer") { flip(body_end, shard.bytes.size()); }
  CHECK(accepted == 0);
}

TEST_CASE("B-15: a shard cut off at any byte of its end is refused", "[format]") {
  const auto shard = test::MakeShard();
  std::size_t accepted = 0;
  for (std::size_t n = kShardHeaderBytes + test::kSmallExtentBytes - 64;
       n < shard.bytes.size(); ++n) {
    accepted += FooterOf(std::span(shard.bytes).first(n)).ok();
  }
  for (std::size_t n = 0; n < shard.bytes.size(); n += 64) {
    accepted += FooterOf(std::span(shard.bytes).first(n)).ok();
  }
  CHECK(accepted == 0);
}

TEST_CASE("B-15: bytes behind a shard are refused", "[format]") {
  auto shard = test::MakeShard();
  shard.bytes.push_back(0);
  CHECK_FALSE(FooterOf(shard.bytes).ok());
  // Nor is a whole second end accepted, whose place is that of the first.
  auto twice = test::MakeShard();
  const Bytes end(twice.bytes.end() - kShardTrailerBytes, twice.bytes.end());
  twice.bytes.insert(twice.bytes.end(), end.begin(), end.end());
  CHECK_FALSE(FooterOf(twice.bytes).ok());
}

TEST_CASE("shard: a footer that points outside is refused under a right checksum",
          "[format]") {
  CHECK(FooterWith([](ShardFooter&) {}).ok());
  using Change = void (*)(ShardFooter&);
  const Change changes[] = {
      [](ShardFooter& f) { f.captures[0].track_count = 5; },
      [](ShardFooter& f) { f.captures[0].first_track = 0xFFFFFFFF; },
      [](ShardFooter& f) { f.tracks[0].row.capture = 1; },
      [](ShardFooter& f) { f.tracks[0].row.gop_count = 2; },
      [](ShardFooter& f) { f.tracks[0].row.first_gop = UINT64_MAX; },
      [](ShardFooter& f) { f.tracks[1].row.segment_count = UINT64_MAX; },
      [](ShardFooter& f) { f.tracks[0].row.time_base_den = 0; },
      [](ShardFooter& f) { f.gops[0].track = 4; },
      [](ShardFooter& f) { f.gops[0].codec = 1; },
      [](ShardFooter& f) { f.gops[0].offset = 0; },
      [](ShardFooter& f) { f.gops[0].offset += 1; },
      [](ShardFooter& f) { f.gops[0].offset = UINT64_MAX - 63; },
      [](ShardFooter& f) { f.gops[0].bytes = 0xFFFFFFFF; },
      [](ShardFooter& f) { f.segments[0].track = 9; },
      [](ShardFooter& f) { f.segments[0].offset = 1ull << 60; },
      [](ShardFooter& f) { f.extents[0].capture = 1; },
      [](ShardFooter& f) { f.extents[0].offset += 64; },
      [](ShardFooter& f) { f.extents[0].bytes = UINT64_MAX; },
  };
  for (std::size_t i = 0; i < std::size(changes); ++i) {
    CAPTURE(i);
    CHECK(FooterWith(changes[i]).status().code() == absl::StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace penstock::format
