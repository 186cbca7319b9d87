#ifndef PENSTOCK_SERVER_IMPORT_IMPORTER_H_
#define PENSTOCK_SERVER_IMPORT_IMPORTER_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "server/import/capture_ingest.h"

namespace penstock::import {

struct ImportOptions {
  std::vector<std::string> sources;  // files and folders
  std::string out;                   // the dataset's folder; must not exist
  int jobs = 1;
  bool skip_bad = false;  // leave out captures that are refused, and say so
  std::uint64_t shard_bytes = 256ull << 20;
};

// One capture done or refused, as it happens.
struct ImportProgress {
  std::size_t done = 0, total = 0;
  std::string source;
  absl::Status status;
};

struct ImportedCapture {
  std::string source, id, title;
  std::uint64_t frames = 0, lost_frames = 0, damaged_frames = 0;
  std::vector<std::string> notes;
};

struct ImportReport {
  std::string dataset_id;
  std::vector<ImportedCapture> captures;  // in the order of their ids
  std::vector<std::pair<std::string, absl::Status>> refused;
  std::uint64_t bytes = 0;  // of the shards
  std::size_t shards = 0;
  bool HasLoss() const;  // frames lost or damaged, or captures left out
};

// Turns captures into a dataset version: everything is written beside `out` in
// OUT.importing and renamed at the end, so that `out` is whole or not there. An
// interrupted import is cleaned up by the next one. The same sources give the
// same dataset id, whatever `jobs` and the order of `sources`.
//
// Threading: starts `jobs` threads; `progress` is called from any, one at a
//   time. `cancel` may be set from a signal handler.
//
// kInvalidArgument, kNotFound, kUnimplemented: sources (all bad ones are listed)
// kAlreadyExists:     `out` is there
// kFailedPrecondition: another import writes to the same place
// kResourceExhausted: the disk is full
absl::StatusOr<ImportReport> Import(
    const ImportOptions& options, const std::atomic<bool>& cancel,
    const std::function<void(const ImportProgress&)>& progress);

}  // namespace penstock::import

#endif  // PENSTOCK_SERVER_IMPORT_IMPORTER_H_
