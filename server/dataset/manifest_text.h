#ifndef PENSTOCK_SERVER_DATASET_MANIFEST_TEXT_H_
#define PENSTOCK_SERVER_DATASET_MANIFEST_TEXT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/types/ids.h"
#include "server/dataset/manifest.h"

// The bytes of manifest.json in one pass. Private to server/dataset.
namespace penstock::dataset {

inline constexpr int kManifestDepthMax = 64;

// What the bytes say, not yet judged: ParseManifest does.
struct ManifestText {
  std::string fault;  // not JSON, and where; empty: JSON
  bool object = false;
  std::string format;
  std::optional<std::uint64_t> major;
  std::optional<std::string> listed;  // field "digest"
  Digest256 digest{};                 // of all other fields
  // First byte that is not as EncodeManifest writes these values.
  std::optional<std::size_t> stray;
  std::string missing;  // first field that is absent or of another type
  Manifest manifest;    // files and shards in the order of the bytes
};

// Linear in the text; keeps the values alone, no tree of them.
ManifestText ReadManifestText(std::string_view text);

}  // namespace penstock::dataset

#endif  // PENSTOCK_SERVER_DATASET_MANIFEST_TEXT_H_
