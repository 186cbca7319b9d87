#include "common/format/block.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "common/hash/hash.h"
#include "tests/unit/format/samples.h"

namespace penstock::format {
namespace {

using test::Bytes;

// A block that says what `change` made of it, under a right checksum.
template <typename Change>
Bytes Resealed(Bytes block, Change change) {
  BlockHeader h;
  std::memcpy(&h, block.data(), sizeof(h));
  change(h, block);
  h.crc32c = 0;
  std::memcpy(block.data(), &h, sizeof(h));
  const std::uint32_t crc = hash::Crc32c(block);
  std::memcpy(block.data() + offsetof(BlockHeader, crc32c), &crc, 4);
  return block;
}

bool Says(const absl::Status& status, const std::string& text) {
  return status.code() == absl::StatusCode::kDataLoss &&
         std::string(status.message()).find(text) != std::string::npos;
}

TEST_CASE("block: what is encoded is parsed", "[format]") {
  SECTION("packets") {
    const Bytes block = test::VideoBlock();
    CHECK(block.size() % kBlockAlignment == 0);
    const auto b = ParseBlock(block);
    REQUIRE(b.ok());
    CHECK(b->bytes == block.size());
    const auto rows = b->Packets();
    REQUIRE(rows.size() == 3);
    CHECK(rows[1].pts == 1024);
    CHECK(rows[1].frame == 2);
    CHECK(rows[1].hash == 0x99AABBCCDDEEFF00);
    CHECK(std::string(b->payload.begin(), b->payload.end()) == "IIIIIPPPBBB");
  }
  SECTION("events") {
    const Bytes block = test::EventsBlock();
    const auto b = ParseBlock(block);
    REQUIRE(b.ok());
    const auto rows = b->Events();
    REQUIRE(rows.size() == 3);
    CHECK(rows[0].flags == kEventHeld);
    CHECK(rows[1].value == -7);
    CHECK(rows[1].value_y == 9);
    CHECK(rows[1].source == EventSource::kInjected);
  }
  SECTION("columns, and which values are known") {
    const Bytes block = test::TicksBlock();
    const auto b = ParseBlock(block);
    REQUIRE(b.ok());
    REQUIRE(b->ColumnCount() == 2);
    CHECK(b->Rows()[1].t_ns == 50'000'000);
    CHECK(b->ColumnBits(0, 0) == 100);
    CHECK(b->ColumnBits(0, 1) == -3);
    CHECK(b->ColumnBits(1, 0) == 0x3FF8000000000000);
    CHECK(b->ColumnValid(1, 0));
    CHECK_FALSE(b->ColumnValid(1, 1));
  }
  SECTION("texts") {
    const Bytes block = test::TextBlock();
    const auto b = ParseBlock(block);
    REQUIRE(b.ok());
    CHECK(b->Texts()[0].end_ns == INT64_MAX);
    CHECK(b->Texts()[0].text_bytes == 9);
  }
  SECTION("nothing at all") {
    BlockHeader h;
    h.kind = TrackKind::kTicks;
    const Bytes block = EncodeBlock(h, {}, 0, {});
    const auto b = ParseBlock(block);
    REQUIRE(b.ok());
    CHECK(b->ColumnCount() == 0);
  }
}

TEST_CASE("block: bytes behind it are left alone", "[format]") {
  Bytes two = test::VideoBlock();
  const std::size_t first = two.size();
  const Bytes second = test::EventsBlock();
  two.insert(two.end(), second.begin(), second.end());
  const auto b = ParseBlock(two);
  REQUIRE(b.ok());
  REQUIRE(b->bytes == first);
  CHECK(ParseBlock(std::span(two).subspan(first)).ok());
}

TEST_CASE("B-15: a block with any one bit flipped is refused", "[format]") {
  for (const Bytes& good : {test::VideoBlock(), test::EventsBlock(),
                            test::TicksBlock(), test::TextBlock()}) {
    std::size_t accepted = 0;
    for (std::size_t bit = 0; bit < good.size() * 8; ++bit) {
      Bytes bad = good;
      bad[bit / 8] ^= static_cast<std::uint8_t>(1u << (bit % 8));
      const auto b = ParseBlock(bad);
      if (b.ok() || b.status().code() != absl::StatusCode::kDataLoss) ++accepted;
    }
    CHECK(accepted == 0);
  }
}

TEST_CASE("B-15: a block cut off at any byte is refused", "[format]") {
  const Bytes good = test::VideoBlock();
  std::size_t accepted = 0;
  for (std::size_t n = 0; n < good.size(); ++n) {
    accepted += ParseBlock(std::span(good).first(n)).ok();
  }
  CHECK(accepted == 0);
}

TEST_CASE("block: a lie under a right checksum is refused and named",
          "[format]") {
  SECTION("another version") {
    const auto bad = Resealed(test::VideoBlock(),
                              [](BlockHeader& h, Bytes&) { h.version = 2; });
    CHECK(Says(ParseBlock(bad).status(), "unknown version"));
  }
  SECTION("no such kind") {
    const auto bad = Resealed(test::VideoBlock(), [](BlockHeader& h, Bytes&) {
      h.kind = static_cast<TrackKind>(99);
    });
    CHECK(Says(ParseBlock(bad).status(), "table size"));
  }
  SECTION("more rows than the table has") {
    const auto bad = Resealed(test::VideoBlock(),
                              [](BlockHeader& h, Bytes&) { h.entries = 4; });
    CHECK(Says(ParseBlock(bad).status(), "table size"));
  }
  SECTION("a packet outside the payload") {
    const auto bad = Resealed(test::VideoBlock(), [](BlockHeader&, Bytes& b) {
      const std::uint32_t offset = 0xFFFFFFFF;
      std::memcpy(b.data() + sizeof(BlockHeader) + offsetof(PacketRow, offset),
                  &offset, 4);
    });
    CHECK(Says(ParseBlock(bad).status(), "outside the payload"));
  }
  SECTION("a text outside the payload") {
    const auto bad = Resealed(test::TextBlock(), [](BlockHeader&, Bytes& b) {
      const std::uint32_t bytes = 100;
      std::memcpy(b.data() + sizeof(BlockHeader) + offsetof(TextRow, author_bytes),
                  &bytes, 4);
    });
    CHECK(Says(ParseBlock(bad).status(), "outside the payload"));
  }
  SECTION("half a column") {
    const auto bad = Resealed(test::TicksBlock(), [](BlockHeader& h, Bytes&) {
      h.payload_bytes -= 1;
    });
    CHECK(Says(ParseBlock(bad).status(), "whole columns"));
  }
  SECTION("sizes whose sum wraps around in 32 bits") {
    const auto bad = Resealed(test::VideoBlock(), [](BlockHeader& h, Bytes&) {
      h.table_bytes = 0xFFFFFFF0;
      h.payload_bytes = 0x40;
    });
    CHECK(Says(ParseBlock(bad).status(), "sizes do not fit"));
  }
}

}  // namespace
}  // namespace penstock::format
