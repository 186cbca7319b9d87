#ifndef PENSTOCK_SERVER_DATASET_RECORDS_H_
#define PENSTOCK_SERVER_DATASET_RECORDS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "common/types/ids.h"

// Rows of the catalogue as plain values. Ordinals are row numbers of the
// sections of captures.pidx.
namespace penstock::dataset {

struct CaptureRecord {
  std::uint32_t ord = 0;
  Digest256 id{};
  std::string source;  // where it came from; not in the dataset id
  std::string title, session, player, licence;
  double duration_s = 0;
  std::uint64_t frames = 0;  // of the first video track
  std::uint32_t width = 0, height = 0;
  double fps = 0;             // 0 unknown or variable
  std::uint64_t damaged = 0;  // damaged frames
  // Sorted by key when written; a key once.
  std::vector<std::pair<std::string, std::string>> conditions;
};

struct TrackRecord {
  std::uint32_t ord = 0;      // row of the track section
  std::uint32_t capture = 0;  // row of the capture section
  std::uint32_t ordinal = 0;  // inside the capture
  std::string name;           // unique in the capture
  std::string kind;           // "video", "audio", "events", "ticks", …
  std::string codec;
  std::uint64_t rows = 0;
  std::string schema = "{}";   // JSON: columns (name, type, unit), dictionary
  std::string details = "{}";  // JSON, free: pixel format, colour, lineage
};

struct SpanRecord {
  std::uint32_t capture = 0;
  std::uint32_t track = 0;  // row of the track section
  std::string kind;         // "gap", "damage", "menu", …
  std::int64_t begin_ns = 0, end_ns = 0;
  std::string detector, version;  // not in the dataset id
};

}  // namespace penstock::dataset

#endif  // PENSTOCK_SERVER_DATASET_RECORDS_H_
