#ifndef PENSTOCK_SERVER_IMPORT_TRACK_ROWS_H_
#define PENSTOCK_SERVER_IMPORT_TRACK_ROWS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/format/capture_index.h"
#include "server/import/capture_ingest.h"
#include "server/import/shard_writer.h"

namespace penstock::import {

// Which of the capture's videos, audios, … a track is.
struct TrackPlace {
  std::size_t index = 0;
};

// The tracks of a capture in their final order: videos, audios, sidecars, text,
// spans; index ranges are filled in by the shard writer.
struct CaptureTracks {
  std::vector<format::TrackRow> rows;
  std::vector<TrackPlace> places;
  std::vector<WrittenTrack> written;
  std::vector<std::vector<format::RunRow>> runs;  // by track
  std::vector<TextMapping> spans;  // text: kind, author: detector
  std::int64_t duration_ns = 0;
};

// kInvalidArgument: two tracks of one name
absl::StatusOr<CaptureTracks> MakeTracks(const IngestedCapture& capture);

}  // namespace penstock::import

#endif  // PENSTOCK_SERVER_IMPORT_TRACK_ROWS_H_
