#include "common/layout/item_digest.h"

#include <catch2/catch.hpp>

#include "common/hash/hash.h"
#include "tests/unit/layout/golden_source.h"

namespace penstock::layout {
namespace {

TEST_CASE("digests: golden vectors of the independent restatement",
          "[layout][golden]") {
  const auto golden = nlohmann::json::parse(test::ReadGolden("digest.json"));
  const std::uint64_t frame_bytes = golden["frame_bytes"];
  std::vector<Digest128> items;
  for (const auto& item : golden["items"]) {
    const std::uint32_t seed = item["seed"];
    const auto video = test::SourceBytes(
        frame_bytes * golden["frames"].get<std::size_t>(), seed);
    const auto table = test::SourceBytes(item["table_bytes"], seed + 100);
    std::vector<Digest128> chunks;
    AppendChunkDigests(video, frame_bytes, chunks);
    AppendChunkDigests(table, chunks);
    CHECK(chunks.size() == item["chunks"].get<std::size_t>());
    items.push_back(DigestOfDigests(chunks));
    CHECK(hash::Hex(items.back()) == item["digest"].get<std::string>());
  }
  CHECK(hash::Hex(DigestOfDigests(items)) ==
        golden["batch_digest"].get<std::string>());
}

TEST_CASE("digests: one flipped bit or two swapped frames change the item",
          "[layout]") {
  const auto video = test::SourceBytes(4000, 9);
  auto digest = [](const std::vector<std::uint8_t>& bytes) {
    std::vector<Digest128> chunks;
    AppendChunkDigests(bytes, 1000, chunks);
    return DigestOfDigests(chunks);
  };
  auto flipped = video;
  flipped[3999] ^= 1;
  CHECK(digest(flipped) != digest(video));
  auto swapped = video;
  std::swap_ranges(swapped.begin(), swapped.begin() + 1000,
                   swapped.begin() + 1000);
  CHECK(digest(swapped) != digest(video));
}

}  // namespace
}  // namespace penstock::layout
