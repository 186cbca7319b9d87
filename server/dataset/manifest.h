#ifndef PENSTOCK_SERVER_DATASET_MANIFEST_H_
#define PENSTOCK_SERVER_DATASET_MANIFEST_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::dataset {

inline constexpr char kManifestFile[] = "manifest.json";
inline constexpr char kCatalogFile[] = "catalog.sqlite";
inline constexpr char kCaptureIndexFile[] = "captures.pidx";

inline constexpr std::size_t kManifestBytesMax = 256u << 20;
inline constexpr int kManifestMajor = 1;
inline constexpr int kManifestMinor = 0;

// A file of a dataset version.
struct ManifestFile {
  std::string path;  // relative to the dataset, '/' between parts
  std::uint64_t bytes = 0;
  std::string sha256;  // 64 hex digits
  friend bool operator==(const ManifestFile&, const ManifestFile&) = default;
};

// manifest.json as values. JSON texts are kept as JSON inside the manifest.
struct Manifest {
  std::string id;             // dataset id, 64 hex digits
  std::string schema = "{}";  // JSON text; EncodeManifest makes it canonical
  std::string contract;       // name of the contract asked for, or empty
  std::string verdict = "uncertified";
  std::string lineage = "{}";  // JSON text: parents, tool, parameters, sources
  std::string split_rule = "null";  // JSON text: salt, group key, cut points
  std::vector<ManifestFile>
      files;  // every file but manifest.json; sorted by path
  std::vector<std::string> shards;  // paths in shard order; each is in `files`

  // The entry of `files` with this path, or null. O(log files).
  const ManifestFile* Find(std::string_view path) const;
};

// Canonical JSON: compact, keys sorted, UTF-8 as it is.
//
// kInvalidArgument: not JSON, or not UTF-8
absl::StatusOr<std::string> CanonicalJson(std::string_view json_text);

// The bytes of manifest.json: indented JSON with sorted keys whose last field
// is "digest": SHA-256 (hex) of the canonical JSON of all other fields. Sorts
// `files`. Same manifest, same bytes.
//
// kInvalidArgument: a JSON text does not parse; a path, id or hash that
//                   ParseManifest would refuse
absl::StatusOr<std::string> EncodeManifest(Manifest manifest);

// Parses and checks the bytes of manifest.json. They must be exactly what
// EncodeManifest writes for their values, so that any flipped bit is found.
// `where` is the path for messages.
//
// kDataLoss:           not JSON, digest differs, not the canonical bytes,
// larger
//                      than kManifestBytesMax, a field of the wrong type
// kFailedPrecondition: an unknown major version
// kInvalidArgument:    a path that is absolute, has "..", or a shard that is
//                      not in the file list
absl::StatusOr<Manifest> ParseManifest(std::string_view text,
                                       std::string_view where);

// OK when `path` may name a file of a dataset: relative, no empty, "." or ".."
// part, no backslash or control character, at most 1024 bytes.
//
// kInvalidArgument: otherwise
absl::Status CheckRelativePath(std::string_view path, std::string_view where);

}  // namespace penstock::dataset

#endif  // PENSTOCK_SERVER_DATASET_MANIFEST_H_
