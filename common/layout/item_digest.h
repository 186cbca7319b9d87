#ifndef PENSTOCK_COMMON_LAYOUT_ITEM_DIGEST_H_
#define PENSTOCK_COMMON_LAYOUT_ITEM_DIGEST_H_

#include <cstdint>
#include <span>
#include <vector>

#include "common/types/ids.h"

// Digests of what is delivered. All are XXH3-128 (seed 0); a digest inside
// another is its canonical 16 bytes: high half first, each half big-endian.
//
//   chunk digest  = XXH3-128(bytes of the chunk)
//   item digest   = XXH3-128(chunk digests of tensor 0, of tensor 1, …)
//   batch digest  = XXH3-128(item digests in global item order)
//
// Chunks of a video tensor are its frames [C,H,W] or [H,W,C], in order of T.
// Chunks of any other tensor are 64 KiB pieces of its bytes in the item, the
// last one shorter; a tensor of 0 bytes has none. Bytes are those the daemon
// ships (little-endian), before any slicing for tp, cp or pp.
namespace penstock::layout {

inline constexpr std::uint64_t kDigestChunkBytes = 64u << 10;

// Digests of the 64 KiB pieces of `bytes`, appended to `chunks`.
void AppendChunkDigests(std::span<const std::uint8_t> bytes,
                        std::vector<Digest128>& chunks);

// Likewise with pieces of `chunk_bytes` (a frame), for video that did not come
// with digests from a worker.
void AppendChunkDigests(std::span<const std::uint8_t> bytes,
                        std::uint64_t chunk_bytes,
                        std::vector<Digest128>& chunks);

// Item digest from chunk digests, and batch digest from item digests.
Digest128 DigestOfDigests(std::span<const Digest128> digests);

}  // namespace penstock::layout

#endif  // PENSTOCK_COMMON_LAYOUT_ITEM_DIGEST_H_
