#ifndef PENSTOCK_SERVER_IMPORT_MAPPING_H_
#define PENSTOCK_SERVER_IMPORT_MAPPING_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "common/format/capture_index.h"

namespace penstock::import {

struct Column {
  std::string name;
  bool floating = false;  // f64, else i64
  std::string unit;
};

// How the rows of a sidecar get their times.
struct Clock {
  std::string field;            // of each row; empty: by tick or by frame
  std::int64_t unit_ns = 1;     // ns in one unit of the field
  std::int64_t offset_ns = 0;   // added after scaling
};

// A track that comes from a file beside the video.
struct SidecarMapping {
  std::string name;
  format::TrackKind kind = format::TrackKind::kEvents;
  std::string file;
  Clock clock;
  std::string source;  // events: human, injected, inferred, unknown
  std::string index_field;             // tick or frame number, may be empty
  std::uint64_t rate_num = 0, rate_den = 1;  // ticks/s
  std::int64_t first_index = 0, first_ns = 0;
  std::uint64_t tail_max = 0;  // frames: rows that may be missing or too many
  std::vector<Column> columns;
};

struct TextMapping {
  std::int64_t start_ns = 0, end_ns = INT64_MAX;
  std::string language, author, text;
};

// What capture.json declares of one capture.
struct CaptureMapping {
  std::string title, session, player, licence, origin;
  std::vector<std::pair<std::string, std::string>> conditions;
  std::string video;  // file name beside capture.json; empty: the only one
  std::vector<SidecarMapping> sidecars;
  std::vector<TextMapping> texts;
};

// Parses capture.json; every problem is named with its JSON path, and unknown
// fields with the nearest known one. `where` is the file's path.
//
// kInvalidArgument: not JSON, a field unknown, missing or of the wrong type
absl::StatusOr<CaptureMapping> ParseMapping(const std::string& text,
                                            const std::string& where);

}  // namespace penstock::import

#endif  // PENSTOCK_SERVER_IMPORT_MAPPING_H_
