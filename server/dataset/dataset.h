#ifndef PENSTOCK_SERVER_DATASET_DATASET_H_
#define PENSTOCK_SERVER_DATASET_DATASET_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "common/format/capture_index.h"
#include "server/dataset/manifest.h"
#include "server/dataset/records.h"

namespace penstock::dataset {

// What tells a dataset version as it was from any other, without parsing its
// manifest: that one's bytes, size and time of the other two.
struct DatasetStamp {
  std::string id;  // as the manifest says it, unchecked
  std::uint64_t manifest_bytes = 0, index_bytes = 0, catalog_bytes = 0;
  Digest128 manifest_xxh3{};
  std::int64_t index_time_ns = 0, catalog_time_ns = 0;
  friend bool operator==(const DatasetStamp&, const DatasetStamp&) = default;

  // Reads the manifest once, in parts. kNotFound, kDataLoss: as Dataset::Open,
  // or a manifest without an id
  static absl::StatusOr<DatasetStamp> Of(const std::string& dir);
};

// A dataset version opened for reading: manifest, catalogue, mapped capture
// index. Opens no shard.
//
// Threading: any thread; the catalogue's one connection is behind a mutex, the
//   index is read without it.
// Ownership: index() views the mapping and lives as long as the Dataset.
// Bounds: the manifest in memory, the index mapped (not read at open); a filter
//   has a budget of SQLite instructions, 1 MiB a value (README.md).
class Dataset {
 public:
  // Checks the manifest's digest and that index and catalogue have the listed
  // sizes; hashes neither (`verify` does).
  //
  // kNotFound:           no such folder; no manifest in it
  // kDataLoss:           manifest, index or catalogue damaged or cut off
  // kFailedPrecondition: a format version this build does not read
  static absl::StatusOr<std::unique_ptr<Dataset>> Open(const std::string& dir);
  // A version that Open() opened when its stamp was `stamp`: reads no manifest and
  // opens no catalogue before they are needed. Errors: as Open, of the index
  static absl::StatusOr<std::unique_ptr<Dataset>> OpenAs(
      const std::string& dir, const DatasetStamp& stamp);
  ~Dataset();

  const std::string& dir() const;
  const std::string& id() const;  // 64 hex digits
  // Parses it when OpenAs() did not. Errors: as Open
  absl::StatusOr<const Manifest*> manifest() const;
  const format::CaptureIndexView& index() const;
  std::span<const std::uint8_t> index_bytes() const;

  // kOutOfRange: no such row
  absl::StatusOr<CaptureRecord> Capture(std::uint32_t capture) const;
  absl::StatusOr<TrackRecord> Track(std::uint32_t track) const;
  // Tracks of a capture, by ordinal.
  absl::StatusOr<std::vector<TrackRecord>> TracksOf(
      std::uint32_t capture) const;
  absl::StatusOr<std::vector<SpanRecord>> SpansOf(std::uint32_t capture) const;

  // The row (track section) of a track of this kind and name in each capture;
  // an empty name takes the capture's first of the kind.
  //
  // kNotFound: names the first capture that has none, and the names it has
  absl::StatusOr<std::vector<std::uint32_t>> FindTracks(
      std::span<const std::uint32_t> captures, format::TrackKind kind,
      std::string_view name) const;

  // The stratum of each capture: the values of the columns `by`, joined by "|".
  absl::StatusOr<std::vector<std::string>> Labels(
      std::span<const std::uint32_t> captures,
      std::span<const std::string> by) const;

  // Absolute path of a shard by its ordinal. kOutOfRange: no such shard
  absl::StatusOr<std::string> ShardPath(std::uint32_t shard) const;

  // The captures that satisfy an SQL predicate, in ordinal order (= by id).
  // Columns, and what may not be used: README.md "Filters". Empty: all.
  //
  // kInvalidArgument:   does not parse, names an unknown column, uses what is
  //                     not allowed (says what)
  // kResourceExhausted: needs more steps, memory or text than the limits
  absl::StatusOr<std::vector<std::uint32_t>> Select(
      std::string_view filter) const;

  // SelectionDigest over the ids of these captures.
  Digest256 DigestOf(std::span<const std::uint32_t> captures) const;

 private:
  struct Impl;
  explicit Dataset(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::dataset

#endif  // PENSTOCK_SERVER_DATASET_DATASET_H_
