#include "common/hash/hash.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

namespace penstock::hash {
namespace {

TEST_CASE("crc32c: vectors of RFC 3720, B.4", "[hash]") {
  std::vector<std::uint8_t> zeros(32, 0), ones(32, 0xFF), up(32);
  for (int i = 0; i < 32; ++i) up[i] = static_cast<std::uint8_t>(i);
  CHECK(Crc32c(zeros) == 0x8A9136AAu);
  CHECK(Crc32c(ones) == 0x62A8AB43u);
  CHECK(Crc32c(up) == 0x46DD794Eu);
  CHECK(Crc32c(AsBytes("123456789")) == 0xE3069283u);
}

TEST_CASE("crc32c: continues over pieces", "[hash]") {
  const std::string text = "a penstock brings water to a turbine";
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    auto a = AsBytes(text).first(cut), b = AsBytes(text).subspan(cut);
    CHECK(Crc32c(b, Crc32c(a)) == Crc32c(AsBytes(text)));
  }
}

TEST_CASE("sha256 and hex: FIPS 180 vector", "[hash]") {
  CHECK(Hex(Sha256Of("abc")) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  Digest256 back{};
  CHECK(ParseHex(Hex(Sha256Of("abc")), back));
  CHECK(back == Sha256Of("abc"));
  CHECK_FALSE(ParseHex("0g", std::span(back).first(1)));
}

TEST_CASE("xxh3: stream equals one shot, both widths", "[hash]") {
  std::string data(5000, '\0');
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<char>(i * 7);
  Xxh3Stream s;
  s.Update(AsBytes(data).first(123));
  s.Update(AsBytes(data).subspan(123));
  CHECK(s.Digest64() == Xxh3_64(AsBytes(data)));
  CHECK(s.Digest() == Xxh3_128(AsBytes(data)));
  // Empty input, from the xxHash specification's reference output.
  CHECK(Hex(Xxh3_128({})) == "99aa06d3014798d86001c324468d497f");
}

}  // namespace
}  // namespace penstock::hash
