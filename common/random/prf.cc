#include "common/random/prf.h"

#include <array>

#include "common/hash/hash.h"

namespace penstock::random {
namespace {

void PutU64(hash::Sha256& sha, std::uint64_t v) {
  std::array<std::uint8_t, 8> bytes;
  for (int i = 0; i < 8; ++i)
    bytes[i] = static_cast<std::uint8_t>(v >> (8 * i));
  sha.Update(hash::Bytes(bytes));
}

void PutText(hash::Sha256& sha, std::string_view text) {
  PutU64(sha, text.size());
  sha.Update(text);
}

std::uint64_t GetU64(const Digest256& digest, int at) {
  std::uint64_t v = 0;
  for (int i = 7; i >= 0; --i) v = v << 8 | digest[at + i];
  return v;
}

}  // namespace

Key MakeKey(Seed seed, std::string_view domain, std::string_view name,
            std::uint64_t index) {
  hash::Sha256 sha;
  sha.Update(std::string_view("penstock.random.v1\n"));
  PutU64(sha, seed.value);
  PutText(sha, domain);
  PutText(sha, name);
  PutU64(sha, index);
  const Digest256 digest = sha.Finish();
  return {.k0 = GetU64(digest, 0), .k1 = GetU64(digest, 8)};
}

}  // namespace penstock::random
