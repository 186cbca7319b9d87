#include "server/dataset/dataset_id.h"

#include <array>

namespace penstock::dataset {
namespace {

// u64 little-endian.
std::array<std::uint8_t, 8> Length(std::uint64_t n) {
  std::array<std::uint8_t, 8> out;
  for (int i = 0; i < 8; ++i) out[i] = static_cast<std::uint8_t>(n >> (8 * i));
  return out;
}

void Part(hash::Sha256& sha, std::string_view name, hash::Bytes bytes) {
  sha.Update(Length(name.size()));
  sha.Update(name);
  sha.Update(Length(bytes.size()));
  sha.Update(bytes);
}

Digest256 OverDigests(std::string_view domain,
                      std::span<const Digest256> digests) {
  hash::Sha256 sha;
  sha.Update(domain);
  sha.Update(Length(digests.size()));
  for (const Digest256& d : digests) sha.Update(hash::Bytes(d));
  return sha.Finish();
}

}  // namespace

Digest256 ComputeDatasetId(std::string_view schema,
                           std::string_view canonical_rows,
                           hash::Bytes capture_index,
                           std::span<const Digest256> shards) {
  hash::Sha256 sha;
  sha.Update(std::string_view("penstock.dataset.id.v1\n"));
  Part(sha, "schema", hash::AsBytes(schema));
  Part(sha, "rows", hash::AsBytes(canonical_rows));
  Part(sha, "captures.pidx", capture_index);
  Part(sha, "shards", OverDigests("penstock.dataset.shards.v1\n", shards));
  return sha.Finish();
}

Digest256 SelectionDigest(std::span<const Digest256> capture_ids) {
  return OverDigests("penstock.selection.v1\n", capture_ids);
}

}  // namespace penstock::dataset
