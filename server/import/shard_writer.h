#ifndef PENSTOCK_SERVER_IMPORT_SHARD_WRITER_H_
#define PENSTOCK_SERVER_IMPORT_SHARD_WRITER_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/format/shard.h"
#include "server/import/capture_ingest.h"

namespace penstock::import {

// A track of the dataset with what the catalogue wants to know beside its row.
struct WrittenTrack {
  std::string name, kind, codec;
  std::string schema = "{}", details = "{}";  // JSON
};

struct WrittenCapture {
  std::vector<WrittenTrack> tracks;
  std::vector<TextMapping> spans;  // text: kind, author: detector
};

// Writes captures into shards, extent by extent, and collects the rows of the
// capture index. Captures come in the order of their ids.
//
// Threading: one thread. Bounds: one extent in memory.
// Stopping: Finish() closes the last shard; a shard that is not finished keeps
//   the name NAME.partial.
class ShardWriter {
 public:
  // Shards go to `dir`/00000.pshard, … and are closed at the first extent end
  // past `shard_bytes`.
  ShardWriter(std::string dir, std::uint64_t shard_bytes);
  ~ShardWriter();

  // kResourceExhausted: the disk is full; others: I/O
  absl::StatusOr<WrittenCapture> Add(IngestedCapture& capture);
  absl::Status Finish();

  const format::CaptureIndexRows& rows() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace penstock::import

#endif  // PENSTOCK_SERVER_IMPORT_SHARD_WRITER_H_
