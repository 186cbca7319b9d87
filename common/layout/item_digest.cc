#include "common/layout/item_digest.h"

#include <algorithm>

#include "common/hash/hash.h"

namespace penstock::layout {

void AppendChunkDigests(std::span<const std::uint8_t> bytes,
                        std::uint64_t chunk_bytes,
                        std::vector<Digest128>& chunks) {
  while (!bytes.empty()) {
    const auto n = std::min<std::uint64_t>(chunk_bytes, bytes.size());
    chunks.push_back(hash::Xxh3_128(bytes.first(n)));
    bytes = bytes.subspan(n);
  }
}

void AppendChunkDigests(std::span<const std::uint8_t> bytes,
                        std::vector<Digest128>& chunks) {
  AppendChunkDigests(bytes, kDigestChunkBytes, chunks);
}

Digest128 DigestOfDigests(std::span<const Digest128> digests) {
  std::vector<std::uint8_t> canonical;
  canonical.reserve(digests.size() * 16);
  for (const Digest128& d : digests) {
    for (const std::uint64_t half : {d.high, d.low}) {
      for (int shift = 56; shift >= 0; shift -= 8) {
        canonical.push_back(static_cast<std::uint8_t>(half >> shift));
      }
    }
  }
  return hash::Xxh3_128(canonical);
}

}  // namespace penstock::layout
