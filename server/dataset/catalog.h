#ifndef PENSTOCK_SERVER_DATASET_CATALOG_H_
#define PENSTOCK_SERVER_DATASET_CATALOG_H_

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/dataset/records.h"

namespace penstock::dataset {

// Writes catalog.sqlite of a dataset being imported.
//
// Threading: one thread. Order: captures and tracks come in the order of their
//   ordinals (0, 1, …), a track after its capture; spans in any order.
// Bounds: rows go to the file in one transaction; the canonical rows are kept
//   in memory (about 200 bytes a row).
// Stopping: Finish() commits, closes and leaves one file without journal or
//   WAL; destroying an unfinished writer removes the file.
class CatalogWriter {
 public:
  // kAlreadyExists: a file is there; kUnavailable and others: SQLite
  static absl::StatusOr<std::unique_ptr<CatalogWriter>> Create(
      const std::string& path);
  ~CatalogWriter();

  // kInvalidArgument: ordinals out of order, a text that is not UTF-8, a JSON
  //                   text that does not parse, a name or key twice
  absl::Status AddCapture(const CaptureRecord& record);
  absl::Status AddTrack(const TrackRecord& record);
  absl::Status AddSpan(const SpanRecord& record);
  absl::Status Finish();

  // What of the rows goes into the dataset id; see README.md for the text.
  // Leaves out: source, detector, version. Call any time after the last Add.
  std::string CanonicalRows() const;

 private:
  struct Impl;
  explicit CatalogWriter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The canonical rows of a finished catalogue, read back from the file: equal to
// what the writer gave. For verify.
//
// kDataLoss: not a catalogue
absl::StatusOr<std::string> ReadCanonicalRows(const std::string& path);

}  // namespace penstock::dataset

#endif  // PENSTOCK_SERVER_DATASET_CATALOG_H_
